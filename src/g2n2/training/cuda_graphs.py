"""Whole optimiser steps as CUDA graphs: one for each room a batch needs, replayed with new indices.

Where kernels compute the whole network on packed rows (`nn.packed_kernels`), a batch needs a
`Capacity`: so many rows. Elsewhere it is padded, and needs a shape.

A small batch is bound by launching its hundreds of kernels. A graph launches them all at once: it
gathers the batch, runs the network forward and backward, clips, steps and averages. The host sends
one small tensor: the indices, how many of them count, the learning rate and the average's share.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from ..data.capacities import Capacity, capacities, capacity_of
from ..data.capture_shapes import Shape, capture_shapes, holds
from ..data.dense_store import DenseStore
from ..data.graph_set import Ints
from ..data.size_buckets import SizeBucket, largest_first, size_buckets
from ..data.store import GraphStore
from ..nn import packed_kernels
from ..nn.half_precision_weights import Copies
from ..nn.layer import Memories
from ..nn.model import GrammarGNN
from ..ops.graph_index import GraphIndex
from ..ops.precision import dot_precision
from ..ops.side_stream import side_stream
from .optimiser import Average, init_optimiser_state
from .precompute import SHARE, Inputs, same_graphs
from .processes import free_cached_memory, out_of_memory
from .task import Task

if TYPE_CHECKING:
    from .optimiser import FlatOptimizerStep


class GraphedStep:
    """Takes optimiser steps by replaying CUDA graphs.

    The optimiser is an Adam or AdamW with `capturable` set and tensors for learning rates; the
    store holds all graphs, padded, with scaled targets. A batch of fewer than `batch` graphs is
    filled up with the smallest graph, masked out. `dtype` is that of the arithmetic, None for that
    of the weights; with `keep` the input memories of all graphs stay on the device. Kept memories
    of a network that kernels compute are packed, and batches share a few capacities. Others are
    padded to `shapes`, the cheapest first, the last for any; without shapes each has its own.
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
        most = int(store.store.graphs.sizes.max())
        self.packed = keep and packed_kernels.covers(model, most)
        self.inputs = Inputs(model, store, dtype, keep and not self.packed)
        self.network = _OnInputs(model)
        if self.packed:
            self.rows = PackedInputs(self.inputs)
            self.capacities = capacities(store.store.graphs.sizes, batch)
        self.copies = Copies(model, None if model.by_reference else dtype)
        self.graphs: dict[Shape | Capacity, torch.cuda.CUDAGraph] = {}
        self.flat: FlatOptimizerStep | None = None
        self.side: torch.cuda.Stream | None = None
        self.pool: Any = None

    def step(self, indices: Ints, rate: float, number: int) -> tuple[Tensor, Tensor]:
        """Take step `number`, from 1, on these graphs; returns loss sum and gradient norm."""
        shape = self._fill(indices, rate, number)
        if shape not in self.graphs:
            self._capture(shape)
        self.graphs[shape].replay()
        loss, norm = self.results.clone().unbind()
        return loss, norm

    def _fill(self, indices: Ints, rate: float, number: int) -> Shape | Capacity:
        """Copy indices, count, rate and share to the device; returns the room the batch needs."""
        room = len(self.indices)
        assert 0 < len(indices) <= room, f"a step takes 1 to {room} graphs, got {len(indices)}"
        told = torch.empty(len(self.told), dtype=torch.int64, pin_memory=self.device.type == "cuda")
        whole = told.numpy()
        sizes = self.store.store.graphs.sizes
        whole[: len(indices)] = largest_first(indices, sizes)
        whole[len(indices) : room] = self.smallest
        whole[room] = len(indices)
        whole[room + 1 :].view(np.float64)[:] = rate, 1.0 - self.average.keep(number)
        self.told.copy_(told, non_blocking=True)
        if self.packed:
            sizes = sizes[indices]
            fitting_rows = (room for room in self.capacities if room.holds(sizes))
            return next(fitting_rows, None) or capacity_of(sizes)
        sizes = sizes[whole[:room]]
        fitting = (shape for shape in self.shapes if holds(shape, sizes))
        return next(fitting, ()) or size_buckets(sizes, self.store.most)

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

    def _capture(self, shape: Shape | Capacity) -> None:
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
        """Flatten the weights that have gradients, with their optimiser state and average."""
        from .optimiser import FlatOptimizerStep, init_optimiser_state

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

    def _whole(self, shape: Shape | Capacity) -> None:
        """The recorded step, from the indices to the averaged weights."""
        self.share.copy_(self.blend)
        for group in self.optimiser.param_groups:
            group["lr"].copy_(self.rate)
        total = self._backward(shape)
        if self.flat is not None:
            self.flat.step()
        else:
            self._plain_step()
        self.loss.copy_(total)

    def _backward(self, shape: Shape | Capacity) -> Tensor:
        """Gradients of the mean loss, piece by piece; returns the sum of the losses."""
        if isinstance(shape, Capacity):
            first, targets, index = self.rows.batch(self.indices, self.count, shape)
            outputs = self._outputs((first, index))
            if self.task.kind == "regression":
                from ..ops.absolute_error.triton import mean_absolute_error

                mean, total = mean_absolute_error(outputs, targets)
            else:
                total, known = self.task.loss(outputs, targets)
                mean = total / known.clamp(min=1)
            with side_stream(self.side):
                mean.backward()  # type: ignore[no-untyped-call]
            return total.detach()
        counts = torch.arange(len(self.indices), device=self.device) < self.count
        targets = torch.where(
            counts[:, None], self.store.targets.index_select(0, self.indices), torch.nan
        )
        if len(shape) == 1:
            total, known = self.task.loss(self._outputs(self._padded(shape[0])), targets)
            with side_stream(
                self.side
            ):  # where pieces add up, it would not wait for the one before
                (total / known.clamp(min=1)).backward()  # type: ignore[no-untyped-call]
            return total.detach()
        known = self.task.known(targets).sum().clamp(min=1)
        losses = []
        for piece in shape:
            outputs = self._outputs(self._padded(piece))
            loss, _ = self.task.loss(outputs, targets[piece.start : piece.end])
            (loss / known).backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def _plain_step(self) -> None:
        """`FlatOptimizerStep`, operation by operation."""
        self.copies.give_gradients()
        self.norm.copy_(nn.utils.clip_grad_norm_(self.weights, self.clip or math.inf))
        self.optimiser.step()
        self.copies.refresh()
        self.average.blend(self.share)

    def _padded(self, piece: SizeBucket) -> tuple[Any, ...]:
        return self.inputs.batch(self.indices[piece.start : piece.end], piece.width)

    def _outputs(self, given: tuple[Any, ...]) -> Tensor:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
            outputs: Tensor = torch.func.functional_call(self.network, self.copies.named(), given)
        return outputs

    def _forget(self) -> None:
        for weight in (*self.weights, *self.copies.leaves):
            weight.grad = None


