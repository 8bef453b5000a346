"""Products on packed graphs whose sizes only the device knows, or differ too much for a loop.

The numbers are those of `ops.packed`. Rows beyond the last graph become 0.

Where graph g lies is read from tensors: SIZES its nodes, NODES and PAIRS its first ones, OWNERS the
graph of each node, −1 for rows that are no node.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .derivatives import once_differentiable
from .packing import Packing
from .tiling import as_rows, block, programs

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
    value: Tensor = _TiledProduct.apply(operands, packing, power)  # type: ignore[no-untyped-call]
    return value


def matrix_column(x: Tensor, v: Tensor, packing: Packing, power: int = 0) -> Tensor:
    """`Xv` for each channel and graph: `[Q, S]`, times `n^(−power/2)`; X may have one channel."""
    value: Tensor = _TiledColumn.apply(x, v, packing, power)  # type: ignore[no-untyped-call]
    return value


class _TiledProduct(torch.autograd.Function):
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
    matrix_matrix_kernel[(packing.graphs * tiles**2, programs(width, CHANNELS))](
        x, y, scale, z, index.sizes, index.pair_starts, tiles, x.stride(0), y.stride(0),
        z.stride(0), x_from, y_from, to, TURN_X=turn_left, TURN_Y=turn_right, S=width, T=side,
        BC=CHANNELS, num_warps=2,
    )  # fmt: skip


class _TiledColumn(torch.autograd.Function):
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
            start, number = packing.ends
            sent = dout * scale.to(dout.dtype)[packing.graph_of_node].unsqueeze(1)
            dx = sent[start] * v[start - packing.place[start] + number]
            if x.shape[1] < v.shape[1]:  # one channel for all
                dx = dx.sum(1, keepdim=True)
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
    matrix_column_kernel[(len(index.owners), programs(width, channels))](
        x, v, scale, out, index.sizes, index.node_starts, index.pair_starts, index.owners,
        x.stride(0), v.stride(0), int(x.shape[1] > 1 or width == 1), TURN=turn, S=width, BM=ROWS,
        BC=channels, num_warps=2,
    )  # fmt: skip
    return out


@triton.jit
def pair_rows(start, n, i, j, TURN: tl.constexpr):
    """Rows of the pairs (i, j), or (j, i) where the matrix is to be turned."""
    return start + (j * n + i if TURN else i * n + j)


@triton.jit
def matrix_matrix_kernel(
    X, Y, SCALE, OUT, SIZES, PAIRS, tiles, stride_x, stride_y, stride_out, x_from, y_from, to,
    TURN_X: tl.constexpr, TURN_Y: tl.constexpr, S: tl.constexpr, T: tl.constexpr,
    BC: tl.constexpr,
):  # fmt: skip
    """T × T entries of XY in BC channels of one graph, times its scale.

    Channels lie side by side, so a product in each of them is a sum of broadcast products. Tensor
    cores would re-lay every operand, and Triton 3.6 gets batches of products in float32 wrong.
    """
    me = tl.program_id(0)
    g, i0, j0 = me // (tiles * tiles), me // tiles % tiles * T, me % tiles * T
    n, start = tl.load(SIZES + g), tl.load(PAIRS + g)
    if (i0 < n) & (j0 < n):
        c = (tl.program_id(1) * BC + tl.arange(0, BC))[None, None, :]
        i = (i0 + tl.arange(0, T))[:, None, None]
        j = (j0 + tl.arange(0, T))[None, :, None]
        total = tl.zeros([T, T, BC], dtype=tl.float32)
        for k in range(0, n):
            place = X + pair_rows(start, n, i, k, TURN_X) * stride_x + x_from + c
            x = tl.load(place, mask=(i < n) & (c < S), other=0.0).to(tl.float32)
            place = Y + pair_rows(start, n, k, j, TURN_Y) * stride_y + y_from + c
            y = tl.load(place, mask=(j < n) & (c < S), other=0.0).to(tl.float32)
            total += x * y
        value = (total * tl.load(SCALE + g)).to(OUT.dtype.element_ty)
        place = OUT + pair_rows(start, n, i, j, False) * stride_out + to + c
        tl.store(place, value, mask=(i < n) & (j < n) & (c < S))


@triton.jit
def matrix_column_kernel(
    X, V, SCALE, OUT, SIZES, NODES, PAIRS, OWNERS, stride_x, stride_v, step,
    TURN: tl.constexpr, S: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Entry i of Xv in BC channels, times the graph's scale; `step` is 0 for one X of all channels.

    Rows that are no node become 0.
    """
    node = tl.program_id(0)
    owner = tl.load(OWNERS + node)
    g = tl.maximum(owner, 0)
    n = tl.where(owner < 0, 0, tl.load(SIZES + g))
    first, start = tl.load(NODES + g).to(tl.int64), tl.load(PAIRS + g)
    i = node - first
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    total = tl.zeros([BC], dtype=tl.float32)
    for j0 in range(0, n, BM):
        j = j0 + tl.arange(0, BM)
        inside = (j < n)[:, None] & (c < S)[None, :]
        row = pair_rows(start, n, i, j, TURN)
        x = tl.load(X + row[:, None] * stride_x + c[None, :] * step, mask=inside, other=0.0)
        v = tl.load(V + (first + j)[:, None] * stride_v + c[None, :], mask=inside, other=0.0)
        total += tl.sum(x.to(tl.float32) * v.to(tl.float32), axis=0)
    value = (total * tl.load(SCALE + g)).to(OUT.dtype.element_ty)
    tl.store(OUT + node.to(tl.int64) * S + c, value, mask=c < S)
