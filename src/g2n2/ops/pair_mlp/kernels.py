"""What is read and written once around the large products of an update."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def places(rows, stride, c):
    """`[BM, P]` where channels c of some rows are; 32 bits would overflow at 3,700 nodes."""
    return rows.to(tl.int64)[:, None] * stride + c[None, :]


@triton.jit
def stored(value, out, rows, count, S: tl.constexpr, P: tl.constexpr):
    """Write `[BM, P]` rows of S channels."""
    c = tl.arange(0, P)
    inside = (rows < count)[:, None] & (c < S)[None, :]
    tl.store(out + places(rows, S, c), value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def finish_kernel(OUT, RESIDUAL, TOTAL, count, S: tl.constexpr, P: tl.constexpr,
                  ADD: tl.constexpr, BM: tl.constexpr):  # fmt: skip
    """In place: add the residual and clear rows that are not there."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, P)
    real = (rows < tl.load(TOTAL))[:, None] & (c < S)[None, :]
    value = tl.load(OUT + places(rows, S, c), mask=real, other=0.0).to(tl.float32)
    if ADD:
        value += tl.load(RESIDUAL + places(rows, S, c), mask=real, other=0.0).to(tl.float32)
    stored(value, OUT, rows, count, S, P)


@triton.jit
def out_kernel(
    HIDDEN, W2, B2, RESIDUAL, TOTAL, OUT, count, H,
    SO: tl.constexpr, PO: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
    BIAS: tl.constexpr, ADD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """`hidden W₂ᵀ + b₂` and the residual, zero where rows are not there."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    o = tl.arange(0, PO)
    inside = (rows < count)[:, None]
    value = tl.zeros([BM, PO], dtype=tl.float32)
    for start in tl.range(0, H, BH, num_stages=4):
        h = start + tl.arange(0, BH)
        unit = (h < H)[None, :]
        x = tl.load(HIDDEN + places(rows, H, h), mask=inside & unit, other=0.0)
        w = tl.load(W2 + o[:, None] * H + h[None, :], mask=(o < SO)[:, None] & unit, other=0.0)
        value = tl.dot(x, tl.trans(w), value, input_precision=PRECISION)
    if BIAS:
        value += tl.load(B2 + o, mask=o < SO, other=0.0).to(tl.float32)[None, :]
    real = (rows < tl.load(TOTAL))[:, None] & (o < SO)[None, :]
    if ADD:
        value += tl.load(RESIDUAL + places(rows, SO, o), mask=real, other=0.0).to(tl.float32)
    stored(tl.where(real, value, 0.0), OUT, rows, count, SO, PO)


@triton.jit
def back_kernel(
    DOUT, TOTAL, W2, HIDDEN, DPRE, SUMS, ALONG, count, H, each,
    SO: tl.constexpr, PO: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
    WEIGHT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """BH units of `dpre = (dout W₂) ⊙ (hidden > 0)`, zero where rows are not there.

    A program walks over `each` blocks of rows. A row of SUMS has the gradient of W₂ (WEIGHT),
    `[SO, H]`, and the sums of dpre. Of the programs that walk the same rows, each in turn adds dout
    of a block to ALONG.
    """
    turn, turns = tl.program_id(0), tl.num_programs(0)
    h = turn * BH + tl.arange(0, BH)
    o = tl.arange(0, PO)
    unit = (h < H)[None, :]
    w2 = tl.load(W2 + o[:, None] * H + h[None, :], mask=(o < SO)[:, None] & unit, other=0.0)
    down, along = tl.zeros([BH], dtype=tl.float32), tl.zeros([PO], dtype=tl.float32)
    dw2 = tl.zeros([PO, BH], dtype=tl.float32)
    number = tl.minimum(tl.load(TOTAL).to(tl.int32), count)
    for block in tl.range(0, each, num_stages=3):
        rows = (tl.program_id(1) * each + block) * BM + tl.arange(0, BM)
        inside, real = (rows < count)[:, None], (rows < number)[:, None]
        dout = tl.load(DOUT + places(rows, SO, o), mask=real & (o < SO)[None, :], other=0.0)
        hidden = tl.load(HIDDEN + places(rows, H, h), mask=real & unit, other=0.0)
        value = tl.dot(dout, w2, input_precision=PRECISION)
        value = tl.where(hidden > 0, value, 0.0)
        if WEIGHT:
            dw2 = tl.dot(tl.trans(dout), hidden, dw2, input_precision=PRECISION)
        down += tl.sum(value, axis=0)
        tl.store(DPRE + places(rows, H, h), value.to(DPRE.dtype.element_ty), mask=inside & unit)
        if block % turns == turn:
            along += tl.sum(dout.to(tl.float32), axis=0)
    sums = SUMS + tl.program_id(1).to(tl.int64) * (SO * H * WEIGHT + H)
    if WEIGHT:
        tl.store(sums + o[:, None] * H + h[None, :], dw2, mask=(o < SO)[:, None] & unit)
        sums += SO * H
    tl.store(sums + h, down, mask=h < H)
    tl.store(ALONG + (tl.program_id(1) * turns + turn) * SO + o, along, mask=o < SO)
