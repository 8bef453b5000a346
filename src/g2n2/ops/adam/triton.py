"""A whole optimiser step in two kernels; `torch.optim.AdamW` and clipping are the reference.

Library optimisers use one program for each 65,536 weights, so a network of half a million weights
leaves most of a GPU idle in each of five passes: norm, clipping, step, average, rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..tiling import programs
from . import kernels

BLOCK = 1024


@dataclass(frozen=True, eq=False)
class FlatState:
    """All that a step reads and writes, each of it one tensor `[W]` over all weights.

    Attributes:
        weights: float32.
        mean: Running mean of gradients.
        square: Running mean of their squares.
        shadow: Averaged weights; empty for none.
        copy: `[H]` the first weights in half precision, as the network reads them.
        decay: Weight decay of each.
        rate: The learning rate, one number.
        steps: Steps taken, this one counted; one number or many equal ones.
        share: Of the weights in their average.
        norm: The norm of the gradient is left here.
    """

    weights: Tensor
    mean: Tensor
    square: Tensor
    shadow: Tensor
    copy: Tensor
    decay: Tensor
    rate: Tensor
    steps: Tensor
    share: Tensor
    norm: Tensor


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
    kernels.squares_kernel[(blocks,)](half, full, squares, len(half), total, BLOCK=BLOCK)
    kernels.step_kernel[(blocks,)](
        state.weights, half, full, state.mean, state.square, state.shadow, state.copy,
        state.decay, squares, state.norm, state.rate, state.steps, state.share,
        len(half), total, blocks, clip, math.log(betas[0]), math.log(betas[1]), *betas, small,
        BLOCKS=1 << (blocks - 1).bit_length(), BLOCK=BLOCK,
        CLIP=clip > 0, AVERAGE=len(state.shadow) > 0, num_warps=4,
    )  # fmt: skip
