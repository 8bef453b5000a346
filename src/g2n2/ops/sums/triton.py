"""Column sums of a small float32 matrix, straight into the dtype they are wanted in; and means over
the pairs of graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from ..graph_index import GraphIndex
from ..tiling import programs
from . import kernels

ROWS, COLUMNS = 64, 16
PAIRS, TAILS = 512, 16
"""Pairs at a time, and programs for rows of no graph."""


def column_sums(partial: Tensor, dtype: torch.dtype) -> Tensor:
    """`[W]` from `[R, W]`; the order of additions is always the same."""
    rows, width = partial.shape
    out = torch.empty(width, dtype=dtype, device=partial.device)
    kernels.column_sums_kernel[(programs(width, COLUMNS),)](
        partial, out, rows, width, BM=ROWS, BC=COLUMNS
    )
    return out


def graph_means(pairs: Tensor, index: GraphIndex, beyond: float) -> Tensor:
    """`Packing.means` of `[P, 1]` in float32."""
    out, graphs = torch.empty_like(pairs), len(index.sizes)
    tails = 0 if index.totals is None else TAILS
    total = index.sizes if index.totals is None else index.totals[1]  # where looked at
    kernels.graph_means_kernel[(graphs + tails,)](
        pairs, out, index.sizes, index.pair_starts, total, graphs, tails, len(pairs), beyond,
        TAIL=tails > 0, BM=PAIRS,
    )  # fmt: skip
    return out
