"""The matrix-memory update in a few large products of planes: bounded memory, no whole copies.

`diag(v)` reaches only n of the n² pairs, and the first bias is one more channel of ones. Pairs go
through in chunks that stay in the processor's cache. The hidden layer is kept for the backward pass
while all of it is small, and recomputed chunk by chunk where it is not, so that memory grows with
n²·S and not n²·8S.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ..channel_major import memory, planes
from .layout import placed
from .parts import Diagonal, Part
from .reference import Map, pair_mask, values

KEPT_BYTES = 256 * 1024**2
"""A hidden layer up to this size is kept for the backward pass."""
CHUNK_BYTES = {"cpu": 8 * 1024**2}
GPU_CHUNK_BYTES = 64 * 1024**2
"""A chunk of the hidden layer is about this large: as caches are, or enough to fill a GPU."""


def mix(
    parts: Sequence[Part],
    first: Map,
    second: Map,
    mask: Tensor,
    activation: str,
    residual: Tensor | None = None,
) -> Tensor:
    """See `reference.mix`; the result lies as planes do."""
    weight, bias = first
    pairs = mask.numel() * mask.shape[1]
    given = [weight.new_ones(0 if bias is None else 1, pairs)]
    columns = [weight[:, :0] if bias is None else bias.unsqueeze(1)]
    reach: Tensor | None = None
    for part, own in placed(parts):
        if isinstance(part, Diagonal):
            more = weight[:, own] @ part.values.flatten(0, 1).T
            reach = more if reach is None else reach + more
        else:
            given.append(planes(values(part)))
            columns.append(weight[:, own])
    joint = torch.cat(columns, dim=1)
    added = None if residual is None else planes(residual)
    trains = torch.is_grad_enabled()
    value: Tensor = _Mix.apply(  # type: ignore[no-untyped-call]
        activation, trains, mask, joint, *second, reach, added, *given
    )
    return memory(value, torch.Size((*mask.shape, mask.shape[1])))


class _Mix(torch.autograd.Function):
    """Keeps or recomputes the `state` of the hidden layer: what value and slope are read off."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        activation, trains, mask, w1, w2, b2, reach, residual, *given = args
        hidden = _Hidden(given, w1, reach, mask.shape[1], activation)
        out: Tensor = w2.new_empty(len(w2), hidden.count)
        keep = trains and hidden.count * hidden.pair_bytes <= KEPT_BYTES
        kept = hidden.room(hidden.count if keep else 0)
        if keep:
            hidden.join()
        room = None if keep else hidden.room()
        for chunk in hidden.chunks():
            state = hidden.state(chunk, kept[:, chunk] if room is None else room)
            torch.mm(w2, _value(state, activation), out=out[:, chunk])
        if b2 is not None:
            out += b2.unsqueeze(1)
        if residual is not None:
            out += residual
        ctx.save_for_backward(mask, w1, w2, reach, kept, *hidden.given)
        ctx.widths = [len(x) for x in given]
        ctx.activation, ctx.keep = activation, keep
        ctx.bias, ctx.add = b2 is not None, residual is not None
        return out.mul_(pair_mask(mask).view(-1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        mask, w1, w2, reach, kept, *given = ctx.saved_tensors
        hidden = _Hidden(given, w1, reach, mask.shape[1], ctx.activation)
        dout = grads[0] * pair_mask(mask).view(-1)
        wide = torch.promote_types(w1.dtype, torch.float32)  # sums over chunks need the digits
        dw1, dw2 = torch.zeros_like(w1, dtype=wide), torch.zeros_like(w2, dtype=wide)
        dreach = None if reach is None else torch.empty_like(reach)
        dx = w1.new_empty(w1.shape[1], hidden.count)
        room, again = hidden.room(), None if ctx.keep else hidden.room()
        for chunk in hidden.chunks():
            state = kept[:, chunk] if again is None else hidden.state(chunk, again)
            flow = dout[:, chunk]
            _add_product(dw2, flow, _value(state, ctx.activation).T)
            dpre = torch.mm(w2.T, flow, out=room[:, : flow.shape[1]])
            dpre = _back(dpre, state, ctx.activation)
            _add_product(dw1, dpre, hidden.inputs(chunk).T)
            torch.mm(w1.T, dpre, out=dx[:, chunk])
            if dreach is not None:
                for at, nodes in diagonals(chunk, mask.shape[1]):
                    dreach[:, nodes] = dpre[:, at]
        return (
            *(None, None, None),
            dw1.to(w1.dtype),
            dw2.to(w2.dtype),
            dout.sum(1) if ctx.bias else None,
            dreach,
            dout if ctx.add else None,
            *dx.split_with_sizes(ctx.widths),
        )


class _Hidden:
    """The hidden layer of `[S, BNN]` planes, chunk by chunk."""

    def __init__(
        self, given: list[Tensor], w1: Tensor, reach: Tensor | None, nodes: int, activation: str
    ) -> None:
        self.given, self.weight, self.reach = given, w1, reach
        self.nodes, self.activation = nodes, activation
        self.count, self.pair_bytes = given[0].shape[1], len(w1) * w1.element_size()
        self.length = max(1, CHUNK_BYTES.get(w1.device.type, GPU_CHUNK_BYTES) // self.pair_bytes)

    def chunks(self) -> Iterator[slice]:
        for start in range(0, self.count, self.length):
            yield slice(start, min(start + self.length, self.count))

    def room(self, pairs: int | None = None) -> Tensor:
        """Memory for the hidden layer of that many pairs, or of a chunk."""
        return self.weight.new_empty(len(self.weight), self.length if pairs is None else pairs)

    def join(self) -> None:
        """Concatenate all chunks at once."""
        self.given = [torch.cat(self.given)]

    def inputs(self, chunk: slice) -> Tensor:
        """A chunk of the concatenation."""
        parts = [x[:, chunk] for x in self.given]
        return torch.cat(parts) if parts[1:] else parts[0]

    def state(self, chunk: slice, out: Tensor) -> Tensor:
        """A chunk before SiLU, or after ReLU, which loses nothing the backward pass needs."""
        pre = torch.mm(self.weight, self.inputs(chunk), out=out[:, : chunk.stop - chunk.start])
        if self.reach is not None:
            for at, nodes in diagonals(chunk, self.nodes):
                pre[:, at] += self.reach[:, nodes]
        return pre.relu_() if self.activation == "relu" else pre


def diagonals(chunk: slice, nodes: int) -> Iterator[tuple[slice, slice]]:
    """Which pairs of a chunk are (i, i), graph by graph, and the nodes they belong to.

    Pair (b, i, i) is (b·n + i)·n + i, which grows with the node b·n + i.
    """

    def first_from(pair: int) -> int:
        node = pair // nodes
        return node if node * nodes + node % nodes >= pair else node + 1

    node, stop = first_from(chunk.start), first_from(chunk.stop)
    while node < stop:
        end = min(stop, (node // nodes + 1) * nodes)
        pair = node * nodes + node % nodes - chunk.start
        yield slice(pair, pair + (end - node - 1) * (nodes + 1) + 1, nodes + 1), slice(node, end)
        node = end


def _add_product(total: Tensor, x: Tensor, y: Tensor) -> None:
    """`total += x y`; in one go where they share a dtype."""
    if total.dtype == x.dtype:
        torch.addmm(total, x, y, out=total)
    else:
        total += x @ y


def _value(state: Tensor, activation: str) -> Tensor:
    return state if activation == "relu" else functional.silu(state)


def _back(flow: Tensor, state: Tensor, activation: str) -> Tensor:
    """The gradient before the activation from that after it, in its place."""
    back = torch.ops.aten
    if activation == "relu":
        grad: Tensor = back.threshold_backward.grad_input(flow, state, 0, grad_input=flow)
    else:
        grad = back.silu_backward.grad_input(flow, state, grad_input=flow)
    return grad
