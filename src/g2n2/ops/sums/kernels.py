"""Triton kernel that adds up the rows of a small matrix."""

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
