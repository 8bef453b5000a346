"""The shortest sentence that differs, by going through all words in order of size.

Two words with the same values on all graphs at hand can stand for each other, so of each value only
the smallest word is kept (of equally small ones the shallowest). Values are compared modulo a prime
by three random projections; that unequal ones are merged has probability below 2 ** -77 per pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from ..grammars.layered_grammar import LayeredGrammar
from ..grammars.rules import Rule
from ..graphs import Adjacency
from ..language.modular import PRIMES, Residues, product
from ..language.sorts import Sort
from ..language.terms import Term, fill, operation_count
from .closure import Place
from .word_memory import Batch, stacked

MAX_SIZE = 12
BUDGET = 2**25
"""Matrix entries computed before the search gives up: about a second."""

_PROJECTIONS = 3
_CHUNK_ENTRIES = 2**20


class WordOrigin(NamedTuple):
    """The rule that made a word, the words in its variables (sort, size, index), and its depth."""

    rule: Rule
    parts: tuple[tuple[Sort, int, int], ...]
    depth: int


@dataclass(eq=False)
class WordsOfSize:
    """The words of one sort and size: values, and how each was made."""

    values: Batch
    origins: list[WordOrigin] = field(default_factory=list)


@dataclass(frozen=True)
class Shortest:
    """The outcome of the search."""

    term: Term | None  # A sentence with the fewest operations that differs; None if none was found
    depth: int | None  # layers it takes, the fewest among the equally short
    searched: int  # all sentences with at most this many operations have been tried


def shortest_sentence(
    grammar: LayeredGrammar,
    graphs: Sequence[Adjacency],
    places: Sequence[Place],
    max_size: int = MAX_SIZE,
    budget: int = BUDGET,
    prime: int = PRIMES[0],
) -> Shortest:
    """Find the sentence with the fewest operations, `max_size` at most, that differs at two places.

    The search gives up after computing `budget` matrix entries.
    """
    search = _ShortestSearch(grammar, graphs, budget, prime)
    for size in range(max_size + 1):
        try:
            sentence = search.sentence(size, places)
        except _BudgetSpent:
            return Shortest(None, None, size - 1)
        if sentence is not None:
            return Shortest(search.term(sentence), sentence.depth, size)
    return Shortest(None, None, max_size)


class _BudgetSpent(Exception):
    """The next batch of words would exceed the budget."""


class _ShortestSearch:
    def __init__(
        self, grammar: LayeredGrammar, graphs: Sequence[Adjacency], budget: int, prime: int
    ) -> None:
        self.grammar, self.prime = grammar, prime
        self.stacks, self.where = stacked(graphs, grammar, prime)
        # Every body may hold a matrix on the way, so each word is charged as one.
        order = grammar.largest_order + grammar.scope
        self.entries = sum(stack.count * stack.nodes**order for stack in self.stacks)
        self.left = budget
        rng = np.random.default_rng(prime)
        self.projections = {
            sort: rng.integers(
                0, prime, size=(sum(prod(s.shape(sort)) for s in self.stacks), _PROJECTIONS)
            ).astype(float)
            for sort in grammar.sorts
        }
        self.words: dict[tuple[Sort, int], WordsOfSize] = {}
        self.seen: dict[Sort, dict[bytes, tuple[int, int]]] = {s: {} for s in grammar.sorts}
        self.sizes = 0  # words of fewer operations than this are complete

    def sentence(self, size: int, places: Sequence[Place]) -> WordOrigin | None:
        """The shallowest sentence of that size whose values differ."""
        rules = [(rule, operation_count(rule.body)) for rule in self.grammar.sentences]
        while self.sizes <= size - min(count for _, count in rules):
            self._complete(self.sizes)
            self.sizes += 1
        best: WordOrigin | None = None
        targets = [(*self.where[place.graph], place.row, place.column) for place in places]
        for rule, count in rules:
            for origins, batch in self._applications(rule, size - count):
                first, second = (batch[s][:, graph, i, j] for s, graph, i, j in targets)
                for index in np.flatnonzero(first != second).tolist():
                    # The read-out itself is no layer.
                    candidate = origins[index]._replace(depth=max(0, origins[index].depth - 1))
                    if best is None or candidate.depth < best.depth:
                        best = candidate
        return best

    def term(self, word: WordOrigin) -> Term:
        """Spell a word out."""
        parts = [
            self.term(self.words[sort, size].origins[index]) for sort, size, index in word.parts
        ]
        return fill(word.rule.body, parts)

    def _complete(self, size: int) -> None:
        """Make all words of exactly this size that equal no smaller one."""
        for sort in self.grammar.sorts:
            self.words[sort, size] = WordsOfSize(
                [np.empty((0, *s.shape(sort))) for s in self.stacks]
            )
        every = (*self.grammar.constants, *self.grammar.rules)
        # V′ → V applies no operation: the words outside a mark come before those inside.
        for sort in sorted(self.grammar.sorts, key=lambda sort: sort.scope):
            batches: list[Batch] = []
            for rule in (rule for rule in every if rule.head == sort):
                for origins, batch in self._applications(rule, size - operation_count(rule.body)):
                    new = self._new(sort, size, origins, batch)
                    batches.append([part[new] for part in batch])
            words = self.words[sort, size]
            words.values = [
                np.concatenate([empty, *(batch[s] for batch in batches)])
                for s, empty in enumerate(words.values)
            ]

    def _new(self, sort: Sort, size: int, origins: list[WordOrigin], batch: Batch) -> list[int]:
        """Which words of a batch have a value not seen before; equal ones may become shallower."""
        rows = np.concatenate([part.reshape(len(origins), -1) for part in batch], axis=1)
        keys = product(rows, self.projections[sort], self.prime)
        seen, words = self.seen[sort], self.words[sort, size].origins
        new = []
        for index, key in enumerate(keys):
            first_size, at = seen.setdefault(key.tobytes(), (size, len(words)))
            if (first_size, at) == (size, len(words)):
                words.append(origins[index])
                new.append(index)
            elif first_size == size and origins[index].depth < words[at].depth:
                words[at] = origins[index]
        return new

    def _applications(self, rule: Rule, spare: int) -> Iterator[tuple[list[WordOrigin], Batch]]:
        """Apply a rule to all words that have `spare` operations between them."""
        for sizes in _splits(spare, len(rule.holes)):
            slots = [self.words[key] for key in zip(rule.holes, sizes, strict=True)]
            counts = [len(slot.origins) for slot in slots]
            total = prod(counts)
            self.left -= total * self.entries
            if self.left < 0:
                raise _BudgetSpent
            step = max(1, _CHUNK_ENTRIES // self.entries)
            for start in range(0, total, step):
                picks = np.unravel_index(np.arange(start, min(start + step, total)), counts or (1,))
                yield self._applied(rule, sizes, slots, picks)

    def _applied(
        self,
        rule: Rule,
        sizes: tuple[int, ...],
        slots: Sequence[WordsOfSize],
        picks: Sequence[object],
    ) -> tuple[list[WordOrigin], Batch]:
        chosen = [np.asarray(pick) for pick in picks[: len(slots)]]
        batch: list[Residues] = [
            stack.applied(
                rule, [slot.values[s][pick] for slot, pick in zip(slots, chosen, strict=True)]
            )
            for s, stack in enumerate(self.stacks)
        ]
        origins = []
        for indices in zip(*(pick.tolist() for pick in chosen), strict=True) if chosen else [()]:
            depths = [slot.origins[at].depth for slot, at in zip(slots, indices, strict=True)]
            depth = 1 + max(depths) if depths else 0
            origins.append(
                WordOrigin(rule, tuple(zip(rule.holes, sizes, indices, strict=True)), depth)
            )
        return origins, batch


def _splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as a sum of so many sizes, the larger first: A²⊙A before A⊙A²."""
    if parts == 0:
        if total == 0:
            yield ()
    elif total >= 0:
        for first in reversed(range(total + 1)) if parts > 1 else (total,):
            for rest in _splits(total - first, parts - 1):
                yield first, *rest
