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
from ..nn.half_precision_weights import Copies
from ..nn.model import GrammarGNN
from ..nn.on_tensors import OnInputs
from ..nn.recorder import Recorder
from ..ops.packing import PADDED_NODES
from ..ops.precision import dot_precision
from ..ops.side_stream import side_stream
from ..ops.tiled_rules import TILED_NODES
from .optimiser import Average, FlatOptimizerStep, init_optimiser_state
from .precompute import SHARE, InputRows, same_graphs
from .processes import free_cached_memory, out_of_memory
from .task import Task

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
    """Takes optimiser steps by replaying CUDA graphs.

    The optimiser is an Adam or AdamW with `capturable` set and tensors for learning rates; the
    store has scaled targets.
    """

    def __init__(
        self,
        model: GrammarGNN,
        optimiser: torch.optim.Optimizer,
        average: Average,
        store: GraphStore,
        task: Task,
        batch: int,
        clip: float,
        dtype: torch.dtype | None,
    ) -> None:
        inputs = InputRows(model, store, dtype)
        copies = inputs.copies(training=True)
        rooms = capacities(store.graphs.sizes, batch, copies=copies)
        super().__init__(model, inputs, batch, rooms, copies, more=2)
        self.optimiser, self.average, self.task, self.clip = optimiser, average, task, clip
        self.products = dot_precision()
        self.rate, self.blend = self.told[batch + 1 :].view(torch.float64).unbind()
        self.share = torch.zeros((), device=self.device)
        self.results = torch.zeros(2, device=self.device)
        self.loss, self.norm = self.results.unbind()
        self.weights = list(model.parameters())
        self.flat: FlatOptimizerStep | None = None
        self.side: torch.cuda.Stream | None = None

    def step(self, indices: Ints, rate: float, number: int) -> tuple[Tensor, Tensor]:
        """Take step `number`, from 1, on these graphs; returns loss sum and gradient norm."""
        capacity = self._tell(indices, rate, 1.0 - self.average.keep(number))
        if capacity in self.recorder.graphs:
            self.recorder.graphs[capacity].replay()
        else:
            self._record(capacity)
        loss, norm = self.results.clone().unbind()
        return loss, norm

    def fits(self, indices: Ints) -> bool:
        """Whether a recording that serves others too has room for these graphs."""
        return self.fitting(indices) is not None

    def same(self, task: Task, batch: int, clip: float, dtype: torch.dtype | None) -> bool:
        """Whether these are its settings."""
        mine = (self.task, self.batch, self.clip, self.dtype, self.products)
        return mine == (task, batch, clip, dtype, dot_precision())

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
        init_optimiser_state(self.optimiser, self.weights)
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

    def _whole(self, capacity: Capacity) -> None:
        """The recorded step, from the indices to the averaged weights."""
        self.share.copy_(self.blend)
        for group in self.optimiser.param_groups:
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
        if self.task.kind == "regression" and self.inputs.by_kernels:
            from ..ops.absolute_error.triton import mean_absolute_error

            mean, total = mean_absolute_error(outputs, targets)
        else:
            total, known = self.task.loss(outputs, targets)
            mean = total / known.clamp(min=1)
        with side_stream(self.side):
            mean.backward()  # type: ignore[no-untyped-call]
        return total.detach()

    def _plain_step(self) -> None:
        """`FlatOptimizerStep`, operation by operation."""
        self.copies.give_gradients()
        self.norm.copy_(nn.utils.clip_grad_norm_(self.weights, self.clip or math.inf))
        self.optimiser.step()
        self.copies.refresh()
        self.average.blend(self.share)

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
        batches = row_batches(sizes, *AT_ONCE, mine)
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
        for chosen in row_batches(sizes, self.batch, AT_ONCE[1], copies):
            graphs = indices[chosen]
            capacity = self._tell(graphs)
            work = partial(self._work, capacity)
            self.recorder.run(capacity, work, prepare=work)
            rows = int((offsets[graphs + 1] - offsets[graphs]).sum())
            yield graphs, self.results[capacity][:rows].clone()

    def _work(self, capacity: Capacity) -> None:
        self.copies.refresh()
        self.results[capacity], _ = self._forward(capacity)


class Recorded:
    """CUDA graphs and spectral supports, reused by the next run on the same graphs.

    Attributes:
        step: Takes the steps; None if they cannot be recorded or memory ran out.
        outputs: Gives outputs of the network for validation.
        designed: A key of the spectral supports, and the store that has them.
    """

    step: GraphedStep | None = None
    outputs: GraphedOutputs | None = None
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
) -> None:
    """Set `recorded.step` if possible: for a grammar's network on one GPU with enough memory.

    Steps recorded by a run before this one are reused if they fit. `half` asks for bfloat16.
    """
    if not recordable(model, store) or not all(w.requires_grad for w in model.parameters()):
        recorded.step = recorded.outputs = None
        return
    dtype = torch.bfloat16 if half else None
    parts = (model, optimiser, average, store)
    if recorded.step is not None:
        if recorded.step.same(task, batch, clip, dtype) and is_hit(recorded.step, *parts):
            take_over(recorded.step, *parts)
            return
        recorded.step = recorded.outputs = None  # its memory is needed
        free_cached_memory(store.device)
    free, _ = torch.cuda.mem_get_info(store.device)
    if InputRows.bytes_of(model, store) > SHARE * free:
        return
    try:
        recorded.step = GraphedStep(model, optimiser, average, store, task, batch, clip, dtype)
        return
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
    free_cached_memory(store.device)


