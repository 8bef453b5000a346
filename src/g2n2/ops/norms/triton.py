"""`x · gain / √(mean x² + ε)` over the channels of many short rows.

Rows have tens of channels: many of them share a program, where library kernels give each row one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..tiling import block, programs
from . import kernels

ROWS = 64
"""Rows of a block."""
MOST_SUMS = 1024
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


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, gain, small = args
        x = x.contiguous()
        out = torch.empty_like(x)
        width = x.shape[-1]
        count = x.numel() // width
        kernels.forward_kernel[(programs(count, ROWS),)](
            x, gain, out, count, small, S=width, P=block(width), BM=ROWS
        )
        ctx.save_for_backward(x, gain)
        ctx.small = small
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        x, gain = ctx.saved_tensors
        dout = grads[0].contiguous()
        dx = torch.empty_like(x)
        width = x.shape[-1]
        count = x.numel() // width
        blocks = programs(count, ROWS)
        each = programs(blocks, MOST_SUMS)
        sums = programs(blocks, each)
        dgain = torch.empty(sums, width, dtype=torch.float32, device=x.device)
        kernels.backward_kernel[(sums,)](
            x, gain, dout, dx, dgain, count, ctx.small, each, S=width, P=block(width), BM=ROWS
        )
        return dx, dgain.sum(0).to(gain.dtype), None
