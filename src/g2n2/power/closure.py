"""Basis closure: all words of a grammar on some graphs, up to linear combination.

Every operation is linear in each argument, so the span of the words (their values on all graphs
side by side, modulo a prime) is closed by closing a basis of it, layer by layer, until a layer adds
nothing; then it holds every word there is.

A layer of few elements is gone through element by element. Otherwise each rule is applied to random
combinations until `CONFIRMATIONS` in a row fall into the span already found: if the rule can leave
that span, a random combination stays inside with probability at most h / p for a rule with h
variables, so in 2,450 dimensions a layer ends too early with probability below
2,450 * (h / p) ** 4 < 2 ** -80. So as many products are taken as the span has dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..grammars.layered_grammar import LayeredGrammar
from ..grammars.rules import Rule
from ..graphs import Adjacency
from ..language.modular import PRIMES, Residues, RowSpace, combined, reduced
from ..language.sorts import Sort
from ..language.terms import Term, fill, operation_count
from .memory_limit import DEFAULT_MEMORY_LIMIT, check_memory
from .word_memory import (
    Batch,
    Draws,
    RuleApplication,
    WordMemory,
    choices,
    pairing,
    single_elements,
    stacked,
)

EXHAUSTIVE = 256
CONFIRMATIONS = 4
_FIRST_BATCH, _LARGEST_BATCH = 16, 128
_SENTENCE_DRAWS = 8


class Place(NamedTuple):
    """An entry of a word's value on one of the graphs; a sentence has only entry (0, 0)."""

    graph: int
    row: int = 0
    column: int = 0


Entry = tuple[int, int, int, int]
"""Stack, graph, row and column."""


@dataclass(frozen=True, eq=False)
class SentenceDifference:
    """A sentence over combinations of elements whose values at two places differ."""

    memory: WordMemory  # the elements
    sentence: RuleApplication  # the read-out rule, and one combination per variable of it
    layer: int  # the first layer at which there is one
    places: tuple[Entry, ...]  # the two entries


@dataclass(frozen=True, eq=False)
class Closure:
    """A basis of all words (up to the layer of the difference, if there is one)."""

    memory: WordMemory
    graphs: list[tuple[int, int]]  # the stack of each graph, and its index there
    difference: SentenceDifference | None = None
    complete: bool = True  # False where more layers might add words


def close(
    grammar: LayeredGrammar,
    graphs: Sequence[Adjacency],
    places: Sequence[Place] = (),
    prime: int = PRIMES[0],
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    layers: int | None = None,
) -> Closure:
    """Close the span of a grammar's words on some graphs, modulo a prime.

    With two `places`, the closure stops at the first layer where a sentence differs there; with
    `layers` after so many layers.
    """
    stacks, where = stacked(graphs, grammar, prime)
    memory = WordMemory(grammar, stacks)
    draws = Draws(prime, np.random.default_rng(prime), grammar.affine)
    spaces = {}
    for sort in memory.origins:  # the span of the constants
        rows = memory.rows(memory.values(sort))
        spaces[sort] = RowSpace(rows.shape[1], prime)
        spaces[sort].insert(rows)
    targets = tuple((*where[place.graph], place.row, place.column) for place in places)
    layer = 0
    while True:
        difference = find_difference(memory, targets, layer, draws) if targets else None
        if difference is not None:
            return Closure(memory, where, difference, complete=False)
        if layer == layers:
            return Closure(memory, where, complete=False)
        before = memory.counts()
        layer += 1
        for rule in grammar.rules:
            _saturate(rule, memory, spaces[rule.head], before, layer, draws)
            entries = sum(part.size for sort in memory.origins for part in memory.values(sort))
            advice = "use engine='random_probes', or raise memory_limit"
            # Values and echelon basis take about the same.
            check_memory("the basis has grown to", 16 * entries, memory_limit, advice)
        if memory.counts() == before:
            return Closure(memory, where)


def find_difference(
    memory: WordMemory, targets: tuple[Entry, ...], layer: int, draws: Draws
) -> SentenceDifference | None:
    """Look for a sentence over the elements so far that differs at two places."""
    counts = memory.counts()
    for rule in memory.grammar.sentences:
        if choices(rule, counts) == 0:  # a variable whose first word takes more layers
            continue
        if choices(rule, counts) <= min(EXHAUSTIVE, memory.batch_size):
            application = single_elements(rule, counts)
        else:
            application = draws.random(_SENTENCE_DRAWS, rule, counts)
        for part in memory.parts(application):
            (batch,) = memory.apply([part])
            first, second = (batch[stack][:, graph, i, j] for stack, graph, i, j in targets)
            different = np.flatnonzero(first != second)
            if different.size:
                return SentenceDifference(memory, part.only(int(different[0])), layer, targets)
    return None


def _saturate(
    rule: Rule,
    memory: WordMemory,
    space: RowSpace,
    counts: dict[Sort, int],
    layer: int,
    draws: Draws,
) -> None:
    """Add words of one rule over the elements of the layer before until there are no new ones."""
    if choices(rule, counts) == 0:  # a variable whose first word takes more layers
        return
    if choices(rule, counts) <= EXHAUSTIVE:
        for part in memory.parts(single_elements(rule, counts)):
            _insert(part, memory, space, layer)
        return
    failures, size = 0, min(_FIRST_BATCH, memory.batch_size)
    while failures < CONFIRMATIONS and not space.full:
        chosen = _insert(draws.random(size, rule, counts), memory, space, layer)
        failures = size - 1 - chosen[-1] if chosen else failures + size
        size = min(2 * size, _LARGEST_BATCH, memory.batch_size)


