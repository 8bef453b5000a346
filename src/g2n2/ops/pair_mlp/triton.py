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
from torch import Tensor

from ..derivatives import once_differentiable
from ..packed_mlp import Map
from ..precision import dot_precision
from ..side_stream import grads_reach_leaves_directly, on_side_stream
from ..sums import column_sums
from ..tiling import block, narrowed, processors, programs
from . import kernels

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
        drows = torch.mm(dpre, w1)
        with on_side_stream(ctx.on_side_stream, dout, dpre, rows, hidden, *sums):
            dw1 = torch.mm(dpre.T, rows)
            summed, weight = column_sums(sums[0], w1.dtype), width * units * fused
            dw2 = summed[:weight].view(width, units) if fused else torch.mm(dout.T, hidden)
            db2 = column_sums(sums[1], w1.dtype) if ctx.biases[1] else None
        db1, dresidual = summed[weight:] if ctx.biases[0] else None, dout if ctx.add else None
        return drows, dw1, db1, dw2, db2, None, dresidual


def _out(
    hidden: Tensor, w2: Tensor, b2: Tensor | None, total: Tensor, residual: Tensor | None
) -> Tensor:
    """The second map and the residual: one kernel where tensor cores take it."""
    single = hidden.dtype == torch.float32
    residual = None if residual is None else residual.contiguous()
    if single and dot_precision() == "ieee":
        out = hidden @ w2.T if b2 is None else torch.addmm(b2, hidden, w2.T)
        kernels.finish_kernel[(programs(len(out), ROWS),)](
            out, residual, total, len(out), S=len(w2), P=block(len(w2)), ADD=residual is not None,
            BM=ROWS,
        )  # fmt: skip
        return out
    (count, units), width = hidden.shape, len(w2)
    out = hidden.new_empty(count, width)
    tall = TALL // 2 if single else TALL
    kernels.out_kernel[(programs(count, tall),)](
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
    kernels.back_kernel[(turns, walks)](
        dout, total, w2.contiguous(), hidden, dpre, sums, along, count, units, each,
        SO=width, PO=block(width), BM=tall, BH=wide, WEIGHT=fused, PRECISION=dot_precision(),
        num_warps=4,
    )  # fmt: skip
    return dpre, sums, along
