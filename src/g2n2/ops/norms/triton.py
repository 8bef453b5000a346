"""`x · gain / √(mean x² + ε)` over the channels of many short rows.

Rows have tens of channels: many of them share a program, where library kernels give each row one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..sums.triton import column_sums
from ..tiling import as_rows, block, programs
from . import kernels

ROWS = 64
"""Rows of a block."""
MOST_SUMS = 512
"""Partial sums of the gain's gradient."""


def rms_norm(x: Tensor, gain: Tensor, small: float) -> Tensor:
    """`torch.nn.functional.rms_norm` over the last axis of `[…, S]`.

    Args:
        x: `[…, S]`.
        gain: `[S]`, in the dtype of `x`.
        small: ε.
    """
    result: Tensor = _Norm.apply(x, gain, small)  # type: ignore[no-untyped-call]
    return result


def normalise(x: Tensor, gain: Tensor, small: float, room: int = 0) -> Tensor:
    """The normalised rows of a contiguous tensor, as the first channels of one `room` wide."""
    width = x.shape[-1]
    out = x.new_empty(*x.shape[:-1], max(room, width))[..., :width]
    count = x.numel() // width
    kernels.forward_kernel[(programs(count, ROWS),)](
        x, gain, out, count, small, out.stride(-2), S=width, P=block(width), BM=ROWS
    )
    return out


def normalise_back(
    x: Tensor,
    gain: Tensor,
    small: float,
    dout: Tensor,
    more: Tensor | None = None,
    beside: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gradient of the rows, and partial sums of that of the gain.

    Args:
        x: `[…, S]`, contiguous.
        gain: `[S]`.
        small: ε.
        dout: Gradient of the normalised rows, contiguous.
        more: A second one to be added to it.
        beside: A gradient the rows themselves have, to be added to the result.
    """
    width = x.shape[-1]
    more, beside = (None if g is None else as_rows(g) for g in (more, beside))
    dx = torch.empty_like(x)
    count = x.numel() // width
    blocks = programs(count, ROWS)
    each = programs(blocks, MOST_SUMS)
    sums = x.new_empty(programs(blocks, each), width, dtype=torch.float32)
    kernels.backward_kernel[(len(sums),)](
        x, gain, dout, more, beside, dx, sums, count, small,
        0 if more is None else more.stride(0), 0 if beside is None else beside.stride(0), each,
        S=width, P=block(width), BM=ROWS, ADD=more is not None, PAST=beside is not None,
    )  # fmt: skip
    return dx, sums


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, gain, small = args
        x = x.contiguous()
        ctx.save_for_backward(x, gain)
        ctx.small = small
        return normalise(x, gain, small)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        x, gain = ctx.saved_tensors
        dx, sums = normalise_back(x, gain, ctx.small, grads[0].contiguous())
        return dx, column_sums(sums, gain.dtype), None
