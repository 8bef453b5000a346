"""Triton kernels of root-mean-square normalisation."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def forward_kernel(
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
def backward_kernel(
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
