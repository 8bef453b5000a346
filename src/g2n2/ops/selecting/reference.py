"""Normalise a memory and select every operand from it, in plain PyTorch."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def select(
    memory: Tensor, gain: Tensor | None, small: float, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What the rules of a layer read of a memory `[…, S]`.

    Args:
        memory: `[…, S]`.
        gain: `[S]` of the normalisation, or None for a memory that is read as it is.
        small: ε of the normalisation.
        weight: `[K, S]` the selectors' maps, one below the other.

    Returns:
        The memory as it is read `[…, S]`, the operands side by side `[…, K]`, and the memory
        itself, for the residual.
    """
    read = memory if gain is None else functional.rms_norm(memory, memory.shape[-1:], gain, small)
    return read, functional.linear(read, weight), memory
