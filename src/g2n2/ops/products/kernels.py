"""Triton kernels of channel-wise products."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def strip_kernel(
    X, Y, SCALE, Z, NI, NK, NJ, S, xb, xi, xk, yb, yk, yj,
    BI: tl.constexpr, BJ: tl.constexpr, BC: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """BI × BJ entries of BC channels, added up over k in float32."""
    across = tl.cdiv(NJ, BJ)
    b = tl.program_id(2).to(tl.int64)
    # 64 bits: an index times a stride passes 2³¹ in large graphs.
    i = ((tl.program_id(0) // across) * BI + tl.arange(0, BI)).to(tl.int64)[:, None, None]
    j = ((tl.program_id(0) % across) * BJ + tl.arange(0, BJ)).to(tl.int64)[None, :, None]
    c = tl.program_id(1) * BC + tl.arange(0, BC)[None, None, :]
    left = X + b * xb + i * xi + c
    right = Y + b * yb + j * yj + c
    from_left = (i < NI) & (c < S)
    from_right = (j < NJ) & (c < S)
    total = tl.zeros([BI, BJ, BC], dtype=tl.float32)
    for _ in range(0, NK):
        x = tl.load(left, mask=from_left, other=0.0).to(tl.float32)
        y = tl.load(right, mask=from_right, other=0.0).to(tl.float32)
        total += x * y
        left += xk
        right += yk
    if SCALED:
        total *= tl.load(SCALE + b).to(tl.float32)
    place = ((b * NI + i) * NJ + j) * S + c
    tl.store(Z + place, total.to(Z.dtype.element_ty), mask=from_left & from_right)


@triton.jit
def tile_kernel(
    X, Y, SCALE, Z, NI, NK, NJ, S, xb, xi, xk, yb, yk, yj,
    BI: tl.constexpr, BJ: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr,
    PRECISION: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """A BI × BJ tile of BC channels: each channel's product on tensor cores."""
    across = tl.cdiv(NJ, BJ)
    i = ((tl.program_id(0) // across) * BI + tl.arange(0, BI)).to(tl.int64)
    j = ((tl.program_id(0) % across) * BJ + tl.arange(0, BJ)).to(tl.int64)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    b = tl.program_id(2).to(tl.int64)
    total = tl.zeros([BC, BI, BJ], dtype=tl.float32)
    for start in range(0, NK, BK):
        k = (start + tl.arange(0, BK)).to(tl.int64)
        left = X + b * xb + i[:, None, None] * xi + k[None, :, None] * xk + c[None, None, :]
        right = Y + b * yb + k[:, None, None] * yk + j[None, :, None] * yj + c[None, None, :]
        in_left = (i < NI)[:, None, None] & (k < NK)[None, :, None] & (c < S)[None, None, :]
        in_right = (k < NK)[:, None, None] & (j < NJ)[None, :, None] & (c < S)[None, None, :]
        x = tl.permute(tl.load(left, mask=in_left, other=0.0), (2, 0, 1))
        y = tl.permute(tl.load(right, mask=in_right, other=0.0), (2, 0, 1))
        total = tl.dot(x, y, total, input_precision=PRECISION)
    if SCALED:
        total *= tl.load(SCALE + b).to(tl.float32)
    place = ((b * NI + i[:, None, None]) * NJ + j[None, :, None]) * S + c[None, None, :]
    inside = (i < NI)[:, None, None] & (j < NJ)[None, :, None] & (c < S)[None, None, :]
    value = tl.permute(total, (1, 2, 0)).to(Z.dtype.element_ty)
    tl.store(Z + place, value, mask=inside)
