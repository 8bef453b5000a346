"""GraphIndex: the offsets of the graphs of a batch among its rows, as tensors that kernels read.

Pairs and nodes of all graphs are rows. The layout is packed (`packed_index`), with unused rows
after the last graph if a CUDA graph was recorded for more, or padded (`padded_index`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class GraphIndex:
    """Places of G graphs among Q rows of nodes and P rows of pairs.

    Attributes:
        sizes: `[G]` nodes of each graph.
        widths: `[G]` pairs from one row of its matrix to the next.
        node_starts: `[G]` its first node.
        pair_starts: `[G]` its first pair, int64.
        owners: `[Q]` the graph of each node; -1 for a row that is no node.
        most: Nodes of the largest graph, at most.
        totals: Rows of nodes and of pairs that belong to graphs, each a tensor; None for all.
        scale: `[G]` 1/√n in float32, where it is known.
    """

    sizes: Tensor
    widths: Tensor
    node_starts: Tensor
    pair_starts: Tensor
    owners: Tensor
    most: int
    totals: tuple[Tensor, Tensor] | None = None
    scale: Tensor | None = None


def padded_index(count: int, nodes: int, device: torch.device) -> GraphIndex:
    """Of `[B, N, N]`, padding counted in: it is zero, and stays zero."""
    graphs = torch.arange(count, dtype=torch.int32, device=device)
    sizes = torch.full_like(graphs, nodes)
    owners = torch.arange(count * nodes, dtype=torch.int32, device=device) // nodes
    pair_starts = graphs.long() * nodes**2
    return GraphIndex(sizes, sizes, graphs * nodes, pair_starts, owners, nodes)


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
        small,
        (node_ends - sizes).int(),
        pair_ends - sizes.square(),
        owners.int(),
        most,
        (node_ends[-1], pair_ends[-1]) if has_tail else None,
    )
