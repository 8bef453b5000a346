"""The matrix-memory update in a few large products: no whole concatenation, bounded memory.

`diag(v)` reaches only n of the n² rows of the hidden layer. Rows go through in chunks that stay in
the processor's cache. The hidden layer is kept for the backward pass while all of it is small, and
recomputed chunk by chunk where it is not, so that memory grows with n²·S and not n²·8S.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .layout import placed
from .parts import Diagonal, Part
from .reference import Map, pair_mask, values

KEPT_BYTES = 256 * 1024**2
"""A hidden layer up to this size is kept for the backward pass."""
CHUNK_BYTES = {"cpu": 16 * 1024**2, "cuda": 64 * 1024**2}
"""A chunk of the hidden layer is about this large: as caches are, or enough to fill a GPU."""


def mix(
    parts: Sequence[Part],
    first: Map,
    second: Map,
    mask: Tensor,
    activation: str,
    residual: Tensor | None = None,
) -> Tensor:
    """See `reference.mix`."""
    weight, bias = first
    pairs, columns, reach = [], [], None
    for part, own in placed(parts):
        if isinstance(part, Diagonal):
            more = functional.linear(part.values, weight[:, own])
            reach = more if reach is None else reach + more
        else:
            pairs.append(values(part))
            columns.append(own)
    if not pairs:
        pairs.append(weight.new_empty(*mask.shape, mask.shape[1], 0))
        columns.append(slice(0, 0))
    value: Tensor = _Mix.apply(  # type: ignore[no-untyped-call]
        activation, tuple(columns), mask, weight, bias, *second, reach, residual, *pairs
    )
    return value


class _Mix(torch.autograd.Function):
    """Keeps or recomputes the `state` of the hidden layer: what value and slope are read off."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        activation, columns, mask, w1, b1, w2, b2, reach, residual, *pairs = args
        rows = [x.flatten(0, 2) for x in pairs]
        hidden = _Hidden(rows, columns, w1, b1, reach, mask.shape[1], activation)
        out: Tensor = w2.new_empty(hidden.count, len(w2))
        keep = hidden.count * hidden.row_bytes <= KEPT_BYTES
        kept = w1.new_empty(hidden.count if keep else 0, len(w1))
        for chunk in hidden.chunks():
            state = hidden.state(chunk, kept[chunk] if keep else None)
            value = _value(state, activation)
            if b2 is None:
                torch.mm(value, w2.T, out=out[chunk])
            else:
                torch.addmm(b2, value, w2.T, out=out[chunk])
        out = out.view(*pairs[0].shape[:3], len(w2))
        if residual is not None:
            out += residual
        ctx.save_for_backward(mask, w1, b1, w2, reach, kept, *rows)
        ctx.activation, ctx.columns, ctx.keep = activation, columns, keep
        ctx.bias2, ctx.add = b2 is not None, residual is not None
        return out.mul_(pair_mask(mask))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        mask, w1, b1, w2, reach, kept, *rows = ctx.saved_tensors
        hidden = _Hidden(rows, ctx.columns, w1, b1, reach, mask.shape[1], ctx.activation)
        dresidual = grads[0] * pair_mask(mask)
        dout = dresidual.reshape(hidden.count, len(w2))
        wide = torch.promote_types(w1.dtype, torch.float32)  # sums over chunks need the digits
        djoint = torch.zeros_like(hidden.weight, dtype=wide)
        dw2, db1 = torch.zeros_like(w2, dtype=wide), w1.new_zeros(len(w1), dtype=wide)
        dreach = None if reach is None else torch.empty_like(reach)
        dx = w1.new_empty(hidden.count, hidden.weight.shape[1])
        for chunk in hidden.chunks():
            state = kept[chunk] if ctx.keep else hidden.state(chunk)
            flow = dout[chunk]
            dw2 += flow.T @ _value(state, ctx.activation)
            dpre = _back(flow @ w2, state, ctx.activation)
            djoint += dpre.T @ hidden.inputs(chunk)
            torch.mm(dpre, hidden.weight, out=dx[chunk])
            if b1 is not None:
                db1 += dpre.sum(0, dtype=wide)
            if dreach is not None:
                at, nodes = diagonal_rows(chunk, mask.shape[1], dpre.device)
                dreach.view(-1, len(w1))[nodes] = dpre[at]
        dw1 = torch.zeros_like(w1)
        widths = [x.shape[1] for x in rows]
        for own, part in zip(ctx.columns, djoint.split_with_sizes(widths, 1), strict=True):
            dw1[:, own] = part
        return (
            *(None, None, None),
            dw1,
            None if b1 is None else db1.to(b1.dtype),
            dw2.to(w2.dtype),
            dout.sum(0) if ctx.bias2 else None,
            dreach,
            dresidual if ctx.add else None,
            *(part.view(*grads[0].shape[:3], -1) for part in dx.split_with_sizes(widths, 1)),
        )


class _Hidden:
    """The hidden layer of `[BNN, S]` rows, chunk by chunk."""

    def __init__(
        self,
        rows: list[Tensor],
        columns: tuple[slice, ...],
        w1: Tensor,
        b1: Tensor | None,
        reach: Tensor | None,
        nodes: int,
        activation: str,
    ) -> None:
        self.rows, self.bias, self.nodes, self.activation = rows, b1, nodes, activation
        self.weight = torch.cat([w1[:, own] for own in columns], dim=1)
        self.reach = None if reach is None else reach.reshape(-1, len(w1))
        self.count, self.row_bytes = len(rows[0]), len(w1) * w1.element_size()

    def chunks(self) -> Iterator[slice]:
        length = max(1, CHUNK_BYTES[self.weight.device.type] // self.row_bytes)
        for start in range(0, self.count, length):
            yield slice(start, min(start + length, self.count))

    def inputs(self, chunk: slice) -> Tensor:
        """A chunk of the concatenation."""
        parts = [x[chunk] for x in self.rows]
        return torch.cat(parts, dim=1) if parts[1:] else parts[0]

    def state(self, chunk: slice, out: Tensor | None = None) -> Tensor:
        """A chunk before SiLU, or after ReLU, which loses nothing the backward pass needs."""
        x, weight = self.inputs(chunk), self.weight.T
        if self.bias is None:
            pre = torch.mm(x, weight, out=out)
        else:
            pre = torch.addmm(self.bias, x, weight, out=out)
        if self.reach is not None:
            at, nodes = diagonal_rows(chunk, self.nodes, pre.device)
            pre[at] += self.reach[nodes]
        return pre.relu_() if self.activation == "relu" else pre


def diagonal_rows(chunk: slice, nodes: int, device: torch.device) -> tuple[Tensor, slice]:
    """Which rows of a chunk are pairs (i, i), and the nodes of the batch they belong to.

    Row (b, i, i) is (b·n + i)·n + i, which grows with the node b·n + i: no search on the device.
    """

    def first_from(row: int) -> int:
        node = row // nodes
        return node if node * nodes + node % nodes >= row else node + 1

    own = slice(first_from(chunk.start), first_from(chunk.stop))
    node = torch.arange(own.start, own.stop, device=device)
    return node * nodes + node % nodes - chunk.start, own


def _value(state: Tensor, activation: str) -> Tensor:
    return state if activation == "relu" else functional.silu(state)


def _back(flow: Tensor, state: Tensor, activation: str) -> Tensor:
    """The gradient before the activation from that after it."""
    if activation == "relu":
        grad: Tensor = torch.ops.aten.threshold_backward(flow, state, 0)
    else:
        grad = torch.ops.aten.silu_backward(flow, state)
    return grad