def _insert(
    application: RuleApplication, memory: WordMemory, space: RowSpace, layer: int
) -> list[int]:
    (batch,) = memory.apply([application])
    chosen = space.insert(memory.rows(batch))
    if chosen:
        memory.add(application, batch, chosen, layer)
    return chosen


@dataclass(frozen=True, eq=False)
class SeparatingWord:
    """A word, its values on all graphs (a batch of one), its depth and its number of operations."""

    term: Term
    values: Batch
    depth: int
    size: int


@dataclass(frozen=True, eq=False)
class Functional:
    """`x -> <dual, x> + offset`; the offset is not zero only where a body holds a sum."""

    dual: Batch
    offset: int


def descend(difference: SentenceDifference) -> SeparatingWord:
    """Find one sentence (at node or pair level one word) that differs at the two places."""
    memory = difference.memory
    dual = [
        np.zeros((1, *stack.shape(difference.sentence.rule.body.sort))) for stack in memory.stacks
    ]
    for (stack, graph, row, column), sign in zip(difference.places, (1, -1), strict=True):
        entry = dual[stack][0, graph, row, column]
        dual[stack][0, graph, row, column] = (entry + sign) % memory.prime
    search = _Descent(memory)
    return search.application(difference.sentence, Functional(dual, 0), difference.layer)


class _Descent:
    """From a difference between random combinations to one word that differs.

    The difference is a linear functional of the element chosen for each variable, and a combination
    on which it does not vanish has a member on which it does not. Taking that member, then the
    combinations it was made from, down to the constants, leaves a word whose values differ modulo
    the prime, hence differ. Words settled on are used again: shared parts make short sentences.
    """

    def __init__(self, memory: WordMemory) -> None:
        self.memory = memory
        self.settled: dict[Sort, list[SeparatingWord]] = {sort: [] for sort in memory.origins}
        for sort, origins in memory.origins.items():
            for index, origin in enumerate(origins):
                if not origin.application.coefficients:
                    values = [part[[index]] for part in memory.values(sort)]
                    body = origin.application.rule.body
                    self._keep(sort, SeparatingWord(body, values, 0, operation_count(body)))

    def application(
        self, application: RuleApplication, goal: Functional, depth: int
    ) -> SeparatingWord:
        """Replace combinations by words of at most `depth` layers, one variable after the other.

        The goal is not zero on the combinations given, nor on the word returned.
        """
        rule, coefficients = application.rule, application.coefficients
        arguments: list[Batch] = [
            [
                combined(rows, part[: rows.shape[1]], self.memory.prime)
                for part in self.memory.values(sort)
            ]
            for sort, rows in zip(rule.holes, coefficients, strict=True)
        ]
        words: list[SeparatingWord] = []
        for at, sort in enumerate(rule.holes):
            pulled = self._pulled(rule, arguments, goal, at)
            words.append(self._chosen(sort, coefficients[at].shape[1], pulled, depth))
            arguments[at] = words[at].values
        term = fill(rule.body, [word.term for word in words])
        deepest = max((word.depth for word in words), default=0)
        size = operation_count(rule.body) + sum(word.size for word in words)
        return SeparatingWord(term, self._values(rule, arguments), deepest, size)

    def _chosen(self, sort: Sort, count: int, goal: Functional, depth: int) -> SeparatingWord:
        """A word in the span of the first `count` elements on which the goal is not zero."""
        for word in self.settled[sort]:
            if word.depth <= depth and self._apply(goal, word.values)[0]:
                return word
        scores = self._apply(goal, [part[:count] for part in self.memory.values(sort)])
        application, layer = self.memory.origins[sort][int(np.flatnonzero(scores)[0])]
        inner = self.application(application, goal, layer - 1)
        word = replace(inner, depth=inner.depth + 1)
        self._keep(sort, word)
        return word

    def _pulled(
        self, rule: Rule, arguments: Sequence[Batch], goal: Functional, at: int
    ) -> Functional:
        """The goal as a functional of variable number `at`, the other arguments held fixed."""
        dual = [
            stack.pull_back(
                rule.body,
                [batch[s] for batch in arguments],
                goal.dual[s],
                at,
                stack.marks[: rule.head.scope],
            )
            for s, stack in enumerate(self.memory.stacks)
        ]
        total = self._apply(goal, self._values(rule, arguments))[0]
        linear = self._apply(Functional(dual, 0), arguments[at])[0]
        return Functional(dual, int(total - linear) % self.memory.prime)

    def _values(self, rule: Rule, arguments: Sequence[Batch]) -> Batch:
        return [
            stack.applied(rule, [batch[s] for batch in arguments])
            for s, stack in enumerate(self.memory.stacks)
        ]

    def _apply(self, goal: Functional, batch: Batch) -> Residues:
        prime = self.memory.prime
        total: Residues = np.full(len(batch[0]), float(goal.offset))
        for dual, values in zip(goal.dual, batch, strict=True):
            total = total + pairing(dual, values, prime)
        return reduced(total, prime)

    def _keep(self, sort: Sort, word: SeparatingWord) -> None:
        """Smallest words first: they are tried first."""
        self.settled[sort].append(word)
        self.settled[sort].sort(key=lambda each: each.size)
