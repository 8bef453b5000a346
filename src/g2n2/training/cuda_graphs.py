"""Whole optimiser steps as CUDA graphs: one for each shape of a batch, replayed with new indices.

A small batch is bound by launching its hundreds of kernels. A graph launches them all at once: the
batch is gathered, sent through the network and back, clipped, stepped and averaged with nothing but
one small tensor coming from the host: which graphs, how many count, the learning rate and the
share of the new weights in their average.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from ..data.dense_store import DenseStore
from ..data.graph_set import Ints
from ..data.pieces import Piece, cut, falling
from ..data.shapes import Shape, few_shapes, holds
from ..data.store import GraphStore
from ..nn.copies import Copies
from ..nn.layer import Memories
from ..nn.model import GrammarGNN
from ..ops.aside import aside
from ..ops.precision import dot_precision
from .averaging import Average
from .devices import free_cached_memory, out_of_memory
from .graph_cache import is_hit, take_over
from .inputs import Inputs
from .task import Task

if TYPE_CHECKING:
    from .flat_parameters import FlatOptimizerStep

SHARE = 0.25
"""Of the device's free memory, at most, for all graphs padded to the largest."""


class GraphedStep:
    """Takes optimiser steps by replaying CUDA graphs.

    Args:
        model: The network, on the device.
        optimiser: Adam or AdamW, with `capturable` set and tensors for learning rates.
        average: Of the weights.
        store: All graphs, padded, with targets as the loss sees them.
        task: What is learned.
        batch: Graphs in a full step; a smaller one is filled up with the smallest graph of the
            store, which counts for nothing.
        clip: Largest gradient norm; 0 for none.
        dtype: Of the network's arithmetic, or None for that of its weights.
        keep: Whether what the network reads of each graph is kept, and not made at every step.
        shapes: Those batches are put into, the cheapest first, the last for any; where there are
            none, each batch has its own.
    """

    def __init__(
        self,
        model: GrammarGNN,
        optimiser: torch.optim.Optimizer,
        average: Average,
        store: DenseStore,
        task: Task,
        batch: int,
        clip: float,
        dtype: torch.dtype | None,
        keep: bool = True,
        shapes: tuple[Shape, ...] = (),
    ) -> None:
        self.optimiser, self.average, self.shapes = optimiser, average, shapes
        self.store, self.task, self.clip, self.dtype = store, task, clip, dtype
        self.device, self.products = store.device, dot_precision()
        self.smallest = int(np.argmin(store.store.graphs.sizes))
        self.told = torch.zeros(batch + 3, dtype=torch.int64, device=self.device)
        self.indices, self.count = self.told[:batch], self.told[batch]
        self.rate, self.blend = self.told[batch + 1 :].view(torch.float64).unbind()
        self.share = torch.zeros((), device=self.device)
        self.results = torch.zeros(2, device=self.device)
        self.loss, self.norm = self.results.unbind()
        self.weights = list(model.parameters())
        self.inputs = Inputs(model, store, dtype, keep)
        self.network = _OnInputs(model)
        self.copies = Copies(model, None if model.by_reference else dtype)
        self.graphs: dict[Shape, torch.cuda.CUDAGraph] = {}
        self.flat: FlatOptimizerStep | None = None
        self.side: torch.cuda.Stream | None = None
        self.pool: Any = None

    def step(self, indices: Ints, rate: float, number: int) -> tuple[Tensor, Tensor]:
        """One step on these graphs; `number` counts the run's steps from 1.

        Returns:
            The sum of the losses and the norm of the gradient, on the device.
        """
        shape = self._fill(indices, rate, number)
        if shape not in self.graphs:
            self._capture(shape)
        self.graphs[shape].replay()
        loss, norm = self.results.clone().unbind()
        return loss, norm

    def _fill(self, indices: Ints, rate: float, number: int) -> Shape:
        """Tell the device what this step is about, in one copy; what is filled up is small."""
        room = len(self.indices)
        assert 0 < len(indices) <= room, f"a step takes 1 to {room} graphs, got {len(indices)}"
        told = torch.empty(len(self.told), dtype=torch.int64, pin_memory=self.device.type == "cuda")
        whole = told.numpy()
        sizes = self.store.store.graphs.sizes
        whole[: len(indices)] = falling(indices, sizes)
        whole[len(indices) : room] = self.smallest
        whole[room] = len(indices)
        whole[room + 1 :].view(np.float64)[:] = rate, 1.0 - self.average.keep(number)
        self.told.copy_(told, non_blocking=True)
        return self._shape(sizes[whole[:room]])

    def _shape(self, sizes: Ints) -> Shape:
        """How a batch of these sizes is taken."""
        fitting = (shape for shape in self.shapes if holds(shape, sizes))
        return next(fitting, ()) or cut(sizes, self.store.most)

    def same(
        self,
        task: Task,
        batch: int,
        clip: float,
        dtype: torch.dtype | None,
        by_chance: bool,
    ) -> bool:
        """Whether these are its settings; shapes follow from them and the graphs."""
        mine = (self.task, len(self.indices), self.clip, self.dtype, bool(self.shapes))
        return (*mine, self.products) == (task, batch, clip, dtype, by_chance, dot_precision())

    def _heed(self) -> None:
        """Put the rate and the share where the optimiser and the average read them."""
        self.share.copy_(self.blend)
        for group in self.optimiser.param_groups:
            group["lr"].copy_(self.rate)

    def _capture(self, shape: Shape) -> None:
        """Record the step for batches of a shape; nothing is learned while recording."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        self.side = self.side or torch.cuda.Stream()  # type: ignore[no-untyped-call]
        draws = self.network.model.readout.dropout > 0
        random = torch.cuda.get_rng_state(self.device) if draws else None
        with torch.cuda.stream(stream):
            for _ in range(2):  # kernels are compiled and buffers found before recording
                self._backward(shape)
                self.flat = self.flat or self._flatten()
                self._forget()
        torch.cuda.current_stream().wait_stream(stream)
        if random is not None:  # a run draws the same numbers whenever its steps are recorded
            torch.cuda.set_rng_state(random, self.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self._whole(shape)
        self._forget()
        self.pool = self.pool or graph.pool()
        self.graphs[shape] = graph

    def _flatten(self) -> FlatOptimizerStep:
        """Join the weights that have gradients, with what optimiser and average keep of them."""
        from .flat_parameters import FlatOptimizerStep, prepare

        prepare(self.optimiser, self.weights)
        halves, copies = self.copies.used()
        others = [weight for weight in self.weights if weight.grad is not None]
        return FlatOptimizerStep(
            halves,
            others,
            copies,
            self.optimiser,
            self.average,
            self.clip,
            self.share,
            self.norm,
        )

    def _whole(self, shape: Shape) -> None:
        """What is recorded: a step from the indices to the averaged weights."""
        self._heed()
        total = self._backward(shape)
        if self.flat is not None:
            self.flat.step()
        else:
            self._plain_step()
        self.loss.copy_(total)

    def _backward(self, shape: Shape) -> Tensor:
        """Gradients of the mean loss, piece by piece; returns the sum."""
        counts = torch.arange(len(self.indices), device=self.device) < self.count
        targets = torch.where(
            counts[:, None], self.store.targets.index_select(0, self.indices), torch.nan
        )
        if len(shape) == 1:
            total, known = self._loss(shape[0], targets)
            with aside(self.side):  # where pieces add up, it would not wait for the one before
                (total / known.clamp(min=1)).backward()  # type: ignore[no-untyped-call]
            return total.detach()
        known = self.task.known(targets).sum().clamp(min=1)
        losses = []
        for piece in shape:
            loss, _ = self._loss(piece, targets[piece.start : piece.end])
            (loss / known).backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def _plain_step(self) -> None:
        """What `FlatOptimizerStep` does, operation by operation."""
        self.copies.give_gradients()
        self.norm.copy_(nn.utils.clip_grad_norm_(self.weights, self.clip or math.inf))
        self.optimiser.step()
        self.copies.refresh()
        self.average.blend(self.share)

    def _loss(self, piece: Piece, targets: Tensor) -> tuple[Tensor, Tensor]:
        given = self.inputs.batch(self.indices[piece.start : piece.end], piece.width)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
            outputs = torch.func.functional_call(self.network, self.copies.named(), given)
        return self.task.loss(outputs, targets)

    def _forget(self) -> None:
        for weight in (*self.weights, *self.copies.leaves):
            weight.grad = None


class Recorded:
    """What a run has recorded, for itself and for the next on the same graphs.

    Attributes:
        step: Takes the steps; None where nothing can be recorded, or memory did not suffice.
        designed: What spectral supports of which kind were made, and the graphs that have them.
    """

    step: GraphedStep | None = None
    designed: tuple[tuple[Any, ...], GraphStore] | None = None


def record_steps(
    recorded: Recorded,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    average: Average,
    store: GraphStore,
    task: Task,
    batch: int,
    clip: float,
    half: bool,
    by_chance: bool,
) -> None:
    """Have steps recorded where that can be done: for a grammar's network on one GPU, with room.

    Args:
        recorded: Where they go; those of a run before this one are taken over where they serve.
        model: The network, with the weights the run begins or goes on with.
        optimiser: Of its weights.
        average: Of its weights.
        store: Its graphs.
        task: What is learned.
        batch: Graphs in a step.
        clip: Largest gradient norm; 0 for none.
        half: Whether in bfloat16.
        by_chance: Whether batches are drawn so: they are all unlike, and share a few shapes.
    """
    if not _recordable(model, store):
        recorded.step = None
        return
    dtype = torch.bfloat16 if half else None
    parts = (model, optimiser, average, store)
    if recorded.step is not None:
        same = recorded.step.same(task, batch, clip, dtype, by_chance)
        if same and is_hit(recorded.step, *parts):
            take_over(recorded.step, *parts)
            return
        recorded.step = None  # its memory is needed
        free_cached_memory(store.device)
    free, _ = torch.cuda.mem_get_info(store.device)
    graphs = DenseStore.bytes_of(store)
    if graphs > SHARE * free:
        return
    keep = graphs + Inputs.bytes_of(model, store) <= SHARE * free
    shapes = few_shapes(store.graphs.sizes, batch) if by_chance else ()
    try:
        recorded.step = GraphedStep(
            model, optimiser, average, DenseStore(store), task, batch, clip, dtype, keep, shapes
        )
        return
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
    free_cached_memory(store.device)


def _recordable(model: nn.Module, store: GraphStore) -> TypeGuard[GrammarGNN]:
    if store.device.type != "cuda" or store.graphs.level != "graph":
        return False
    if store.sparse(int(store.graphs.sizes.max())):
        return False
    if not isinstance(model, GrammarGNN) or find_spec("triton") is None:
        return False
    if model.supports is not None and store.designed is None:
        return False  # eigenvectors wait for the host
    # The optimiser's kernels step single precision.
    return all(weight.dtype == torch.float32 for weight in model.parameters())


class _OnInputs(nn.Module):
    """A network as a function of what it reads of its graphs."""

    def __init__(self, model: GrammarGNN) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, first: Memories, adjacency: Tensor, mask: Tensor, designed: Tensor | None
    ) -> Tensor:
        model = self.model
        constants = model.constants(adjacency, mask, designed)
        return model.read_out(model.run(first, constants, mask), constants, mask)
