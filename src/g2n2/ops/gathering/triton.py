"""A batch of packed graphs by two kernels: where each graph lies, then all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..graph_index import GraphIndex
from ..rule_kernels.triton import TAIL
from ..tiling import block, programs
from . import kernels

BLOCK = 4096
"""Numbers a program copies."""
GRAPHS = 1024
"""Graphs whose places are summed up at once."""


@dataclass(frozen=True, eq=False)
class PackedTable:
    """Rows of N graphs, those of graph after graph.

    Attributes:
        sizes: `[N]` int64 nodes of each graph.
        starts: `[N]` int64 its first row of each memory.
        memories: `[R, S]` by letter, of M and V.
        targets: `[N, T]`.
        most: Nodes of the largest graph.
    """

    sizes: Tensor
    starts: Mapping[str, Tensor]
    memories: Mapping[str, Tensor]
    targets: Tensor
    most: int


def gather(
    table: PackedTable, indices: Tensor, count: Tensor, nodes: int, pairs: int
) -> tuple[dict[str, Tensor], Tensor, GraphIndex]:
    """The first `count` of some graphs, in tensors with room for so many rows.

    Rows that belong to no graph are zero, targets of graphs that do not count are NaN.

    Args:
        table: All graphs.
        indices: `[G]` int64.
        count: How many of them count, one integer.
        nodes: Rows of nodes, at least the sum of the sizes.
        pairs: Rows of pairs, at least the sum of their squares.

    Returns:
        The memories by letter, the targets `[G, T]`, and where graphs lie.
    """
    graphs, device = len(indices), indices.device
    sizes, node_starts = torch.empty(2, graphs, dtype=torch.int32, device=device).unbind()
    pair_starts = torch.empty(graphs, dtype=torch.int64, device=device)
    scale = torch.empty(graphs, device=device)
    totals = torch.empty(2, dtype=torch.int64, device=device)
    kernels.index_kernel[(1,)](
        indices, count, table.sizes, sizes, node_starts, pair_starts, scale, totals, graphs,
        BLOCK=min(GRAPHS, block(graphs)),
    )  # fmt: skip
    owners = torch.empty(nodes, dtype=torch.int32, device=device)
    targets = table.targets.new_empty(graphs, table.targets.shape[1])
    rows = {"M": pairs, "V": nodes}
    made = {letter: x.new_empty(rows[letter], x.shape[1]) for letter, x in table.memories.items()}
    widths = [made[letter].shape[1] if letter in made else 0 for letter in rows]
    parts = programs(max(table.most**2 * widths[0], table.most * max(1, widths[1])), BLOCK)
    sources = [table.memories.get(letter, targets) for letter in rows]
    kernels.gather_kernel[(graphs * parts + TAIL,)](
        indices, count, sizes, node_starts, pair_starts, totals, table.starts["V"],
        table.starts["M"], *sources, table.targets, *(made.get(x, targets) for x in rows), targets,
        owners, graphs * parts, parts, TAIL, pairs, nodes, *widths, targets.shape[1],
        HAS_M="M" in made, HAS_V="V" in made, PT=block(targets.shape[1]), BLOCK=BLOCK,
    )  # fmt: skip
    index = GraphIndex(
        sizes, node_starts, pair_starts, owners, table.most, (totals[0], totals[1]), scale
    )
    return made, targets, index
