"""A whole optimiser step in two kernels; `torch.optim.AdamW` and clipping are the reference.

Library optimisers use one program for each 65,536 weights, so a network of half a million weights
leaves most of a GPU idle in each of five passes: norm, clipping, step, average, rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from .tiling import programs

BLOCK = 1024


@dataclass(frozen=True, eq=False)
class FlatState:
    """All that a step reads and writes, each of it one tensor `[W]` over all weights."""

    weights: Tensor  # float32
    mean: Tensor  # running mean of gradients
    square: Tensor  # running mean of their squares
    shadow: Tensor  # averaged weights; empty for none
    copy: Tensor  # `[H]` the first weights in half precision, as the network reads them
    decay: Tensor  # weight decay of each
    rate: Tensor  # the learning rate, one number
    steps: Tensor  # steps taken, this one counted; one number or many equal ones
    share: Tensor  # of the weights in their average
    norm: Tensor  # the norm of the gradient is left here


def step(
    state: FlatState,
    half: Tensor,
    full: Tensor,
    clip: float,
    betas: tuple[float, float],
    small: float,
) -> None:
    """Take a step in place.

    Args:
        state: What it reads and writes.
        half: `[H]` gradients of the first weights, in half precision.
        full: `[W − H]` those of the rest, in float32.
        clip: Largest norm of the gradient; 0 for none.
        betas: Of Adam.
        small: ε of Adam.
    """
    total = len(state.weights)
    blocks = programs(total, BLOCK)
    squares = torch.empty(blocks, dtype=torch.float32, device=state.weights.device)
    squares_kernel[(blocks,)](half, full, squares, len(half), total, BLOCK=BLOCK)
    step_kernel[(blocks,)](
        state.weights, half, full, state.mean, state.square, state.shadow, state.copy,
        state.decay, squares, state.norm, state.rate, state.steps, state.share,
        len(half), total, blocks, clip, math.log(betas[0]), math.log(betas[1]), *betas, small,
        BLOCKS=1 << (blocks - 1).bit_length(), BLOCK=BLOCK,
        CLIP=clip > 0, AVERAGE=len(state.shadow) > 0, num_warps=4,
    )  # fmt: skip


@triton.jit
def gradient(HALF, FULL, at, halves, total):
    """Gradients in one precision first, then those in the other."""
    first = tl.load(HALF + at, mask=at < halves, other=0.0).to(tl.float32)
    rest = tl.load(FULL + at - halves, mask=(at >= halves) & (at < total), other=0.0)
    return tl.where(at < halves, first, rest.to(tl.float32))


@triton.jit
def squares_kernel(HALF, FULL, OUT, halves, total, BLOCK: tl.constexpr):
    """The sum of a block's squared gradients."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = gradient(HALF, FULL, at, halves, total)
    tl.store(OUT + tl.program_id(0), tl.sum(g * g, axis=0))


@triton.jit
def step_kernel(
    W, HALF, FULL, MEAN, SQUARE, SHADOW, COPY, DECAY, SQUARES, NORM, RATE, STEP, SHARE,
    halves, total, blocks, clip, log_beta1, log_beta2, beta1, beta2, small,
    BLOCKS: tl.constexpr, BLOCK: tl.constexpr, CLIP: tl.constexpr, AVERAGE: tl.constexpr,
):  # fmt: skip
    """Clip, decay, step, average, and round the weights the next step reads."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    g = gradient(HALF, FULL, at, halves, total)
    w = tl.load(W + at, mask=inside, other=0.0)
    decay = tl.load(DECAY + at, mask=inside, other=0.0)
    mean = tl.load(MEAN + at, mask=inside, other=0.0)
    square = tl.load(SQUARE + at, mask=inside, other=0.0)
    rate = tl.load(RATE)
    step = tl.load(STEP)
    k = tl.arange(0, BLOCKS)  # what waits for all of these comes after every load
    norm = tl.sqrt(tl.sum(tl.load(SQUARES + k, mask=k < blocks, other=0.0), axis=0))
    if tl.program_id(0) == 0:
        tl.store(NORM, norm)
    if CLIP:
        g *= tl.minimum(clip / (norm + 1e-6), 1.0)
    w *= 1.0 - rate * decay
    mean += (1.0 - beta1) * (g - mean)
    square = beta2 * square + (1.0 - beta2) * g * g
    unbiased1 = 1.0 - tl.exp(step * log_beta1)
    unbiased2 = 1.0 - tl.exp(step * log_beta2)
    w -= rate / unbiased1 * mean / (tl.sqrt(square / unbiased2) + small)
    tl.store(W + at, w, mask=inside)
    tl.store(MEAN + at, mean, mask=inside)
    tl.store(SQUARE + at, square, mask=inside)
    if AVERAGE:
        shadow = tl.load(SHADOW + at, mask=inside, other=0.0)
        tl.store(SHADOW + at, shadow + tl.load(SHARE) * (w - shadow), mask=inside)
    tl.store(COPY + at, w.to(COPY.dtype.element_ty), mask=at < halves)
