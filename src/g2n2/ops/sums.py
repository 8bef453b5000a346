"""Column sums of a small float32 matrix, straight into the dtype they are wanted in; and means over
the pairs of graphs."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .graph_index import GraphIndex
from .tiling import programs

ROWS, COLUMNS = 64, 16
PAIRS, TAILS = 512, 16
"""Pairs at a time, and programs for rows of no graph."""


def column_sums(partial: Tensor, dtype: torch.dtype) -> Tensor:
    """`[W]` from `[R, W]`; the order of additions is always the same."""
    rows, width = partial.shape
    out = torch.empty(width, dtype=dtype, device=partial.device)
    column_sums_kernel[(programs(width, COLUMNS),)](partial, out, rows, width, BM=ROWS, BC=COLUMNS)
    return out


def graph_means(pairs: Tensor, index: GraphIndex, beyond: float) -> Tensor:
    """`Packing.means` of `[P, 1]` in float32."""
    out, graphs = torch.empty_like(pairs), len(index.sizes)
    tails = 0 if index.totals is None else TAILS
    total = index.sizes if index.totals is None else index.totals[1]  # where looked at
    graph_means_kernel[(graphs + tails,)](
        pairs, out, index.sizes, index.pair_starts, total, graphs, tails, len(pairs), beyond,
        TAIL=tails > 0, BM=PAIRS,
    )  # fmt: skip
    return out


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
