"""A Triton kernel that normalises rows and multiplies them by the selectors' maps."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def select_kernel(
    X, GAIN, W, READ, OUT, count, small, operands, stride_read,
    S: tl.constexpr, P: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """BM rows of S channels, normalised, and their operands operands."""
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
    c = tl.arange(0, P)
    inside = (rows < count) & (c < S)[None, :]
    x = tl.load(X + rows * S + c[None, :], mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(GAIN + c, mask=c < S, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / S + small)
    read = (x * scale[:, None] * gain[None, :]).to(READ.dtype.element_ty)
    tl.store(READ + rows * stride_read + c[None, :], read, mask=inside)
    for start in range(0, operands, BK):
        k = start + tl.arange(0, BK)
        weight = W + k[:, None] * S + c[None, :]
        w = tl.load(weight, mask=(k < operands)[:, None] & (c < S)[None, :], other=0.0)
        value = tl.dot(read, tl.trans(w), input_precision=PRECISION)
        place, there = OUT + rows * operands + k[None, :], (rows < count) & (k < operands)[None, :]
        tl.store(place, value.to(OUT.dtype.element_ty), mask=there)
