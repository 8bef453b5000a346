"""`reference.to_rows`, with a gradient that lies in planes again, where products want it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..tiling import as_rows, programs
from . import kernels

ROWS, CHANNELS = 64, 64


def to_rows(x: Tensor) -> Tensor:
    """See `reference.to_rows`."""
    result: Tensor = _ToRows.apply(x)  # type: ignore[no-untyped-call]
    return result


class _ToRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        (x,) = args
        planes = x.permute(3, 0, 1, 2).reshape(x.shape[3], -1)
        out: Tensor = x.new_empty(x.shape)
        _copy(planes.T, out.flatten(0, 2))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        rows, shape = as_rows(grads[0]), grads[0].shape
        planes = rows.new_empty(shape[3], len(rows))
        _copy(rows, planes.T)
        return planes.view(shape[3], *shape[:3]).permute(1, 2, 3, 0)


def _copy(source: Tensor, target: Tensor) -> None:
    rows, width = source.shape
    kernels.turn_kernel[(programs(rows, ROWS), programs(width, CHANNELS))](
        source, target, rows, width, *source.stride(), *target.stride(), BR=ROWS, BC=CHANNELS
    )
