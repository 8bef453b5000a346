"""Arithmetic by name: what torch is told, and the fastest this device does in it."""

from __future__ import annotations

import torch

from ..ops.precision import float32_products
from .cases import Precision
from .timing import Effort, measure

MATMUL = {"cuda": 8192, "cpu": 1024}
"""Rows of the square matrices a peak is measured with."""
COPIED = {"cuda": 4096, "cpu": 256}
"""MiB of a copy, far beyond any cache."""
PEAK = Effort(repeats=5, seconds=0.1)


def half(precision: Precision) -> torch.dtype | None:
    """What `GraphedStep` and autocast are given: bfloat16, or None."""
    return torch.bfloat16 if precision == "bf16" else None


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Around a forward pass."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def peak_tflops(
    precision: Precision, device: torch.device, size: int = 0, effort: Effort = PEAK
) -> float:
    """TFLOP/s of a large matrix product, the fastest of several."""
    n = size or MATMUL[device.type]
    dtype = half(precision) or torch.float32
    x, y = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    with float32_products(precision != "32"):
        torch.mm(x, y)
        timing = measure(lambda: torch.mm(x, y), device, effort)
    return 2.0 * n**3 / timing.least / 1e12


def bandwidth(device: torch.device, mebibytes: int = 0, effort: Effort = PEAK) -> float:
    """Bytes a second of a large copy, read and written, the fastest of several."""
    count = (mebibytes or COPIED[device.type]) * 2**20
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    timing = measure(lambda: target.copy_(source), device, effort)
    return 2.0 * count / timing.least
