"""Optimiser steps and predictions as CUDA graphs, one for each capacity, replayed with new indices.

A small batch is bound by launching its hundreds of kernels. A graph launches them all at once: it
gathers the rows of the batch and runs the network, and for a step goes backward, clips, steps and
averages. The host sends one small tensor: the indices, how many of them count, and for a step the
learning rate and the average's share. A batch has the rows of a `Capacity`; those beyond its last
graph reach neither outputs nor gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batching import row_batches
from ..data.capacities import Capacity, capacities, capacity_of, largest_capacity
from ..data.graph_set import Ints
from ..data.store import GraphStore
from ..nn.half_precision_weights import Copies, OnInputs
from ..nn.model import GrammarGNN
from ..nn.replay import Recorder
from ..ops.packing import PADDED_NODES
from ..ops.precision import dot_precision
from ..ops.side_stream import side_stream
from ..ops.tiling import TILED_NODES
from .optimiser import FlatOptimizerStep, Learner, init_optimiser_state
from .precompute import SHARE, InputRows, same_graphs
from .processes import free_cached_memory, within_memory

WASTE = 2.0
"""Padded blocks of a batch may have this many times the pairs there are."""
AT_ONCE = (2048, 2**20)
"""Graphs and pairs of a batch without gradients."""
WORTH = 8 * AT_ONCE[0]
"""Graphs whose outputs are worth a recording that serves once."""


class _Replayed:
    """A network on batches of a store, by indices on the device.

    A batch may have fewer than `batch` graphs: the others are empty, and their targets unknown.
    """

    def __init__(
        self,
        model: GrammarGNN,
        inputs: InputRows,
        batch: int,
        rooms: Sequence[Capacity],
        copies: Ints | None,
        more: int = 0,
    ) -> None:
        self.inputs, self.batch, self.capacities, self.dtype = inputs, batch, rooms, inputs.dtype
        self.marked = copies
        self.device = inputs.store.device
        self.network = OnInputs(model)
        self.told = torch.zeros(batch + 1 + more, dtype=torch.int64, device=self.device)
        self.indices, self.count = self.told[:batch], self.told[batch]
        self.copies = Copies(model, self.dtype)
        self.recorder = Recorder()

    def _tell(self, indices: Ints, *more: float) -> Capacity:
        """Copy indices, their number and more to the device; returns the rows a batch needs."""
        assert 0 < len(indices) <= self.batch, f"takes 1 to {self.batch} graphs, got {len(indices)}"
        told = torch.empty(len(self.told), dtype=torch.int64, pin_memory=self.device.type == "cuda")
        whole = told.numpy()
        whole[: len(indices)], whole[len(indices) : self.batch] = indices, 0
        whole[self.batch] = len(indices)
        whole[self.batch + 1 :].view(np.float64)[:] = more
        self.told.copy_(told, non_blocking=True)
        return self.fitting(indices) or capacity_of(*self._rows(indices))

    def fitting(self, indices: Ints) -> Capacity | None:
        """The smallest of the capacities that holds these graphs."""
        given = self._rows(indices)
        return next((capacity for capacity in self.capacities if capacity.holds(*given)), None)

    def _rows(self, indices: Ints) -> tuple[Ints, Ints | None]:
        """Sizes of some graphs, and how many marked copies there are of each."""
        copies = None if self.marked is None else self.marked[indices]
        return self.inputs.store.graphs.sizes[indices], copies

    def _forward(self, capacity: Capacity) -> tuple[Tensor, Tensor]:
        """Outputs and targets of the batch that was told."""
        given, targets = self.inputs.batch(self.indices, self.count, capacity)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
            outputs = torch.func.functional_call(self.network, self.copies.named(), given)
        return outputs, targets


class GraphedStep(_Replayed):
    """Takes the steps of a learner by replaying CUDA graphs.

    Its optimiser is an Adam or AdamW with `capturable` set and tensors for learning rates.
    """

    def __init__(self, learner: Learner) -> None:
        model, batch = learner.model, learner.batch
        assert isinstance(model, GrammarGNN), "only networks of a grammar are recorded"
        inputs = InputRows(model, learner.store, torch.bfloat16 if learner.half else None)
        copies = inputs.copies(training=True)
        rooms = capacities(learner.store.graphs.sizes, batch, copies=copies)
        super().__init__(model, inputs, batch, rooms, copies, more=2)
        self.learner, self.key = learner, cache_key(learner)
        self.rate, self.blend = self.told[batch + 1 :].view(torch.float64).unbind()
        self.share = torch.zeros((), device=self.device)
        self.results = torch.zeros(2, device=self.device)
        self.loss, self.norm = self.results.unbind()
        self.weights = learner.weights
        self.flat: FlatOptimizerStep | None = None
        self.side: torch.cuda.Stream | None = None

    def step(self, indices: Ints, rate: float, number: int) -> tuple[Tensor, Tensor]:
        """Take step `number`, from 1, on these graphs; returns loss sum and gradient norm."""
        capacity = self._tell(indices, rate, 1.0 - self.learner.average.keep(number))
        if capacity in self.recorder.graphs:
            self.recorder.graphs[capacity].replay()
        else:
            self._record(capacity)
        loss, norm = self.results.clone().unbind()
        return loss, norm

    def fits(self, indices: Ints) -> bool:
        """Whether a recording that serves others too has room for these graphs."""
        return self.fitting(indices) is not None

    def serves(self, learner: Learner) -> bool:
        """Whether what is recorded fits another learner, up to the values of tensors."""
        mine, theirs = self.inputs.store.graphs, learner.store.graphs
        recorded = bool(self.recorder.graphs) and self.key == cache_key(learner)
        return recorded and same_graphs(mine, theirs)

    @torch.no_grad()
    def take_over(self, learner: Learner) -> None:
        """Take the steps of another learner, whose weights get the recorded tensors.

        Cross-validation folds differ in their training graphs and initial weights; everything
        recorded is the same. The values of the next weights, of their optimiser and average are
        copied into the recorded tensors.
        """
        before, optimiser, average = self.learner, learner.optimiser, learner.average
        init_optimiser_state(optimiser, learner.weights)
        for recorded_weight, weight in zip(self.weights, learner.weights, strict=True):
            weight.data = recorded_weight.data.copy_(weight.data)
            buffers, state = before.optimiser.state[recorded_weight], optimiser.state[weight]
            for name in state.keys() & buffers.keys():  # a weight without gradients may have none
                state[name] = buffers[name].copy_(state[name])
        for index, values in enumerate(average.shadow):
            average.shadow[index] = before.average.shadow[index].copy_(values)
        self.learner = replace(before, store=learner.store)  # the store before takes memory
        self.inputs.read_targets(learner.store)
        self.copies.refresh()
        self.network.train()  # what is recorded later is a training step too

    def _record(self, capacity: Capacity) -> None:
        """Record the step and take it; nothing else is learned."""
        self.side = self.side or torch.cuda.Stream()  # type: ignore[no-untyped-call]
        model = self.network.model
        drawn = model.plan.marks is not None and isinstance(model.plan.marks.chosen, int)
        draws = drawn or model.readout.dropout > 0
        # A run draws the same numbers whenever its steps are recorded.
        random = torch.cuda.get_rng_state(self.device) if draws else None

        def prepare() -> None:
            self._backward(capacity)
            self.flat = self.flat or self._flatten()
            self._forget()
            if random is not None:
                torch.cuda.set_rng_state(random, self.device)

        self.recorder.run(capacity, lambda: self._whole(capacity), prepare)
        self._forget()

    def _flatten(self) -> FlatOptimizerStep:
        """Flatten the weights that have gradients, with their optimiser state and average."""
        init_optimiser_state(self.learner.optimiser, self.weights)
        halves, copies = self.copies.used()
        others = [weight for weight in self.weights if weight.grad is not None]
        return FlatOptimizerStep(halves, others, copies, self.learner, self.share, self.norm)

    def _whole(self, capacity: Capacity) -> None:
        """The recorded step, from the indices to the averaged weights."""
        self.share.copy_(self.blend)
        for group in self.learner.optimiser.param_groups:
            group["lr"].copy_(self.rate)
        total = self._backward(capacity)
        if self.flat is not None:
            self.flat.step()
        else:
            self._plain_step()
        self.loss.copy_(total)

    def _backward(self, capacity: Capacity) -> Tensor:
        """Gradients of the mean loss; returns the sum of the losses."""
        outputs, targets = self._forward(capacity)
        total, known = self.learner.task.loss(outputs, targets)
        mean = total / known.clamp(min=1)
        with side_stream(self.side):
            mean.backward()  # type: ignore[no-untyped-call]
        return total.detach()

    def _plain_step(self) -> None:
        """`FlatOptimizerStep`, operation by operation."""
        self.copies.give_gradients()
        self.norm.copy_(nn.utils.clip_grad_norm_(self.weights, self.learner.clip or math.inf))
        self.learner.optimiser.step()
        self.copies.refresh()
        self.learner.average.blend(self.share)

    def _forget(self) -> None:
        for weight in (*self.weights, *self.copies.leaves):
            weight.grad = None


class GraphedOutputs(_Replayed):
    """Outputs of a network by replaying CUDA graphs; weights may change between calls.

    Batches are graphs one after the other, up to so many and so many rows.
    """

    def __init__(self, model: GrammarGNN, inputs: InputRows, indices: Ints) -> None:
        sizes, copies = inputs.store.graphs.sizes[indices], inputs.copies(training=False)
        mine = None if copies is None else copies[indices]
        batches = row_batches(sizes, *AT_ONCE, _innermost(mine))
        largest = largest_capacity(sizes, batches, mine)
        super().__init__(model, inputs, max(map(len, batches)), (largest,), copies)
        self.places = [weight.data_ptr() for weight in model.parameters()]
        self.results: dict[Capacity, Tensor] = {}

    def serves(self, model: GrammarGNN, store: GraphStore) -> bool:
        """Whether it computes the outputs of a network for the graphs of a store."""
        places = [weight.data_ptr() for weight in model.parameters()]
        return places == self.places and self.inputs.store is store

    @torch.no_grad()
    def __call__(self, indices: Ints) -> Iterator[tuple[Ints, Tensor]]:
        """Some of the graphs, and a row for each graph, node or pair of them, until there are all.

        Rows are those of one graph after the other.
        """
        self.network.eval()
        offsets = self.inputs.offsets[self.inputs.letters["targets"]]
        sizes, copies = self._rows(indices)
        for chosen in row_batches(sizes, self.batch, AT_ONCE[1], _innermost(copies)):
            graphs = indices[chosen]
            capacity = self._tell(graphs)
            work = partial(self._work, capacity)
            self.recorder.run(capacity, work, prepare=work)
            rows = int((offsets[graphs + 1] - offsets[graphs]).sum())
            yield graphs, self.results[capacity][:rows].clone()

    def _work(self, capacity: Capacity) -> None:
        self.copies.refresh()
        self.results[capacity], _ = self._forward(capacity)


def _innermost(copies: Ints | None) -> Ints | None:
    """`[G]` copies of each graph that the layers compute."""
    return None if copies is None else copies[:, -1]


class Recorded:
    """CUDA graphs and spectral supports, reused by the next run on the same graphs."""

    # takes the steps; None if they cannot be recorded or memory ran out
    step: GraphedStep | None = None
    outputs: GraphedOutputs | None = None  # gives outputs of the network for validation
    # a key of the spectral supports, and the store that has them
    designed: tuple[tuple[Any, ...], GraphStore] | None = None

    def record_steps(self, learner: Learner) -> None:
        """Set `step` if possible: for a grammar's network on one GPU with enough memory.

        Steps recorded by a run before this one are reused if they fit.
        """
        model, store = learner.model, learner.store
        if not recordable(model, store) or not all(w.requires_grad for w in model.parameters()):
            self.forget_graphs()
            return
        if self.step is not None:
            if self.step.serves(learner):
                self.step.take_over(learner)
                return
            self.forget_graphs()  # its memory is needed
            free_cached_memory(store.device)
        if _inputs_fit(model, store):
            self.step, _ = within_memory(store.device, lambda: GraphedStep(learner))

    def outputs_of(
        self, model: nn.Module, store: GraphStore, indices: Ints, half: bool
    ) -> GraphedOutputs | None:
        """What gives a network's outputs as CUDA graphs, if possible and worth recording.

        Where steps are recorded, their inputs serve again. `half` asks for bfloat16.
        """
        if not recordable(model, store):
            return None
        if self.outputs is None or not self.outputs.serves(model, store):
            if self.step is not None and self.step.inputs.store is store:
                inputs = self.step.inputs
            elif len(indices) < WORTH or not _inputs_fit(model, store):
                return None
            else:
                inputs = InputRows(model, store, torch.bfloat16 if half else None)
            self.outputs = GraphedOutputs(model, inputs, indices)
        return self.outputs

    def forget_graphs(self) -> None:
        """Give up what is recorded."""
        self.step = self.outputs = None


def _inputs_fit(model: GrammarGNN, store: GraphStore) -> bool:
    """Whether the inputs of all graphs take no more than their share of the free memory."""
    free, _ = torch.cuda.mem_get_info(store.device)
    return InputRows.bytes_of(model, store) <= SHARE * free


def recordable(model: nn.Module, store: GraphStore) -> TypeGuard[GrammarGNN]:
    """Whether batches of a store can be computed by CUDA graphs."""
    sizes = store.graphs.sizes
    most = int(sizes.max())
    if store.device.type != "cuda" or store.sparse(most) or find_spec("triton") is None:
        return False
    if not isinstance(model, GrammarGNN) or not model.packs:
        return False
    marks = model.plan.marks
    if model.plan.scoped:
        return False  # copies that meet are counted on the host
    if marks is not None and (model.supports is not None or most > PADDED_NODES):
        return False  # supports and blocks of copies take too much
    if marks is not None and len(marks.names) > 1 and marks.chosen == "orbits":
        return False  # the host finds the orbits of each marked copy
    if model.supports is not None and store.designed is None and not store.squared:
        return False  # eigenvectors wait for the host
    if any(weight.dtype != torch.float32 for weight in model.parameters()):
        return False  # the optimiser's kernels step single precision
    if most <= TILED_NODES and not model.packed.takes_blocks:
        return True
    return most <= PADDED_NODES or most**2 <= WASTE * float((sizes**2).mean())


def cache_key(learner: Learner) -> tuple[Any, ...]:
    """Everything a recording depends on besides the values of tensors."""
    model, optimiser, store = learner.model, learner.optimiser, learner.store
    assert isinstance(model, GrammarGNN), "only networks of a grammar are recorded"
    groups = [
        (group["betas"], group["eps"], group["weight_decay"], len(group["params"]))
        for group in optimiser.param_groups
    ]
    dropout, size = model.readout.dropout, model.typical_size
    network = (model.plan, model.options, model.backend, str(model.supports), dropout, size)
    steps = (type(optimiser), groups, learner.average.decay, learner.task, learner.batch)
    place = (store.distance, store.dtype, store.device)
    return (*network, *steps, learner.clip, learner.half, dot_precision(), *place)
