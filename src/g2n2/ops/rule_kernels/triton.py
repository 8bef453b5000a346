"""The rules of a layer through kernels; see `reference.apply`.

For graphs whose entries fit one tile. Operands are slices of one tensor, outputs are written where
the MLP reads them, and gradients where the selectors' product reads them: nothing is concatenated
or split.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..graph_index import GraphIndex, padded_index
from ..precision import batched_precision
from ..tiling import as_rows, block, programs
from . import kernels
from .spec import MOST_NODES, KernelRule, Round, rounds

Slice = tuple[Tensor, int]
"""Rows, and the column its channels begin at."""

TAIL_ROWS = 64
CHANNELS = 16
"""Of a program that multiplies: 32 bytes side by side in bfloat16."""


def apply(
    read: Tensor | None,
    matrices: Tensor,
    vectors: Tensor | None,
    scale: Tensor,
    rules: Sequence[KernelRule],
    index: GraphIndex | None = None,
) -> tuple[Tensor, Tensor]:
    """See `reference.apply`; with an index, of rows `[P, S]` and `[Q, S]`.

    Rows beyond the last graph become 0, in outputs and gradients. Where what was read is the first
    channels of a tensor just wide enough, the outputs are written into the rest of that tensor.
    """
    result: tuple[Tensor, Tensor] = _Apply.apply(  # type: ignore[no-untyped-call]
        tuple(rules), scale, index, read, matrices, vectors
    )
    return result


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        rules, scale, index, read, matrices, vectors = args
        shape, kept = matrices.shape[:-1], 0 if read is None else read.shape[-1]
        if index is None:
            index = padded_index(shape[0], shape[1], matrices.device)
        columns = sum(rule.width for rule in rules if rule.kind == "column")
        pairs = sum(rule.width for rule in rules) - columns
        out = _around(read, kept + pairs)
        in_place = out is not None
        if out is None:
            out = matrices.new_empty(*shape, kept + pairs)
        nodes = shape[:2] if len(shape) == 3 else (len(index.owners),)
        column = matrices.new_empty(*nodes, columns)
        z = as_rows(matrices)
        v, source = (None if x is None else as_rows(x) for x in (vectors, read))
        todo = list(rounds(rules))
        copied = not in_place and kept == _width(todo[0])
        for number, together in enumerate(todo):
            if product := together.get("product"):
                a, b = product.operands
                _multiply((z, a), (z, b), (as_rows(out), product.to), product, scale, index)
            copy = copied and number == 0
            if copy or set(together) - {"product"}:
                kernels.entries_kernel[(len(index.owners),)](
                    source, z, v, scale, out, column, *_places(index), _stride(source), _stride(z),
                    _stride(v), out.shape[-1], column.shape[-1], **_entries(together, index.most),
                    COPY=copy,
                )  # fmt: skip
        if kept and not copied and not in_place:
            out[..., :kept] = read
        _zero_tails(index, column, out)
        ctx.save_for_backward(scale, z, v)
        ctx.rounds, ctx.kept, ctx.index = todo, kept, index
        ctx.shapes = shape, nodes
        return out, column

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        scale, z, v = ctx.saved_tensors
        dout, dcolumn = grads[0].contiguous(), as_rows(grads[1])
        index: GraphIndex = ctx.index
        z, v = z.contiguous(), None if v is None else v.contiguous()
        dz, dv = torch.empty_like(z), None if v is None else torch.empty_like(v)
        for together in ctx.rounds:
            if product := together.get("product"):
                a, b = product.operands
                flow = (as_rows(dout), product.to)
                _multiply(flow, (z, b), (dz, a), product, scale, index, turn_right=True)
                _multiply((z, a), flow, (dz, b), product, scale, index, turn_left=True)
            if set(together) - {"product"}:
                kernels.entries_back_kernel[(len(index.owners),)](
                    z, v, scale, dout, dcolumn, dz, dv, *_places(index), _stride(z), _stride(v),
                    dout.shape[-1], _stride(dcolumn), **_entries(together, index.most),
                )  # fmt: skip
        _zero_tails(index, dv, dz)
        pairs, nodes = ctx.shapes
        return (
            None,
            None,
            None,
            dout[..., : ctx.kept] if ctx.kept else None,
            dz.view(*pairs, -1),
            None if dv is None else dv.view(*nodes, -1),
        )


def _places(index: GraphIndex) -> tuple[Tensor, ...]:
    return index.sizes, index.widths, index.node_starts, index.pair_starts, index.owners


def _zero_tails(index: GraphIndex, nodes: Tensor | None, pairs: Tensor) -> None:
    """Clear the rows that belong to no graph."""
    if index.totals is None:
        return
    for rows, total in zip((nodes, pairs), index.totals, strict=True):
        if rows is not None and rows.shape[-1]:
            zero_tail(rows, total)


def zero_tail(rows: Tensor, total: Tensor) -> None:
    """Clear the rows of `[R, S]` from `total` on."""
    count, width = rows.shape
    kernels.zero_tail_kernel[(programs(count, TAIL_ROWS),)](
        rows, total, count, width, rows.stride(0), BM=TAIL_ROWS, BC=64
    )


def _around(read: Tensor | None, width: int) -> Tensor | None:
    """The tensor of that width whose first channels are what was read, if there is one."""
    if read is None or read.stride(-2) != width or read.storage_offset():
        return None
    shape = (*read.shape[:-1], width)
    storage = read.untyped_storage()
    if storage.nbytes() != math.prod(shape) * read.element_size():
        return None
    return read.new_empty(0).set_(storage, 0, shape, read.stride())


def _stride(rows: Tensor | None) -> int:
    return 0 if rows is None else rows.stride(0)


def _width(together: Round) -> int:
    return next(iter(together.values())).width


def _multiply(
    left: Slice,
    right: Slice,
    out: Slice,
    rule: KernelRule,
    scale: Tensor,
    index: GraphIndex,
    turn_left: bool = False,
    turn_right: bool = False,
) -> None:
    """One channel-wise product between slices of rows, of transposes where asked."""
    (x, x_from), (y, y_from), (z, to) = left, right, out
    kernels.product_kernel[(programs(rule.width, CHANNELS) * len(index.sizes),)](
        x, y, scale, z, index.sizes, index.widths, index.pair_starts,
        _stride(x), _stride(y), _stride(z), x_from, y_from, to,
        TURN_X=turn_left, TURN_Y=turn_right, S=rule.width, P=_tile(index.most), BC=CHANNELS,
        POWER=rule.power, PRECISION=batched_precision(), num_warps=8,
    )  # fmt: skip


def _tile(nodes: int) -> int:
    return 16 if nodes <= 16 else MOST_NODES


def _entries(together: Round, nodes: int) -> dict[str, Any]:
    """A kernel's arguments for one round; what is not in it starts at 0 and is not looked at."""
    hadamard, diagonal = together.get("hadamard"), together.get("diagonal")
    column = together.get("column")
    left, right = hadamard.operands if hadamard else (0, 0)
    matrix, vector = column.operands if column else (0, 0)
    return {
        "left": left,
        "right": right,
        "to_hadamard": hadamard.to if hadamard else 0,
        "along": diagonal.operands[0] if diagonal else 0,
        "to_diagonal": diagonal.to if diagonal else 0,
        "matrix": matrix,
        "vector": vector,
        "to_column": column.to if column else 0,
        "S": _width(together),
        "P": _tile(nodes),
        "PS": block(_width(together)),
        "HADAMARD": hadamard is not None,
        "DIAGONAL": diagonal is not None,
        "MV": column is not None,
        "POWER": column.power if column else 0,
        "num_warps": 2,
    }
