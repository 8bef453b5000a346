"""Whole optimiser steps as CUDA graphs: one for each number of nodes, replayed with new indices.

A small batch is bound by launching its hundreds of kernels. A graph launches them all at once: the
batch is gathered, sent through the network and back, clipped, stepped and averaged with nothing but
an index tensor and a learning rate coming from the host.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.dense_store import DenseStore
from ..data.graph_set import Ints
from ..data.store import GraphStore
from .averaging import Average
from .devices import set_rate
from .tasks import Task

SHARE = 0.25
"""Of the device's memory, at most, for all graphs padded to the largest."""


class GraphedStep:
    """Takes optimiser steps by replaying CUDA graphs.

    Args:
        model: The network, on the device.
        optimiser: With `capturable` set and tensors for learning rates.
        average: Of the weights.
        store: All graphs, padded, with targets as the loss sees them.
        task: What is learned.
        batch: Graphs in a full step; a smaller one is filled up with graphs that count for nothing.
        clip: Largest gradient norm; 0 for none.
        dtype: Of the network's arithmetic, or None for that of its weights.
    """

    def __init__(
        self,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        average: Average,
        store: DenseStore,
        task: Task,
        batch: int,
        clip: float,
        dtype: torch.dtype | None,
    ) -> None:
        self.model, self.optimiser, self.average = model, optimiser, average
        self.store, self.task, self.clip, self.dtype = store, task, clip, dtype
        self.device = store.device
        self.indices = torch.zeros(batch, dtype=torch.int64, device=self.device)
        self.counts = torch.zeros(batch, dtype=torch.bool, device=self.device)
        self.share = torch.zeros((), device=self.device)
        self.loss = torch.zeros((), device=self.device)
        self.norm = torch.zeros((), device=self.device)
        self.weights = list(model.parameters())
        self.network = _OnTensors(model)
        self.copies = _Copies(model, dtype)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.pool: Any = None

    def step(self, indices: Ints, rate: float, number: int) -> tuple[Tensor, Tensor]:
        """One step on these graphs; `number` counts the run's steps from 1.

        Returns:
            The sum of the losses and the norm of the gradient, on the device.
        """
        width = bucket(self.store.widest(indices), self.store.most)
        self._fill(indices, rate, number)
        if width not in self.graphs:
            self._capture(width)
        self.graphs[width].replay()
        return self.loss.clone(), self.norm.clone()

    def _fill(self, indices: Ints, rate: float, number: int) -> None:
        """Put what a step reads where it reads it."""
        room = len(self.indices)
        assert 0 < len(indices) <= room, f"a step takes 1 to {room} graphs, got {len(indices)}"
        full = torch.from_numpy(np.resize(indices, room))
        counts = torch.arange(room) < len(indices)
        pinned = self.device.type == "cuda"
        for place, value in ((self.indices, full), (self.counts, counts)):
            place.copy_(value.pin_memory() if pinned else value, non_blocking=True)
        set_rate(self.optimiser, rate)
        self.share.fill_(1.0 - self.average.keep(number))

    def _capture(self, width: int) -> None:
        """Record the step for graphs of up to `width` nodes; nothing is learned while recording."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # kernels are compiled and buffers found before recording
                self._loss(width)[0].backward()  # type: ignore[no-untyped-call]
                self._forget()
            _prepare(self.optimiser, self.weights)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self._whole(width)
        self._forget()
        self.pool = self.pool or graph.pool()
        self.graphs[width] = graph

    def _whole(self, width: int) -> None:
        """What is recorded: a step from the indices to the averaged weights."""
        total, known = self._loss(width)
        mean = total / known.clamp(min=1)
        mean.backward()  # type: ignore[no-untyped-call]
        self.copies.give_gradients()
        norm = nn.utils.clip_grad_norm_(self.weights, self.clip or math.inf)
        self.optimiser.step()
        self.copies.refresh()
        self.average.blend(self.share)
        self.loss.copy_(total.detach())
        self.norm.copy_(norm)

    def _loss(self, width: int) -> tuple[Tensor, Tensor]:
        batch = self.store.batch(self.indices, width)
        assert batch.targets is not None, "the store always gives targets"
        targets = torch.where(self.counts[:, None], batch.targets, torch.nan)
        tensors = (batch.adjacency, batch.nodes, batch.edges, batch.mask)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
            outputs = torch.func.functional_call(self.network, self.copies.named, tensors)
        return self.task.loss(outputs, targets)

    def _forget(self) -> None:
        for weight in (*self.weights, *self.copies.named.values()):
            weight.grad = None


def bucket(nodes: int, most: int) -> int:
    """The width a batch is padded to: exact while small, then one of eight for each doubling."""
    grain = max(1, 1 << (nodes.bit_length() - 4)) if nodes > 32 else 1
    return min(most, -(-nodes // grain) * grain)


def graphed_step(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    average: Average,
    store: GraphStore,
    task: Task,
    batch: int,
    clip: float,
    half: bool,
) -> GraphedStep | None:
    """Graphed steps where they can be had: a grammar's network on one GPU, with room to spare."""
    from ..nn.model import GrammarGNN

    if store.device.type != "cuda" or store.graphs.level != "graph":
        return None
    if not isinstance(model, GrammarGNN) or model.supports is not None:
        return None
    room = torch.cuda.get_device_properties(store.device).total_memory
    if DenseStore.bytes_of(store) > SHARE * room:
        return None
    dtype = torch.bfloat16 if half else None
    return GraphedStep(model, optimiser, average, DenseStore(store), task, batch, clip, dtype)


class _OnTensors(nn.Module):
    """A network as a function of tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *tensors: Tensor) -> Tensor:
        result: Tensor = self.model.network(*tensors)  # type: ignore[operator]
        return result


class _Copies:
    """Half-precision copies of the layers' weights, cast once a step and not at every use.

    The optimiser keeps and steps the full-precision weights.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype | None) -> None:
        masters = {n: p for n, p in model.named_parameters() if dtype and n.startswith("layers.")}
        self.masters: list[Tensor] = list(masters.values())
        self.named = {
            f"model.{name}": weight.detach().to(dtype).requires_grad_()
            for name, weight in masters.items()
        }
        self.gradients = [torch.zeros_like(weight) for weight in self.masters]

    def give_gradients(self) -> None:
        """Hand the copies' gradients to the weights they are copies of."""
        used = [
            (master, wide, copy.grad)
            for master, wide, copy in zip(
                self.masters, self.gradients, self.named.values(), strict=True
            )
            if copy.grad is not None
        ]
        if not used:
            return
        torch._foreach_copy_([wide for _, wide, _ in used], [narrow for _, _, narrow in used])
        for master, wide, _ in used:
            master.grad = wide

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over the weights after a step."""
        if self.masters:
            torch._foreach_copy_(list(self.named.values()), self.masters)


@torch.no_grad()
def _prepare(optimiser: torch.optim.Optimizer, weights: list[nn.Parameter]) -> None:
    """Make the optimiser's buffers, if they are not there, without changing a weight."""
    if optimiser.state:
        return
    kept = [weight.clone() for weight in weights]
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    optimiser.step()
    for weight, value in zip(weights, kept, strict=True):
        weight.copy_(value)
        weight.grad = None
        for buffer in optimiser.state[weight].values():
            if isinstance(buffer, Tensor):
                buffer.zero_()
