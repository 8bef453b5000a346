"""The sums of `reference` in one pass, and one pass back.

`sums` has a program for each graph, so it is for small ones; `row_sums` has one for each row.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph_index import GraphIndex, padded_index
from ..rule_kernels.triton import zero_tail
from ..tiling import block, programs
from . import kernels

ENTRIES = 128
ROW = 32
"""Entries of a row at a time."""


def sums(memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """See `reference.sums`."""
    index = padded_index(mask.shape[0], mask.shape[1], mask.device)
    rows = memory.flatten(0, 2)
    both: Tensor = _Sums.apply(rows, mask.to(torch.int8), index)  # type: ignore[no-untyped-call]
    diagonal, beside = both.chunk(2, dim=-1)
    return diagonal, beside


def packed_sums(rows: Tensor, index: GraphIndex) -> tuple[Tensor, Tensor]:
    """The same of packed rows `[P, S]`; rows that belong to no graph have gradient 0."""
    both: Tensor = _Sums.apply(rows, None, index)  # type: ignore[no-untyped-call]
    diagonal, beside = both.chunk(2, dim=-1)
    return diagonal, beside


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        rows, flags, index = args
        width = rows.shape[1]
        out: Tensor = rows.new_empty(len(index.sizes), 2 * width, dtype=torch.float32)
        kernels.forward_kernel[(len(index.sizes),)](
            rows.contiguous(), flags, out, index.sizes, index.pair_starts,
            S=width, P=block(width), BM=ENTRIES, MASKED=flags is not None,
        )  # fmt: skip
        ctx.flags, ctx.index, ctx.like = flags, index, (rows.shape, rows.dtype)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (count, width), dtype = ctx.like
        index: GraphIndex = ctx.index
        drows = grads[0].new_empty(count, width, dtype=dtype)
        parts = programs(index.most**2, ENTRIES)
        kernels.backward_kernel[(parts * len(index.sizes),)](
            grads[0].contiguous(), ctx.flags, drows, index.sizes, index.pair_starts, parts,
            S=width, P=block(width), BM=ENTRIES, MASKED=ctx.flags is not None,
        )  # fmt: skip
        if index.totals is not None:
            zero_tail(drows, index.totals[1])
        return drows, None, None


def row_sums(memory: Tensor, mask: Tensor) -> Tensor:
    """See `reference.row_sums`."""
    result: Tensor = _RowSums.apply(memory, mask)  # type: ignore[no-untyped-call]
    return result


class _RowSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        memory, mask = args
        batch, nodes, _, width = memory.shape
        flags = _remembered(ctx, memory, mask)
        out: Tensor = memory.new_empty(batch, nodes, width, dtype=torch.float32)
        kernels.row_kernel[(batch * nodes,)](
            memory.contiguous(), flags, out, nodes, S=width, P=block(width), BM=ROW
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        flags, dmemory = _recalled(ctx)
        shape = dmemory.shape
        kernels.row_spread_kernel[(shape[0] * shape[1],)](
            grads[0].contiguous(), flags, dmemory, shape[1],
            S=shape[3], P=block(shape[3]), BM=ROW,
        )  # fmt: skip
        return dmemory, None


def _remembered(ctx: Any, memory: Tensor, mask: Tensor) -> Tensor:
    """Flags of the nodes that are there, kept with the memory's shape for the way back."""
    flags = mask.to(torch.int8)
    ctx.save_for_backward(flags)
    ctx.like = memory.shape, memory.dtype
    return flags


def _recalled(ctx: Any) -> tuple[Tensor, Tensor]:
    """The flags, and room for the gradient of the memory."""
    (flags,) = ctx.saved_tensors
    shape, dtype = ctx.like
    return flags, torch.empty(shape, dtype=dtype, device=flags.device)
