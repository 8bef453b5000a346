"""Channel-wise products of `[B, N, N, S]`, with no permuted copy between products.

Small graphs take the kernel of `rule_kernels`. Larger ones are multiplied channel-major
(`ops.channel_major`): the product that selects the operands writes them that way, and library
products do the rest.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import channel_major
from ..reference import scaled_by_graph
from ..rule_kernels.spec import MOST_NODES, KernelRule
from ..rule_kernels.triton import apply
from ..to_channel_last.triton import to_rows


def matrix_matrix(x: Tensor, y: Tensor, scale: Tensor | None = None) -> Tensor:
    """`scale × XY` for each channel of `[B, N, N, S]`; `scale` is `[B]`, and a constant."""
    if x.shape[1] > MOST_NODES:
        return scaled_by_graph(to_rows(channel_major.matrix_matrix(x, y)), scale)
    rule = KernelRule("product", (0, x.shape[3]), 0, x.shape[3], int(scale is not None))
    return apply(None, torch.cat([x, y], dim=-1), None, _given(scale, x), [rule])[0]


def matrix_column(x: Tensor, v: Tensor, scale: Tensor | None = None) -> Tensor:
    """`scale × Xv` for each channel of `[B, N, N, S]` and `[B, N, S]`, into `[B, N, S]`."""
    if x.shape[1] > MOST_NODES:
        return scaled_by_graph(channel_major.matrix_column(x, v), scale)
    rule = KernelRule("column", (0, 0), 0, x.shape[3], int(scale is not None))
    return apply(None, x, v, _given(scale, x), [rule])[1]


def _given(scale: Tensor | None, x: Tensor) -> Tensor:
    """A scale for a kernel that does not look at it."""
    return x.new_empty(1) if scale is None else scale
