"""Triton kernels that normalise rows, and multiply them by the selectors' maps."""

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


@triton.jit
def normalise_kernel(
    X, GAIN, OUT, count, small, stride_out, S: tl.constexpr, P: tl.constexpr, BM: tl.constexpr
):
    """BM rows of S channels."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, P)
    inside = (rows < count)[:, None] & (c < S)[None, :]
    place = rows.to(tl.int64)[:, None] * S + c[None, :]
    x = tl.load(X + place, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(GAIN + c, mask=c < S, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / S + small)
    out = x * scale[:, None] * gain[None, :]
    place = rows.to(tl.int64)[:, None] * stride_out + c[None, :]
    tl.store(OUT + place, out.to(OUT.dtype.element_ty), mask=inside)


@triton.jit
def normalise_gradient_kernel(
    X, GAIN, DOUT, MORE, BESIDE, DX, DGAIN, count, small, stride_more, stride_beside, each,
    S: tl.constexpr, P: tl.constexpr, BM: tl.constexpr,
    ADD: tl.constexpr, PAST: tl.constexpr,
):  # fmt: skip
    """With y = x·s: dx = s·(g·dy − y·mean(g·dy·y)); the gain's gradient is added up over blocks.

    The normalised rows have a second gradient (ADD), and rows a second use beside them (PAST).
    """
    c = tl.arange(0, P)
    gain = tl.load(GAIN + c, mask=c < S, other=0.0).to(tl.float32)
    dgain = tl.zeros([P], dtype=tl.float32)
    for block in range(0, each):
        rows = ((tl.program_id(0) * each + block) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
        inside = (rows < count) & (c < S)[None, :]
        place = rows * S + c[None, :]
        x = tl.load(X + place, mask=inside, other=0.0).to(tl.float32)
        dout = tl.load(DOUT + place, mask=inside, other=0.0).to(tl.float32)
        if ADD:
            more = tl.load(MORE + rows * stride_more + c[None, :], mask=inside, other=0.0)
            dout += more.to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=1) / S + small)[:, None]
        y = x * scale
        dgain += tl.sum(dout * y, axis=0)
        dy = dout * gain[None, :]
        dx = scale * (dy - y * (tl.sum(dy * y, axis=1) / S)[:, None])
        if PAST:
            past = tl.load(BESIDE + rows * stride_beside + c[None, :], mask=inside, other=0.0)
            dx += past.to(tl.float32)
        tl.store(DX + place, dx.to(DX.dtype.element_ty), mask=inside)
    tl.store(DGAIN + tl.program_id(0) * S + c, dgain, mask=c < S)
