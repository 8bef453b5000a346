"""Triton kernels of the sums over nodes, over a diagonal and beside it."""

from __future__ import annotations

import triton
import triton.language as tl

from ..rule_kernels.kernels import clear_tail


@triton.jit
def strided_sums(x, stride, count, c, S: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """`[BM, BC]` sums of every BM-th of `count` rows, each a stride further than the one before."""
    total = tl.zeros([BM, BC], dtype=tl.float32)
    for start in range(0, count, BM):
        i = start + tl.arange(0, BM)
        inside = (i < count)[:, None] & (c < S)[None, :]
        place = x + i[:, None] * stride + c[None, :]
        total += tl.load(place, mask=inside, other=0.0).to(tl.float32)
    return total


@triton.jit
def pool_kernel(
    M, V, OUT, SIZES, NODES, PAIRS, width, per_node, per_pair, at_nodes, at_diagonal, at_rest,
    SM: tl.constexpr, SV: tl.constexpr, BC: tl.constexpr, BM: tl.constexpr, FEW: tl.constexpr,
    OF_NODES: tl.constexpr, OF_DIAGONAL: tl.constexpr, OF_REST: tl.constexpr,
):  # fmt: skip
    """BC channels of the sums of one packed graph, times the factors, where `at` says."""
    g = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    n = tl.load(SIZES + g)
    m, v = M + tl.load(PAIRS + g) * SM, V + tl.load(NODES + g).to(tl.int64) * SV
    out = OUT + g * width + c
    # Everything is read before anything is added up across threads.
    nodes, diagonal = tl.zeros([FEW, BC], tl.float32), tl.zeros([FEW, BC], tl.float32)
    every = tl.zeros([BM, BC], tl.float32)
    if OF_REST:
        every = strided_sums(m, SM, n * n, c, SM, BM, BC)
    if OF_DIAGONAL or OF_REST:
        diagonal = strided_sums(m, (n + 1) * SM, n, c, SM, FEW, BC)
    if OF_NODES:
        nodes = strided_sums(v, SV, n, c, SV, FEW, BC)
        tl.store(out + at_nodes, tl.sum(nodes, axis=0) * per_node, mask=c < SV)
    if OF_DIAGONAL or OF_REST:
        total = tl.sum(diagonal, axis=0)
        if OF_DIAGONAL:
            tl.store(out + at_diagonal, total * per_node, mask=c < SM)
        if OF_REST:
            tl.store(out + at_rest, (tl.sum(every, axis=0) - total) * per_pair, mask=c < SM)


@triton.jit
def pool_spread_kernel(
    DOUT, DM, DV, SIZES, NODES, PAIRS, NODE_TOTAL, PAIR_TOTAL, work, parts, tails, pair_rows,
    node_rows, width, per_node, per_pair, at_nodes, at_diagonal, at_rest,
    SM: tl.constexpr, SV: tl.constexpr, PM: tl.constexpr, PV: tl.constexpr, BM: tl.constexpr,
    OF_NODES: tl.constexpr, OF_DIAGONAL: tl.constexpr, OF_REST: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    """BM pairs of a graph, and its nodes, have the gradients of their sums; tails are cleared."""
    me = tl.program_id(0)
    if me < work:
        g, part = me // parts, me % parts
        n = tl.load(SIZES + g)
        i = part * BM + tl.arange(0, BM)
        if OF_DIAGONAL or OF_REST:
            c = tl.arange(0, PM)
            channel = (c < SM)[None, :]
            diagonal, rest = tl.zeros([PM], dtype=tl.float32), tl.zeros([PM], dtype=tl.float32)
            if OF_DIAGONAL:
                diagonal += tl.load(DOUT + g * width + at_diagonal + c, mask=c < SM, other=0.0)
            if OF_REST:
                rest += tl.load(DOUT + g * width + at_rest + c, mask=c < SM, other=0.0)
            same = (i % tl.maximum(n + 1, 1) == 0)[:, None]
            value = tl.where(same, (diagonal * per_node)[None, :], (rest * per_pair)[None, :])
            place = DM + (tl.load(PAIRS + g) + i[:, None]) * SM + c[None, :]
            inside = (i < n * n)[:, None] & channel
            tl.store(place, value.to(DM.dtype.element_ty), mask=inside)
        if OF_NODES:
            c = tl.arange(0, PV)
            flow = tl.load(DOUT + g * width + at_nodes + c, mask=c < SV, other=0.0) * per_node
            value = flow.to(DV.dtype.element_ty)[None, :] + tl.zeros([BM, 1], DV.dtype.element_ty)
            place = DV + (tl.load(NODES + g).to(tl.int64) + i[:, None]) * SV + c[None, :]
            tl.store(place, value, mask=(i < n)[:, None] & (c < SV)[None, :])
    elif TAIL:
        me -= work
        if OF_DIAGONAL or OF_REST:
            clear_tail(DM, PAIR_TOTAL, me, tails, pair_rows, SM, SM, 16, 64)
        if OF_NODES:
            clear_tail(DV, NODE_TOTAL, me, tails, node_rows, SV, SV, 16, 64)
