"""Operations on packed memories that know graphs: products, and sums over nodes and pairs.

Memories are rows without padding (`ops.packing`). Each operation loops over runs of graphs of equal
size, and writes what it computes where it belongs. The numbers are those of `ops.reference`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .derivatives import once_differentiable
from .packing import Packing, SizeRun

KEPT_BYTES = {"cpu": 256 * 1024**2, "cuda": 2 * 1024**3}
"""Values up to this size are kept for the backward pass; larger ones are computed again."""


def matrix_matrix(operands: Tensor, packing: Packing, power: int = 0) -> Tensor:
    """`(XY)_ij = Σ_k X_ik Y_kj` for each channel and graph: `[P, S]`, times `n^(−power/2)`.

    `operands` `[P, 2S]` has X and Y side by side.
    """
    value: Tensor = _Product.apply(operands, None, packing, power)  # type: ignore[no-untyped-call]
    return value


def selected_product(x: Tensor, weight: Tensor, packing: Packing, power: int = 0) -> Tensor:
    """`matrix_matrix` of two operands selected out of `[P, C]` by the halves of `[2S, C]`.

    The product that selects an operand writes it channel by channel, as products of matrices read
    it. On a GPU the result lies channel by channel too, and is read that way by `packed_mlp`: a
    copy would take as long as the product.
    """
    value: Tensor = _Product.apply(x, weight, packing, power)  # type: ignore[no-untyped-call]
    return value


def matrix_column(x: Tensor, v: Tensor, packing: Packing, power: int = 0) -> Tensor:
    """`(Xv)_i = Σ_k X_ik v_k` for each channel and graph: `[Q, S]`, times `n^(−power/2)`."""
    value: Tensor = _Column.apply(x, v, packing, power)  # type: ignore[no-untyped-call]
    return value


def sparse_column(a: Tensor, v: Tensor, packing: Packing, power: int = 0) -> Tensor:
    """`Av` for each channel and graph, with A of all graphs as one sparse `[Q, Q]`."""
    exact = torch.promote_types(v.dtype, torch.float32)
    value: Tensor = torch.sparse.mm(a.to(exact), v.to(exact))
    if power:
        scale: Tensor = packing.sizes.to(exact) ** (-power / 2)
        value = value * scale[packing.graph_of_node].unsqueeze(1)
    return value.to(v.dtype)


def pair_sums(x: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
    """`[G, S]` over the diagonal of each graph's matrices, and over all other pairs.

    Sums run in float32 at least, whatever the dtype of the memory.
    """
    diagonal, rest = _PairSums.apply(x, packing)  # type: ignore[no-untyped-call]
    return diagonal, rest


def add_product(total: Tensor, x: Tensor, y: Tensor) -> None:
    """`total += x y`; in one go where they share a dtype."""
    if total.dtype == x.dtype:
        torch.addmm(total, x, y, out=total)
    else:
        total += x @ y


def rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """`x · gain / √(mean x² + ε)` over the channels of each row."""
    value: Tensor = _Norm.apply(x, gain, eps, _row_means)  # type: ignore[no-untyped-call]
    return value


def graph_norm(
    x: Tensor, gain: Tensor, eps: float, packing: Packing, kernels: bool = False
) -> Tensor:
    """`x · gain / √(mean x² + ε)` over all channels and pairs of each graph.

    `kernels` says whether Triton's compute the means.
    """
    means = partial(_graph_means, packing, kernels)
    value: Tensor = _Norm.apply(x, gain, eps, means)  # type: ignore[no-untyped-call]
    return value


class _Norm(torch.autograd.Function):
    """Saves the rows and one number for each, and makes few passes over them.

    `mean` gives each row what is averaged: of the rows' own means `[P, 1]`, those of their graphs.
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, gain, eps, mean = args
        wide = torch.promote_types(x.dtype, torch.float32)
        squares = torch.linalg.vector_norm(x, dim=1, keepdim=True, dtype=wide).square_()
        means = mean(squares.div_(x.shape[1]), torch.inf)
        scale = (means + eps).rsqrt_().to(x.dtype)  # 0 in the tail; means may share memory
        ctx.save_for_backward(x, gain, scale)
        ctx.mean = mean
        value: Tensor = x * scale
        return value.mul_(gain)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, gain, scale = ctx.saved_tensors
        wide = torch.promote_types(x.dtype, torch.float32)
        value = x * scale
        along = grads[0] * value
        dgain = along.sum(0)
        sums = (along @ gain).unsqueeze(1).to(wide).div_(x.shape[1])
        mean = ctx.mean(sums, 0.0).to(x.dtype)
        dx = torch.mul(grads[0], gain, out=along).sub_(value.mul_(mean)).mul_(scale)
        return dx, dgain, None, None


def _row_means(rows: Tensor, beyond: float) -> Tensor:
    return rows


def _graph_means(packing: Packing, kernels: bool, rows: Tensor, beyond: float) -> Tensor:
    """See `Packing.means`."""
    if not kernels:
        return packing.means(rows, beyond)
    from .sums import graph_means

    return graph_means(rows, packing.index, beyond)


