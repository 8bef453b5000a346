"""Whether two graphs are isomorphic: colour refinement, then one node of each made equal by hand.

That is individualisation and refinement, without pruning by automorphisms: enough for the graphs
people compare here, and it says so where it is not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .conversion import Adjacency

MOST_NODES = 500
MOST_REFINEMENTS = 500


def are_isomorphic(first: Adjacency, second: Adjacency) -> bool | None:
    """Whether some order of the nodes makes two matrices equal; None where that is not decided."""
    if first.shape != second.shape:
        return False
    if np.array_equal(first, second):
        return True
    if len(first) > MOST_NODES:
        return None
    both = np.stack([first, second])
    pairs = np.stack([both, both.transpose(0, 2, 1)], axis=-1).reshape(-1, 2)
    kinds = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(both.shape)
    loops = np.diagonal(kinds, axis1=1, axis2=2)
    return _Search(kinds).matches(np.ascontiguousarray(loops))


class _Search:
    def __init__(self, kinds: NDArray[np.int64]):
        self.kinds = kinds  # [2, n, n]: the entries of a pair of nodes, both ways, as a number
        self.left = MOST_REFINEMENTS
        self.rng = np.random.default_rng(0)

    def matches(self, colours: NDArray[np.int64]) -> bool | None:
        """Whether the graphs are isomorphic by a map that keeps colours `[2, n]`."""
        if self.left == 0:
            return None
        self.left -= 1
        colours = self.refined(colours)
        order = np.argsort(colours, axis=1)
        if not np.array_equal(*np.take_along_axis(colours, order, axis=1)):
            return False
        names, counts = np.unique(colours[0], return_counts=True)
        if counts.max(initial=1) == 1:
            return np.array_equal(
                *(
                    kinds[np.ix_(nodes, nodes)]
                    for kinds, nodes in zip(self.kinds, order, strict=True)
                )
            )
        chosen = names[np.argmin(np.where(counts > 1, counts, np.inf))]
        node = np.flatnonzero(colours[0] == chosen)[0]
        undecided = False
        for mate in np.flatnonzero(colours[1] == chosen):
            marked = colours.copy()
            marked[0, node] = marked[1, mate] = -1
            found = self.matches(marked)
            if found:
                return True
            undecided |= found is None
        return None if undecided else False

    def refined(self, colours: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nodes of one colour then have neighbours of equal colours.

        Multisets of colours are compared by sums of random numbers; two that meet by chance merge
        colours, which only makes the search longer.
        """
        before = 0
        while True:
            names, numbers = np.unique(colours, return_inverse=True)
            colours = numbers.reshape(colours.shape)
            if len(names) == before:
                return colours
            before = len(names)
            size = before * (int(self.kinds.max(initial=0)) + 1)
            values = self.rng.integers(0, 2**62, size=(2, size), dtype=np.int64)
            seen = values[0][self.kinds * before + colours[:, None, :]].sum(axis=2)
            colours = seen + values[1][colours]
