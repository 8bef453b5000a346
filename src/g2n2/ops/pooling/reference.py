"""Sums of a matrix memory: diagonal, off-diagonal and row sums, in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import reference as ops


def sums(memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """`[B, S]` over the diagonal of `[B, N, N, S]`, and over all other pairs that are there.

    Sums run in float32 at least, whatever the dtype of the memory.
    """
    exact = memory.dtype if memory.dtype == torch.float64 else torch.float32
    diagonal = (ops.diagonal(memory) * mask.unsqueeze(-1)).sum(1, dtype=exact)
    pairs = (mask[:, :, None] & mask[:, None]).unsqueeze(-1)
    return diagonal, (memory * pairs).sum((1, 2), dtype=exact) - diagonal


def row_sums(memory: Tensor, mask: Tensor) -> Tensor:
    """`[B, N, S]` the sums of the rows of `[B, N, N, S]` over the pairs that are there."""
    exact = memory.dtype if memory.dtype == torch.float64 else torch.float32
    pairs = (mask[:, :, None] & mask[:, None]).unsqueeze(-1)
    return (memory * pairs).sum(2, dtype=exact)