def graphed_outputs(
    recorded: Recorded | None, model: nn.Module, store: GraphStore, indices: Ints, half: bool
) -> GraphedOutputs | None:
    """What gives a network's outputs as CUDA graphs, if that is possible and worth recording.

    Where steps are recorded, their inputs serve again. `half` asks for bfloat16.
    """
    if not recordable(model, store):
        return None
    recorded = Recorded() if recorded is None else recorded
    if recorded.outputs is not None and recorded.outputs.serves(model, store):
        return recorded.outputs
    if recorded.step is not None and recorded.step.inputs.store is store:
        inputs = recorded.step.inputs
    elif len(indices) < WORTH:
        return None
    else:
        free, _ = torch.cuda.mem_get_info(store.device)
        if InputRows.bytes_of(model, store) > SHARE * free:
            return None
        inputs = InputRows(model, store, torch.bfloat16 if half else None)
    recorded.outputs = GraphedOutputs(model, inputs, indices)
    return recorded.outputs


def recordable(model: nn.Module, store: GraphStore) -> TypeGuard[GrammarGNN]:
    """Whether batches of a store can be computed by CUDA graphs."""
    sizes = store.graphs.sizes
    most = int(sizes.max())
    if store.device.type != "cuda" or store.sparse(most) or find_spec("triton") is None:
        return False
    if not isinstance(model, GrammarGNN) or not model.packs:
        return False
    if model.plan.marks is not None and (
        len(model.plan.marks.names) > 1 or model.supports is not None or most > PADDED_NODES
    ):
        return False  # copies of copies, supports and blocks of copies take too much
    if model.supports is not None and store.designed is None and not store.squared:
        return False  # eigenvectors wait for the host
    if any(weight.dtype != torch.float32 for weight in model.parameters()):
        return False  # the optimiser's kernels step single precision
    if most <= TILED_NODES and not model.packed.takes_blocks:
        return True
    return most <= PADDED_NODES or most**2 <= WASTE * float((sizes**2).mean())


def is_hit(
    step: GraphedStep,
    model: GrammarGNN,
    optimiser: torch.optim.Optimizer,
    average: Average,
    store: GraphStore,
) -> bool:
    """Whether the recorded steps of a run fit another, up to the values of tensors."""
    mine = (step.network.model, step.optimiser, step.average, step.inputs.store)
    return (
        bool(step.recorder.graphs)
        and cache_key(*mine) == cache_key(model, optimiser, average, store)
        and same_graphs(step.inputs.store.graphs, store.graphs)
    )


@torch.no_grad()
def take_over(
    step: GraphedStep,
    model: GrammarGNN,
    optimiser: torch.optim.Optimizer,
    average: Average,
    store: GraphStore,
) -> None:
    """Let recorded steps move the weights of another run.

    Cross-validation folds differ in their training graphs and initial weights; everything recorded
    is the same. The next run's network, optimiser and average get the recorded tensors, with their
    state values copied into them.
    """
    weights = list(model.parameters())
    init_optimiser_state(optimiser, weights)
    for recorded_weight, weight in zip(step.weights, weights, strict=True):
        weight.data = recorded_weight.data.copy_(weight.data)
        buffers, state = step.optimiser.state[recorded_weight], optimiser.state[weight]
        for name in state.keys() & buffers.keys():  # a weight without gradients may have no state
            state[name] = buffers[name].copy_(state[name])
    for index, values in enumerate(average.shadow):
        average.shadow[index] = step.average.shadow[index].copy_(values)
    step.inputs.read_targets(store)
    step.copies.refresh()
    step.network.train()  # what is recorded later is a training step too


def cache_key(
    model: GrammarGNN, optimiser: torch.optim.Optimizer, average: Average, store: GraphStore
) -> tuple[Any, ...]:
    """Everything a recording depends on besides the values of tensors."""
    groups = [
        (group["betas"], group["eps"], group["weight_decay"], len(group["params"]))
        for group in optimiser.param_groups
    ]
    dropout, size = model.readout.dropout, model.typical_size
    network = (model.plan, model.options, model.backend, str(model.supports), dropout, size)
    place = (store.distance, store.dtype, store.device)
    return (*network, type(optimiser), groups, average.decay, *place)
