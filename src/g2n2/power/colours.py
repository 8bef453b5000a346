"""Colours of graphs: their history, exact ranking of rows, fingerprints of multisets.

A refinement round decides which multisets of (tuples of) colours are equal. The count `m[a, b]` of
each colour combination is the coefficient of a multilinear form, for instance
`sum_w x[c(i, w)] * y[c(w, j)] = sum_ab m[a, b] * x[a] * y[b]`, evaluated at random points of the
field of PRIME elements. Equal multisets have equal values, so a split is exact. Two unequal ones
(counts below PRIME) agree at one point with probability at most `degree / PRIME` (Schwartz-Zippel)
and at all six points of a fingerprint below `(3 / PRIME) ** 6 < 2 ** -110`; over a hundred rounds
on a hundred million tuples the chance of any wrong merge is below 2 ** -50.

PRIME is small, so that products of matrices stay below 2 ** 53 and float64 BLAS is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

Colours = NDArray[np.int64]
Table = NDArray[np.float64]

PRIME = 1_048_573
SEED = 20230519  # fixed, so that a run can be repeated colour for colour
KEYS = 2
EVALUATIONS_PER_KEY = 3  # PRIME ** 3 < 2 ** 63: three field elements fit one int64
EVALUATIONS = KEYS * EVALUATIONS_PER_KEY
_EXACT_INNER_SIZE = 2**53 // PRIME**2


@dataclass(frozen=True, eq=False)
class ColourHistory:
    """Colours of several graphs after each round of a test, comparable between graphs."""

    graph_history: tuple[Colours, ...]  # one colour per graph after each round, from 0 on

    @property
    def rounds(self) -> int:
        """How many rounds were run."""
        return len(self.graph_history) - 1

    @property
    def graph_colours(self) -> Colours:
        """One colour per graph: equal for the graphs the test cannot tell apart."""
        return self.graph_history[-1]

    def separated(self, first: int = 0, second: int = 1) -> bool:
        """Whether the test tells two of the graphs apart."""
        return bool(self.graph_colours[first] != self.graph_colours[second])

    def separated_at(self, first: int = 0, second: int = 1) -> int | None:
        """The round from which two graphs differ; None if they never do."""
        differs = (colours[first] != colours[second] for colours in self.graph_history)
        return next((number for number, different in enumerate(differs) if different), None)

    def merged_pairs(self) -> list[tuple[int, int]]:
        """The pairs of graphs that are not told apart."""
        return list(alike(self.graph_colours.tolist()))


def alike(keys: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
    """The pairs of places that hold equal keys, key by key."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key].append(place)
    return chain.from_iterable(combinations(members, 2) for members in places.values())


def group_by_size(matrices: Sequence[Sized]) -> list[list[int]]:
    """Indices of the graphs, those of equal size together."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, matrix in enumerate(matrices):
        groups[len(matrix)].append(index)
    return list(groups.values())


def chunks_by_size(
    matrices: Sequence[Sized], entries: Callable[[int], int], most: int
) -> list[list[int]]:
    """Indices of graphs of equal size; so many together as `most` entries hold, one at least."""
    chunks = []
    for group in group_by_size(matrices):
        step = max(1, most // max(1, entries(len(matrices[group[0]]))))
        chunks += [group[start : start + step] for start in range(0, len(group), step)]
    return chunks


def in_order(groups: Sequence[Sequence[int]], parts: Sequence[Colours]) -> tuple[Colours, ...]:
    """Per graph, in the order they came, its row of the array of its group."""
    by_graph: dict[int, Colours] = {}
    for group, part in zip(groups, parts, strict=True):
        by_graph |= dict(zip(group, part, strict=True))
    return tuple(by_graph[index] for index in range(len(by_graph)))


def numbered(keys: Iterable[Hashable]) -> Colours:
    """The number of each key, in the order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def dense_ranks(columns: Sequence[NDArray[np.generic]]) -> tuple[Colours, int]:
    """The number of each row in the lexicographic order of distinct rows, and their count.

    The first column is the most significant.
    """
    order = np.lexsort(tuple(reversed(columns)))
    starts_class = np.zeros(len(order), dtype=np.int64)
    for column in columns:
        ordered = column[order]
        starts_class[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.empty_like(starts_class)
    ranks[order] = np.cumsum(starts_class)
    return ranks, int(starts_class.sum()) + 1


def joint_ranks(parts: Sequence[Sequence[NDArray[np.generic]]]) -> tuple[list[Colours], int]:
    """Numbers of the entries of several arrays, comparable between them, and their count.

    Each part is the columns of one array, all of its shape; an entry is one row across them.
    """
    columns = [
        np.concatenate([column.ravel() for column in same]) for same in zip(*parts, strict=True)
    ]
    ranks, count = dense_ranks(columns)
    ranks.flags.writeable = False
    shapes = [part[0].shape for part in parts]
    bounds = np.cumsum([part[0].size for part in parts])[:-1]
    flat_parts = np.split(ranks, bounds)
    return [flat.reshape(shape) for flat, shape in zip(flat_parts, shapes, strict=True)], count


def random_table(rng: np.random.Generator, colour_count: int) -> Table:
    """Draw one random field element per colour."""
    return rng.integers(0, PRIME, size=colour_count).astype(np.float64)


def fingerprint_keys(evaluate: Callable[[int], Colours]) -> list[Colours]:
    """Pack the values, below PRIME, at independent random points into `KEYS` integer columns."""
    keys = []
    for key in range(KEYS):
        packed = evaluate(key * EVALUATIONS_PER_KEY)
        for offset in range(1, EVALUATIONS_PER_KEY):
            packed = packed * PRIME + evaluate(key * EVALUATIONS_PER_KEY + offset)
        keys.append(packed)
    return keys


def product_in_field(left: NDArray[np.float64], right: NDArray[np.float64]) -> Colours:
    """Multiply stacks of matrices with entries below PRIME, modulo PRIME, exactly."""
    blocks = range(0, left.shape[-1], _EXACT_INNER_SIZE)
    total = np.zeros((*left.shape[:-1], right.shape[-1]), dtype=np.int64)
    for start in blocks:
        inner = slice(start, start + _EXACT_INNER_SIZE)
        total += (left[..., inner] @ right[..., inner, :]).astype(np.int64) % PRIME
    return total % PRIME
