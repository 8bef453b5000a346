"""The matrix-memory update with a hidden layer that is written: library products on joined rows.

The inputs are laid side by side once and go through `rows`. `triton` keeps no hidden layer, for
graphs whose hidden layer would not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..tiling import as_rows, block, programs
from .kernels import edges
from .layout import MOST_PAIRS, Columns, laid_out
from .parts import Part
from .reference import Map, pair_mask
from .rows import mix_rows

ROWS = 64
HIDDEN_BYTES = 4 * 1024**3
"""A hidden layer up to this size is written."""


def mix(
    parts: Sequence[Part],
    first: Map,
    second: Map,
    mask: Tensor,
    activation: str,
    residual: Tensor | None = None,
) -> Tensor:
    """See `reference.mix`. All tensors share one dtype; the activation is ReLU."""
    assert activation == "relu", "whether a unit is alive is read off the hidden layer"
    layout = laid_out(parts)
    joined: Tensor = _Join.apply(  # type: ignore[no-untyped-call]
        layout.columns,
        first[0].shape[1],
        layout.diagonal,
        layout.left,
        layout.right,
        *layout.pairs,
    )
    return mix_rows(joined, first, second, pair_mask(mask).to(torch.int8), residual)


class _Join(torch.autograd.Function):
    """All parts side by side, `[B, N, N, J]`."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        columns, total, vector, left, right, *pairs = args
        rows = [as_rows(x) for x in pairs]
        factors = () if left is None else (as_rows(left), as_rows(right))
        joined = _join(rows, factors, vector, columns, total, pairs[0].shape[1])
        ctx.save_for_backward(*factors)
        ctx.columns, ctx.widths = columns, [x.shape[1] for x in rows]
        ctx.along = None if vector is None else vector.shape[-1]
        return joined.view(*pairs[0].shape[:3], total)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        factors, columns = ctx.saved_tensors, ctx.columns
        djoined, shape = grads[0].flatten(0, 2), grads[0].shape[:3]

        def flow(start: int, width: int) -> Tensor:
            return djoined[:, start : start + width]

        dleft = dright = dvector = None
        if factors:
            both = _factors_back(flow(columns.hadamard, factors[0].shape[1]), *factors)
            dleft, dright = (x.view(*shape, -1) for x in both)
        if ctx.along is not None:
            square = flow(columns.diagonal, ctx.along).view(*shape, -1)
            dvector = square.diagonal(dim1=1, dim2=2).transpose(1, 2)
        dpairs = (
            flow(start, width).view(*shape, width)
            for start, width in zip(columns.pairs, ctx.widths, strict=True)
        )
        return None, None, dvector, dleft, dright, *dpairs


def _join(
    rows: list[Tensor],
    factors: Sequence[Tensor],
    vector: Tensor | None,
    columns: Columns,
    total: int,
    nodes: int,
) -> Tensor:
    """`[BNN, total]`: the inputs of the first map side by side."""
    count, some = len(rows[0]), rows[0]  # `some` stands where nothing is read
    out = some.new_empty(count, total)
    empty = MOST_PAIRS - len(rows)
    places = [*rows, *[some] * empty, *(factors or (some, some))]
    widths = [x.shape[1] for x in rows] + [0] * empty
    paired = factors[0].shape[1] if factors else 0
    along = 0 if vector is None else vector.shape[-1]
    edges.join_kernel[(programs(count, ROWS),)](
        *places, None if vector is None else vector.contiguous(), out,
        count, nodes, total, *(x.stride(0) for x in places),
        **{f"S{k}": width for k, width in enumerate(widths)}, SH=paired, SV=along,
        **{f"P{k}": block(width) for k, width in enumerate(widths)},
        PH=block(paired), PV=block(along),
        **{f"C{k}": start for k, start in enumerate((*columns.pairs, *[0] * empty))},
        CH=columns.hadamard, CV=columns.diagonal, BM=ROWS,
    )  # fmt: skip
    return out


def _factors_back(flow: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of both factors of a Hadamard product from that of the product."""
    count, width = flow.shape
    dleft, dright = flow.new_empty(count, width), flow.new_empty(count, width)
    edges.hadamard_back_kernel[(programs(count, ROWS),)](
        flow, left, right, dleft, dright, count, flow.stride(0), left.stride(0), right.stride(0),
        S=width, P=block(width), BM=ROWS,
    )  # fmt: skip
    return dleft, dright
