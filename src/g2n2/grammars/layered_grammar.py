"""A grammar as layers: constants at depth 0, one round of all rules per layer, sentences on top.

The depth of a word is the number of rule applications on its longest path; a rule without variables
(A, 1, I …) is a constant of depth 0. One layer takes X to span(X, every rule applied to X), for all
sorts at once. The read-out adds no layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ..errors import GrammarError
from ..language.operations import OPERATIONS
from ..language.sorts import M, S, Sort, V
from ..language.terms import DISTANCES, Apply, Hole, Term, leaves, operators, subterms
from .grammar import Grammar, Level
from .rules import ARROWS, Rule, mentions, parse_rules, rule_depth

NETWORK = "network"
_CHOICE = " | "
_NETWORK_READOUT = {V: "1ᵀV", M: "Tr(M) | 1ᵀM1"}
_MARKED_READOUT = {
    V.within(1): "Σ{mark}. 1ᵀV′",
    M.within(1): "Σ{mark}. Tr(M′) | Σ{mark}. 1ᵀM′1",
}
_LEVEL_SORTS: dict[Level, Sort] = {"node": V, "pair": M}


@dataclass(frozen=True)
class LayeredGrammar:
    """What an engine runs."""

    constants: tuple[Rule, ...]  # rules without variables: words of depth 0
    rules: tuple[Rule, ...]  # rules with variables, applied once per layer
    # what is compared: the read-out at graph level, all words of V or M (a bare variable) at node
    # or pair level
    sentences: tuple[Rule, ...]
    supports: tuple[tuple[str, Term], ...]  # definitions of the matrices the rules name besides A
    readout: str  # the read-out in words, for reports
    # whether a body holds a sum, so that only combinations whose coefficients sum to one commute
    # with it
    affine: bool
    marks: tuple[str, ...] = ()  # the names of its marks, the outermost first

    @classmethod
    def of(
        cls, grammar: Grammar, readout: str | None = None, level: Level = "graph"
    ) -> LayeredGrammar:
        """Sort the rules of a grammar into layers, leaving out what no sentence can use.

        The arguments are those of `separate`.
        """
        sentences, shown = _sentences(grammar, readout, level)
        used = _used_rules(grammar, sentences)
        _check_exact(grammar, (*used, *sentences))
        return cls(
            constants=tuple(rule for rule in used if not rule.holes),
            rules=tuple(rule for rule in used if rule.holes),
            sentences=sentences,
            supports=grammar.supports,
            readout=shown,
            marks=grammar.marks,
            affine=any(
                isinstance(part, Apply) and part.op == "add"
                for rule in (*used, *sentences)
                if rule.holes
                for part in subterms(rule.body)
            ),
        )

    @property
    def operations(self) -> frozenset[str]:
        """The operations its words use, supports written out."""
        return frozenset().union(*map(operators, self._bodies()))

    @cached_property
    def scope(self) -> int:
        """How many marks a value may have on the way: so many axes of size n more."""
        return max(map(rule_depth, (*self.constants, *self.rules, *self.sentences)), default=0)

    @property
    def largest_order(self) -> int:
        """The most axes of size n a value has on the way; a matrix at least."""
        orders = [
            OPERATIONS[part.op].contraction(tuple(arg.sort for arg in part.args)).peak
            for body in self._bodies()
            for part in subterms(body)
            if isinstance(part, Apply) and OPERATIONS[part.op].multilinear
        ]
        return max([2, *orders])

    def _bodies(self) -> list[Term]:
        rules = (*self.constants, *self.rules, *self.sentences)
        return [*(rule.body for rule in rules), *(term for _, term in self.supports)]

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """The sorts of the words that are kept between layers."""
        return tuple(dict.fromkeys(rule.head for rule in (*self.constants, *self.rules)))


def _sentences(grammar: Grammar, readout: str | None, level: Level) -> tuple[tuple[Rule, ...], str]:
    name = grammar.name or "the grammar"
    if level != "graph":
        sort = _LEVEL_SORTS[level]
        if not grammar.of_sort(sort):
            hint = "; a node is the pair (i, i) at pair level" if level == "node" else ""
            raise GrammarError(
                f"{name} has no {sort.variable}, so it gives no value to a {level}{hint}"
            )
        return (Rule(sort, Hole(sort)),), f"none; {sort.variable} word by word"
    if readout is None:
        if not grammar.sentence_rules:
            raise GrammarError(
                f"{name} has no read-out; add rules of S or give one, for instance {NETWORK!r} or "
                "'S → 1ᵀV'"
            )
        return grammar.sentence_rules, grammar.readout_text
    text = readout
    if readout == NETWORK:
        text = f"S → {_network_readout(grammar)}"
    lines = [line for line in re.split(r"[\n;]", text) if line.strip()]
    rules = tuple(
        rule
        for line in lines
        for rule in parse_rules(line if any(a in line for a in ARROWS) else f"S → {line}")
    )
    if not rules:
        raise GrammarError("the read-out is empty; write for instance 'S → 1ᵀV'")
    for rule in rules:
        if rule.head != S:
            raise GrammarError(f"{rule} is no read-out: rules of S are expected")
        missing = [hole for hole in rule.holes if not grammar.of_sort(hole)]
        if missing:
            raise GrammarError(
                f"the read-out {rule.body_text()} needs {missing[0].variable}, which {name} does "
                "not have"
            )
    return rules, _CHOICE.join(rule.body_text() for rule in rules)


def _network_readout(grammar: Grammar) -> str:
    """Sums over a memory; with a mark, of what is inside it, over the mark."""
    name = grammar.name or "the grammar"
    if grammar.scope > 1:
        raise GrammarError(
            f"{name} has {grammar.scope} marks, whose sums its network takes by the grammar's own "
            "rules: leave the read-out out"
        )
    parts = {sort: text for sort, text in _NETWORK_READOUT.items() if grammar.of_sort(sort)}
    if parts:
        return _CHOICE.join(parts.values())
    inside = {sort: text for sort, text in _MARKED_READOUT.items() if grammar.of_sort(sort)}
    if not inside:
        raise GrammarError(f"{name} has neither V nor M, so a network has nothing to read out")
    (mark,) = grammar.marks
    return _CHOICE.join(text.format(mark=mark) for text in inside.values())


def _used_rules(grammar: Grammar, sentences: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules whose words can end up in a sentence."""
    reached = {hole for rule in sentences for hole in rule.holes}
    while True:
        used = tuple(rule for rule in grammar.all_rules if rule.head in reached)
        if all(hole in reached for rule in used for hole in rule.holes):
            return used
        reached |= {hole for rule in used for hole in rule.holes}


