"""Column sums of a small float32 matrix, straight into the dtype they are wanted in."""

from __future__ import annotations

import torch
from torch import Tensor

from ..tiling import programs
from . import kernels

ROWS, COLUMNS = 64, 16


def column_sums(partial: Tensor, dtype: torch.dtype) -> Tensor:
    """`[W]` from `[R, W]`; the order of additions is always the same."""
    rows, width = partial.shape
    out = torch.empty(width, dtype=dtype, device=partial.device)
    kernels.column_sums_kernel[(programs(width, COLUMNS),)](
        partial, out, rows, width, BM=ROWS, BC=COLUMNS
    )
    return out
