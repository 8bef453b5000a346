"""On which memories a pointwise function adds nothing to the words of a grammar.

On finitely many graphs a function of the channels of a memory X equals a polynomial in them. So it
adds nothing if the product X⊙X of any two words is a word and, for its constant term, if the
constant of X (1, 1ᵀ, 1·1ᵀ) is a word. Both are decided exactly for rules without sums and
functions; if only a rule with a sum or a function could make the word, the answer is no.

The search is finite: rules glue patterns, and gluing removes neither edges nor inner vertices. So a
word equal to P⊙Q consists of parts whose vertices are all on the boundary and whose edges are P and
Q, each at most once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from ..language.operations import Operation, registered_operations
from ..language.patterns import BARE, DIAGONAL, Pattern, normal_form
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import Apply, Hole, Leaf, Term, apply, fill, multilinear
from .grammar import Grammar
from .network_rules import ONES
from .rules import Rule

CONSTANTS = {sort: word for sort, word in ONES.items() if sort != S}
"""The word a bias of a memory stands for; a scalar's is a number and no word."""

_FULL = Pattern(2, (), (0, 1))
_CONSTANT_PATTERNS = {V: BARE, R: BARE, M: _FULL}
_FACTORS = ("factor 0", "factor 1")
"""No leaf of a grammar is called so."""


@dataclass(frozen=True)
class FreeFunctions:
    """What a grammar's words already give of functions of one memory."""

    rule: bool  # f(X) is a rule: any function, with its constant
    products: bool  # X⊙X is derivable
    constant: bool  # the constant of X is derivable
    identity: bool  # I is derivable

    @property
    def mlp(self) -> bool:
        """Whether an MLP without biases adds nothing."""
        return self.rule or self.products

    @property
    def bias(self) -> bool:
        """Whether the biases of an MLP add nothing."""
        return self.rule or self.constant


def free_functions(grammar: Grammar, sort: Sort) -> FreeFunctions:
    """What is free on the memory of a variable, in the words of a grammar."""
    return _free_functions(grammar, sort, registered_operations())


@lru_cache(maxsize=1000)
def _free_functions(
    grammar: Grammar, sort: Sort, operations: tuple[Operation, ...]
) -> FreeFunctions:
    """The same; what an operation's name means is part of the question."""
    patterns = _closure(grammar, sort)
    target = normal_form(apply("hadamard", *(Leaf(name, sort) for name in _FACTORS)), "none")
    constant = sort in CONSTANTS and _CONSTANT_PATTERNS[sort] in patterns.get(sort, {})
    return FreeFunctions(
        rule=any(_is_function(rule, sort) for rule in grammar.rules),
        products=any(pattern in patterns.get(sort, {}) for pattern in target),
        constant=constant,
        identity=DIAGONAL in patterns.get(M, {}),
    )


def _is_function(rule: Rule, sort: Sort) -> bool:
    body = rule.body
    return (
        rule.head == sort
        and isinstance(body, Apply)
        and body.function == "f"
        and body.args == (Hole(sort),)
    )


def _closure(grammar: Grammar, sort: Sort) -> dict[Sort, dict[Pattern, Term]]:
    """All patterns of words made of P and Q that can be part of P⊙Q, with a word of each."""
    rules = [rule for rule in grammar.rules if multilinear(rule.body)]
    patterns: dict[Sort, dict[Pattern, Term]] = {}
    for name in _FACTORS:
        _keep(Leaf(name, sort), patterns)
    grew = True
    while grew:
        grew = False
        for rule in rules:
            for operands in product(*(list(patterns.get(hole, {}).items()) for hole in rule.holes)):
                labels = [edge.label for pattern, _ in operands for edge in pattern.edges]
                if len(labels) == len(set(labels)):
                    grew |= _keep(fill(rule.body, [term for _, term in operands]), patterns)
    return patterns


def _keep(term: Term, by_sort: dict[Sort, dict[Pattern, Term]]) -> bool:
    """Add a word whose pattern can be part of P⊙Q; whether it is new."""
    (pattern,) = normal_form(term, "none")
    inner = set(range(pattern.vertices)) - set(pattern.boundary)
    if inner or any(edge.label not in _FACTORS for edge in pattern.edges):
        return False
    patterns = by_sort.setdefault(term.sort, {})
    is_new = pattern not in patterns
    patterns.setdefault(pattern, term)
    return is_new


def identity_is_a_word(grammar: Grammar) -> bool:
    """Whether I can be derived."""
    return free_functions(grammar, M).identity
