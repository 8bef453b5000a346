"""The shortest sentence that differs, by going through all words in order of size.

Two words with the same values on all graphs at hand can stand for each other, so of each value only
the smallest word is kept (of equally small ones the shallowest). Values are compared modulo a prime
by three random projections; that unequal ones are merged has probability below 2 ** -77 per pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np

from ..grammars.rules import Rule
from ..graphs import Adjacency
from ..language.evaluation import evaluate_mod
from ..language.operations import OPERATIONS
from ..language.sorts import Sort
from ..language.terms import Apply, Leaf, Number, Term, fill, operation_count, substitute
from .closure import Place
from .layered_grammar import LayeredGrammar
from .modular import PRIMES, Residues, product
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
    made: list[WordOrigin] = field(default_factory=list)


@dataclass(frozen=True)
class Shortest:
    """The outcome of the search.

    Attributes:
        term: A sentence with the fewest operations that differs; None if none was found.
        depth: Layers it takes, the fewest among the equally short.
        searched: All sentences with at most this many operations have been tried.
    """

    term: Term | None
    depth: int | None
    searched: int


def shortest_sentence(
    grammar: LayeredGrammar,
    graphs: Sequence[Adjacency],
    places: Sequence[Place],
    max_size: int = MAX_SIZE,
    budget: int = BUDGET,
    prime: int = PRIMES[0],
) -> Shortest:
    """Find the sentence with the fewest operations that differs at two places.

    Args:
        grammar: The grammar.
        graphs: Two graphs.
        places: The two entries to compare.
        max_size: The most operations a sentence may have.
        budget: Matrix entries that may be computed.
        prime: The modulus; a difference is exact.
    """
    search = _ShortestSearch(grammar, graphs, budget, prime)
    for size in range(max_size + 1):
        try:
            found = search.sentence(size, places)
        except _BudgetSpent:
            return Shortest(None, None, size - 1)
        if found is not None:
            return Shortest(search.term(found), found.depth, size)
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
        order = grammar.largest_order
        self.entries = sum(stack.count * stack.nodes**order for stack in self.stacks)
        self.left = budget
        rng = np.random.default_rng(prime)
        self.projections = {
            sort: rng.integers(0, prime, size=(self._columns(sort), _PROJECTIONS)).astype(float)
            for sort in grammar.sorts
        }
        self.words: dict[tuple[Sort, int], WordsOfSize] = {}
        self.seen: dict[Sort, dict[bytes, tuple[int, int]]] = {s: {} for s in grammar.sorts}
        self.sizes = 0  # words of fewer operations than this are complete

    def sentence(self, size: int, places: Sequence[Place]) -> WordOrigin | None:
        """The shallowest sentence of that size whose values differ."""
        rules = [(rule, operation_count(rule.body)) for rule in self.grammar.sentences]
        while self.sizes <= size - min(own for _, own in rules):
            self._complete(self.sizes)
            self.sizes += 1
        best: WordOrigin | None = None
        targets = [(*self.where[place.graph], place.row, place.column) for place in places]
        for rule, own in rules:
            for made, batch in self._applications(rule, size - own):
                first, second = (batch[s][:, graph, i, j] for s, graph, i, j in targets)
                for index in np.flatnonzero(first != second).tolist():
                    # The read-out itself is no layer.
                    candidate = made[index]._replace(depth=max(0, made[index].depth - 1))
                    if best is None or candidate.depth < best.depth:
                        best = candidate
        return best

    def term(self, made: WordOrigin) -> Term:
        """Spell a word out."""
        parts = [self.term(self.words[sort, size].made[index]) for sort, size, index in made.parts]
        return fill(made.rule.body, parts)

    def _complete(self, size: int) -> None:
        """Make all words of exactly this size that equal no smaller one."""
        for sort in self.grammar.sorts:
            self.words[sort, size] = WordsOfSize(
                [np.empty((0, *s.shape(sort))) for s in self.stacks]
            )
        fresh: dict[Sort, list[Batch]] = {sort: [] for sort in self.grammar.sorts}
        for rule in (*self.grammar.constants, *self.grammar.rules):
            for made, batch in self._applications(rule, size - operation_count(rule.body)):
                new = self._new(rule.head, size, made, batch)
                fresh[rule.head].append([part[new] for part in batch])
        for sort, batches in fresh.items():
            words = self.words[sort, size]
            words.values = [
                np.concatenate([empty, *(batch[s] for batch in batches)])
                for s, empty in enumerate(words.values)
            ]

    def _new(self, sort: Sort, size: int, made: list[WordOrigin], batch: Batch) -> list[int]:
        """Which words of a batch have a value not seen before; equal ones may become shallower."""
        rows = np.concatenate([part.reshape(len(made), -1) for part in batch], axis=1)
        keys = product(rows, self.projections[sort], self.prime)
        seen, words = self.seen[sort], self.words[sort, size].made
        new = []
        for index, key in enumerate(keys):
            known = seen.setdefault(key.tobytes(), (size, len(words)))
            if known == (size, len(words)):
                words.append(made[index])
                new.append(index)
            elif known[0] == size and made[index].depth < words[known[1]].depth:
                words[known[1]] = made[index]
        return new

    def _applications(self, rule: Rule, spare: int) -> Iterator[tuple[list[WordOrigin], Batch]]:
        """Apply a rule to all words that have `spare` operations between them."""
        for sizes in _splits(spare, len(rule.holes)):
            slots = [self.words[key] for key in zip(rule.holes, sizes, strict=True)]
            counts = [len(slot.made) for slot in slots]
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
            stack.values(
                rule.body,
                [slot.values[s][pick] for slot, pick in zip(slots, chosen, strict=True)],
            )
            for s, stack in enumerate(self.stacks)
        ]
        made = []
        for indices in zip(*(pick.tolist() for pick in chosen), strict=True) if chosen else [()]:
            depths = [slot.made[at].depth for slot, at in zip(slots, indices, strict=True)]
            depth = 1 + max(depths) if depths else 0
            made.append(
                WordOrigin(rule, tuple(zip(rule.holes, sizes, indices, strict=True)), depth)
            )
        return made, batch

    def _columns(self, sort: Sort) -> int:
        return sum(prod(stack.shape(sort)) for stack in self.stacks)


def _splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as a sum of so many sizes, the larger first: A²⊙A before A⊙A²."""
    if parts == 0:
        if total == 0:
            yield ()
    elif total >= 0:
        for first in reversed(range(total + 1)) if parts > 1 else (total,):
            for rest in _splits(total - first, parts - 1):
                yield first, *rest


