"""How work is cut into tiles and programs. Nothing here needs Triton."""

from __future__ import annotations

import torch
from torch import Tensor

WIDE, ROOM = 128, 160 * 1024
"""Channels from which on a tile takes more shared memory than that of small cards."""
TILED_NODES = 256
"""Of a graph of several tiles; products of larger ones are worth a launch each."""
INTERPRETED_PROCESSORS = 8
"""Stands for a device in Triton's interpreter: enough for partial sums to be several."""


def block(width: int) -> int:
    """A tile's side: the next power of two, and at least the 16 a tensor core wants."""
    return max(16, 1 << (width - 1).bit_length()) if width else 16


def programs(count: int, each: int) -> int:
    """Programs that take `each` of `count` things, the last one perhaps fewer."""
    return -(-count // each)


def processors(device: torch.device) -> int:
    """How many programs a device runs side by side."""
    if device.type != "cuda":
        return INTERPRETED_PROCESSORS
    return torch.cuda.get_device_properties(device).multi_processor_count


def narrowed(size: int, width: int, device: torch.device) -> int:
    """A tile's side beside one of `width` channels, less where shared memory is small.

    An A100, H100 or H200 has room for whole tiles, cards of 99 KiB for half as wide ones.
    """
    if device.type != "cuda" or width <= WIDE:
        return size
    properties = torch.cuda.get_device_properties(device)
    room = getattr(properties, "shared_memory_per_block_optin", ROOM)
    return size // 2 if room < ROOM else size


def as_rows(x: Tensor) -> Tensor:
    """`[…, S]` as `[R, S]`, channels side by side; a slice of a wider tensor stays where it is."""
    flat = x.flatten(0, -2)
    return flat if flat.stride(1) == 1 else flat.contiguous()
