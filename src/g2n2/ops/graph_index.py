"""GraphIndex: the offsets of the graphs of a batch among its rows, as tensors that kernels read.

Pairs and nodes of all graphs are rows, graph after graph, with unused rows after the last graph if
a CUDA graph was recorded for more.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class GraphIndex:
    """Places of G graphs among Q rows of nodes and P rows of pairs."""

    sizes: Tensor  # `[G]` nodes of each graph
    node_starts: Tensor  # `[G]` its first node
    pair_starts: Tensor  # `[G]` its first pair, int64
    owners: Tensor  # `[Q]` the graph of each node; -1 for a row that is no node
    most: int  # nodes of the largest graph, at most
    # rows of nodes and of pairs that belong to graphs, each a tensor; None for all
    totals: tuple[Tensor, Tensor] | None = None
    scale: Tensor | None = None  # `[G]` 1/√n in float32, where it is known


def packed_index(
    sizes: Tensor, most: int, node_rows: int, pair_rows: int, has_tail: bool = True
) -> GraphIndex:
    """Of graphs one after the other, in tensors with room for so many rows.

    Args:
        sizes: `[G]` int64 nodes of each graph; 0 for none.
        most: Of them, at most.
        node_rows: Q, at least their sum.
        pair_rows: P, at least the sum of their squares.
        has_tail: Whether there may be more rows than that.
    """
    node_ends, pair_ends = sizes.cumsum(0), sizes.square().cumsum(0)
    nodes = torch.arange(node_rows, device=sizes.device)
    owners = torch.searchsorted(node_ends, nodes, right=True)
    owners = torch.where(owners < len(sizes), owners, -1)
    small = sizes.int()
    return GraphIndex(
        small,
        (node_ends - sizes).int(),
        pair_ends - sizes.square(),
        owners.int(),
        most,
        (node_ends[-1], pair_ends[-1]) if has_tail else None,
    )
