"""The naive twin of `refinement`: dictionaries and sorted tuples, straight from the definitions.

Slow and obviously right. It takes plain adjacency matrices and shares no code with the fast path,
so that an error in one shows against the other.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

Tuples = dict[tuple[int, ...], int]
NodeLabels = Sequence[Hashable] | None
EdgeLabels = NDArray[np.int64] | None


def reference_refine(
    graphs: Sequence[NDArray[np.float64]],
    k: int,
    variant: str,
    node_labels: Sequence[NodeLabels] | None = None,
    edge_labels: Sequence[EdgeLabels] | None = None,
) -> tuple[list[Tuples], int]:
    """Refine several graphs jointly and return the colour of each k-tuple, and the rounds taken."""
    nodes_of: Sequence[NodeLabels] = node_labels or [None] * len(graphs)
    edges_of: Sequence[EdgeLabels] = edge_labels or [None] * len(graphs)
    colours, count = _numbered(
        {
            nodes: _atomic_type(matrix, nodes, labels, edges)
            for nodes in product(range(len(matrix)), repeat=k)
        }
        for matrix, labels, edges in zip(graphs, nodes_of, edges_of, strict=True)
    )
    rounds = 0
    while True:
        colours, new_count = _numbered(
            {
                nodes: (colour[nodes], _seen_from(matrix, colour, nodes, variant, edges))
                for nodes in colour
            }
            for matrix, colour, edges in zip(graphs, colours, edges_of, strict=True)
        )
        if new_count == count:
            return colours, rounds
        count = new_count
        rounds += 1


def _atomic_type(
    matrix: NDArray[np.float64],
    nodes: tuple[int, ...],
    labels: NodeLabels,
    edges: EdgeLabels,
) -> Hashable:
    """Collect what the tuple's own entries, labels and equalities say."""
    return (
        tuple(labels[i] for i in nodes) if labels is not None else (),
        tuple((i == j, _edge(matrix, edges, i, j)) for i in nodes for j in nodes),
    )


def _seen_from(
    matrix: NDArray[np.float64],
    colour: Tuples,
    nodes: tuple[int, ...],
    variant: str,
    edges: EdgeLabels,
) -> Hashable:
    """Gather the multiset (for k-WL, one multiset per position) a tuple sees in a round."""
    everyone = range(len(matrix))
    if len(nodes) == 1:
        (i,) = nodes
        return tuple(
            sorted(
                (_edge(matrix, edges, i, w), _edge(matrix, edges, w, i), colour[(w,)])
                for w in everyone
                if matrix[i, w] != 0 or matrix[w, i] != 0
            )
        )
    replaced = [
        [colour[(*nodes[:position], w, *nodes[position + 1 :])] for w in everyone]
        for position in range(len(nodes))
    ]
    if variant == "fwl":
        return tuple(sorted(zip(*replaced, strict=True)))
    return tuple(tuple(sorted(column)) for column in replaced)


def _edge(matrix: NDArray[np.float64], edges: EdgeLabels, i: int, j: int) -> tuple[float, int]:
    """Return the weight of an edge and its label; an absent edge has none."""
    if matrix[i, j] == 0 or edges is None:
        return float(matrix[i, j]), 0
    return float(matrix[i, j]), 1 + int(edges[i, j])


def _numbered(signatures: Iterable[Mapping[tuple[int, ...], Hashable]]) -> tuple[list[Tuples], int]:
    """Replace equal signatures by equal numbers, jointly over the graphs."""
    numbers: dict[Hashable, int] = {}
    colours = [
        {nodes: numbers.setdefault(signature, len(numbers)) for nodes, signature in graph.items()}
        for graph in signatures
    ]
    return colours, len(numbers)
