"""What is read and written once around the large products of the update."""

from __future__ import annotations

import triton
import triton.language as tl

from .tiles import places, product_tile, stored, tile


@triton.jit
def beside(value, OUT, total, rows, count, C: tl.constexpr, S: tl.constexpr, P: tl.constexpr):
    """Write rows of S channels into the columns from C on of a matrix `total` wide."""
    c = tl.arange(0, P)
    inside = (rows < count)[:, None] & (c < S)[None, :]
    tl.store(OUT + places(rows, total, C + c), value, mask=inside)


@triton.jit
def join_kernel(
    X0, X1, X2, L, R, V, OUT, count, N, total,
    stride0, stride1, stride2, stride_l, stride_r,
    S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, SH: tl.constexpr, SV: tl.constexpr,
    P0: tl.constexpr, P1: tl.constexpr, P2: tl.constexpr, PH: tl.constexpr, PV: tl.constexpr,
    C0: tl.constexpr, C1: tl.constexpr, C2: tl.constexpr, CH: tl.constexpr, CV: tl.constexpr,
    BM: tl.constexpr,
):  # fmt: skip
    """Up to three tensors, a Hadamard product and a diagonal, side by side in one matrix."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    beside(tile(X0, rows, stride0, count, S0, P0), OUT, total, rows, count, C0, S0, P0)
    if S1 > 0:
        beside(tile(X1, rows, stride1, count, S1, P1), OUT, total, rows, count, C1, S1, P1)
    if S2 > 0:
        beside(tile(X2, rows, stride2, count, S2, P2), OUT, total, rows, count, C2, S2, P2)
    if SH > 0:
        value = product_tile(L, R, rows, stride_l, stride_r, count, SH, PH)
        beside(value, OUT, total, rows, count, CH, SH, PH)
    if SV > 0:
        c = tl.arange(0, PV)
        node = rows // N
        there = (rows < count) & (node % N == rows % N)
        inside = there[:, None] & (c < SV)[None, :]
        value = tl.load(V + places(node, SV, c), mask=inside, other=0.0)
        beside(value, OUT, total, rows, count, CV, SV, PV)


@triton.jit
def number_there(FLAGS, count, COUNTED: tl.constexpr):
    """How many rows may be there: as many as the one number says (COUNTED), or all."""
    return tl.minimum(tl.load(FLAGS).to(tl.int32), count) if COUNTED else count


@triton.jit
def there(FLAGS, rows, number, COUNTED: tl.constexpr):
    """Which rows are: the first ones (COUNTED), or those with a flag."""
    return rows < number if COUNTED else tl.load(FLAGS + rows, mask=rows < number, other=0) > 0


@triton.jit
def finish_kernel(OUT, RESIDUAL, FLAGS, count, S: tl.constexpr, P: tl.constexpr,
                  ADD: tl.constexpr, COUNTED: tl.constexpr, BM: tl.constexpr):  # fmt: skip
    """In place: add the residual and clear rows that are not there."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, P)
    real = (
        there(FLAGS, rows, number_there(FLAGS, count, COUNTED), COUNTED)[:, None] & (c < S)[None, :]
    )
    value = tl.load(OUT + places(rows, S, c), mask=real, other=0.0).to(tl.float32)
    if ADD:
        value += tl.load(RESIDUAL + places(rows, S, c), mask=real, other=0.0).to(tl.float32)
    stored(value, OUT, rows, count, S, P)


@triton.jit
def out_kernel(
    HIDDEN, W2, B2, RESIDUAL, FLAGS, OUT, count, H,
    SO: tl.constexpr, PO: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
    BIAS: tl.constexpr, ADD: tl.constexpr, COUNTED: tl.constexpr, PRECISION: tl.constexpr,
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
    real = there(FLAGS, rows, number_there(FLAGS, count, COUNTED), COUNTED)[:, None]
    real = real & (o < SO)[None, :]
    if ADD:
        value += tl.load(RESIDUAL + places(rows, SO, o), mask=real, other=0.0).to(tl.float32)
    stored(tl.where(real, value, 0.0), OUT, rows, count, SO, PO)


@triton.jit
def back_kernel(
    DOUT, FLAGS, W2, HIDDEN, FLOW, DPRE, SUMS, ALONG, count, H, each,
    SO: tl.constexpr, PO: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
    WEIGHT: tl.constexpr, COUNTED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """BH units of `dpre = (dout W₂) ⊙ (hidden > 0)`, dout cleared where rows are not there.

    A program walks over `each` blocks of rows. A row of SUMS has the gradient of W₂ (WEIGHT),
    `[SO, H]`, and the sums of dpre. Of the programs that walk the same rows, each in turn adds dout
    of a block to ALONG, and writes it cleared; where rows are COUNTED it is clear already.
    """
    turn, turns = tl.program_id(0), tl.num_programs(0)
    h = turn * BH + tl.arange(0, BH)
    o = tl.arange(0, PO)
    unit = (h < H)[None, :]
    w2 = tl.load(W2 + o[:, None] * H + h[None, :], mask=(o < SO)[:, None] & unit, other=0.0)
    down, along = tl.zeros([BH], dtype=tl.float32), tl.zeros([PO], dtype=tl.float32)
    dw2 = tl.zeros([PO, BH], dtype=tl.float32)
    number = number_there(FLAGS, count, COUNTED)
    for block in tl.range(0, each, num_stages=3):
        rows = (tl.program_id(1) * each + block) * BM + tl.arange(0, BM)
        inside = (rows < count)[:, None]
        real = there(FLAGS, rows, number, COUNTED)[:, None]
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
            if not COUNTED:
                stored(dout, FLOW, rows, count, SO, PO)
    sums = SUMS + tl.program_id(1).to(tl.int64) * (SO * H * WEIGHT + H)
    if WEIGHT:
        tl.store(sums + o[:, None] * H + h[None, :], dw2, mask=(o < SO)[:, None] & unit)
        sums += SO * H
    tl.store(sums + h, down, mask=h < H)
    tl.store(ALONG + (tl.program_id(1) * turns + turn) * SO + o, along, mask=o < SO)


@triton.jit
def hadamard_back_kernel(D, L, R, DL, DR, count, stride_d, stride_l, stride_r,
                         S: tl.constexpr, P: tl.constexpr, BM: tl.constexpr):  # fmt: skip
    """`dl = d ⊙ r` and `dr = d ⊙ l` in one pass."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tile(D, rows, stride_d, count, S, P).to(tl.float32)
    left = tile(L, rows, stride_l, count, S, P).to(tl.float32)
    right = tile(R, rows, stride_r, count, S, P).to(tl.float32)
    stored(d * right, DL, rows, count, S, P)
    stored(d * left, DR, rows, count, S, P)
