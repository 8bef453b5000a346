"""The matrix-memory update for training: library products, and one pass at each edge of them.

The inputs are laid side by side once; the hidden layer is written once and read three times in the
backward pass, which an H200 does faster than recomputing it. `triton` keeps no hidden layer, for
inference and for graphs whose hidden layer would not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..tiling import block, dot_precision, programs
from .kernels import edges
from .layout import MOST_PAIRS, Columns, as_rows, laid_out
from .parts import Part
from .reference import Map

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
    result: Tensor = _Mix.apply(  # type: ignore[no-untyped-call]
        layout.columns,
        mask,
        *first,
        *second,
        layout.diagonal,
        residual,
        layout.left,
        layout.right,
        *layout.pairs,
    )
    return result


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        columns, mask, w1, b1, w2, b2, vector, residual, left, right, *pairs = args
        flags = mask.to(torch.int8)
        rows = [as_rows(x) for x in pairs]
        factors = () if left is None else (as_rows(left), as_rows(right))
        joined = _join(rows, factors, vector, columns, w1.shape[1], mask.shape[1])
        if b1 is None:
            hidden = (joined @ w1.T).relu_()
        else:
            hidden = torch._addmm_activation(b1, joined, w1.T)
        out: Tensor = hidden @ w2.T if b2 is None else torch.addmm(b2, hidden, w2.T)
        _finish(out, residual, flags)
        ctx.save_for_backward(flags, w1, w2, joined, hidden, *factors)
        ctx.columns, ctx.widths = columns, [x.shape[1] for x in rows]
        ctx.along = None if vector is None else vector.shape[-1]
        ctx.biases, ctx.add = (b1 is not None, b2 is not None), residual is not None
        return out.view(*mask.shape, mask.shape[1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        flags, w1, w2, joined, hidden, *factors = ctx.saved_tensors
        columns, shape = ctx.columns, grads[0].shape
        dout = grads[0].flatten(0, 2).clone(memory_format=torch.contiguous_format)
        _finish(dout, None, flags)
        dpre, db1 = _back(dout, w2, hidden)
        djoined: Tensor = dpre @ w1

        def flow(start: int, width: int) -> Tensor:
            return djoined[:, start : start + width]

        dleft = dright = dvector = None
        if factors:
            both = _factors_back(flow(columns.hadamard, factors[0].shape[1]), *factors)
            dleft, dright = (x.view(*shape[:3], -1) for x in both)
        if ctx.along is not None:
            square = flow(columns.diagonal, ctx.along).view(*shape[:3], -1)
            dvector = square.diagonal(dim1=1, dim2=2).transpose(1, 2)
        return (
            None,
            None,
            dpre.T @ joined,
            db1.to(w1.dtype) if ctx.biases[0] else None,
            dout.T @ hidden,
            (dout.new_ones(1, len(dout)) @ dout)[0] if ctx.biases[1] else None,
            dvector,
            dout.view(shape) if ctx.add else None,
            dleft,
            dright,
            *(
                flow(start, width).view(*shape[:3], width)
                for start, width in zip(columns.pairs, ctx.widths, strict=True)
            ),
        )


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


def _finish(rows: Tensor, residual: Tensor | None, flags: Tensor) -> None:
    """In place: add the residual and clear the padding of `[BNN, O]`."""
    count, width = rows.shape
    edges.finish_kernel[(programs(count, ROWS),)](
        rows, None if residual is None else residual.contiguous(), flags, count, flags.shape[1],
        S=width, P=block(width), ADD=residual is not None, BM=ROWS,
    )  # fmt: skip


def _back(dout: Tensor, w2: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """`dpre` and the sum of its rows."""
    count, units = hidden.shape
    tall = 64 if dout.dtype == torch.float32 else 128
    blocks = programs(count, tall)
    dpre = torch.empty_like(hidden)
    sums = torch.empty(blocks, units, dtype=torch.float32, device=dout.device)
    edges.back_kernel[(blocks,)](
        dout, w2.contiguous(), hidden, dpre, sums, count, units,
        SO=w2.shape[0], PO=block(w2.shape[0]), BM=tall,
        BH=next(size for size in (64, 32, 16) if units % size == 0),
        PRECISION=dot_precision(), num_warps=8,
    )  # fmt: skip
    return dpre, sums.sum(0)


def _factors_back(flow: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of both factors of a Hadamard product from that of the product."""
    count, width = flow.shape
    dleft, dright = flow.new_empty(count, width), flow.new_empty(count, width)
    edges.hadamard_back_kernel[(programs(count, ROWS),)](
        flow, left, right, dleft, dright, count, flow.stride(0), left.stride(0), right.stride(0),
        S=width, P=block(width), BM=ROWS,
    )  # fmt: skip
    return dleft, dright
