"""Which WL test bounds the words of a grammar, and which has exactly their power.

A word over operations of treewidth two is a sum of homomorphism counts of patterns of treewidth at
most 2, which 2-FWL decides (Dell, Grohe and Rattan 2018). Inside m marks the same holds of graphs
with m marked nodes, so sums over marks of scalars see no more than the multisets over marks of the
2-FWL colours of marked graphs, nested where marks are (`Σ2-FWL`, `ΣΣ2-FWL`), and sums of other
sorts no more than full marks. docs/beyond-3wl.md has the converse for the reduced grammars.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ..grammars.catalogue import MARKED_TEXTS, find_grammar
from ..grammars.grammar import Grammar
from ..grammars.rules import Rule, rule_depth
from ..language.operations import BINDERS, OPERATIONS
from ..language.sorts import S
from .refinement import WLTest

TWO_FWL = WLTest("2-FWL", 2)


def bounded_by_2fwl(operations: Iterable[str]) -> bool:
    """Whether graphs that 2-FWL merges have equal sentences over these operations.

    So it is where every word is a sum of patterns of treewidth at most 2: L3 + Tr with + and ×, and
    whatever operation joins such patterns to such a pattern. Σ is none of them.
    """
    used = [OPERATIONS[name] for name in operations]
    return all(op.kind not in ("pointwise", "binder") and op.axes.treewidth_two for op in used)


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
