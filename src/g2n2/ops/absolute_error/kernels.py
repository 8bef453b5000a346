"""Triton kernels of the mean absolute error over known targets."""

from __future__ import annotations

import triton
import triton.language as tl


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
