"""The matrix-memory update in plain PyTorch, as the paper writes it: concatenate, then the MLP."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from .. import reference as ops
from .parts import Diagonal, Hadamard, Part

Map = tuple[Tensor, Tensor | None]
"""Weight `[out, in]` and bias `[out]` of a linear map."""

ACTIVATIONS = {"relu": functional.relu, "silu": functional.silu}


def mix(
    parts: Sequence[Part],
    first: Map,
    second: Map,
    mask: Tensor,
    activation: str,
    residual: Tensor | None = None,
) -> Tensor:
    """`MLP(part ‖ part ‖ …)`, plus the residual, zero at the padding: `[B, N, N, O]`.

    Args:
        parts: What is concatenated.
        first: The map into the hidden layer, one column for each channel of the parts.
        second: The map out of it.
        mask: `[B, N]`.
        activation: `relu` or `silu`.
        residual: `[B, N, N, O]`, added to the result.
    """
    joined = torch.cat([values(part) for part in parts], dim=-1)
    hidden = ACTIVATIONS[activation](functional.linear(joined, *first))
    value = functional.linear(hidden, *second)
    if residual is not None:
        value = value + residual
    return value * pair_mask(mask)


def values(part: Part) -> Tensor:
    """What a part stands for, `[B, N, N, S]`."""
    if isinstance(part, Hadamard):
        return part.left * part.right
    return ops.diagonal_matrix(part.values) if isinstance(part, Diagonal) else part.values


def pair_mask(mask: Tensor) -> Tensor:
    """`[B, N, N, 1]`: where both nodes of a pair are there."""
    return (mask[:, :, None] & mask[:, None]).unsqueeze(-1)
