"""The update of a packed matrix memory: parts -> two-layer MLP -> new memory, chunk by chunk.

Rows go through in chunks that stay in the processor's cache. The hidden layer is kept for the
backward pass while all of it is small, and recomputed chunk by chunk where it is not, so that
memory grows with n²·S and not n²·8S. `diag(v)` reaches only n of the n² pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .packed import KEPT_BYTES, add_product

Map = tuple[Tensor, Tensor | None]
"""Weight `[out, in]` and bias `[out]` of a linear map."""

CHUNK_BYTES = {"cpu": 1 * 1024**2}
GPU_CHUNK_BYTES = 64 * 1024**2
"""A chunk of the hidden layer is about this large: as caches are, or enough to fill a GPU."""


@dataclass(frozen=True, eq=False)
class Part:
    """What enters the update: `[P, S]` rows, the entrywise product of two such, or for a diagonal
    the `[Q, S]` entries on it."""

    left: Tensor
    right: Tensor | None = None
    diagonal: bool = False


def mix(
    parts: Sequence[Part],
    first: Map,
    second: Map,
    activation: str,
    diagonal: Tensor,
    residual: Tensor | None = None,
) -> Tensor:
    """`MLP(part ‖ part ‖ …)`, plus the residual: `[P, O]`.

    Args:
        parts: What is concatenated; at least one has a row for each pair.
        first: The map into the hidden layer, one column for each channel of the parts.
        second: The map out of it.
        activation: `relu` or `silu`.
        diagonal: `[Q]` which pairs a diagonal reaches, ascending.
        residual: `[P, O]`, added to the result.
    """
    weight, bias = first
    columns: list[Tensor] = []
    reach: Tensor | None = None
    given: list[Tensor | None] = []
    start = 0
    for part in parts:
        own = weight[:, start : start + part.left.shape[1]]
        start += part.left.shape[1]
        if part.diagonal:
            more = functional.linear(part.left, own)
            reach = more if reach is None else reach + more
        else:
            columns.append(own)
            given += [part.left, part.right]
    joint = columns[0] if len(columns) == 1 else torch.cat(columns, dim=1)
    value: Tensor = _PackedMix.apply(  # type: ignore[no-untyped-call]
        activation, torch.is_grad_enabled(), diagonal, joint, bias, *second, reach, residual, *given
    )  # fmt: skip
    return value


class _PackedMix(torch.autograd.Function):
    """Keeps or recomputes the `state` of the hidden layer: what value and slope are read off."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        activation, trains, diagonal, w1, b1, w2, b2, reach, residual, *given = args
        hidden = _Hidden(given, w1, b1, reach, diagonal, activation)
        out: Tensor = w2.new_empty(hidden.count, len(w2))
        keep = trains and hidden.count * hidden.row_bytes <= KEPT_BYTES
        kept: list[Tensor] = []
        room = hidden.room()
        for chunk in hidden.chunks():
            state = hidden.state(chunk, room)
            if (
                keep
            ):  # a tensor for each chunk: memory of this size is used again without the system
                kept.append(state)
                room = hidden.room()
            value = _value(state, activation)
            if residual is None:
                torch.mm(value, w2.T, out=out[chunk])
            else:
                torch.addmm(residual[chunk], value, w2.T, out=out[chunk])
            if b2 is not None:
                out[chunk] += b2
        ctx.save_for_backward(diagonal, w1, b1, w2, reach, *given, *kept)
        ctx.parts = len(given)
        ctx.activation, ctx.bias, ctx.add = activation, b2 is not None, residual is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        diagonal, w1, b1, w2, reach, *given = ctx.saved_tensors
        given, kept = given[: ctx.parts], given[ctx.parts :]
        hidden = _Hidden(given, w1, b1, reach, diagonal, ctx.activation)
        dout = grads[0]
        wide = torch.promote_types(w1.dtype, torch.float32)  # sums over chunks need the digits
        dw1, dw2 = w1.new_zeros(w1.shape[::-1], dtype=wide), torch.zeros_like(w2, dtype=wide)
        db1 = None if b1 is None else torch.zeros_like(b1, dtype=wide)
        dreach = None if reach is None else torch.empty_like(reach)
        dgiven = [None if x is None else x.new_empty(x.shape) for x in given]
        room, again = hidden.room(), None if kept else hidden.room()
        dinputs = w1.new_empty(hidden.length, w1.shape[1])
        for number, chunk in enumerate(hidden.chunks()):
            rows = chunk.stop - chunk.start
            inputs = hidden.inputs(chunk)
            state = kept[number] if again is None else hidden.state(chunk, again, inputs)
            flow = dout[chunk]
            add_product(dw2, flow.T, _value(state, ctx.activation))
            dpre = torch.mm(flow, w2, out=room[:rows])
            dpre = _back(dpre, state, ctx.activation)
            add_product(dw1, inputs.T, dpre)
            if db1 is not None:
                db1 += dpre.sum(0, dtype=wide)
            hidden.give(torch.mm(dpre, w1, out=dinputs[:rows]), chunk, dgiven)
            if dreach is not None:
                nodes, pairs = hidden.on_diagonal(chunk)
                dreach[nodes] = dpre[pairs]
        return (
            *(None, None, None),
            dw1.T.to(w1.dtype),
            None if db1 is None else db1.to(w1.dtype),
            dw2.to(w2.dtype),
            dout.sum(0) if ctx.bias else None,
            dreach,
            dout if ctx.add else None,
            *dgiven,
        )


