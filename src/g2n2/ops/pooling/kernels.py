"""Triton kernels of the sums over nodes, over a diagonal and beside it, and over rows."""

from __future__ import annotations

import triton
import triton.language as tl

from ..rule_kernels.kernels import clear_tail


@triton.jit
def entries(g, start, FLAGS, SIZES, PAIRS, BM: tl.constexpr):
    """BM pairs of graph g: their numbers, which are there, and which lie on the diagonal."""
    n = tl.load(SIZES + g)
    at = start + tl.arange(0, BM)
    i, j = at // tl.maximum(n, 1), at % tl.maximum(n, 1)
    inside = at < n * n
    there = tl.load(FLAGS + g * n + i, mask=inside, other=0) > 0
    real = there & (tl.load(FLAGS + g * n + j, mask=inside, other=0) > 0)
    return tl.load(PAIRS + g) + at, inside, real, i == j


@triton.jit
def forward_kernel(
    X, FLAGS, OUT, SIZES, PAIRS, S: tl.constexpr, P: tl.constexpr, BM: tl.constexpr
):  # fmt: skip
    """Both sums of one graph."""
    g = tl.program_id(0)
    c = tl.arange(0, P)
    diagonal = tl.zeros([P], dtype=tl.float32)
    every = tl.zeros([P], dtype=tl.float32)
    n = tl.load(SIZES + g)
    for start in range(0, n * n, BM):
        row, _, real, same = entries(g, start, FLAGS, SIZES, PAIRS, BM)
        inside = real[:, None] & (c < S)[None, :]
        x = tl.load(X + row[:, None] * S + c[None, :], mask=inside, other=0.0).to(tl.float32)
        every += tl.sum(tl.where(same[:, None], 0.0, x), axis=0)
        diagonal += tl.sum(tl.where(same[:, None], x, 0.0), axis=0)
    tl.store(OUT + g * 2 * S + c, diagonal, mask=c < S)
    tl.store(OUT + g * 2 * S + S + c, every, mask=c < S)


@triton.jit
def backward_kernel(DOUT, FLAGS, DX, SIZES, PAIRS, parts, S: tl.constexpr, P: tl.constexpr,
                    BM: tl.constexpr):  # fmt: skip
    """BM entries of one graph have the gradient of their sum."""
    g, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    c = tl.arange(0, P)
    row, inside, real, same = entries(g, part * BM, FLAGS, SIZES, PAIRS, BM)
    diagonal = tl.load(DOUT + g * 2 * S + c, mask=c < S, other=0.0)[None, :]
    beside = tl.load(DOUT + g * 2 * S + S + c, mask=c < S, other=0.0)[None, :]
    value = tl.where(real[:, None], tl.where(same[:, None], diagonal, beside), 0.0)
    place = DX + row[:, None] * S + c[None, :]
    tl.store(place, value.to(DX.dtype.element_ty), mask=inside[:, None] & (c < S)[None, :])


@triton.jit
def row_kernel(X, FLAGS, OUT, N, S: tl.constexpr, P: tl.constexpr, BM: tl.constexpr):
    """The sum of one row of a graph's matrix."""
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, P)
    total = tl.zeros([P], dtype=tl.float32)
    there = tl.load(FLAGS + row)
    for start in range(0, N, BM):
        j = start + tl.arange(0, BM)
        real = there & tl.load(FLAGS + row // N * N + j, mask=j < N, other=0)
        inside = (real > 0)[:, None] & (c < S)[None, :]
        place = X + (row * N + j)[:, None] * S + c[None, :]
        total += tl.sum(tl.load(place, mask=inside, other=0.0).to(tl.float32), axis=0)
    tl.store(OUT + row * S + c, total, mask=c < S)


@triton.jit
def row_spread_kernel(DOUT, FLAGS, DX, N, S: tl.constexpr, P: tl.constexpr, BM: tl.constexpr):
    """Every entry of a row that is there has the gradient of its sum."""
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, P)
    flow = tl.load(DOUT + row * S + c, mask=c < S, other=0.0)[None, :]
    there = tl.load(FLAGS + row)
    for start in range(0, N, BM):
        j = start + tl.arange(0, BM)
        real = there & tl.load(FLAGS + row // N * N + j, mask=j < N, other=0)
        value = tl.where((real > 0)[:, None], flow, 0.0).to(DX.dtype.element_ty)
        place = DX + (row * N + j)[:, None] * S + c[None, :]
        tl.store(place, value, mask=(j < N)[:, None] & (c < S)[None, :])


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
