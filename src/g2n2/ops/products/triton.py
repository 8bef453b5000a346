"""Channel-wise products of `[B, I, K, S]` and `[B, K, J, S]`, with no permuted copy.

One pair of kernels serves M·M and M·V, whose missing axis has length 1. Below `LARGE` nodes a
program keeps a strip of the result and adds up over k in plain arithmetic: at these sizes the
product is a hundredth of a layer's work. Above it, tiles of channels go through batched tensor-core
products. Gradients are the same product with one operand's strides swapped: dX = dZ Yᵀ,
dY = Xᵀ dZ.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..tiling import block, dot_precision, programs
from . import kernels

LARGE = 48
"""Nodes from which tensor cores win."""
STRIP = 128
"""Entries a program keeps below that."""
TILE = {"BI": 64, "BJ": 64, "BK": 16, "BC": 8}


def matrix_matrix(x: Tensor, y: Tensor, scale: Tensor | None = None) -> Tensor:
    """`scale × XY` for each channel of `[B, N, N, S]`; `scale` is `[B]`, and a constant."""
    result: Tensor = _Product.apply(x, y, scale)  # type: ignore[no-untyped-call]
    return result


def matrix_column(x: Tensor, v: Tensor, scale: Tensor | None = None) -> Tensor:
    """`scale × Xv` for each channel of `[B, N, N, S]` and `[B, N, S]`, into `[B, N, S]`."""
    return matrix_matrix(x, v.unsqueeze(2), scale).squeeze(2)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, y, scale = args
        ctx.save_for_backward(x, y, scale)
        return product(x, y, scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, y, scale = ctx.saved_tensors
        (dz,) = grads
        dx = product(dz, y.transpose(1, 2), scale) if ctx.needs_input_grad[0] else None
        dy = product(x.transpose(1, 2), dz, scale) if ctx.needs_input_grad[1] else None
        return dx, dy, None


def product(x: Tensor, y: Tensor, scale: Tensor | None) -> Tensor:
    """`[B, I, J, S]`, the product of two tensors with any strides and the same channels."""
    x = x if x.stride(3) == 1 else x.contiguous()
    y = y if y.stride(3) == 1 else y.contiguous()
    batch, rows, inner, channels = x.shape
    columns = y.shape[2]
    out = torch.empty(batch, rows, columns, channels, dtype=x.dtype, device=x.device)
    arguments = (x, y, scale, out, rows, inner, columns, channels, *x.stride()[:3], *y.stride()[:3])
    if min(rows, inner, columns) < LARGE:
        across = min(32, 1 << (columns - 1).bit_length())
        deep, down = min(64, block(channels)), STRIP // across
        strips = programs(rows, down) * programs(columns, across)
        kernels.strip_kernel[(strips, programs(channels, deep), batch)](
            *arguments, BI=down, BJ=across, BC=deep, SCALED=scale is not None, num_warps=4
        )
    else:
        tiles = programs(rows, TILE["BI"]) * programs(columns, TILE["BJ"])
        kernels.tile_kernel[(tiles, programs(channels, TILE["BC"]), batch)](
            *arguments, **TILE, PRECISION=dot_precision(), SCALED=scale is not None, num_warps=8
        )
    return out
