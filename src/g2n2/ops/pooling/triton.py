"""The sums of `reference` in one pass, and one pass back.

`sums` has a program for each graph, so it is for small ones; `row_sums` has one for each row.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..tiling import block, programs
from . import kernels

ENTRIES = 128
ROW = 32
"""Entries of a row at a time."""


def sums(memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """See `reference.sums`."""
    both: Tensor = _Sums.apply(memory, mask)  # type: ignore[no-untyped-call]
    diagonal, beside = both.chunk(2, dim=-1)
    return diagonal, beside


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        memory, mask = args
        batch, nodes, _, width = memory.shape
        flags = _remembered(ctx, memory, mask)
        out: Tensor = memory.new_empty(batch, 2 * width, dtype=torch.float32)
        kernels.forward_kernel[(batch,)](
            memory.contiguous(), flags, out, nodes, S=width, P=block(width), BM=ENTRIES
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        flags, dmemory = _recalled(ctx)
        shape = dmemory.shape
        parts = programs(shape[1] ** 2, ENTRIES)
        kernels.backward_kernel[(parts * shape[0],)](
            grads[0].contiguous(), flags, dmemory, shape[1], parts,
            S=shape[3], P=block(shape[3]), BM=ENTRIES,
        )  # fmt: skip
        return dmemory, None


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
