"""Triton kernels that gather the rows of a batch of graphs."""

from __future__ import annotations

import triton
import triton.language as tl

from ..rule_kernels.kernels import clear_tail


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
