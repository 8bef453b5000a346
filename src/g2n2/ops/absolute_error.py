"""The mean absolute error in one kernel each way; `training.task.Task.loss` is the reference.

Operation by operation it was 20 kernels, a twentieth of a step on 32 graphs.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .derivatives import once_differentiable
from .tiling import programs

BLOCK = 1024


def mean_absolute_error(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean over known targets, 0 if there are none, and the sum, which has no gradient.

    Args:
        outputs: `[G, T]`.
        targets: `[G, T]`; NaN and infinity are unknown.
    """
    result: tuple[Tensor, Tensor] = _MeanAbsoluteError.apply(  # type: ignore[no-untyped-call]
        outputs, targets
    )
    return result


class _MeanAbsoluteError(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        outputs, targets = (x.contiguous() for x in args)
        total, known, mean = outputs.new_empty(3, dtype=torch.float32).unbind()
        forward_kernel[(1,)](outputs, targets, total, known, mean, outputs.numel(), BLOCK=BLOCK)
        ctx.save_for_backward(outputs, targets, known)
        ctx.mark_non_differentiable(total)
        return mean, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        outputs, targets, known = ctx.saved_tensors
        slopes, count = torch.empty_like(outputs), outputs.numel()
        backward_kernel[(programs(count, BLOCK),)](
            outputs, targets, known, grads[0], slopes, count, BLOCK=BLOCK
        )
        return slopes, None


@triton.jit
def forward_kernel(OUTPUTS, TARGETS, SUM, COUNT, MEAN, count, BLOCK: tl.constexpr):
    """By one program: outputs are as few as graphs."""
    total, known = tl.zeros([BLOCK], dtype=tl.float32), tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        target = tl.load(TARGETS + at, mask=at < count, other=float("nan")).to(tl.float32)
        output = tl.load(OUTPUTS + at, mask=at < count, other=0.0).to(tl.float32)
        there = target - target == 0.0
        total += tl.where(there, tl.abs(output - target), 0.0)
        known += there.to(tl.float32)
    total, known = tl.sum(total), tl.sum(known)
    tl.store(SUM, total)
    tl.store(COUNT, known)
    tl.store(MEAN, total / tl.maximum(known, 1.0))


@triton.jit
def backward_kernel(OUTPUTS, TARGETS, COUNT, FLOW, SLOPES, count, BLOCK: tl.constexpr):
    """The sign of each error over the number of known targets."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(TARGETS + at, mask=at < count, other=float("nan")).to(tl.float32)
    error = tl.load(OUTPUTS + at, mask=at < count, other=0.0).to(tl.float32) - target
    sign = tl.where(error > 0.0, 1.0, tl.where(error < 0.0, -1.0, 0.0))
    sign = tl.where(target - target == 0.0, sign, 0.0)
    slope = sign * tl.load(FLOW).to(tl.float32) / tl.maximum(tl.load(COUNT), 1.0)
    tl.store(SLOPES + at, slope.to(SLOPES.dtype.element_ty), mask=at < count)