class _Product(torch.autograd.Function):
    """The operands are kept for the backward pass while they are small, and made anew if not."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, weight, packing, power = args
        width = (x.shape[1] if weight is None else len(weight)) // 2
        by_channel = x.device.type == "cuda"
        out: Tensor = x.new_empty(width, len(x)).T if by_channel else x.new_empty(len(x), width)
        keep = ctx.needs_input_grad[0] and 2 * out.nbytes <= KEPT_BYTES[x.device.type]
        kept = []
        for run in packing.runs:
            operands = _operands(x, weight, run)
            product = scaled_product(*_blocks(operands, run), run, power).view(width, -1).T
            if by_channel and len(packing.runs) == 1:
                out = product
            else:
                out[run.pairs] = product
            if keep:
                kept.append(operands)
        ctx.save_for_backward(x, weight, *kept)
        ctx.packing, ctx.power = packing, power
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        x, weight, *kept = ctx.saved_tensors
        wide = torch.promote_types(x.dtype, torch.float32)
        dx = x.new_empty(x.shape)
        dweight = None if weight is None else torch.zeros_like(weight, dtype=wide)
        for number, run in enumerate(ctx.packing.runs):
            operands = kept[number] if kept else _operands(x, weight, run)
            left, right = _blocks(operands, run)
            grad = grads[0][run.pairs].T.contiguous().view_as(left)
            doperands = torch.empty_like(operands)
            dleft, dright = _blocks(doperands, run)
            scaled_product(grad, right.mT, run, ctx.power, dleft)
            scaled_product(left.mT, grad, run, ctx.power, dright)
            if dweight is None:
                dx[run.pairs] = doperands.T
            else:
                torch.mm(doperands.T, weight, out=dx[run.pairs])
                add_product(dweight, doperands, x[run.pairs])
        return dx, None if dweight is None else dweight.to(weight.dtype), None, None


def scaled_product(
    x: Tensor, y: Tensor, run: SizeRun, power: int, out: Tensor | None = None
) -> Tensor:
    """`XY n^(−power/2)` for each of `[Sg, n, n]`."""
    if not power:
        return torch.bmm(x, y, out=out)
    out = torch.empty_like(x) if out is None else out
    return torch.baddbmm(out, x, y, beta=0.0, alpha=run.size ** (-power / 2), out=out)


def _operands(x: Tensor, weight: Tensor | None, run: SizeRun) -> Tensor:
    """`[2S, gn²]` both operands of a run, channel by channel."""
    rows = x[run.pairs].T
    return rows.contiguous() if weight is None else torch.mm(weight, rows)


def _blocks(operands: Tensor, run: SizeRun) -> tuple[Tensor, Tensor]:
    """`[Sg, n, n]` the matrices of both operands.

    They are contiguous, or a product of a single graph would take them element by element.
    """
    left, right = operands.view(2, -1, run.size, run.size).unbind()
    return left, right


class _Column(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        x, v, packing, power = args
        out: Tensor = v.new_empty(v.shape)
        for run in packing.runs:
            matrices, columns = x[run.pairs].unflatten(0, run.shape("M")), _columns(v, run)
            value = (matrices * columns.unsqueeze(1)).sum(2)
            torch.mul(value, run.size ** (-power / 2), out=_columns(out, run))
        ctx.save_for_backward(x, v)
        ctx.packing, ctx.power = packing, power
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        x, v = ctx.saved_tensors
        dx, dv = x.new_empty(x.shape), v.new_empty(v.shape)
        for run in ctx.packing.runs:
            grad = (_columns(grads[0], run) * run.size ** (-ctx.power / 2)).unsqueeze(2)
            matrices = x[run.pairs].unflatten(0, run.shape("M"))
            torch.mul(
                grad,
                _columns(v, run).unsqueeze(1),
                out=dx[run.pairs].unflatten(0, run.shape("M")),
            )
            torch.sum(matrices * grad, 1, out=_columns(dv, run))
        return dx, dv, None, None


def _columns(v: Tensor, run: SizeRun) -> Tensor:
    return v[run.nodes].view(run.count, run.size, -1)


class _PairSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor]:
        x, packing = args
        wide = torch.promote_types(x.dtype, torch.float32)
        on_diagonal = x.index_select(0, packing.diagonal)
        diagonal = x.new_empty(packing.graphs, x.shape[1], dtype=wide)
        every = torch.empty_like(diagonal)
        for run in packing.runs:
            torch.sum(_columns(on_diagonal, run), 1, dtype=wide, out=diagonal[run.graphs])
            whole = x[run.pairs].unflatten(0, (run.count, run.size**2))
            torch.sum(whole, 1, dtype=wide, out=every[run.graphs])
        ctx.packing, ctx.dtype = packing, x.dtype
        return diagonal, every - diagonal

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        packing: Packing = ctx.packing
        diagonal, rest = (grad.to(ctx.dtype) for grad in grads)
        dx = rest.new_empty(packing.pairs, rest.shape[1])
        for run in packing.runs:
            whole = dx[run.pairs].view(run.count, run.size**2, -1)
            whole.copy_(rest[run.graphs].unsqueeze(1).expand_as(whole))
        dx.index_copy_(0, packing.diagonal, diagonal.index_select(0, packing.graph_of_node))
        return dx, None
