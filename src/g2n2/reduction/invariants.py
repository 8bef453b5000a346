"""What has to be shown so that a smaller grammar may replace a larger one.

A *simulation invariant* says, sort by sort, how every word of the larger grammar is made of words
of the smaller one: a finite product of its sentences (s) times one of its words (v, m), in one of a
few shapes. An *obligation* is one rule of the larger grammar applied to invariant-shaped arguments
with opaque parts; it is met when the result has the invariant's shape again. Induction does the
rest.

    form        a matrix word of the larger grammar is                      other sorts
    exact       a word m                                                    v, r, s: no factor
    plain       s·m                                                         s·v, s·vᵀ
    shape       s·m or s·v·wᵀ                                               s·v, s·vᵀ
    action      anything M with M·x (and Mᵀ·x, if the larger     s·v, s·vᵀ
                grammar transposes) equal to s·v for every word x
    broadcast   s·m or s·v·wᵀ, where v·1ᵀ is a matrix word                  v itself is no word
    diagonal    as broadcast with diag(v) a matrix word, and diag(m·x) one for every such x
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Literal

from ..grammars.grammar import Grammar, Level, Rule
from ..language.operations import OPERATIONS
from ..language.patterns import Assumption
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import Leaf, Term, apply, fill, operators

Form = Literal["exact", "plain", "shape", "action", "broadcast", "diagonal"]

OUTPUTS: dict[Level, tuple[Sort, ...]] = {"graph": (S,), "node": (S, V), "pair": (S, V, M)}
"""Whose words are compared at each level."""
PROBE = Leaf("x", V)


@dataclass(frozen=True)
class Claim:
    """The judgement "every word of `larger` is made of words of `smaller`"."""

    larger: Grammar
    smaller: Grammar
    form: Form
    assume: Assumption = "symmetric"
    level: Level = "graph"

    @cached_property
    def turns(self) -> bool:
        """Whether a rule that is owed transposes; only then does the action say more than M·x."""
        used = {op for rule in owed_rules(self) for op in operators(rule.body)}
        return any(OPERATIONS[op].axes.turns for op in used)


@dataclass(frozen=True)
class Obligation:
    """A term over opaque leaves that must be of the invariant's shape."""

    # `simulate`; `right` and `left` for the action of a matrix on a probe x and its transpose's;
    # `transpose` for closure of the smaller grammar under ᵀ
    kind: str
    rule: Rule  # the rule it comes from
    choice: tuple[str, ...]  # which alternative stands for each variable of the rule
    term: Term  # what must be matched


def opaque(sort: Sort, index: int, letter: str = "") -> Leaf:
    """The opaque leaf of a sort for the index-th variable of a rule: s0, v1, m0 …"""
    return Leaf(f"{letter or {S: 's', V: 'v', R: 'r', M: 'm'}[sort]}{index}", sort)


def alternatives(sort: Sort, index: int, form: Form) -> dict[str, Term]:
    """The shapes a word of the larger grammar may have, named."""
    s, v, w, m = opaque(S, index), opaque(V, index), opaque(V, index, "w"), opaque(M, index)
    if sort == S or form == "exact":
        leaf = opaque(sort, index)
        return {leaf.name[0]: leaf}
    if sort == M and form == "action":
        return {"m": m}
    shapes: dict[str, Term] = {"v": v} if sort == V else {"vᵀ": v.T} if sort == R else {"m": m}
    if sort == M and form in ("shape", "broadcast", "diagonal"):
        shapes["vwᵀ"] = v @ w.T
    return {name: apply("scale", s, shape) for name, shape in shapes.items()}


def owed_rules(claim: Claim) -> list[Rule]:
    """The rules of the larger grammar that some sentence (or node, or pair output) uses."""
    unused = claim.larger.unreachable(OUTPUTS[claim.level])
    return [rule for rule in claim.larger.all_rules if rule.head not in unused]


def obligations(claim: Claim) -> Iterator[Obligation]:
    """All that is owed for the simulation itself, in a fixed order.

    In the exact form a rule both grammars have makes words of words, so nothing is owed for it.
    """
    rules = owed_rules(claim)
    if claim.form == "exact":
        rules = [rule for rule in rules if rule not in claim.smaller.all_rules]
    for rule in rules:
        choices = [alternatives(sort, i, claim.form) for i, sort in enumerate(rule.holes)]
        for names in product(*choices):
            shapes = [options[name] for options, name in zip(choices, names, strict=True)]
            term = fill(rule.body, shapes)
            if rule.head != M or claim.form != "action":
                yield Obligation("simulate", rule, names, term)
            if rule.head == M and claim.form in ("action", "diagonal"):
                yield Obligation("right", rule, names, term @ PROBE)
                if claim.turns:
                    yield Obligation("left", rule, names, term.T @ PROBE)


def transpose_obligations(claim: Claim) -> Iterator[Obligation]:
    """Closure of the smaller grammar's matrix words under ᵀ, by induction over its own rules."""
    for rule in claim.smaller.of_sort(M):
        yield transpose_obligation(rule)


def transpose_obligation(rule: Rule) -> Obligation:
    """What the lemma owes for one rule; its words are any words, not those of an invariant."""
    leaves = [opaque(sort, i) for i, sort in enumerate(rule.holes)]
    return Obligation("transpose", rule, (), fill(rule.body, list(leaves)).T)
