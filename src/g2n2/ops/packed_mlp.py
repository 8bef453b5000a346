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
from torch.nn import functional

from .derivatives import once_differentiable
from .packed import KEPT_BYTES, add_product, pair_sums
from .packing import Packing

Map = tuple[Tensor, Tensor | None]
"""Weight `[out, in]` and bias `[out]` of a linear map."""
CHUNK_BYTES = {"cpu": 1 * 1024**2, "cuda": 256 * 1024**2}
"""A chunk of the hidden layer is about this large for each thread of a CPU, as caches are, or on a
GPU enough to fill it. With two threads, chunks of 1 MiB in all took 1.08 times as long."""


def chunk_bytes(device: torch.device) -> int:
    """How large a chunk of the hidden layer is."""
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    return CHUNK_BYTES[device.type] * threads


@dataclass(frozen=True, eq=False)
class Part:
    """What enters the update: `[P, S]` rows, the entrywise product of two such, or for a diagonal
    the `[Q, S]` entries on it."""

    left: Tensor
    right: Tensor | None = None
    diagonal: bool = False

    @property
    def by_channel(self) -> bool:
        """Whether it is multiplied where it lies, channel by channel, and not beside the others."""
        return self.right is None and not self.left.is_contiguous() and self.left.T.is_contiguous()


def mix(
    parts: Sequence[Part],
    first: Map,
    second: Map,
    activation: str,
    packing: Packing,
    residual: Tensor | None = None,
) -> Tensor:
    """`MLP(part ‖ part ‖ …)`, plus the residual: `[P, O]`.

    Args:
        parts: What is concatenated; at least one has a row for each pair.
        first: The map into the hidden layer, one column for each channel of the parts.
        second: The map out of it.
        activation: `relu` or `silu`.
        packing: Where the pairs of a diagonal are. With a tail, all rows are one chunk.
        residual: `[P, O]`, added to the result.
    """
    return _mixed(parts, first, second, activation, packing, residual)


