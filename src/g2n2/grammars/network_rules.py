"""What a network adds to the words of its grammar, as rules: functions on memories, and pooling.

On finitely many graphs a function of an entry's channels is a polynomial in them. Products of
channels come from X⊙X by polarisation, and the constant term is the word of ones. So `any` function
on X is as strong as X → X⊙X | ones, and one with f(0) = 0 as strong as X → X⊙X. A linear map adds
no rule. Positively homogeneous functions (f(t·x) = t·f(x) for t > 0) have no such rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, get_args

from ..errors import GrammarError
from ..language.sorts import SORTS, M, R, S, Sort, V
from ..language.terms import ONE, Hole, MarkSum, Number, Term, apply
from .grammar import Grammar
from .rules import Rule

Mixing = Literal["any", "zero", "homogeneous", "linear"]
"""What is mixed into a memory: any function of its channels and of the rules' outputs, any that
keeps zero, any with f(tx) = t·f(x) for t ≥ 0, or a linear one."""

ONES: dict[Sort, Term] = {
    S: Number(Fraction(1)),
    V: ONE,
    R: apply("transpose", ONE),
    M: apply("matmul", ONE, apply("transpose", ONE)),
}
"""The word a bias of a memory stands for; a scalar's is a number."""

POOL_RULES: dict[str, Rule] = {
    "nodes": Rule.parse("S → 1ᵀV_c"),
    "rows": Rule.parse("S → V_r1"),
    "diagonal": Rule.parse("S → Tr(M)"),
    "off-diagonal": Rule.parse("S → 1ᵀ(M⊙J)1"),
}
"""Summing a part of the memories is a rule of S."""


def mixing_by_sort(functions: Mixing | Mapping[Sort, Mixing]) -> dict[Sort, Mixing]:
    """The functions on each variable's memory; `any` where nothing is said."""
    named = functions if isinstance(functions, Mapping) else dict.fromkeys(SORTS, functions)
    for mixing in named.values():
        if mixing not in get_args(Mixing):
            raise GrammarError(f"functions are {', '.join(get_args(Mixing))}, got {mixing!r}")
    everywhere: dict[Sort, Mixing] = dict.fromkeys(SORTS, "any")
    return everywhere | dict(named)


def words_of_test(grammar: Grammar, functions: Mixing | Mapping[Sort, Mixing] = "any") -> Grammar:
    """The grammar whose words tell apart what the WL test of a grammar does in the limit.

    >>> from g2n2 import find_grammar, separate, words_of_test
    >>> str(separate(words_of_test(find_grammar("G_L1")), "C6", "2C3").sentence)
    '1ᵀ(A²⊙A)1'

    No set of words has exactly the power of homogeneous functions, so those are refused.
    """
    mixing = mixing_by_sort(functions)
    added: list[Rule] = []
    for sort in dict.fromkeys(rule.head for rule in grammar.rules):
        kind, ones = mixing[sort.plain], ONES[sort.plain]
        if kind == "homogeneous":
            raise GrammarError(
                f"functions on {sort.variable} that are free on rays only have no grammar of their "
                "own: use grammar_test, or 'zero' for an upper and 'linear' for a lower bound"
            )
        if kind in ("any", "zero"):
            added.append(Rule(sort, apply("hadamard", Hole(sort), Hole(sort))))
        if kind == "any":
            added.append(Rule(sort, ones))
    rules = (*grammar.rules, *(rule for rule in added if rule not in grammar.rules))
    name = f"{grammar.name} with functions" if grammar.name and added else grammar.name
    return Grammar(rules, grammar.readout, name, grammar.supports)


def summed(rule: Rule, marks: tuple[str, ...]) -> Rule:
    """A rule of S inside marks, summed over them: S → Tr(M) as S → Σv. Tr(M′)."""
    body = rule.within(len(marks)).body
    for mark in reversed(marks):
        body = MarkSum(mark, body)
    return Rule(S, body)


def pooled_readout(grammar: Grammar) -> tuple[Rule, ...]:
    """The rules of S that pooling applies, as far as a grammar has the variables."""
    heads = {rule.head for rule in grammar.rules}
    deepest = max((head.scope for head in heads), default=0)
    rules = tuple(
        summed(rule, grammar.marks[:scope])
        for scope in range(deepest + 1)
        for rule in POOL_RULES.values()
        if {hole.within(scope) for hole in rule.holes} <= heads
    )
    if not rules and S not in heads:
        raise GrammarError(
            f"{grammar.name or 'the grammar'} has neither vectors nor matrices to pool; add rules "
            "such as V → AV | 1"
        )
    return rules
