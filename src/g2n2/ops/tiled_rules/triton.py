"""Products on packed graphs whose sizes only the device knows, or differ too much for a loop.

The numbers are those of `ops.packed`. Rows beyond the last graph become 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..derivatives import once_differentiable
from ..packing import Packing
from ..tiling import as_rows, block, programs
from . import kernels

TILE, INTERPRETED_TILE, CHANNELS = 8, 64, 32
"""Entries and channels of a program; fewer programs without a GPU."""
ROWS = 32
"""Entries of a row of a matrix at a time."""
Slice = tuple[Tensor, int]
"""Rows, and the column its channels begin at."""


def matrix_matrix(operands: Tensor, packing: Packing, power: int = 0) -> Tensor:
    """`XY` for each channel and graph: `[P, S]`, times `n^(−power/2)`.

    `operands` `[P, 2S]` has X and Y side by side.
    """
    value: Tensor = _Product.apply(operands, packing, power)  # type: ignore[no-untyped-call]
    return value


def matrix_column(x: Tensor, v: Tensor, packing: Packing, power: int = 0) -> Tensor:
    """`Xv` for each channel and graph: `[Q, S]`, times `n^(−power/2)`; X may have one channel."""
    value: Tensor = _Column.apply(x, v, packing, power)  # type: ignore[no-untyped-call]
    return value


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        operands, packing, power = args
        operands, width = as_rows(operands), operands.shape[1] // 2
        out: Tensor = operands.new_zeros(len(operands), width)
        scale = packing.scale**power
        _multiply((operands, 0), (operands, width), (out, 0), width, scale, packing)
        ctx.save_for_backward(operands, scale)
        ctx.packing = packing
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        operands, scale = ctx.saved_tensors
        width = operands.shape[1] // 2
        dout, dx = (as_rows(grads[0]), 0), operands.new_zeros(len(operands), 2 * width)
        shared = width, scale, ctx.packing
        _multiply(dout, (operands, width), (dx, 0), *shared, turn_right=True)
        _multiply((operands, 0), dout, (dx, width), *shared, turn_left=True)
        return dx, None, None


def _multiply(
    left: Slice,
    right: Slice,
    out: Slice,
    width: int,
    scale: Tensor,
    packing: Packing,
    turn_left: bool = False,
    turn_right: bool = False,
) -> None:
    (x, x_from), (y, y_from), (z, to) = left, right, out
    side = TILE if packing.device.type == "cuda" else INTERPRETED_TILE
    index, tiles = packing.index, programs(packing.most, side)
    kernels.matrix_matrix_kernel[(packing.graphs * tiles**2, programs(width, CHANNELS))](
        x, y, scale, z, index.sizes, index.pair_starts, tiles, x.stride(0), y.stride(0),
        z.stride(0), x_from, y_from, to, TURN_X=turn_left, TURN_Y=turn_right, S=width, T=side,
        BC=CHANNELS, num_warps=2,
    )  # fmt: skip


class _Column(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, v, packing, power = args
        x, v, scale = as_rows(x), as_rows(v), packing.scale**power
        ctx.save_for_backward(x, v, scale)
        ctx.packing = packing
        return _times_column(x, v, scale, packing)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        x, v, scale = ctx.saved_tensors
        packing: Packing = ctx.packing
        dout, dx = as_rows(grads[0]), None
        dv = _times_column(x, dout, scale, packing, turn=True)
        if ctx.needs_input_grad[0]:
            assert x.shape == (packing.pairs, v.shape[1]), "an X of one channel is no operand"
            start, number = packing.ends
            sent = dout * scale.to(dout.dtype)[packing.graph_of_node].unsqueeze(1)
            dx = sent[start] * v[start - packing.place[start] + number]
            if packing.has_tail:
                tail = torch.arange(packing.pairs, device=dx.device) >= packing.totals[1]
                dx.masked_fill_(tail.unsqueeze(1), 0.0)
        return dx, dv, None, None


def _times_column(
    x: Tensor, v: Tensor, scale: Tensor, packing: Packing, turn: bool = False
) -> Tensor:
    index, width = packing.index, v.shape[1]
    out = v.new_empty(len(v), width)
    channels = min(64, block(width))
    kernels.matrix_column_kernel[(len(index.owners), programs(width, channels))](
        x, v, scale, out, index.sizes, index.node_starts, index.pair_starts, index.owners,
        x.stride(0), v.stride(0), int(x.shape[1] > 1 or width == 1), TURN=turn, S=width, BM=ROWS,
        BC=channels, num_warps=2,
    )  # fmt: skip
    return out