MAX_STEPS = 20_000_000
"""Multiplications of Python integers spent on one value, some ten seconds."""


def exact_value(
    term: Term, graph: Adjacency, supports: Mapping[str, Term], row: int, column: int
) -> int | Fraction | None:
    """The value of a term on a graph at one entry; None where it would take too long.

    Args:
        term: A term without grammar variables and without pointwise functions.
        graph: An adjacency matrix of integers.
        supports: Definitions of the matrices it names besides A.
        row: Row of the entry.
        column: Column of the entry.
    """
    written = substitute(term, dict(supports))
    nodes = len(graph)
    if _steps(written, nodes, {}) > MAX_STEPS:
        return None
    largest = int(np.abs(graph).max())
    denominator = _denominator(written, {})
    bound = max(1, int(_bound(written, nodes, largest, {}) * denominator))
    # Odd and even denominators alike are units modulo a number that is 1 modulo all of them.
    modulus = 2 * bound * denominator + 1
    residue = int(evaluate_mod(written, graph, modulus)[row, column]) * denominator % modulus
    numerator = residue - modulus if residue > modulus // 2 else residue
    value = Fraction(numerator, denominator)
    return int(value) if value.denominator == 1 else value


def _steps(term: Term, nodes: int, known: dict[Term, int]) -> int:
    """Multiplications the interpreter makes, which evaluates a shared part each time it occurs."""
    if not isinstance(term, Apply):
        return 0
    if term not in known:
        own: int = nodes ** (term.sort.boundary + len(_summed(term)))
        known[term] = own + sum(_steps(arg, nodes, known) for arg in term.args)
    return known[term]


def _denominator(term: Term, known: dict[Term, int]) -> int:
    """A number whose product with the value is an integer."""
    if isinstance(term, Number):
        return term.value.denominator
    if not isinstance(term, Apply):
        return 1
    if term not in known:
        known[term] = prod(_denominator(arg, known) for arg in term.args)
    return known[term]


def _bound(term: Term, nodes: int, largest: int, known: dict[Term, Fraction]) -> Fraction:
    """A bound on the absolute value of every entry."""
    if isinstance(term, Number):
        return abs(term.value)
    if isinstance(term, Leaf):
        return Fraction(largest if term.name == "A" else 1)
    assert isinstance(term, Apply), term
    if term not in known:
        bounds = [_bound(arg, nodes, largest, known) for arg in term.args]
        total = sum(bounds, Fraction(0)) if term.op == "add" else Fraction(prod(bounds))
        known[term] = total * nodes ** len(_summed(term))
    return known[term]


def _summed(term: Apply) -> str:
    """The letters of its signature an operation sums over."""
    operation = OPERATIONS[term.op]
    if not operation.multilinear:
        return ""
    return operation.contraction(tuple(arg.sort for arg in term.args)).summed
