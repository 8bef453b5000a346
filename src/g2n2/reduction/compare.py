"""Compare the power of two grammars by simulation, both ways, with and without functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Literal

from ..grammars.grammar import Grammar, Rule
from ..grammars.network_rules import ONES
from ..language.patterns import Assumption
from ..language.sorts import M, R, S, V
from ..language.terms import (
    HOLLOW,
    IDENTITY,
    ONE,
    Apply,
    Hole,
    Leaf,
    MarkSum,
    Number,
    Term,
    apply,
    holes,
    leaves,
    multilinear,
    substitute,
    subterms,
)
from .certificates import certificate
from .checker import check
from .invariants import Claim, Form
from .lemmas import is_free
from .marks import MarkedProof
from .obligation_checker import FUNCTIONS
from .reduce import include
from .simulation import Proof, first_failure

Mode = Literal["words", "with f"]
MODES: tuple[Mode, ...] = ("words", "with f")
Status = Literal["proved", "separated", "open"]

_RELATIONS: dict[tuple[Status, Status], str] = {
    ("proved", "proved"): "≡",
    ("proved", "separated"): "⊊",
    ("proved", "open"): "⊆",
    ("separated", "proved"): "⊋",
    ("separated", "separated"): "incomparable",
    ("separated", "open"): "⊈",
    ("open", "proved"): "⊇",
    ("open", "separated"): "⊉",
    ("open", "open"): "open",
}

_FORMS: tuple[Form, ...] = ("plain", "shape", "action", "broadcast")


@dataclass(frozen=True)
class Inclusion:
    """Whether one grammar's sentences tell no more apart than the other's."""

    # `proved` by simulation; `separated`: a pair of graphs refutes it; or `open`: no proof found,
    # which refutes nothing
    status: Status
    larger: Grammar  # the grammar that was simulated, supports and sums written out
    proof: Proof | MarkedProof | None = None  # the simulation
    cited: tuple[str, ...] = ()  # lemmas used besides it
    reason: str = ""  # why there is no proof
    witness: dict[str, Any] | None = None  # graphs and a sentence that refute it


@dataclass(frozen=True)
class Comparison:
    """How two grammars stand to each other.

    Attributes:
        left: The first grammar.
        right: The second.
        mode: `words`, or `with f`: with sums and pointwise functions.
        assume: What is known of A.
        forward: Whether the right grammar is at least as strong as the left, with the evidence.
        backward: Whether the left grammar is at least as strong as the right.
    """

    left: Grammar
    right: Grammar
    mode: Mode
    assume: Assumption
    forward: Inclusion
    backward: Inclusion

    @property
    def relation(self) -> str:
        """≡, ⊊, ⊋, `incomparable`, or as much of it as is settled."""
        return _RELATIONS[self.forward.status, self.backward.status]


def compare(
    left: Grammar, right: Grammar, mode: Mode = "words", assume: Assumption = "symmetric"
) -> Comparison:
    """Compare the graph-level power of two grammars."""
    if mode == "words":
        forward, backward = included(left, right, assume), included(right, left, assume)
    else:
        a, b = with_functions(left), with_functions(right)
        forward, backward = _citing(included(a, b, assume)), _citing(included(b, a, assume))
    return Comparison(left, right, mode, assume, forward, backward)


def _citing(inclusion: Inclusion) -> Inclusion:
    if inclusion.status != "proved" or not inclusion.larger.sentence_rules:
        return inclusion
    lemma = "sums and functions are as strong as Hadamard products and constants"
    return replace(inclusion, cited=(*inclusion.cited, lemma))


def with_functions(grammar: Grammar) -> Grammar:
    """The grammar with what sums and pointwise functions give: Hadamard products and constants.

    With x ↦ x² and sums, 2·(u⊙v) = (u + v)² − u² − v²; a constant function gives 1 or 1·1ᵀ. The
    converse is the lemma that functions are free once these are there. Functions of scalars add
    nothing: a scalar that is equal on two graphs is a constant to them.
    """
    rules = list(grammar.all_rules)
    for sort in (x for x in (V, R, M) if grammar.of_sort(x)):
        rules += [Rule(sort, apply("hadamard", Hole(sort), Hole(sort))), Rule(sort, ONES[sort])]
    for sort in (x for x in grammar.variables if x.scope):
        rules.append(Rule(sort, apply("hadamard", Hole(sort), Hole(sort))))
        rules += [Rule(sort, ONES[sort.plain])] if sort.plain != S else []
    name = f"{grammar.name} with f"
    return Grammar.of(rules, name, grammar.supports, default_readout=False)


def included(larger: Grammar, smaller: Grammar, assume: Assumption) -> Inclusion:
    """Try to prove that `smaller` tells apart all that `larger` does; the checker has to agree."""
    larger, smaller = (
        g if g.marked or not g.scope else g.reachable_part() for g in (larger, smaller)
    )
    target = _supports_defined(smaller)
    if not larger.sentence_rules:  # it tells nothing apart: nothing is owed, whatever its rules
        silent = _supports_defined(larger)
        return Inclusion("proved", silent, include(silent, target, assume, "graph", ("plain",)))
    written, cited, reason = written_out(larger, smaller)
    if reason:
        return Inclusion("open", written, reason=reason)
    forms = (*_FORMS, "diagonal") if assume == "simple" else _FORMS
    proof = include(written, target, assume, "graph", forms)
    if proof is None:
        return Inclusion("open", written, reason=_why(written, target, assume))
    verdict = check(certificate(proof.claim.larger, proof.claim.smaller, [proof]))
    if not verdict.valid:
        reason = f"the search has a proof, and the checker refuses it: {verdict.failure}"
        return Inclusion("open", written, reason=reason)
    return Inclusion("proved", written, proof, cited)


def _supports_defined(grammar: Grammar) -> Grammar:
    """The grammar with its supports replaced by their definitions."""
    defined = dict(grammar.supports)
    rules = (Rule(r.head, substitute(r.body, defined)) for r in grammar.all_rules)
    return Grammar.of(rules, grammar.name, default_readout=False)


def written_out(larger: Grammar, smaller: Grammar) -> tuple[Grammar, tuple[str, ...], str]:
    """Supports replaced by their definitions, sums by one rule per summand, functions by columns.

    A function of a column of `smaller` is in the span of its columns where f_V is free there; it
    becomes an opaque column u0, u1 …, and its argument a rule to be simulated too.
    """
    defined = dict(larger.supports)
    columns: dict[Term, Leaf] = {}
    rules: list[Rule] = []
    cited: set[str] = set()
    for rule in larger.all_rules:
        summands = list(_summands(_named(substitute(rule.body, defined), columns)))
        rules += [Rule(rule.head, summand) for summand in summands]
        if len(summands) > 1:
            cited.add("a sum is simulated summand by summand")
    for argument in list(columns):
        assert isinstance(argument, Apply)
        inner = _innermost(argument)
        rules += [Rule(V, part) for part in _summands(inner)]
    kept = [r for r in rules if not (isinstance(r.body, Hole) and r.body.scope == r.head.scope)]
    grammar = Grammar.of(kept, larger.name, default_readout=False)
    if columns:
        cited.add(
            "functions of columns are free: " + ", ".join(f"{u} = {t}" for t, u in columns.items())
        )
        if len(columns) > len(FUNCTIONS):
            most = f"has {len(columns)} functions of columns; a certificate names {len(FUNCTIONS)}"
            return grammar, (), f"it {most} at most"
        if not is_free("f_V", smaller):
            return grammar, (), "it applies functions to columns, which are not free in the other"
    shared = {x.name for r in smaller.all_rules for x in leaves(r.body)}
    unknown = sorted({x.name for r in kept for x in leaves(r.body) if x.name[0] == "C"} - shared)
    if unknown and not smaller.of_sort(M):
        verb = "is" if len(unknown) == 1 else "are"
        reason = f"{', '.join(unknown)} {verb} not defined; add a line such as {unknown[0]} = A"
        return grammar, (), f"{reason}, or compare with a grammar that has M, such as L1"
    if unknown:
        kept = _any_supports(kept, unknown, smaller)
        grammar = Grammar.of(kept, larger.name, default_readout=False)
        cited.add(f"if {', '.join(unknown)} are matrix words of {smaller.name or 'the other'}")
    odd = next((r for r in kept if not multilinear(r.body)), None)
    if odd is not None:
        return grammar, (), f"{odd} {_oddity(odd.body)}; no pattern argument"
    return grammar, tuple(sorted(cited)), ""


def _oddity(body: Term) -> str:
    """What a body without sums holds that has no pattern: a function, or else a number."""
    calls = (t for t in subterms(body) if isinstance(t, Apply) and t.function)
    call = next(calls, None)
    return "holds a number" if call is None else f"applies a function to {call.sort.english}"


def _any_supports(rules: list[Rule], unknown: list[str], smaller: Grammar) -> list[Rule]:
    """The rules with undefined supports replaced by any matrix word of the other grammar."""
    any_word: dict[str, Term] = dict.fromkeys(unknown, Hole(M))
    replaced = [Rule(r.head, substitute(r.body, any_word)) for r in rules]
    return [*replaced, *(r for r in smaller.rules if r not in replaced)]


def _named(term: Term, columns: dict[Term, Leaf]) -> Term:
    """Replace closed functions of columns by opaque columns, outermost first; write J out."""
    if term == HOLLOW:
        minus = apply("scale", Number(Fraction(-1)), IDENTITY)
        return apply("add", ONE @ ONE.T, minus)
    if isinstance(term, Apply):
        if term.function and term.sort == V and not holes(term):
            return columns.setdefault(term, Leaf(f"u{len(columns)}", V))
        args = tuple(_named(arg, columns) for arg in term.args)
        return Apply(term.op, args, term.sort, term.function)
    if isinstance(term, MarkSum):
        return MarkSum(term.mark, _named(term.body, columns))
    return term


def _innermost(term: Apply) -> Term:
    """The argument below a chain of pointwise functions."""
    inner: Term = term
    while isinstance(inner, Apply) and inner.function:
        inner = inner.args[0]
    return inner


def _summands(term: Term) -> Iterator[Term]:
    """The summands of a term, sums distributed over everything multilinear, signs dropped."""
    if isinstance(term, MarkSum):
        yield from (MarkSum(term.mark, body) for body in _summands(term.body))
        return
    if isinstance(term, Apply) and term.op == "add":
        for arg in term.args:
            yield from _summands(arg)
    elif isinstance(term, Apply) and term.op == "scale" and isinstance(term.args[0], Number):
        yield from _summands(term.args[1])
    elif isinstance(term, Apply) and not term.function:
        for args in product(*(list(_summands(arg)) for arg in term.args)):
            yield Apply(term.op, tuple(args), term.sort)
    else:
        yield term


def _why(larger: Grammar, smaller: Grammar, assume: Assumption) -> str:
    """The first thing the simpler simulation cannot do, in symbols."""
    if not smaller.sentence_rules:
        return "the other has no sentences: it tells nothing apart"
    if larger.marked or smaller.marked:
        return "no simulation inside the marks, or no laws that bring it out of them"
    form: Form = "shape" if smaller.of_sort(V) else "plain"
    failure = first_failure(Claim(larger, smaller, form, assume))
    if failure is None:
        return "no form of simulation proves it"
    return f"no word for {failure.rule}: {failure.term}"
