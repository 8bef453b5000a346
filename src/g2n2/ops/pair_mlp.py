"""The two-layer MLP of an update on rows that lie side by side already: library products, and one
kernel at each edge of them.

The hidden layer is written once and read twice in the backward pass, which an H200 does faster than
recomputing it. For 512 molecules of QM9, 256 → 512 → 64 in bfloat16: both maps in one kernel took
213 µs, and 142 without writing the hidden layer, where these two take 160. The backward kernel
takes 141 with the gradient of the second weight, which was a library product of 52 beside 126.

Channels of diag(v) are zero but for the pairs (i, i). Leaving them out of the rows, and computing
the hidden layer of those pairs again with v, cost more than it saved: 191,000 graphs/s at batch 512
in place of 196,500, 130,200 in place of 137,700 at 128.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .derivatives import once_differentiable
from .packed_mlp import Map
from .precision import dot_precision
from .side_stream import grads_reach_leaves_directly, on_side_stream
from .sums import column_sums
from .tiling import block, narrowed, processors, programs

ROWS = 64
TALL, WIDE = 128, 64
"""Rows and units of a block that is multiplied."""
PROGRAMS = 2
"""Of the backward kernel, for each of the device's processors."""


def mix_rows(
    joined: Tensor,
    first: Map,
    second: Map,
    total: Tensor,
    residual: Tensor | None = None,
) -> Tensor:
    """`second(relu(first(joined)))`, plus the residual, zero in rows that are not there.

    Args:
        joined: `[R, J]`.
        first: The map into the hidden layer.
        second: The map out of it.
        total: How many rows are there, one integer: the first ones. The gradient of the others is
            zero already.
        residual: `[R, O]`, added to the result.
    """
    result: Tensor = _MixRows.apply(  # type: ignore[no-untyped-call]
        joined, *first, *second, total, residual
    )
    return result


class _MixRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        rows, w1, b1, w2, b2, total, residual = args
        # Without a bias, one of zeros: the ReLU is then part of the product too.
        bias = w1.new_zeros(len(w1)) if b1 is None else b1
        hidden = torch._addmm_activation(bias, rows, w1.T)
        out = _out(hidden, w2, b2, total, residual)
        ctx.save_for_backward(total, w1, w2, rows, hidden)
        ctx.on_side_stream = grads_reach_leaves_directly(w1, b1, w2, b2)
        ctx.biases, ctx.add = (b1 is not None, b2 is not None), residual is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        total, w1, w2, rows, hidden = ctx.saved_tensors
        width, units = w2.shape
        fused = hidden.dtype != torch.float32
        dout = grads[0].contiguous()
        dpre, *sums = _back(dout, total, w2, hidden, fused)
        drows = _grad_rows(dpre, w1)
        with on_side_stream(ctx.on_side_stream, dout, dpre, rows, hidden, *sums):
            dw1 = torch.mm(dpre.T, rows)
            summed, weight = column_sums(sums[0], w1.dtype), width * units * fused
            dw2 = summed[:weight].view(width, units) if fused else torch.mm(dout.T, hidden)
            db2 = column_sums(sums[1], w1.dtype) if ctx.biases[1] else None
        db1, dresidual = summed[weight:] if ctx.biases[0] else None, dout if ctx.add else None
        return drows, dw1, db1, dw2, db2, None, dresidual


def _grad_rows(grad_out: Tensor, weight: Tensor) -> Tensor:
    """`grad_out weight`; in tf32 through cuBLASLt, which takes products with a bias: 50 µs for 128
    molecules of QM9, where cuBLAS takes 61."""
    if grad_out.dtype != torch.float32 or dot_precision() == "ieee":
        return torch.mm(grad_out, weight)
    return torch.addmm(weight.new_zeros(weight.shape[1]), grad_out, weight)


def _out(
    hidden: Tensor, w2: Tensor, b2: Tensor | None, total: Tensor, residual: Tensor | None
) -> Tensor:
    """The second map and the residual: one kernel where tensor cores take it."""
    single = hidden.dtype == torch.float32
    residual = None if residual is None else residual.contiguous()
    if single and dot_precision() == "ieee":
        out = hidden @ w2.T if b2 is None else torch.addmm(b2, hidden, w2.T)
        finish_kernel[(programs(len(out), ROWS),)](
            out, residual, total, len(out), S=len(w2), P=block(len(w2)), ADD=residual is not None,
            BM=ROWS,
        )  # fmt: skip
        return out
    (count, units), width = hidden.shape, len(w2)
    out = hidden.new_empty(count, width)
    tall = TALL // 2 if single else TALL
    out_kernel[(programs(count, tall),)](
        hidden, w2.contiguous(), b2, residual, total, out, count, units, SO=width,
        PO=block(width), BM=tall,
        BH=narrowed(min(WIDE // 2 if single else WIDE, block(units)), width, out.device),
        BIAS=b2 is not None, ADD=residual is not None, PRECISION=dot_precision(),
        num_warps=4 if width <= 64 else 8,
    )  # fmt: skip
    return out


def _back(
    dout: Tensor, total: Tensor, w2: Tensor, hidden: Tensor, fused: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient of the hidden layer before its ReLU, and partial sums: of the second weight's
    gradient if `fused`, with those of that gradient; and of the rows."""
    count, units = hidden.shape
    width = len(w2)
    tall = TALL * 2 // dout.element_size() // max(1, block(width) // 128)
    tall = narrowed(tall, width, dout.device)
    wide = narrowed(min(WIDE, block(units)), width, dout.device)
    blocks = programs(count, tall)
    each = programs(blocks, max(1, PROGRAMS * processors(dout.device) * wide // units))
    dpre = torch.empty_like(hidden)
    turns, walks = programs(units, wide), programs(blocks, each)
    sums = dout.new_empty(walks, width * units * fused + units, dtype=torch.float32)
    along = dout.new_empty(walks * turns, width, dtype=torch.float32)
    back_kernel[(turns, walks)](
        dout, total, w2.contiguous(), hidden, dpre, sums, along, count, units, each,
        SO=width, PO=block(width), BM=tall, BH=wide, WEIGHT=fused, PRECISION=dot_precision(),
        num_warps=4,
    )  # fmt: skip
    return dpre, sums, along


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
    for walked in tl.range(0, each, num_stages=3):
        rows = (tl.program_id(1) * each + walked) * BM + tl.arange(0, BM)
        inside, real = (rows < count)[:, None], (rows < number)[:, None]
        dout = tl.load(DOUT + places(rows, SO, o), mask=real & (o < SO)[None, :], other=0.0)
        hidden = tl.load(HIDDEN + places(rows, H, h), mask=real & unit, other=0.0)
        value = tl.dot(dout, w2, input_precision=PRECISION)
        value = tl.where(hidden > 0, value, 0.0)
        if WEIGHT:
            dw2 = tl.dot(tl.trans(dout), hidden, dw2, input_precision=PRECISION)
        down += tl.sum(value, axis=0)
        tl.store(DPRE + places(rows, H, h), value.to(DPRE.dtype.element_ty), mask=inside & unit)
        if walked % turns == turn:
            along += tl.sum(dout.to(tl.float32), axis=0)
    sums = SUMS + tl.program_id(1).to(tl.int64) * (SO * H * WEIGHT + H)
    if WEIGHT:
        tl.store(sums + o[:, None] * H + h[None, :], dw2, mask=(o < SO)[:, None] & unit)
        sums += SO * H
    tl.store(sums + h, down, mask=h < H)
    tl.store(ALONG + (tl.program_id(1) * turns + turn) * SO + o, along, mask=o < SO)
