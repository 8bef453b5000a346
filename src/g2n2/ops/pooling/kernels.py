"""Triton kernels of the sums over a diagonal and beside it, and over rows."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def entries(g, start, FLAGS, SIZES, PAIRS, BM: tl.constexpr, MASKED: tl.constexpr):
    """BM pairs of graph g: their numbers, which are there, and which lie on the diagonal."""
    n = tl.load(SIZES + g)
    at = start + tl.arange(0, BM)
    i, j = at // tl.maximum(n, 1), at % tl.maximum(n, 1)
    inside = at < n * n
    real = inside
    if MASKED:
        there = tl.load(FLAGS + g * n + i, mask=inside, other=0) > 0
        real = there & (tl.load(FLAGS + g * n + j, mask=inside, other=0) > 0)
    return tl.load(PAIRS + g) + at, inside, real, i == j


@triton.jit
def forward_kernel(X, FLAGS, OUT, SIZES, PAIRS, S: tl.constexpr, P: tl.constexpr,
                   BM: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """Both sums of one graph."""
    g = tl.program_id(0)
    c = tl.arange(0, P)
    diagonal = tl.zeros([P], dtype=tl.float32)
    every = tl.zeros([P], dtype=tl.float32)
    n = tl.load(SIZES + g)
    for start in range(0, n * n, BM):
        row, _, real, same = entries(g, start, FLAGS, SIZES, PAIRS, BM, MASKED)
        inside = real[:, None] & (c < S)[None, :]
        x = tl.load(X + row[:, None] * S + c[None, :], mask=inside, other=0.0).to(tl.float32)
        every += tl.sum(tl.where(same[:, None], 0.0, x), axis=0)
        diagonal += tl.sum(tl.where(same[:, None], x, 0.0), axis=0)
    tl.store(OUT + g * 2 * S + c, diagonal, mask=c < S)
    tl.store(OUT + g * 2 * S + S + c, every, mask=c < S)


@triton.jit
def backward_kernel(DOUT, FLAGS, DX, SIZES, PAIRS, parts, S: tl.constexpr, P: tl.constexpr,
                    BM: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """BM entries of one graph have the gradient of their sum."""
    g, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    c = tl.arange(0, P)
    row, inside, real, same = entries(g, part * BM, FLAGS, SIZES, PAIRS, BM, MASKED)
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
