"""The two-layer MLP of an update on rows that lie side by side already: library products, and one
kernel at each edge of them.

The hidden layer is written once and read twice in the backward pass, which an H200 does faster than
recomputing it. For 512 molecules of QM9, 256 → 512 → 64 in bfloat16: both maps in one kernel took
213 µs, and 142 without writing the hidden layer, where these two take 160. The backward kernel
takes 141 with the gradient of the second weight, which was a library product of 52 beside 126.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..precision import dot_precision
from ..side_stream import grads_reach_leaves_directly, on_side_stream
from ..sums.triton import column_sums
from ..tiling import block, narrowed, processors, programs
from .kernels import edges
from .reference import Map

ROWS = 64
TALL, WIDE = 128, 64
"""Rows and units of a block that is multiplied."""
PROGRAMS = 2
"""Of the backward kernel, for each of the device's processors."""


def mix_rows(
    joined: Tensor, first: Map, second: Map, flags: Tensor, residual: Tensor | None = None
) -> Tensor:
    """`second(relu(first(joined)))`, plus the residual, zero where a row is not there.

    Args:
        joined: `[…, J]`.
        first: The map into the hidden layer.
        second: The map out of it.
        flags: `[…]` int8, 1 where a row is there; or their number, one integer, if they are the
            first ones. The gradient of the others is then zero already.
        residual: `[…, O]`, added to the result.
    """
    result: Tensor = _MixRows.apply(  # type: ignore[no-untyped-call]
        joined, *first, *second, flags, residual
    )
    return result


class _MixRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        joined, w1, b1, w2, b2, flags, residual = args
        rows = joined.flatten(0, -2)
        if b1 is None:
            hidden = torch.mm(rows, w1.T).relu_()
        else:
            hidden = torch._addmm_activation(b1, rows, w1.T)
        out = _out(hidden, w2, b2, flags, residual)
        ctx.save_for_backward(flags, w1, w2, rows, hidden)
        ctx.on_side_stream = grads_reach_leaves_directly(w1, b1, w2, b2)
        ctx.biases, ctx.add = (b1 is not None, b2 is not None), residual is not None
        return out.view(*joined.shape[:-1], len(w2))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        flags, w1, w2, rows, hidden = ctx.saved_tensors
        shape, (width, units) = grads[0].shape, w2.shape
        fused = hidden.dtype != torch.float32
        flow, dpre, *sums = _back(grads[0].reshape(len(rows), -1), flags, w2, hidden, fused)
        drows = torch.mm(dpre, w1).view(*shape[:-1], -1)
        with on_side_stream(ctx.on_side_stream, flow, dpre, rows, hidden, *sums):
            dw1 = torch.mm(dpre.T, rows)
            total, weight = column_sums(sums[0], w1.dtype), width * units * fused
            dw2 = total[:weight].view(width, units) if fused else torch.mm(flow.T, hidden)
            db2 = column_sums(sums[1], w1.dtype) if ctx.biases[1] else None
        return (
            drows,
            dw1,
            total[weight:] if ctx.biases[0] else None,
            dw2,
            db2,
            None,
            flow.view(shape) if ctx.add else None,
        )


def _out(
    hidden: Tensor, w2: Tensor, b2: Tensor | None, flags: Tensor, residual: Tensor | None
) -> Tensor:
    """The second map, with the residual and the flags: one kernel where tensor cores take it."""
    single = hidden.dtype == torch.float32
    if single and dot_precision() == "ieee":
        out = hidden @ w2.T if b2 is None else torch.addmm(b2, hidden, w2.T)
        _finish(out, residual, flags)
        return out
    (count, units), width = hidden.shape, len(w2)
    out = hidden.new_empty(count, width)
    tall = TALL // 2 if single else TALL
    edges.out_kernel[(programs(count, tall),)](
        hidden, w2.contiguous(), b2, None if residual is None else residual.contiguous(), flags,
        out, count, units, SO=width, PO=block(width), BM=tall,
        BH=narrowed(min(WIDE // 2 if single else WIDE, block(units)), width, out.device),
        BIAS=b2 is not None, ADD=residual is not None, COUNTED=flags.dim() == 0,
        PRECISION=dot_precision(), num_warps=4 if width <= 64 else 8,
    )  # fmt: skip
    return out


def _finish(rows: Tensor, residual: Tensor | None, flags: Tensor) -> None:
    """In place: add the residual to `[R, O]`, and clear the rows that are not there."""
    count, width = rows.shape
    edges.finish_kernel[(programs(count, ROWS),)](
        rows, None if residual is None else residual.contiguous(), flags, count, S=width,
        P=block(width), ADD=residual is not None, COUNTED=flags.dim() == 0, BM=ROWS,
    )  # fmt: skip


def _back(
    dout: Tensor, flags: Tensor, w2: Tensor, hidden: Tensor, fused: bool
) -> tuple[Tensor, ...]:
    """Gradients of the rows that are there and of the hidden layer, and partial sums: of the second
    weight's gradient if `fused`, with those of the hidden layer; and of the rows."""
    count, units = hidden.shape
    width = len(w2)
    tall = TALL * 2 // dout.element_size() // max(1, block(width) // 128)
    tall = narrowed(tall, width, dout.device)
    wide = narrowed(min(WIDE, block(units)), width, dout.device)
    blocks = programs(count, tall)
    each = programs(blocks, max(1, PROGRAMS * processors(dout.device) * wide // units))
    dout, counted = dout.contiguous(), flags.dim() == 0
    flow, dpre = dout if counted else torch.empty_like(dout), torch.empty_like(hidden)
    turns, walks = programs(units, wide), programs(blocks, each)
    sums = dout.new_empty(walks, width * units * fused + units, dtype=torch.float32)
    along = dout.new_empty(walks * turns, width, dtype=torch.float32)
    edges.back_kernel[(turns, walks)](
        dout, flags, w2.contiguous(), hidden, flow, dpre, sums, along, count, units, each,
        SO=width, PO=block(width), BM=tall, BH=wide, WEIGHT=fused, COUNTED=counted,
        PRECISION=dot_precision(), num_warps=4,
    )  # fmt: skip
    return flow, dpre, sums, along