class _Hidden:
    """The hidden layer of an update, computed chunk by chunk."""

    def __init__(
        self,
        given: Sequence[Tensor | None],
        w1: Tensor,
        b1: Tensor | None,
        reach: Tensor | None,
        diagonal: Tensor,
        activation: str,
    ) -> None:
        self.parts = list(zip(given[::2], given[1::2], strict=True))
        self.weight, self.bias, self.reach = w1, b1, reach
        self.diagonal, self.activation = diagonal, activation
        assert given[0] is not None, "a part has rows"
        self.count, self.row_bytes = len(given[0]), len(w1) * w1.element_size()
        at_once = CHUNK_BYTES.get(w1.device.type, GPU_CHUNK_BYTES) // self.row_bytes
        self.length = min(self.count, max(1, at_once))
        self.buffer = w1.new_empty(self.length, w1.shape[1])
        if reach is not None:
            starts = torch.arange(0, self.count + self.length, self.length, device=w1.device)
            self.cuts = torch.searchsorted(diagonal, starts).tolist()

    def chunks(self) -> Iterator[slice]:
        for start in range(0, self.count, self.length):
            yield slice(start, min(start + self.length, self.count))

    def room(self) -> Tensor:
        """Memory for the hidden layer of a chunk."""
        return self.weight.new_empty(self.length, len(self.weight))

    def inputs(self, chunk: slice) -> Tensor:
        """A chunk of the concatenation; overwritten by the next."""
        whole, start = self.buffer[: chunk.stop - chunk.start], 0
        for left, right in self.parts:
            assert left is not None, "only the second factor may be missing"
            own = whole[:, start : start + left.shape[1]]
            start += left.shape[1]
            if right is None:
                own.copy_(left[chunk])
            else:
                torch.mul(left[chunk], right[chunk], out=own)
        return whole

    def state(self, chunk: slice, out: Tensor, inputs: Tensor | None = None) -> Tensor:
        """A chunk before SiLU, or after ReLU, which loses nothing the backward pass needs."""
        rows = chunk.stop - chunk.start
        joined = self.inputs(chunk) if inputs is None else inputs
        if self.bias is None:
            pre = torch.mm(joined, self.weight.T, out=out[:rows])
        else:
            pre = torch.addmm(self.bias, joined, self.weight.T, out=out[:rows])
        if self.reach is not None:
            nodes, pairs = self.on_diagonal(chunk)
            pre[pairs] += self.reach[nodes]
        return pre.relu_() if self.activation == "relu" else pre

    def on_diagonal(self, chunk: slice) -> tuple[slice, Tensor]:
        """The nodes whose pair (i, i) is in a chunk, and where in it."""
        number = chunk.start // self.length
        nodes = slice(self.cuts[number], self.cuts[number + 1])
        return nodes, self.diagonal[nodes] - chunk.start

    def give(self, dinputs: Tensor, chunk: slice, dgiven: Sequence[Tensor | None]) -> None:
        """Write the gradients of a chunk's inputs into those of the parts."""
        start = 0
        for (left, right), dleft, dright in zip(self.parts, dgiven[::2], dgiven[1::2], strict=True):
            assert left is not None, "only a second factor may be missing"
            assert dleft is not None, "it has the shape of the factor"
            own = dinputs[:, start : start + left.shape[1]]
            start += left.shape[1]
            if right is None or dright is None:
                dleft[chunk] = own
            else:
                torch.mul(own, right[chunk], out=dleft[chunk])
                torch.mul(own, left[chunk], out=dright[chunk])


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
