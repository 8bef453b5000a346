"""Which edges lie on a cycle, for many small graphs at once.

An edge is on no cycle exactly if it is a bridge, and its effective resistance is 1 then. On a cycle
of k nodes it is at most (k − 1) / k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .graph_set import Ints

Flags = NDArray[np.bool_]

GROUND = 1e-6
"""Conductance from each node to ground, so that graphs of several components have a resistance."""
ENTRIES = 2**22
"""Of the matrices that are inverted at a time."""


def ring_edges(sizes: Ints, edge_counts: Ints, edges: Ints) -> Flags:
    """`[ΣE]` whether each edge of undirected simple graphs lies on a cycle.

    Args:
        sizes: `[G]` nodes of each graph, some hundred at most.
        edge_counts: `[G]` edges, each listed both ways.
        edges: `[2, ΣE]` nodes counted from 0 within their graph.
    """
    on_cycle = np.zeros(edges.shape[1], dtype=bool)
    owner = np.repeat(np.arange(len(sizes)), edge_counts)
    for size in np.unique(sizes[edge_counts > 0]).tolist():
        members = np.flatnonzero((sizes == size) & (edge_counts > 0))
        at_once = max(1, ENTRIES // size**2)
        for start in range(0, len(members), at_once):
            chosen = members[start : start + at_once]
            place = np.full(len(sizes), -1)
            place[chosen] = np.arange(len(chosen))
            rows = np.flatnonzero(place[owner] >= 0)
            graph, (i, j) = place[owner[rows]], edges[:, rows]
            laplacian = np.zeros((len(chosen), size, size))
            laplacian[graph, i, j] = -1.0
            nodes = np.arange(size)
            laplacian[:, nodes, nodes] = GROUND - laplacian.sum(2)
            inverse = np.linalg.inv(laplacian)
            resistance = inverse[graph, i, i] + inverse[graph, j, j] - 2.0 * inverse[graph, i, j]
            on_cycle[rows] = resistance < 1.0 - 0.5 / size
    return on_cycle
