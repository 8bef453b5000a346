"""The derivation of a word that needs the fewest layers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product

from ..language.sorts import Sort
from ..language.terms import Hole, Term
from .derivations import DerivationTree, derive_word
from .grammar import Grammar
from .membership import Chain, Recogniser, SpanGoal, arguments, factors
from .rules import Rule

_Key = tuple[int, int, int, Sort]
_Depth = tuple[int, int]
"""Layers, then rules applied: the fewest layers first, and among those the fewest rules."""


def least_depth_derivation(
    grammar: Grammar, term: Term, given: Collection[Term] = ()
) -> DerivationTree:
    """Derive a word in as few layers as any derivation of it takes.

    A product may be bracketed as one likes, so A⁴ takes two layers and not three: (A²)(A²). Words
    `given` need no layer, such as I where it is an input.
    """
    derive_word(grammar, term)  # says what is wrong with a term that is not a word
    recogniser = Recogniser(grammar, term)
    search = _LeastDepthSearch(recogniser, given)
    return search.derivation(recogniser.goal, term)


class _LeastDepthSearch:
    """The best rule for every run of factors, shorter runs and inner chains first."""

    def __init__(self, recogniser: Recogniser, given: Collection[Term]) -> None:
        self.recogniser = recogniser
        self.given = {factors(term) for term in given}
        self.renames = any(isinstance(rule.body, Hole) for rule, _ in recogniser.templates)
        self.best: dict[_Key, tuple[_Depth, Rule, list[SpanGoal]]] = {}
        for chain in recogniser.chains.values():  # inner chains stand before those around them
            count = len(chain.factors)
            for length in range(1, count + 1):
                for start in range(count - length + 1):
                    self._fill(chain, start, start + length)

    def _fill(self, chain: Chain, start: int, end: int) -> None:
        """The best way for each variable; a rule X → Y takes it from another of the same run."""
        goals = [SpanGoal(chain, start, end, sort) for sort in chain.ends[start]]
        ways = {goal: list(self._ways(goal)) for goal in goals if goal.holds}
        improved = bool(ways)
        while improved:
            improved = False
            for goal, found in ways.items():
                known = [way for way in found if all(_key(part) in self.best for part in way[1])]
                if not known:
                    continue
                rule, below = min(known, key=lambda way: self._depth(way[1]))
                depth, key = self._depth(below), _key(goal)
                if key not in self.best or depth < self.best[key][0]:
                    self.best[key], improved = (depth, rule, below), self.renames

    def _ways(self, goal: SpanGoal) -> Iterator[tuple[Rule, list[SpanGoal]]]:
        if goal.chain.factors[goal.start : goal.end] in self.given:
            yield Rule(goal.sort, goal.term), []
            return
        has_rule = False
        for rule, items in self.recogniser.templates:
            if rule.head == goal.sort:
                for below in self._laid(goal.chain, items, goal.start, goal.end):
                    has_rule = True
                    yield rule, below
        if not has_rule:  # a number, which × may put anywhere
            yield self.recogniser.step(goal)

    def _depth(self, below: list[SpanGoal]) -> _Depth:
        if not below:
            return 0, 0
        depths = [self.best[_key(goal)][0] for goal in below]
        return 1 + max(layers for layers, _ in depths), 1 + sum(rules for _, rules in depths)

    def _laid(
        self, chain: Chain, items: tuple[Term, ...], start: int, end: int
    ) -> Iterator[list[SpanGoal]]:
        """Every way to lay a rule's body over the factors from `start` to `end`."""
        if not items:
            if start == end:
                yield []
            return
        item, rest = items[0], items[1:]
        if start == end:
            return
        if isinstance(item, Hole):
            for cut in range(start + 1 if rest else end, end - len(rest) + 1):
                goal = SpanGoal(chain, start, cut, item.variable)
                if goal.holds:
                    for after in self._laid(chain, rest, cut, end):
                        yield [goal, *after]
        elif self.recogniser.matches(item, chain.factors[start]):
            inner = [
                list(self._whole(part, argument))
                for part, argument in zip(
                    arguments(item), arguments(chain.factors[start]), strict=True
                )
            ]
            for after in self._laid(chain, rest, start + 1, end):
                for chosen in product(*inner):
                    yield [*(goal for goals in chosen for goal in goals), *after]

    def _whole(self, part: Term, argument: Term) -> Iterator[list[SpanGoal]]:
        chain = self.recogniser.chains[argument]
        return self._laid(chain, factors(part), 0, len(chain.factors))

    def derivation(self, goal: SpanGoal, term: Term) -> DerivationTree:
        """The tree of a goal; loops, because a tree may be deep."""
        waiting: list[SpanGoal] = [goal]
        steps: list[tuple[Rule, Term, int]] = []
        while waiting:
            here = waiting.pop()
            _, rule, below = self.best[_key(here)]
            steps.append((rule, here.term if steps else term, len(below)))
            waiting.extend(reversed(below))
        built: list[DerivationTree] = []
        for rule, word, count in reversed(steps):
            built.append(DerivationTree(rule, word, tuple(built.pop() for _ in range(count))))
        return built[0]


def _key(goal: SpanGoal) -> _Key:
    return id(goal.chain), goal.start, goal.end, goal.sort
