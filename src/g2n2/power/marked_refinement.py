"""WL tests with marks: a test on every marked copy of a graph, and the multiset over its marks.

One mark over k-FWL colours the tuples of every copy (G, v) by k-FWL, gives the copy the multiset of
its colours, and the graph the multiset over v: *pooled*. With two marks the colour of (G, u) is the
multiset over v of the colours of (G, u, v), and the graph's the multiset over u: *nested*, which
sees more than one multiset over all pairs. With *full* marks the multiset over v of the colour of
each pair (i, j) joins the colour of the unmarked pair, which in turn every copy sees.

Copies whose marks an automorphism joins have equal colours, so one of each class is refined and
counts as often as the class has nodes (`orbits`); that is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..graphs import Adjacency, GraphLike, adjacency
from ..graphs.symmetry import orbits
from .colours import (
    EVALUATIONS,
    PRIME,
    ColourHistory,
    Colours,
    fingerprint_keys,
    joint_ranks,
    product_in_field,
    random_table,
)
from .pair_types import first_colours, pair_types

Pooling = Literal["nested", "flat", "full"]

DEFAULT_MEMORY_LIMIT = 8 * 2**30
_BYTES_PER_TUPLE = 250
_SEED = 20230519
_LEAST_FOR_ORBITS = 64
"""Graphs of fewer nodes are marked everywhere: the orbits would take longer than the copies."""


@dataclass(frozen=True, eq=False)
class MarkedColours(ColourHistory):
    """Colours of several graphs under a test with marks, comparable between them."""

    graph_history: tuple[Colours, ...]  # one colour per graph after each round, from 0 on


def refine_marked(
    graphs: Sequence[GraphLike],
    k: int = 2,
    marks: int = 1,
    pooling: Pooling = "nested",
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> MarkedColours:
    """Colour graphs by 1-WL (k = 1) or 2-FWL (k = 2) on their marked copies.

    It ends once the colours are stable, or all graphs have colours of their own.

    Args:
        graphs: Whatever `adjacency` takes; sizes may differ.
        k: Length of the coloured tuples, 1 or 2.
        marks: How many nodes are marked at once, 1 or 2.
        pooling: How marks are forgotten: `nested`, `flat`, or `full` for one mark over 2-FWL.
        memory_limit: Bytes this call may take; checked before anything is allocated.

    Raises:
        DataError: There is no such test, or it would not fit into the memory.
    """
    if k not in (1, 2) or marks not in (1, 2) or (pooling == "full" and (k, marks) != (2, 1)):
        raise DataError(
            f"no test with {marks} marks over tuples of {k}, pooled {pooling}: expected 1 or 2 "
            "marks over 1-WL or 2-FWL, and full marks only for one mark over 2-FWL"
        )
    if isinstance(graphs, str) or len(graphs) == 0:
        raise DataError("nothing to refine: expected a list of at least one graph")
    test = _MarkedTest([adjacency(graph) for graph in graphs], k, marks, pooling, memory_limit)
    history = [test.pooled()]
    while (len(set(history[-1].tolist())) < len(graphs) or len(graphs) == 1) and test.round():
        history.append(test.pooled())
    return MarkedColours(tuple(history))


class _MarkedTest:
    """The colours of all copies, `[copies] + [n] * k` for each graph."""

    def __init__(
        self,
        matrices: Sequence[Adjacency],
        k: int,
        marks: int,
        pooling: Pooling,
        memory_limit: int,
    ) -> None:
        self.k, self.pooling = k, pooling
        self.rng = np.random.default_rng(_SEED)
        self.marks: list[NDArray[np.int64]] = []
        self.labels = [_mark_labels(matrix, pooling) for matrix in matrices]
        for matrix, labels in zip(matrices, self.labels, strict=True):
            nodes = np.arange(len(matrix))
            first = np.unique(labels)
            pairs = [first] if marks == 1 else np.meshgrid(first, nodes, indexing="ij")
            self.marks.append(np.stack([part.ravel() for part in pairs]))
        tuples = sum(
            m.shape[1] * len(matrix) ** k for m, matrix in zip(self.marks, matrices, strict=True)
        )
        if tuples * _BYTES_PER_TUPLE > memory_limit:
            raise DataError(
                f"{marks} marks on {len(matrices)} graph(s) of up to {max(map(len, matrices))} "
                f"nodes hold {tuples:,} tuples, about {tuples * _BYTES_PER_TUPLE / 2**30:,.1f} GiB,"
                f" the limit is {memory_limit / 2**30:,.1f} GiB: take fewer graphs at a time"
            )
        self.sizes = [len(matrix) for matrix in matrices]
        types = pair_types(matrices, None, None)
        self.types, self.is_edge = types.of_graph, types.is_edge
        base, _ = first_colours([t[None] for t in types.of_graph], k)
        self.outer, self.outer_count = joint_ranks([[part[0]] for part in base])
        self.colours, self.count = joint_ranks(
            [
                [
                    np.broadcast_to(part, (m.shape[1], *part.shape[1:])),
                    *self._marked(m, len(part[0])),
                ]
                for part, m in zip(base, self.marks, strict=True)
            ]
        )

    def _marked(self, marks: NDArray[np.int64], nodes: int) -> list[Colours]:
        """For every entry of a copy which of its nodes are which mark."""
        columns = []
        for mark in marks:
            here = (mark[:, None] == np.arange(nodes)).astype(np.int64)
            shape = (len(mark), *(nodes,) * self.k)
            axes = [here[:, :, None], here[:, None, :]] if self.k == 2 else [here]
            columns += [np.broadcast_to(axis, shape) for axis in axes]
        return columns

    def round(self) -> bool:
        """Refine every copy once; whether anything was split."""
        tables = [
            [random_table(self.rng, self.count) for _ in range(self.k)] for _ in range(EVALUATIONS)
        ]
        edges = [
            random_table(self.rng, len(self.is_edge)) * self.is_edge for _ in range(EVALUATIONS)
        ]
        parts = []
        for graph, colours in enumerate(self.colours):
            seen = partial(self._seen, colours, self.types[graph], tables, edges)
            parts.append([colours, *fingerprint_keys(seen)])
        before = self.count, self.outer_count
        if self.pooling == "full":
            self._outside()
            for part, outer in zip(parts, self.outer, strict=True):
                part.append(np.broadcast_to(outer, part[0].shape))
        self.colours, self.count = joint_ranks(parts)
        return (self.count, self.outer_count) != before

    def _seen(
        self,
        colours: Colours,
        types: Colours,
        tables: list[list[NDArray[np.float64]]],
        edges: list[NDArray[np.float64]],
        point: int,
    ) -> Colours:
        if self.k == 1:  # sum over neighbours w of x(c(w))
            return product_in_field(tables[point][0][colours], edges[point][types].T)
        first, second = tables[point]
        return product_in_field(first[colours], second[colours])

    def _outside(self) -> None:
        """Full marks: the unmarked pairs by 2-FWL, and by the multiset of their marked colours."""
        tables = [
            [random_table(self.rng, self.outer_count) for _ in range(2)] for _ in range(EVALUATIONS)
        ]
        inner = [random_table(self.rng, self.count) for _ in range(EVALUATIONS)]

        def folklore(outer: Colours, point: int) -> Colours:
            first, second = tables[point]
            return product_in_field(first[outer], second[outer])

        def over_marks(colours: Colours, point: int) -> Colours:
            total: Colours = inner[point][colours].sum(axis=0).astype(np.int64) % PRIME
            return total

        self.outer, self.outer_count = joint_ranks(
            [
                [
                    outer,
                    *fingerprint_keys(partial(folklore, outer)),
                    *fingerprint_keys(partial(over_marks, colours)),
                ]
                for outer, colours in zip(self.outer, self.colours, strict=True)
            ]
        )

    def copies(self) -> list[Colours]:
        """One colour per copy: the multiset of its colours."""
        tables = [random_table(self.rng, self.count) for _ in range(EVALUATIONS)]

        def total(colours: Colours, point: int) -> Colours:
            values = tables[point][colours].reshape(len(colours), -1)
            sums: Colours = values.sum(axis=1).astype(np.int64) % PRIME
            return sums

        return joint_ranks([fingerprint_keys(partial(total, c)) for c in self.colours])[0]

    def of_outer_marks(self) -> list[list[Hashable]]:
        """Per graph the colour of each first mark, a multiset over the second if there is one."""
        rows: list[list[Hashable]] = []
        for colours, marks, size in zip(self.copies(), self.marks, self.sizes, strict=True):
            if len(marks) == 1:
                rows.append(colours.tolist())
            else:
                table = np.sort(colours.reshape(-1, size), axis=1)
                rows.append([row.tobytes() for row in table])
        return rows

    def pooled(self) -> Colours:
        """One colour per graph; its size is part of it."""
        keys: list[Hashable] = []
        for graph, row in enumerate(self.of_outer_marks()):
            weights = np.bincount(self.labels[graph], minlength=self.sizes[graph])
            first = np.unique(self.labels[graph])
            multiset: Counter[Hashable] = Counter()
            for colour, weight in zip(row, weights[first].tolist(), strict=True):
                if self.pooling == "flat" and isinstance(colour, bytes):
                    for inner in np.frombuffer(colour, dtype=np.int64).tolist():
                        multiset[inner] += weight
                else:
                    multiset[colour] += weight
            outside: Hashable = ()
            if self.pooling == "full":
                outside = np.sort(self.outer[graph], axis=None).tobytes()
            keys.append((self.sizes[graph], frozenset(multiset.items()), outside))
        numbers: dict[Hashable, int] = {}
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _mark_labels(matrix: Adjacency, pooling: Pooling) -> NDArray[np.int64]:
    if pooling == "full" or len(matrix) < _LEAST_FOR_ORBITS:
        return np.arange(len(matrix))
    return orbits(matrix)