class Recorded:
    """CUDA graphs and spectral supports, reused by the next run on the same graphs.

    Attributes:
        step: Takes the steps; None if they cannot be recorded or memory ran out.
        designed: A key of the spectral supports, and the store that has them.
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
    """Set `recorded.step` if possible: for a grammar's network on one GPU with enough memory.

    Steps recorded by a run before this one are reused if they fit. `half` asks for bfloat16;
    `by_chance` says that batches are random, all of different sizes, and share a few shapes.
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
    shapes = capture_shapes(store.graphs.sizes, batch) if by_chance else ()
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


class PackedInputs:
    """The input memories of all graphs as rows; a batch is one gather for each memory.

    Args:
        inputs: Computes them.
    """

    def __init__(self, inputs: Inputs) -> None:
        store = inputs.store
        self.sizes, self.most, self.targets = store.sizes, store.most, store.targets
        lengths = {"M": store.sizes.square(), "V": store.sizes}
        self.starts = {letter: count.cumsum(0) - count for letter, count in lengths.items()}
        self.memories: Memories = {}
        filled = dict.fromkeys(lengths, 0)
        every = torch.arange(len(store.sizes), device=store.device).split(store.at_once)  # type: ignore[no-untyped-call]
        for chosen in every:
            there = torch.arange(self.most, device=store.device) < self.sizes[chosen, None]
            real = {"M": there[:, :, None] & there[:, None], "V": there}
            for letter, values in inputs._computed(chosen, self.most).items():
                rows = values[real[letter]]
                if letter not in self.memories:  # one row more: what rows beyond a batch are
                    total = int(lengths[letter].sum()) + 1
                    self.memories[letter] = rows.new_zeros(total, rows.shape[1])
                start = filled[letter]
                self.memories[letter][start : start + len(rows)] = rows
                filled[letter] = start + len(rows)

    def batch(
        self, indices: Tensor, count: Tensor, room: Capacity
    ) -> tuple[Memories, Tensor, GraphIndex]:
        """Rows and targets of the first `count` of some graphs, and where each graph lies."""
        from ..ops.gathering.triton import PackedTable, gather

        table = PackedTable(self.sizes, self.starts, self.memories, self.targets, self.most)
        return gather(table, indices, count, room.nodes, room.pairs)


class _OnInputs(nn.Module):
    """A network as a function of its input memories, padded or packed."""

    def __init__(self, model: GrammarGNN) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        first: Memories,
        place: Tensor | GraphIndex,
        mask: Tensor | None = None,
        designed: Tensor | None = None,
    ) -> Tensor:
        model = self.model
        if isinstance(place, GraphIndex):
            return packed_kernels.outputs(model, first, place)
        assert mask is not None, "of a padded batch"
        adjacency = place
        constants = model.constants(adjacency, mask, designed)
        return model.read_out(model.run(first, constants, mask), constants, mask)


def is_hit(
    step: GraphedStep,
    model: GrammarGNN,
    optimiser: torch.optim.Optimizer,
    average: Average,
    store: GraphStore,
) -> bool:
    """Whether the recorded steps of a run fit another, up to the values of tensors."""
    mine = (step.network.model, step.optimiser, step.average, step.store.store)
    return (
        bool(step.graphs)
        and cache_key(*mine) == cache_key(model, optimiser, average, store)
        and same_graphs(step.store.store.graphs, store.graphs)
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
    step.store.targets.copy_(store.targets)
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
