"""WL tests by name, and which of them bounds the words of a grammar or has their power.

A word over operations of treewidth two is a sum of homomorphism counts of patterns of treewidth at
most 2, which 2-FWL decides (Dell, Grohe and Rattan 2018). Inside m marks the same holds of graphs
with m marked nodes, so sums over marks of scalars see no more than the multisets over marks of the
2-FWL colours of marked graphs, nested where marks are (`Σ2-FWL`, `ΣΣ2-FWL`), and sums of other
sorts no more than full marks. docs/beyond-3wl.md has the converse for the reduced grammars.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from ..errors import GrammarError
from ..grammars.catalogue import MARKED_TEXTS, find_grammar
from ..grammars.grammar import Grammar
from ..grammars.rules import Rule, rule_depth
from ..graphs import GraphLike
from ..language.operations import BINDERS, OPERATIONS
from ..language.sorts import S
from ..language.terms import leaves
from .colours import ColourHistory
from .marked_refinement import Pooling, refine_marked
from .memory_limit import DEFAULT_MEMORY_LIMIT
from .refinement import refine

DEEPEST_FOLKLORE = 3
"""The largest k of a k-FWL that `refine` runs."""

_TEST = re.compile(
    r"\s*((?:[Σ∑]\s*|mark\s*)*)(\d+)\s*[-_‐‑–]?\s*(f?)wl\s*(\(?full\)?)?\s*", re.IGNORECASE
)
_SAME_POWER = {
    (0, 1): "r-G_L1", (0, 2): "r-G_L3", (1, 1): "r-G_L1Σ", (1, 2): "r-G_L3Σ",
    (2, 1): "r-G_L1ΣΣ", (2, 2): "r-G_L3ΣΣ",
}  # fmt: skip
"""By marks and the k of the folklore test."""
_OF_TREES = frozenset({"matmul", "transpose", "one", "diag", "add", "scale"})
"""Operations whose sentences are sums of homomorphism counts of forests."""


@dataclass(frozen=True)
class WLTest:
    """A Weisfeiler-Leman test, by name, so that `3-WL` can stand where a grammar can.

    `Σ2-FWL` is 2-FWL on every graph with one node marked and the multiset over marks; `ΣΣ1-WL` has
    two marks, nested; `Σ2-FWL (full)` lets pairs see the multiset over marks in every round.
    """

    name: str  # as it was asked for, `3-WL` or `2-FWL`
    # the k of the folklore test that tells the same graphs apart: (k + 1)-WL and k-FWL do (Grohe
    # and Otto 2015), and 2-WL and 1-WL are both 1
    folklore: int
    marks: int = 0  # how many nodes are marked at once
    full: bool = False  # whether colours come back out of a mark in every round

    @classmethod
    def find(cls, text: str) -> WLTest | None:
        """The test a text names; None where it names none."""
        m = _TEST.fullmatch(text)
        if m is None:
            return None
        marks = len(re.findall("[Σ∑]|mark", m[1], re.IGNORECASE))
        k, folk, full = int(m[2]), bool(m[3]), bool(m[4])
        name = f"{'Σ' * marks}{k}-{'FWL' if folk else 'WL'}{' (full)' if full else ''}"
        level = k if folk else max(k - 1, 1)
        deepest = 2 if marks else DEEPEST_FOLKLORE
        if k < 1 or level > deepest or marks > 2 or (full and (marks, level) != (1, 2)):
            raise GrammarError(
                f"{name} cannot be run; known: 1-WL to {DEEPEST_FOLKLORE + 1}-WL, "
                f"1-FWL to {DEEPEST_FOLKLORE}-FWL, with one or two marks up to 3-WL (Σ3-WL, "
                "ΣΣ1-WL), and Σ2-FWL (full)"
            )
        return cls(name, level, marks, full)

    @property
    def grammar(self) -> str | None:
        """The name of a grammar of the same power, where the catalogue has one."""
        return None if self.full else _SAME_POWER.get((self.marks, self.folklore))

    def refine(
        self, graphs: Sequence[GraphLike], memory_limit: int = DEFAULT_MEMORY_LIMIT
    ) -> ColourHistory:
        """The test on several graphs, by the folklore algorithm, which needs the shorter tuples."""
        k = self.folklore
        if self.marks:
            pooling: Pooling = "full" if self.full else "nested"
            return refine_marked(graphs, k, self.marks, pooling, memory_limit)
        return refine(graphs, k, "wl" if k == 1 else "fwl", memory_limit=memory_limit)

    def refusal(self) -> GrammarError:
        """What is said where rules are needed."""
        if self.grammar is None:
            more = (
                "L3Σ (full) is a grammar it bounds"
                if self.full
                else "no grammar over · ᵀ 1 diag ⊙ Tr has its power, which 3-WL bounds"
            )
        else:
            more = f"{self.grammar} is a grammar of that power"
        return GrammarError(f"{self.name} has no rules; {more}")


ONE_WL = WLTest("1-WL", 1)
THREE_WL = WLTest("3-WL", 2)
TWO_FWL = WLTest("2-FWL", 2)


def bounded_by_2fwl(operations: Iterable[str]) -> bool:
    """Whether graphs that 2-FWL merges have equal sentences over these operations.

    So it is where every word is a sum of patterns of treewidth at most 2: L3 + Tr with + and ×, and
    whatever operation joins such patterns to such a pattern. Σ is none of them.
    """
    used = [OPERATIONS[name] for name in operations]
    return all(op.kind not in ("pointwise", "binder") and op.axes.treewidth_two for op in used)


def bounded_by_1wl(rules: Iterable[Rule], operations: Iterable[str]) -> bool:
    """Whether undirected graphs that 1-WL merges have equal sentences: words of L1 with + and ×."""
    named = {leaf.name for rule in rules for leaf in leaves(rule.body)}
    return named <= {"A", "1", "I", "J"} and {*operations} <= _OF_TREES


def upper_bound(grammar: Grammar) -> WLTest | None:
    """A test that tells apart all that the sentences of a grammar do; None where none is known."""
    return bound_of(grammar.all_rules, grammar.operations)


def bound_of(rules: Iterable[Rule], operations: Iterable[str]) -> WLTest | None:
    """The same of rules that use some operations, supports written out."""
    used = set(operations)
    if not bounded_by_2fwl(used - set(BINDERS)):
        return None
    listed = list(rules)
    marks = max(map(rule_depth, listed), default=0)
    if not marks:
        return TWO_FWL
    summed = [rule for rule in listed if rule_depth(rule) > rule.head.scope]
    if used & set(BINDERS) == {"mark_S"} and all(rule.head.plain == S for rule in summed):
        return WLTest(f"{'Σ' * marks}2-FWL", 2, marks) if marks <= 2 else None
    return WLTest("Σ2-FWL (full)", 2, 1, full=True) if marks == 1 else None


def same_power(grammar: Grammar) -> WLTest | None:
    """The test with marks that tells apart exactly what a grammar of the catalogue does."""
    return _marked_tests().get(grammar) if grammar.marked else None


@cache
def _marked_tests() -> dict[Grammar, WLTest]:
    tests = [WLTest.find(name) for name in ("Σ1-WL", "Σ2-FWL", "ΣΣ1-WL", "ΣΣ2-FWL")]
    return {
        find_grammar(name): test
        for test in tests
        if test is not None and test.grammar in MARKED_TEXTS
        for name in (test.grammar, test.grammar.removeprefix("r-"))
    }
