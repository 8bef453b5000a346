"""`reference.select`, with one kernel that adds up the three gradients of the memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..norms.triton import normalise, normalise_back
from ..side_stream import grads_reach_leaves_directly, on_side_stream
from ..sums.triton import column_sums
from ..tiling import as_rows


def select(
    memory: Tensor, gain: Tensor | None, small: float, weight: Tensor, room: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """See `reference.select`. What is normalised is the first channels of a tensor `room` wide."""
    result: tuple[Tensor, Tensor, Tensor] = _Select.apply(  # type: ignore[no-untyped-call]
        memory, gain, small, weight, room
    )
    return result


class _Select(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, Tensor, Tensor]:
        memory, gain, small, weight, room = args
        memory = memory.contiguous()
        read = memory.view_as(memory) if gain is None else normalise(memory, gain, small, room)
        selected = torch.mm(as_rows(read), weight.T).view(*memory.shape[:-1], len(weight))
        ctx.save_for_backward(memory, gain, weight, read)
        ctx.small, ctx.on_side_stream = small, grads_reach_leaves_directly(gain, weight)
        ctx.set_materialize_grads(False)
        return read, selected, memory.view_as(memory)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        memory, gain, weight, read = ctx.saved_tensors
        dread, dselected, dresidual = grads
        assert dselected is not None, "what nobody reads is not selected"
        flow = dselected.reshape(-1, len(weight))
        with on_side_stream(ctx.on_side_stream, flow, read):
            dweight = torch.mm(flow.T, as_rows(read))
        if not any(ctx.needs_input_grad[:2]):
            return None, None, None, dweight, None
        through = torch.mm(flow, weight)
        if gain is None:
            more = [grad for grad in (dread, dresidual) if grad is not None]
            return sum(more, through.view_as(memory)), None, None, dweight, None
        dmemory, sums = normalise_back(memory, gain, ctx.small, through, dread, dresidual)
        with on_side_stream(ctx.on_side_stream, sums):
            dgain = column_sums(sums, gain.dtype)
        return dmemory, dgain, None, dweight, None
