"""The atomic type of a pair of nodes: what is known of it before any refinement.

The type of `(i, j)` is whether `i = j`, the entries `A[i, j]` and `A[j, i]`, the edge labels both
ways, and the label and loop of either node. Types are numbered jointly over all graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError
from ..graphs import Adjacency
from .colours import Colours, joint_ranks

Labels: TypeAlias = Sequence[ArrayLike | None]


@dataclass(frozen=True, eq=False)
class PairTypes:
    """Atomic types of all pairs of several graphs."""

    of_graph: tuple[Colours, ...]  # one read-only array `[n, n]` of type numbers per graph
    # says of each type `[types]` whether an edge joins the pair, in either direction
    is_edge: NDArray[np.bool_]


def pair_types(
    graphs: Sequence[Adjacency], node_labels: Labels | None, edge_labels: Labels | None
) -> PairTypes:
    """Number the atomic types of all pairs of nodes jointly; labels as for `refine`."""
    nodes = _label_codes(graphs, node_labels, "node")
    edges = _label_codes(graphs, edge_labels, "edge")
    arcs: list[list[NDArray[np.generic]]] = [[matrix] for matrix in graphs]
    for index, codes in enumerate(edges):
        # 0 where there is no edge: labels of absent edges must not tell graphs apart.
        arcs[index].append(np.where(graphs[index] != 0, codes + 1, 0))
    alone = [[arc.diagonal() for arc in columns] for columns in arcs]
    for index, codes in enumerate(nodes):
        alone[index].append(codes)
    node_types, _ = joint_ranks(alone)
    of_graph, count = joint_ranks(
        [
            [
                np.eye(len(codes), dtype=np.bool_),
                *(side for arc in columns for side in (arc, arc.T)),
                *np.broadcast_arrays(codes[:, None], codes[None, :]),
            ]
            for columns, codes in zip(arcs, node_types, strict=True)
        ]
    )
    is_edge = np.zeros(count, dtype=np.bool_)
    for types, matrix in zip(of_graph, graphs, strict=True):
        is_edge[types[(matrix != 0) | (matrix.T != 0)]] = True
    return PairTypes(tuple(of_graph), is_edge)


def first_colours(types: Sequence[Colours], k: int) -> tuple[list[Colours], int]:
    """Colours `[g] + [n] * k` of k-tuples by the types `[g, n, n]` of their pairs; the count."""
    parts: list[list[Colours]] = []
    for stack in types:
        graphs, nodes, _ = stack.shape
        if k == 1:
            parts.append([np.einsum("gii->gi", stack)])
            continue
        columns = []
        for first, second in combinations(range(k), 2):
            # The tuple's axes that are not of this pair have length 1 and are broadcast.
            axes = [nodes if axis in (first, second) else 1 for axis in range(k)]
            columns.append(np.broadcast_to(stack.reshape(graphs, *axes), (graphs, *(nodes,) * k)))
        parts.append(columns)
    return joint_ranks(parts)


def _label_codes(graphs: Sequence[Adjacency], labels: Labels | None, what: str) -> list[Colours]:
    """Replace labels by joint numbers: one array `[n]` (nodes) or `[n, n]` (edges) per graph."""
    if labels is None:
        return []
    if len(labels) != len(graphs):
        raise DataError(
            f"got {what} labels for {len(labels)} of {len(graphs)} graphs; "
            "expected one array per graph: label every graph or none"
        )
    arrays = [
        _checked_labels(value, matrix, what, index)
        for index, (value, matrix) in enumerate(zip(labels, graphs, strict=True))
    ]
    kinds = {(array.shape[-1], array.dtype.kind in "US") for array in arrays}
    if len(kinds) > 1:
        raise DataError(
            f"{what} labels differ in width or mix text and numbers between graphs, so they cannot "
            "be compared; expected the same kind of label on every graph"
        )
    codes, _ = joint_ranks([list(np.moveaxis(array, -1, 0)) for array in arrays])
    return codes


def _checked_labels(
    value: ArrayLike | None, matrix: Adjacency, what: str, index: int
) -> NDArray[np.generic]:
    """Return the labels of one graph as `[n, d]` (nodes) or `[n, n, d]` (edges)."""
    if value is None:
        raise DataError(
            f"{what} labels are missing on graph {index} and given on another; "
            "label every graph or none"
        )
    array = np.asarray(value)
    shape = matrix.shape[:1] if what == "node" else matrix.shape
    if array.shape[: len(shape)] != shape or array.ndim > len(shape) + 1:
        raise DataError(
            f"{what} labels of graph {index} have shape {list(array.shape)}, expected "
            f"{list(shape)} or {[*shape, 'd']} for its {len(matrix)} nodes"
        )
    if array.dtype.kind not in "biufUS":
        raise DataError(
            f"{what} labels of graph {index} have dtype {array.dtype}, expected numbers or text"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise DataError(
            f"{what} labels of graph {index} hold NaN or infinity, expected finite numbers: "
            "give absent labels a number of their own"
        )
    return array.reshape(*shape, -1)
