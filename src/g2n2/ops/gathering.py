"""A batch of packed graphs by two kernels: where each graph lies, then all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from .graph_index import GraphIndex
from .rule_kernels.kernels import clear_tail
from .rule_kernels.triton import TAIL
from .tiling import block, programs

BLOCK = 4096
"""Numbers a program copies."""
GRAPHS = 1024
"""Graphs whose places are summed up at once."""


@dataclass(frozen=True, eq=False)
class PackedTable:
    """Rows of N graphs, those of graph after graph."""

    sizes: Tensor  # `[N]` int64 nodes of each graph
    starts: Mapping[str, Tensor]  # `[N]` int64 its first row of each memory
    memories: Mapping[str, Tensor]  # `[R, S]` by letter, of M and V
    targets: Tensor  # `[N, T]`
    most: int  # nodes of the largest graph


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
    index_kernel[(1,)](
        indices, count, table.sizes, sizes, node_starts, pair_starts, scale, totals, graphs,
        BLOCK=min(GRAPHS, block(graphs)),
    )  # fmt: skip
    owners = torch.empty(nodes, dtype=torch.int32, device=device)
    targets = table.targets.new_empty(graphs, table.targets.shape[1])
    rows = {"M": pairs, "V": nodes}
    filled = {letter: x.new_empty(rows[letter], x.shape[1]) for letter, x in table.memories.items()}
    widths = [filled[letter].shape[1] if letter in filled else 0 for letter in rows]
    parts = programs(max(table.most**2 * widths[0], table.most * max(1, widths[1])), BLOCK)
    sources = [table.memories.get(letter, targets) for letter in rows]
    gather_kernel[(graphs * parts + TAIL,)](
        indices, count, sizes, node_starts, pair_starts, totals, table.starts["V"],
        table.starts["M"], *sources, table.targets, *(filled.get(x, targets) for x in rows),
        targets, owners, graphs * parts, parts, TAIL, pairs, nodes, *widths, targets.shape[1],
        HAS_M="M" in filled, HAS_V="V" in filled, PT=block(targets.shape[1]), BLOCK=BLOCK,
    )  # fmt: skip
    index = GraphIndex(
        sizes, node_starts, pair_starts, owners, table.most, (totals[0], totals[1]), scale
    )
    return filled, targets, index


@triton.jit
def index_kernel(
    CHOSEN, COUNT, SIZES, OUT_SIZES, OUT_NODES, OUT_PAIRS, OUT_SCALE, TOTALS, graphs,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Sizes of the first COUNT chosen graphs, 0 of others, and where each graph begins."""
    count = tl.load(COUNT)
    nodes, pairs = count * 0, count * 0
    for start in range(0, graphs, BLOCK):
        g = start + tl.arange(0, BLOCK)
        inside = g < graphs
        there = inside & (g < count)
        chosen = tl.load(CHOSEN + g, mask=inside, other=0)
        n = tl.load(SIZES + chosen, mask=there, other=0)
        tl.store(OUT_SIZES + g, n.to(tl.int32), mask=inside)
        tl.store(OUT_NODES + g, (nodes + tl.cumsum(n) - n).to(tl.int32), mask=inside)
        tl.store(OUT_PAIRS + g, pairs + tl.cumsum(n * n) - n * n, mask=inside)
        tl.store(OUT_SCALE + g, tl.rsqrt(tl.maximum(n, 1).to(tl.float32)), mask=inside)
        nodes += tl.sum(n)
        pairs += tl.sum(n * n)
    tl.store(TOTALS, nodes)
    tl.store(TOTALS + 1, pairs)


@triton.jit
def copied(to, source, count, part, width, BLOCK: tl.constexpr):
    """A part of `count` rows that lie one after the other."""
    k = part * BLOCK + tl.arange(0, BLOCK)
    inside = k < count * width
    tl.store(to + k, tl.load(source + k, mask=inside), mask=inside)


@triton.jit
def gather_kernel(
    CHOSEN, COUNT, SIZES, NODES, PAIRS, TOTALS, NODE_STARTS, PAIR_STARTS, M, V, TARGETS,
    OUT_M, OUT_V, OUT_TARGETS, OWNERS, work, parts, tails, pair_rows, node_rows,
    m_width, v_width, columns,
    HAS_M: tl.constexpr, HAS_V: tl.constexpr, PT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A part of the rows of one graph, or of the rows that belong to none."""
    me = tl.program_id(0)
    if me < work:
        g, part = me // parts, me % parts
        chosen, n = tl.load(CHOSEN + g), tl.load(SIZES + g)
        first = tl.load(NODES + g).to(tl.int64)
        if HAS_M:
            source = M + tl.load(PAIR_STARTS + chosen) * m_width
            copied(OUT_M + tl.load(PAIRS + g) * m_width, source, n * n, part, m_width, BLOCK)
        if HAS_V:
            source = V + tl.load(NODE_STARTS + chosen) * v_width
            copied(OUT_V + first * v_width, source, n, part, v_width, BLOCK)
        k = part * BLOCK + tl.arange(0, BLOCK)
        tl.store(OWNERS + first + k, tl.zeros([BLOCK], tl.int32) + g, mask=k < n)
        if part == 0:
            t = tl.arange(0, PT)
            known = tl.where(g < tl.load(COUNT), columns, 0)
            target = tl.load(TARGETS + chosen * columns + t, mask=t < known, other=float("nan"))
            tl.store(OUT_TARGETS + g * columns + t, target, mask=t < columns)
    else:
        me -= work
        if HAS_M:
            clear_tail(OUT_M, TOTALS + 1, me, tails, pair_rows, m_width, m_width, 16, 64)
        if HAS_V:
            clear_tail(OUT_V, TOTALS, me, tails, node_rows, v_width, v_width, 16, 64)
        for start in range(tl.load(TOTALS).to(tl.int32) + me * BLOCK, node_rows, tails * BLOCK):
            k = start + tl.arange(0, BLOCK)
            tl.store(OWNERS + k, tl.full([BLOCK], -1, tl.int32), mask=k < node_rows)
