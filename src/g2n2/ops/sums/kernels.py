"""Triton kernels that add up the rows of a small matrix, or one number for each pair of a graph."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def column_sums_kernel(X, OUT, rows, width, BM: tl.constexpr, BC: tl.constexpr):
    """BC columns, all rows, always in the same order."""
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    total = tl.zeros([BM, BC], dtype=tl.float32)
    for start in range(0, rows, BM):
        r = start + tl.arange(0, BM)
        inside = (r < rows)[:, None] & (c < width)[None, :]
        total += tl.load(X + r[:, None] * width + c[None, :], mask=inside, other=0.0)
    tl.store(OUT + c, tl.sum(total, axis=0).to(OUT.dtype.element_ty), mask=c < width)


@triton.jit
def graph_means_kernel(
    X, OUT, SIZES, PAIRS, TOTAL, graphs, tails, rows, beyond, TAIL: tl.constexpr, BM: tl.constexpr
):
    """Every pair of a graph gets the mean over all of them, rows of no graph `beyond`."""
    g = tl.program_id(0)
    if g < graphs:
        n, start = tl.load(SIZES + g), tl.load(PAIRS + g)
        total = tl.zeros([BM], dtype=tl.float32)
        for first in range(0, n * n, BM):
            k = first + tl.arange(0, BM)
            total += tl.load(X + start + k, mask=k < n * n, other=0.0)
        mean = tl.sum(total, axis=0) / tl.maximum(n * n, 1)
        for first in range(0, n * n, BM):
            k = first + tl.arange(0, BM)
            tl.store(OUT + start + k, tl.zeros([BM], dtype=tl.float32) + mean, mask=k < n * n)
    elif TAIL:
        for first in range(tl.load(TOTAL).to(tl.int32) + (g - graphs) * BM, rows, tails * BM):
            k = first + tl.arange(0, BM)
            tl.store(OUT + k, tl.zeros([BM], dtype=tl.float32) + beyond, mask=k < rows)