def mix_sums(
    parts: Sequence[Part],
    first: Map,
    second: Map,
    activation: str,
    packing: Packing,
    residual: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`pair_sums` of what `mix` gives: the second map is applied to sums of the hidden layer."""
    hidden = _mixed(parts, first, (None, None), activation, packing, None)
    pairs, on_diagonal = hidden.split_with_sizes([packing.graphs, packing.nodes])
    sums = torch.cat([pairs, *(block.sum(1) for block in packing.views(on_diagonal, "V"))])
    weight, bias = second[0].to(sums.dtype), second[1]
    every, diagonal = functional.linear(sums, weight).chunk(2)
    if bias is not None:
        sizes = packing.sizes.to(sums.dtype).unsqueeze(1)
        every, diagonal = every + sizes.square() * bias, diagonal + sizes * bias
    rest = every - diagonal
    if residual is None:
        return diagonal, rest
    more = pair_sums(residual, packing)
    return diagonal + more[0], rest + more[1]


def _mixed(
    parts: Sequence[Part],
    first: Map,
    second: tuple[Tensor | None, Tensor | None],
    activation: str,
    packing: Packing,
    residual: Tensor | None,
) -> Tensor:
    """What `mix` gives; without a second map `[G + Q, H]` of the hidden layer.

    The sum over all pairs of each graph comes first, then the pair (i, i) of each node.
    """
    weight, bias = first
    reach: Tensor | None = None
    whole: list[tuple[Part, Tensor]] = []
    start = 0
    for part in parts:
        part_weight = weight[:, start : start + part.left.shape[1]]
        start += part.left.shape[1]
        if part.diagonal:
            more = functional.linear(part.left, part_weight)
            reach = more if reach is None else reach + more
        else:
            whole.append((part, part_weight))
    whole.sort(key=lambda pair: pair[0].by_channel)
    given = [factor for part, _ in whole for factor in (part.left, part.right)]
    columns = [part_weight for _, part_weight in whole]
    joint = columns[0] if len(columns) == 1 else torch.cat(columns, dim=1)
    value: Tensor = _PackedMix.apply(  # type: ignore[no-untyped-call]
        activation, torch.is_grad_enabled(), packing, joint, bias, *second, reach, residual, *given
    )  # fmt: skip
    return value


class _PackedMix(torch.autograd.Function):
    """Keeps or recomputes the `state` of the hidden layer: what value and slope are read off."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        activation, trains, packing, w1, b1, w2, b2, reach, residual, *given = args
        hidden = _Hidden(given, w1, b1, reach, packing, activation, w2 is None)
        if w2 is None:
            wide = torch.promote_types(w1.dtype, torch.float32)
            out: Tensor = w1.new_zeros(packing.graphs + packing.nodes, len(w1), dtype=wide)
        else:
            out = w2.new_empty(hidden.count, len(w2))
        keep = trains and hidden.count * hidden.row_bytes <= KEPT_BYTES[w1.device.type]
        kept: list[Tensor] = []
        room = hidden.room()
        for chunk in hidden.chunks():
            state = hidden.state(chunk, room)
            if keep:  # a tensor for each chunk: the system is not asked again for this size
                kept.append(state)
                room = hidden.room()
            value = _value(state, activation)
            if w2 is None:
                hidden.add_sums(value, chunk, out)
            elif residual is None:
                torch.mm(value, w2.T, out=out[chunk])
            else:
                torch.addmm(residual[chunk], value, w2.T, out=out[chunk])
            if b2 is not None:
                out[chunk] += b2
        ctx.save_for_backward(w1, b1, w2, reach, *given, *kept)
        ctx.parts, ctx.packing = len(given), packing
        ctx.activation, ctx.bias, ctx.add = activation, b2 is not None, residual is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        w1, b1, w2, reach, *given = ctx.saved_tensors
        given, kept = given[: ctx.parts], given[ctx.parts :]
        hidden = _Hidden(given, w1, b1, reach, ctx.packing, ctx.activation, w2 is None)
        dout = grads[0]
        wide = torch.promote_types(w1.dtype, torch.float32)  # sums over chunks need the digits
        dw1 = w1.new_zeros(w1.shape[::-1], dtype=wide)
        dw2 = None if w2 is None else torch.zeros_like(w2, dtype=wide)
        db1 = None if b1 is None else torch.zeros_like(b1, dtype=wide)
        dreach = None if reach is None else torch.empty_like(reach)
        dgiven = [None if x is None else torch.empty_like(x) for x in given]
        room, again = hidden.room(), None if kept else hidden.room()
        dinputs = torch.empty_like(hidden.buffer)
        for number, chunk in enumerate(hidden.chunks()):
            rows = chunk.stop - chunk.start
            inputs = hidden.inputs(chunk)
            state = kept[number] if again is None else hidden.state(chunk, again, inputs)
            dpre = room[:rows]
            if dw2 is None:
                hidden.spread(dout, chunk, dpre)
            else:
                add_product(dw2, dout[chunk].T, _value(state, ctx.activation))
                torch.mm(dout[chunk], w2, out=dpre)
            dpre = _back(dpre, state, ctx.activation)
            add_product(dw1[: inputs.shape[1]], inputs.T, dpre)
            for left, own in hidden.by_channel:
                add_product(dw1[own], left[chunk].T, dpre)
            if db1 is not None:
                db1 += dpre.sum(0, dtype=wide)
            torch.mm(dpre, w1[:, : inputs.shape[1]], out=dinputs[:rows])
            hidden.give(dinputs[:rows], dpre, chunk, dgiven)
            if dreach is not None:
                nodes, pairs = hidden.on_diagonal(chunk)
                dreach[nodes] = dpre[pairs]
        return (
            *(None, None, None),
            dw1.T.to(w1.dtype),
            None if db1 is None else db1.to(w1.dtype),
            None if dw2 is None else dw2.to(w2.dtype),
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
        packing: Packing,
        activation: str,
        summed: bool,
    ) -> None:
        factors = zip(given[::2], given[1::2], strict=True)
        parts = [Part(left, right) for left, right in factors if left is not None]
        self.parts = [part for part in parts if not part.by_channel]
        start = sum(part.left.shape[1] for part in self.parts)
        self.by_channel: list[tuple[Tensor, slice]] = []
        for part in parts[len(self.parts) :]:
            self.by_channel.append((part.left, slice(start, start + part.left.shape[1])))
            start += part.left.shape[1]
        self.weight, self.bias, self.reach = w1, b1, reach
        self.packing, self.activation = packing, activation
        assert given[0] is not None, "a part has rows"
        self.count, self.row_bytes = len(given[0]), len(w1) * w1.element_size()
        at_once = chunk_bytes(w1.device) // self.row_bytes
        self.length = self.count if packing.has_tail else min(self.count, max(1, at_once))
        self.buffer = w1.new_empty(self.length, sum(part.left.shape[1] for part in self.parts))
        self.cuts = packing.cuts(self.length) if summed or reach is not None else []

    def chunks(self) -> Iterator[slice]:
        for start in range(0, self.count, self.length):
            yield slice(start, min(start + self.length, self.count))

    def room(self) -> Tensor:
        """Memory for the hidden layer of a chunk."""
        return self.weight.new_empty(self.length, len(self.weight))

    def inputs(self, chunk: slice) -> Tensor:
        """A chunk of what is concatenated; overwritten by the next."""
        whole, start = self.buffer[: chunk.stop - chunk.start], 0
        for part in self.parts:
            columns = whole[:, start : start + part.left.shape[1]]
            start += part.left.shape[1]
            if part.right is None:
                columns.copy_(part.left[chunk])
            else:
                torch.mul(part.left[chunk], part.right[chunk], out=columns)
        return whole

    def state(self, chunk: slice, out: Tensor, inputs: Tensor | None = None) -> Tensor:
        """A chunk before SiLU, or after ReLU, which loses nothing the backward pass needs."""
        rows = chunk.stop - chunk.start
        joined = self.inputs(chunk) if inputs is None else inputs
        weight = self.weight[:, : joined.shape[1]]
        if self.bias is None:
            pre = torch.mm(joined, weight.T, out=out[:rows])
        else:
            pre = torch.addmm(self.bias, joined, weight.T, out=out[:rows])
        for left, own in self.by_channel:
            pre.addmm_(left[chunk], self.weight[:, own].T)
        if self.reach is not None:
            nodes, pairs = self.on_diagonal(chunk)
            pre[pairs] += self.reach[nodes]
        return pre.relu_() if self.activation == "relu" else pre

    def on_diagonal(self, chunk: slice) -> tuple[slice, Tensor]:
        """The nodes whose pair (i, i) is in a chunk, and where in it."""
        number = chunk.start // self.length
        nodes = slice(self.cuts[number], self.cuts[number + 1])
        return nodes, self.packing.diagonal[nodes] - chunk.start

    def graphs(self, chunk: slice) -> Iterator[tuple[slice, slice]]:
        """Graphs that have as many pairs in a chunk, and their rows in it."""
        for run in self.packing.runs:
            pairs, first = run.size**2, run.pairs.start
            start, stop = max(chunk.start, first), min(chunk.stop, run.pairs.stop)
            while start < stop:
                graph, begun = divmod(start - first, pairs)
                count = 1 if begun else max(1, (stop - start) // pairs)
                end = min(stop, first + (graph + count) * pairs)
                graph += run.graphs.start
                yield slice(graph, graph + count), slice(start - chunk.start, end - chunk.start)
                start = end

    def add_sums(self, value: Tensor, chunk: slice, sums: Tensor) -> None:
        """Add the rows of a chunk to the sums, and put those of pairs (i, i) behind them."""
        for graphs, rows in self.graphs(chunk):
            count = graphs.stop - graphs.start
            block = value[rows].view(count, -1, value.shape[1])
            sums[graphs] += block.sum(1, dtype=sums.dtype)
        nodes, pairs = self.on_diagonal(chunk)
        sums[self.packing.graphs :][nodes] = value[pairs].to(sums.dtype)

    def spread(self, dsums: Tensor, chunk: slice, out: Tensor) -> None:
        """The gradient of a chunk's rows from that of the sums."""
        dsums = dsums.to(out.dtype)
        for graphs, rows in self.graphs(chunk):
            block = out[rows].view(graphs.stop - graphs.start, -1, out.shape[1])
            block.copy_(dsums[graphs].unsqueeze(1).expand_as(block))
        nodes, pairs = self.on_diagonal(chunk)
        out[pairs] += dsums[self.packing.graphs :][nodes]

    def give(
        self, dinputs: Tensor, dpre: Tensor, chunk: slice, dgiven: Sequence[Tensor | None]
    ) -> None:
        """Write the gradients of a chunk's inputs into those of the parts."""
        start = 0
        for part, dleft, dright in zip(self.parts, dgiven[::2], dgiven[1::2], strict=False):
            assert dleft is not None, "it has the shape of the factor"
            dpart = dinputs[:, start : start + part.left.shape[1]]
            start += part.left.shape[1]
            if part.right is None or dright is None:
                dleft[chunk] = dpart
            else:
                torch.mul(dpart, part.right[chunk], out=dleft[chunk])
                torch.mul(dpart, part.left[chunk], out=dright[chunk])
        others = dgiven[2 * len(self.parts) :: 2]
        for (_, columns), dleft in zip(self.by_channel, others, strict=True):
            assert dleft is not None, "a part has a left factor"
            torch.mm(self.weight[:, columns].T, dpre.T, out=dleft.T[:, chunk])


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
