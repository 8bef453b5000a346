"""Arrays over many graphs, padded to one size or laid end to end, cut into one block per graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..graph_set import Ints, Level

Array = NDArray[Any]


def per_node(values: Array, key: str, sizes: Ints) -> list[Array]:
    """Cut `[G, n, F]`, `[G, n]`, `[ΣN, F]` or `[ΣN]` into blocks `[n, F]`.

    Raises:
        DataError: If it has another shape.
    """
    graphs, total, largest = len(sizes), int(sizes.sum()), int(sizes.max())
    if 1 <= values.ndim <= 2 and len(values) == total:
        return np.split(values.reshape(total, -1), np.cumsum(sizes)[:-1])
    if 2 <= values.ndim <= 3 and len(values) == graphs and values.shape[1] >= largest:
        wide = values.reshape(graphs, values.shape[1], -1)
        return [wide[index, :size] for index, size in enumerate(sizes)]
    raise DataError(
        f"array {key!r} has shape {list(values.shape)}, expected [{graphs}, {largest}, F] or "
        f"[{total}, F] for the {total} nodes of {graphs} graphs"
    )


def per_edge(values: Array, key: str, edges: Sequence[Ints]) -> list[Array]:
    """Cut `[G, n, n, K]`, `[G, n, n]`, `[ΣE, K]` or `[ΣE]` into blocks `[E, K]`.

    Raises:
        DataError: If it has another shape.
    """
    counts = [block.shape[1] for block in edges]
    total, largest = sum(counts), max(int(block.max(initial=0)) + 1 for block in edges)
    if 1 <= values.ndim <= 2 and len(values) == total:
        columns = values.shape[1] if values.ndim == 2 else 1
        return np.split(values.reshape(total, columns), np.cumsum(counts)[:-1])
    square = 3 <= values.ndim <= 4 and values.shape[1] == values.shape[2] >= largest
    if square and len(values) == len(edges):
        wide = values if values.ndim == 4 else values[..., None]
        return [wide[index][block[0], block[1]] for index, block in enumerate(edges)]
    raise DataError(
        f"array {key!r} has shape {list(values.shape)}, expected [{len(edges)}, n, n, K] or "
        f"[{total}, K] for the {total} edges of {len(edges)} graphs"
    )


def level_of(values: Array, graphs: int, nodes: int, edges: int) -> Level:
    """What the targets belong to, by their shape; graphs first, then nodes, then edges.

    Raises:
        DataError: If no reading fits.
    """
    if values.ndim <= 2 and len(values) == graphs:
        return "graph"
    if values.ndim <= 2 and len(values) == nodes:
        return "node"
    if (values.ndim <= 2 and len(values) == edges) or values.ndim >= 3:
        return "edge"
    raise DataError(
        f"array 'y' has shape {list(values.shape)}, expected {graphs} rows (one per graph), "
        f"{nodes} (per node) or {edges} (per edge)"
    )
