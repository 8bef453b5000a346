"""How products of float32 are taken: in full, or in tf32 as tensor cores do. Needs no Triton."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch


@contextmanager
def float32_products(tf32: bool) -> Iterator[None]:
    """While open, products of float32 are taken in tf32, or in full."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def dot_precision() -> str:
    """What tensor cores make of float32, as `torch.set_float32_matmul_precision` asks."""
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def batched_precision() -> str:
    """The same for a batch of products in one tile, which Triton 3.6 gets wrong in `ieee`.

    Three products in tf32 then stand for one in float32.
    """
    return "tf32x3" if dot_precision() == "ieee" else "tf32"


def without_autocast(device: str) -> AbstractContextManager[object]:
    """While open, operations run in the dtype of their operands.

    Nothing is entered where autocast is off anyway: a saved `torch.export` program cannot hold it.
    """
    on = torch.is_autocast_enabled(device)
    return torch.autocast(device, enabled=False) if on else nullcontext()
