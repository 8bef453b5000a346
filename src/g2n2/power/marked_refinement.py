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
    SEED,
    ColourHistory,
    Colours,
    fingerprint_keys,
    joint_ranks,
    numbered,
    random_table,
)
from .memory_limit import DEFAULT_MEMORY_LIMIT, check_memory
from .pair_types import first_colours, pair_types
from .refinement import Fingerprints, neighbours

Pooling = Literal["nested", "flat", "full"]

_BYTES_PER_TUPLE = 250
_LEAST_FOR_ORBITS = 64
"""Graphs of fewer nodes are marked everywhere: the orbits would take longer than the copies."""


def refine_marked(
    graphs: Sequence[GraphLike],
    k: int = 2,
    marks: int = 1,
    pooling: Pooling = "nested",
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> ColourHistory:
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
    return ColourHistory(tuple(history))


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
        self.rng = np.random.default_rng(SEED)
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
        check_memory(
            f"{marks} marks on {len(matrices)} graph(s) of up to {max(map(len, matrices))} nodes "
            f"hold {tuples:,} tuples, about",
            tuples * _BYTES_PER_TUPLE,
            memory_limit,
            "take fewer graphs at a time",
        )
        self.sizes = [len(matrix) for matrix in matrices]
        types = pair_types(matrices, None, None)
        self.is_edge = types.is_edge
        base, _ = first_colours([t[None] for t in types.of_graph], k)
        self.edges = [
            neighbours(np.broadcast_to(t, (m.shape[1], *t.shape)), types.is_edge)
            if k == 1
            else None
            for t, m in zip(types.of_graph, self.marks, strict=True)
        ]
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
        seen = self._fingerprints(self.k, self.count)
        parts = [[c, *seen.keys(c, e)] for c, e in zip(self.colours, self.edges, strict=True)]
        before = self.count, self.outer_count
        if self.pooling == "full":
            self._outside()
            for part, outer in zip(parts, self.outer, strict=True):
                part.append(np.broadcast_to(outer, part[0].shape))
        self.colours, self.count = joint_ranks(parts)
        return (self.count, self.outer_count) != before

    def _fingerprints(self, k: int, count: int) -> Fingerprints:
        return Fingerprints(k, "wl" if k == 1 else "fwl", count, self.is_edge, self.rng)

    def _outside(self) -> None:
        """Full marks: the unmarked pairs by 2-FWL, and by the multiset of their marked colours."""
        seen = self._fingerprints(2, self.outer_count)
        inner = [random_table(self.rng, self.count) for _ in range(EVALUATIONS)]

        def over_marks(colours: Colours, point: int) -> Colours:
            total: Colours = inner[point][colours].sum(axis=0).astype(np.int64) % PRIME
            return total

        self.outer, self.outer_count = joint_ranks(
            [
                [
                    outer,
                    *(key[0] for key in seen.keys(outer[None], None)),
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

    def pooled(self) -> Colours:
        """One colour per graph; its size is part of it."""
        keys: list[Hashable] = []
        for graph, colours in enumerate(self.copies()):
            labels, size = self.labels[graph], self.sizes[graph]
            weights = np.bincount(labels, minlength=size)[np.unique(labels)].tolist()
            # The colour of a first mark is the multiset over the second, if there is one.
            over_second = np.sort(colours.reshape(len(weights), -1), axis=1).tolist()
            multiset: Counter[Hashable] = Counter()
            for row, weight in zip(over_second, weights, strict=True):
                for colour in row if self.pooling == "flat" else [tuple(row)]:
                    multiset[colour] += weight
            outside: Hashable = ()
            if self.pooling == "full":
                outside = np.sort(self.outer[graph], axis=None).tobytes()
            keys.append((size, frozenset(multiset.items()), outside))
        return numbered(keys)


def _mark_labels(matrix: Adjacency, pooling: Pooling) -> NDArray[np.int64]:
    if pooling == "full" or len(matrix) < _LEAST_FOR_ORBITS:
        return np.arange(len(matrix))
    return orbits(matrix)
