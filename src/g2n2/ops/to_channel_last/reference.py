"""A memory with its channels side by side, in plain PyTorch."""

from __future__ import annotations

from torch import Tensor


def to_rows(x: Tensor) -> Tensor:
    """`[B, N, N, S]` that lies in planes `[S, B, N, N]`, as a contiguous tensor."""
    return x.contiguous()
