"""Orbits of the nodes of a graph under its automorphisms, by individualisation and refinement.

Two nodes are put into one orbit only with an automorphism in hand that was checked on the matrix.
The search for one is bounded, so an orbit may come out in parts; nodes that are joined always have
an automorphism between them. Marking one node of each class, weighted by its size, is therefore
exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..graphs import Adjacency, GraphLike, adjacency

Labels = NDArray[np.int64]

BRANCHES = 64
"""Refinements spent on one pair of nodes before they are left apart, and on a graph per node."""


def vertex_orbits(graph: GraphLike) -> Labels:
    """One label per node, the smallest node of its class.

    >>> vertex_orbits("D?{").tolist()  # the star of four leaves
    [0, 0, 0, 0, 4]
    """
    matrix = adjacency(graph)
    labels = np.arange(len(matrix))
    search = _Search(matrix)
    start = search.refined(np.zeros((len(matrix), 2), dtype=np.int64))
    if start is None:
        return labels
    for node in range(len(matrix)):
        tried: set[int] = set()
        for other in range(node):
            if start[other, 0] != start[node, 0] or labels[other] in tried:
                continue
            if search.spent > BRANCHES * len(matrix):
                return labels
            if labels[other] == labels[node]:
                break
            tried.add(int(labels[other]))
            permutation = search.automorphism(start, node, other)
            if permutation is not None:
                _join_cycles(labels, permutation)
                break
    return labels


def _join_cycles(labels: Labels, permutation: Labels) -> None:
    for node, image in enumerate(permutation.tolist()):
        first, second = sorted((int(labels[node]), int(labels[image])))
        labels[labels == second] = first


class _Search:
    """Colours `[n, 2]` of two copies of a graph, refined together."""

    def __init__(self, matrix: Adjacency) -> None:
        self.matrix = matrix
        weights, codes = np.unique(matrix, return_inverse=True)
        codes = codes.reshape(matrix.shape)
        rng = np.random.default_rng(20230519)
        table = rng.integers(1, 2**31, size=len(weights))
        table[weights == 0] = 0
        self.out = table[codes].astype(np.int64)
        self.into = np.ascontiguousarray(self.out.T)
        self.random = rng.integers(1, 2**62, size=2 * len(matrix) + 2)
        self.left = self.spent = 0

    def automorphism(self, start: Labels, node: int, image: int) -> Labels | None:
        """An automorphism that takes a node to another, if the bounded search has one."""
        self.left = BRANCHES
        return self._extended(start, node, image)

    def _extended(self, colours: Labels, node: int, image: int) -> Labels | None:
        """Give both nodes a colour of their own, and go on until all have one."""
        self.left -= 1
        self.spent += 1
        marked = colours.copy()
        marked[node, 0] = marked[image, 1] = colours.max() + 1
        refined = self.refined(marked)
        if refined is None or self.left < 0:
            return None
        counts = np.bincount(refined[:, 0])
        if counts.max() == 1:
            images = np.empty(len(refined), dtype=np.int64)
            images[np.argsort(refined[:, 0])] = np.argsort(refined[:, 1])
            moved = self.matrix[np.ix_(images, images)]
            return images if np.array_equal(moved, self.matrix) else None
        several = np.flatnonzero(counts > 1)
        colour = several[np.argmin(counts[several])]
        next_node = int(np.flatnonzero(refined[:, 0] == colour)[0])
        for next_image in np.flatnonzero(refined[:, 1] == colour).tolist():
            permutation = self._extended(refined, next_node, next_image)
            if permutation is not None or self.left < 0:
                return permutation
        return None

    def refined(self, colours: Labels) -> Labels | None:
        """Colour refinement of both copies; None once their colours differ."""
        count = -1
        while True:
            values = self.random[colours]
            with np.errstate(over="ignore"):
                sums = (self.out @ values) * 31 + self.into @ (values ^ 0x5DEECE66D)
            keys = np.stack([colours.ravel(), sums.ravel()], axis=1)
            numbers = np.unique(keys, axis=0, return_inverse=True)[1].reshape(colours.shape)
            if not np.array_equal(np.sort(numbers[:, 0]), np.sort(numbers[:, 1])):
                return None
            new = int(numbers.max()) + 1
            if new == count:
                return numbers.astype(np.int64)
            colours, count = numbers, new