def _check_exact(grammar: Grammar, rules: Iterable[Rule]) -> None:
    """Refuse what has no value modulo a prime."""
    definitions = dict(grammar.supports)
    for rule in rules:
        if _function(rule.body):
            raise GrammarError(
                f"{rule} applies {_function(rule.body)}, which has no exact value: leave the rule "
                "out, and for the power with functions add V → V⊙V | 1 and M → M⊙M | 1·1ᵀ"
            )
        for leaf in leaves(rule.body):
            definition = definitions.get(leaf.name)
            if definition is not None and _function(definition):
                raise GrammarError(
                    f"the support {leaf.name} = {definition} applies {_function(definition)}, "
                    "which has no exact value: define it without functions, for instance "
                    f"{leaf.name} = A + I"
                )
            if mentions(leaf if definition is None else definition, (DISTANCES.name,)):
                raise GrammarError(
                    "D, the squared distances between nodes, is no word of A, so it tells no two "
                    "graphs apart: leave out the rules that name it"
                )
            if definition is None and leaf.name not in ("A", "1", "I", "J", *grammar.marks):
                raise GrammarError(
                    f"the support {leaf.name} has no definition; add a line such as {leaf.name} = A"
                )


def _function(term: Term) -> str:
    """The first pointwise function a term applies, or nothing."""
    return next((t.function for t in subterms(term) if isinstance(t, Apply) and t.function), "")
