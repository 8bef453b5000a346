"""The two-layer MLP of an update on rows that lie side by side already: library products, and one
kernel at each edge of them.

The hidden layer is written once and read twice in the backward pass, which an H200 does faster than
recomputing it. For 512 molecules of QM9, 256 → 512 → 64 in bfloat16: both maps in one kernel took
213 µs, and 142 without writing the hidden layer, where these two take 160. The backward kernel
takes 141 with the gradient of the second weight, which was a library product of 52 beside 126.

Channels of diag(v) are zero but for the pairs (i, i). They are no channels of the rows: the hidden
layer of those pairs is computed again with v, and dv is read off them, which saves a quarter of the
first map.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph_index import GraphIndex
from ..packed_mlp import Map
from ..precision import dot_precision
from ..side_stream import grads_reach_leaves_directly, on_side_stream
from ..sums.triton import column_sums
from ..tiling import block, narrowed, processors, programs
from . import kernels

ROWS = 64
TALL, WIDE = 128, 64
"""Rows and units of a block that is multiplied."""
FEW = 32
"""Nodes of a block."""
PROGRAMS = 2
"""Of the backward kernel, for each of the device's processors."""


def mix_rows(
    joined: Tensor,
    first: Map,
    second: Map,
    total: Tensor,
    residual: Tensor | None = None,
    along: Tensor | None = None,
    index: GraphIndex | None = None,
) -> Tensor:
    """`second(relu(first(joined)))`, plus the residual, zero in rows that are not there.

    Args:
        joined: `[R, J]`.
        first: The map into the hidden layer, of J channels and then those of `along`.
        second: The map out of it.
        total: How many rows are there, one integer: the first ones. The gradient of the others is
            zero already.
        residual: `[R, O]`, added to the result.
        along: `[Q, D]` further channels of the pairs (i, i), where rows are pairs.
        index: Where those pairs lie.
    """
    result: Tensor = _MixRows.apply(  # type: ignore[no-untyped-call]
        joined, *first, *second, total, residual, along, index
    )
    return result


class _MixRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        rows, w1, b1, w2, b2, total, residual, along, index = args
        wide = w1[:, : rows.shape[1]].T
        if b1 is None:
            hidden = torch.mm(rows, wide).relu_()
        else:
            hidden = torch._addmm_activation(b1, rows, wide)
        if along is not None:
            _set_diagonal(hidden, rows, along, w1, b1, index)
        out = _out(hidden, w2, b2, total, residual)
        ctx.save_for_backward(total, w1, w2, rows, hidden, along)
        ctx.on_side_stream = grads_reach_leaves_directly(w1, b1, w2, b2)
        ctx.biases, ctx.index = (b1 is not None, b2 is not None), index
        ctx.add = residual is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        total, w1, w2, rows, hidden, along = ctx.saved_tensors
        (width, units), joined = w2.shape, rows.shape[1]
        fused = hidden.dtype != torch.float32
        dout = grads[0].contiguous()
        dpre, *sums = _back(dout, total, w2, hidden, fused)
        dalong, flow = None, dpre[:0]
        if along is not None:
            flow, dalong = _back_along(dpre, along, w1, ctx.index)
        drows = torch.mm(dpre, w1[:, :joined])
        read = [flow, dpre, rows, hidden, *sums, *([] if along is None else [along])]
        with on_side_stream(ctx.on_side_stream, *read):
            dw1 = torch.empty_like(w1)
            torch.mm(dpre.T, rows, out=dw1[:, :joined])
            if along is not None:
                torch.mm(flow.T, along, out=dw1[:, joined:])
            summed, weight = column_sums(sums[0], w1.dtype), width * units * fused
            dw2 = summed[:weight].view(width, units) if fused else torch.mm(dout.T, hidden)
            db2 = column_sums(sums[1], w1.dtype) if ctx.biases[1] else None
        db1, dresidual = summed[weight:] if ctx.biases[0] else None, dout if ctx.add else None
        return drows, dw1, db1, dw2, db2, None, dresidual, dalong, None


def _places(index: GraphIndex) -> tuple[Tensor, ...]:
    return index.owners, index.sizes, index.node_starts, index.pair_starts


def _set_diagonal(
    hidden: Tensor, rows: Tensor, along: Tensor, w1: Tensor, b1: Tensor | None, index: GraphIndex
) -> None:
    """The hidden layer of the pairs (i, i), in place."""
    units, channels = hidden.shape[1], along.shape[1]
    wide = min(WIDE, block(units))
    kernels.diagonal_kernel[(programs(len(along), FEW), programs(units, wide))](
        rows, along, w1.contiguous(), b1, hidden, *_places(index), len(along), units,
        along.stride(0), J=rows.shape[1], D=channels, BM=FEW, BH=wide,
        BK=min(WIDE, block(max(rows.shape[1], channels))), BIAS=b1 is not None,
        PRECISION=dot_precision(), num_warps=4,
    )  # fmt: skip


def _back_along(
    dpre: Tensor, along: Tensor, w1: Tensor, index: GraphIndex
) -> tuple[Tensor, Tensor]:
    """The gradients of the hidden layer of the pairs (i, i), before its ReLU, and of `along`."""
    units, (nodes, channels) = dpre.shape[1], along.shape
    flow, dalong = dpre.new_empty(nodes, units), dpre.new_empty(nodes, channels)
    kernels.diagonal_back_kernel[(programs(nodes, FEW),)](
        dpre, w1.contiguous(), flow, dalong, *_places(index), nodes, units,
        w1.shape[1] - channels, D=channels, PD=block(channels), BM=FEW,
        BH=narrowed(min(WIDE, block(units)), channels, dpre.device), PRECISION=dot_precision(),
        num_warps=4,
    )  # fmt: skip
    return flow, dalong


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
