"""The rules of a layer through kernels; see `reference.apply`.

For graphs of few nodes. Operands are slices of one tensor, outputs are written where the MLP reads
them, and gradients where the selectors' product reads them: nothing is concatenated or split. A
round of rules is a kernel that multiplies and, beside it, one that mostly moves bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..derivatives import once_differentiable
from ..graph_index import GraphIndex
from ..precision import batched_precision
from ..side_stream import Branch
from ..tiling import as_rows, block, programs
from . import kernels
from .spec import MOST_NODES, KernelRule, Round, rounds

CHANNELS, WARPS, REGISTERS = 16, 8, 80
"""Of a program that multiplies: 32 bytes side by side, and three programs on a processor."""
TAIL = 64
"""Programs that clear rows that belong to no graph."""


def apply(
    read: Tensor | None,
    matrices: Tensor,
    vectors: Tensor | None,
    scale: Tensor,
    rules: Sequence[KernelRule],
    index: GraphIndex,
) -> tuple[Tensor, Tensor]:
    """See `reference.apply`; of packed rows `[P, S]` and `[Q, S]`.

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
        kept = 0 if read is None else read.shape[-1]
        columns = sum(rule.width for rule in rules if rule.kind == "column")
        width = kept + sum(rule.width for rule in rules) - columns
        out = _around(read, width)
        if out is None:
            out = matrices.new_empty(len(matrices), width)
            if kept:
                out[:, :kept] = read
        column = matrices.new_empty(len(index.owners), columns)
        z, v = as_rows(matrices), None if vectors is None else as_rows(vectors)
        todo = list(rounds(rules))
        for number, together in enumerate(todo):
            branch = Branch()
            if product := together.get("product"):
                with branch:
                    kernels.product_kernel[(_parts(product, z) * len(index.sizes),)](
                        z, z, scale, out, index.sizes, index.pair_starts, _stride(z), _stride(z),
                        width, *product.operands, product.to, **_multiplying(product, z, index),
                    )  # fmt: skip
            grid, shared = _entries(together, index, z, number == len(todo) - 1)
            if grid:
                kernels.entries_kernel[(grid,)](
                    z, z if v is None else v, scale, out, column, *_places(index), **shared,
                    node_rows=len(column) if columns else 0, stride_z=_stride(z),
                    stride_v=_stride(v), out_width=width, column_width=columns,
                )  # fmt: skip
            branch.join()
        ctx.save_for_backward(scale, z, v)
        ctx.rounds, ctx.kept, ctx.index = todo, kept, index
        return out, column

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        scale, z, v = ctx.saved_tensors
        dout, dcolumn = grads[0].contiguous(), as_rows(grads[1])
        index: GraphIndex = ctx.index
        z, v = z.contiguous(), None if v is None else v.contiguous()
        dz, dv = torch.empty_like(z), None if v is None else torch.empty_like(v)
        for number, together in enumerate(ctx.rounds):
            branch = Branch()
            if product := together.get("product"):
                with branch:
                    kernels.product_back_kernel[(2 * _parts(product, z) * len(index.sizes),)](
                        z, z, scale, dout, dz, dz, index.sizes, index.pair_starts, _stride(z),
                        dout.shape[-1], *product.operands, product.to,
                        **_multiplying(product, z, index),
                    )  # fmt: skip
            grid, shared = _entries(together, index, z, number == len(ctx.rounds) - 1)
            if grid:
                kernels.entries_back_kernel[(grid,)](
                    z, z if v is None else v, scale, dout, dcolumn, dz, dz if dv is None else dv,
                    *_places(index), **shared, node_rows=0 if dv is None else len(dv),
                    stride_z=_stride(z), stride_v=_stride(dv), out_width=dout.shape[-1],
                    column_width=_stride(dcolumn),
                )  # fmt: skip
            branch.join()
        return None, None, None, dout[:, : ctx.kept] if ctx.kept else None, dz, dv


def _places(index: GraphIndex) -> tuple[Tensor, ...]:
    totals = index.totals or (index.sizes, index.sizes)  # not looked at
    return index.sizes, index.node_starts, index.pair_starts, index.owners, *totals


def _parts(rule: KernelRule, z: Tensor) -> int:
    """Programs that share the product of a graph."""
    return programs(rule.width, CHANNELS * 2 // z.element_size())


def _multiplying(rule: KernelRule, z: Tensor, index: GraphIndex) -> dict[str, Any]:
    """What kernels that multiply are told besides."""
    return {
        "S": rule.width,
        "P": _tile(index.most),
        "BC": CHANNELS * 2 // z.element_size(),
        "POWER": rule.power,
        "PRECISION": batched_precision(),
        "num_warps": WARPS,
        "maxnreg": REGISTERS,
    }


def _tile(nodes: int) -> int:
    return 16 if nodes <= 16 else MOST_NODES


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


def _entries(
    together: Round, index: GraphIndex, z: Tensor, last: bool
) -> tuple[int, dict[str, Any]]:
    """Programs of a round for all but its product, and what they are told; those of the last round
    clear tails. What is not in the round starts at 0 and is not looked at."""
    hadamard, diagonal = together.get("hadamard"), together.get("diagonal")
    column = together.get("column")
    left, right = hadamard.operands if hadamard else (0, 0)
    matrix, vector = column.operands if column else (0, 0)
    rows = len(index.owners) if set(together) - {"product"} else 0
    tails = TAIL if last and index.totals is not None else 0
    return rows + tails, {
        "rows": rows,
        "tails": tails,
        "pair_rows": len(z),
        "left": left,
        "right": right,
        "to_hadamard": hadamard.to if hadamard else 0,
        "along": diagonal.operands[0] if diagonal else 0,
        "to_diagonal": diagonal.to if diagonal else 0,
        "matrix": matrix,
        "vector": vector,
        "to_column": column.to if column else 0,
        "S": _width(together),
        "P": _tile(index.most),
        "PS": block(_width(together)),
        "TAIL": tails > 0,
        "HADAMARD": hadamard is not None,
        "DIAGONAL": diagonal is not None,
        "MV": column is not None,
        "POWER": column.power if column else 0,
        "num_warps": 2,
    }
