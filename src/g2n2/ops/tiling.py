"""How work is cut into tiles and programs. Nothing here needs Triton."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

SHARED_BYTES = {80: 166_912, 89: 101_376, 90: 232_448}
"""Of shared memory a program may have, by compute capability: an A100, an RTX 4090, an H200."""
LEAST = 16
"""Of a tile's side: what a tensor core wants."""
INTERPRETED_PROCESSORS = 8
"""Stands for a device in Triton's interpreter: enough for partial sums to be several."""


def block(width: int) -> int:
    """A tile's side: the next power of two, and at least the 16 a tensor core wants."""
    return max(LEAST, 1 << (width - 1).bit_length()) if width else LEAST


def programs(count: int, each: int) -> int:
    """Programs that take `each` of `count` things, the last one perhaps fewer."""
    return -(-count // each)


def processors(device: torch.device) -> int:
    """How many programs a device runs side by side."""
    if device.type != "cuda":
        return INTERPRETED_PROCESSORS
    return torch.cuda.get_device_properties(device).multi_processor_count


def shared_bytes(device: torch.device) -> int:
    """Bytes of shared memory a program may have on a device."""
    if device.type != "cuda":
        return max(SHARED_BYTES.values())
    return int(torch.cuda.get_device_properties(device).shared_memory_per_block_optin)


def fitting(side: int, bytes_of: Callable[[int], int], shared: int) -> int:
    """A tile's side, halved until what it takes fits the shared memory."""
    while side > LEAST and bytes_of(side) > shared:
        side //= 2
    return side


def as_rows(x: Tensor) -> Tensor:
    """`[…, S]` as `[R, S]`, channels side by side; a slice of a wider tensor stays where it is."""
    flat = x.flatten(0, -2)
    return flat if flat.stride(1) == 1 else flat.contiguous()
