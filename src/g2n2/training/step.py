"""One optimiser step: micro-batches, out-of-memory recovery, refusal of non-finite losses."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import GraphBatch
from ..data.graph_set import GraphSet, Ints
from ..data.packed_batch import PackedBatch
from ..data.store import GraphStore
from ..errors import DataError, TrainingError
from ..nn.model import GrammarGNN
from .checkpoint import write_whole
from .cuda_graphs import Recorded
from .optimiser import Average, set_rate
from .processes import Processes, free_cached_memory, out_of_memory
from .task import Task

CHECK_EVERY = 50
"""Steps between two looks at the losses on a GPU, where each look waits for the device."""

BAD_BATCH = "bad_batch.npz"

Note = Callable[[str], None]


class Stepper:
    """Takes optimiser steps and keeps their losses until they are read.

    Fabric moves and wraps the model. The store has scaled targets. `clip` is the largest gradient
    norm, 0 for none; `micro` the graphs in a micro-batch; `half` asks for products in bfloat16. A
    batch whose loss is not finite is saved in `folder`.

    Attributes:
        average: Of the weights, updated after each step; set once Fabric has placed the weights.
        recorded: Takes whole steps as CUDA graphs if possible.
    """

    average: Average | None = None

    def __init__(
        self,
        fabric: Any,
        processes: Processes,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        store: GraphStore,
        task: Task,
        clip: float,
        micro: int,
        folder: Path,
        note: Note,
        half: bool = False,
    ) -> None:
        self.fabric, self.processes, self.store, self.task = fabric, processes, store, task
        self.clip, self.micro, self.folder, self.note = clip, micro, folder, note
        self.bare = optimiser
        self.network = model
        self.model, self.optimiser = fabric.setup(_OnBatch(model, half), optimiser)
        self.parameters = list(model.parameters())
        self.known_targets = _known_by_graph(store.graphs)
        self.waiting: list[tuple[Tensor, Tensor, Ints]] = []
        self.recorded = Recorded()

    def step(self, indices: Ints, rate: float, number: int = 1) -> None:
        """Step `number` of the run, from 1, on these graphs; each process takes its share."""
        recorded = self.recorded.step
        if (
            recorded is not None
            and recorded.fits(indices)
            and self._replayed(indices, rate, number)
        ):
            return
        set_rate(self.bare, rate)
        with self.processes.all_or_none():
            loss = self._within_memory(indices)
        loss = self.processes.add_up(loss, self.parameters)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.clip or math.inf)
        self.optimiser.step()
        self.waiting.append((loss, norm, indices))
        if self.average is not None:
            self.average.update(number)
        if self.recorded.step is not None:
            self.recorded.step.copies.refresh()

    def _replayed(self, indices: Ints, rate: float, number: int) -> bool:
        """Take the step as a CUDA graph; on lack of memory, go on without CUDA graphs."""
        assert self.recorded.step is not None, "asked only where there is one"
        try:
            loss, norm = self.recorded.step.step(indices, rate, number)
            self.waiting.append((loss, norm, indices))
            return True
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
        # Only here are the tensors of the failed attempt gone, which its traceback held.
        self.recorded.step = None
        free_cached_memory(self.store.device)
        self.note("out of memory for CUDA graphs: going on without them, more slowly")
        return False

    @property
    def due(self) -> bool:
        """Whether to read the losses: always on a CPU, where reading costs nothing."""
        return self.store.device.type == "cpu" or len(self.waiting) >= CHECK_EVERY

    def settle(self) -> list[tuple[float, int]]:
        """Loss and number of known targets of each step since the last call.

        Raises:
            TrainingError: A loss or gradient is not finite; its batch is saved.
        """
        if not self.waiting:
            return []
        steps, self.waiting = self.waiting, []
        losses = torch.stack([loss for loss, _, _ in steps]).double().cpu()
        norms = torch.stack([norm for _, norm, _ in steps]).double().cpu()
        bad = (~(torch.isfinite(losses) & torch.isfinite(norms))).nonzero()
        if len(bad):
            first = int(bad[0])
            what = "gradient" if math.isfinite(losses[first]) else "loss"
            raise TrainingError(
                f"the {what} became NaN or infinite; {self._keep(steps[first][2])}, and the last "
                "good checkpoint is kept: look for extreme values in that batch, or start again "
                "with a lower --rate"
            )
        known = [int(self.known_targets[indices].sum()) for _, _, indices in steps]
        return list(zip(losses.tolist(), known, strict=True))

    def _within_memory(self, indices: Ints) -> Tensor:
        """Gradients of this process's share; the micro-batch is halved until memory suffices."""
        mine = self.processes.share(indices)
        while True:
            try:
                return self._gradients(mine, indices)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                at_once = min(self.micro, len(mine))
                if at_once <= 1:
                    largest = int(self.store.graphs.sizes[indices].max())
                    raise TrainingError(
                        f"memory does not suffice for one graph of {largest} nodes: {error}"
                    ) from None
                self.micro = at_once // 2
                self.note(
                    f"out of memory: going on with {self.micro} "
                    f"{'graph' if self.micro == 1 else 'graphs'} at once, "
                    f"the batch is still {len(indices)}"
                )
            # Only here are the tensors of the failed attempt gone, which its traceback held.
            free_cached_memory(self.store.device)

    def _gradients(self, mine: Ints, batch_indices: Ints) -> Tensor:
        """Sum of the losses of some graphs of a batch; gradients accumulate piece by piece.

        Gradients are those of the mean over the known targets of the whole batch. A process without
        a graph takes one with weight 0, so that the same parameters have gradients everywhere.
        """
        self.optimiser.zero_grad()
        weight = float(len(mine) > 0)
        mine = mine if len(mine) else batch_indices[:1]
        scale = weight / max(1, int(self.known_targets[batch_indices].sum()))
        losses = []
        for start in range(0, len(mine), self.micro):
            batch = batch_for(self.network, self.store, mine[start : start + self.micro])
            assert batch.targets is not None, "the store always gives targets"
            with self.fabric.no_backward_sync(self.model):
                loss, _ = self.task.loss(self.model(_Held(batch)), batch.targets)
                self.fabric.backward(loss * scale)
            losses.append(loss.detach() * weight)
        return torch.stack(losses).sum()

    def _keep(self, indices: Ints) -> str:
        """Save a batch for inspection, and return a sentence that says where."""
        path = self.folder / BAD_BATCH
        batch = self.store.batch(indices)
        assert batch.targets is not None, "the store always gives targets"
        names = self.store.graphs.ids
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            indices=indices,
            ids=np.array([names[i] if names else str(i) for i in indices]),
            **_matrix(batch.adjacency.cpu()),
            nodes=batch.nodes.cpu().numpy(),
            edges=batch.edges.cpu().numpy(),
            mask=batch.mask.cpu().numpy(),
            learned_targets=batch.targets.cpu().numpy(),
        )
        try:
            if self.fabric.is_global_zero:
                write_whole(path, buffer.getvalue())
        except DataError as error:
            return f"the batch could not be saved ({error})"
        return f"the batch is saved in {path}"


def _matrix(adjacency: Tensor) -> dict[str, Any]:
    """A as arrays: itself, or where its entries are and what they are."""
    if not adjacency.is_sparse:
        return {"adjacency": adjacency.numpy()}
    places, values = adjacency._indices(), adjacency._values()
    return {"adjacency_places": places.numpy(), "adjacency_values": values.numpy()}


def batch_for(model: nn.Module, store: GraphStore, indices: Ints) -> GraphBatch | PackedBatch:
    """Graphs of a store as a network takes them: rows where it computes those."""
    packs = isinstance(model, GrammarGNN) and model.packs
    sparse = store.sparse(int(store.graphs.sizes[indices].max()))
    return store.packed(indices) if packs and not sparse else store.batch(indices)


class _Held:
    """A batch that Fabric passes on as it is: it would round inputs to bfloat16."""

    def __init__(self, batch: GraphBatch | PackedBatch) -> None:
        self.batch = batch


class _OnBatch(nn.Module):
    """A network that Fabric can move and wrap.

    Autocast is our own: Fabric would round float64 outputs to float32.
    """

    def __init__(self, model: nn.Module, half: bool) -> None:
        super().__init__()
        self.model, self.in_half = model, half

    def forward(self, held: _Held) -> Tensor:
        device = held.batch.nodes.device.type
        with torch.autocast(device, torch.bfloat16, enabled=self.in_half):
            outputs: Tensor = self.model(held.batch)
        return outputs


def _known_by_graph(graphs: GraphSet) -> Ints:
    """`[G]` known targets of each graph."""
    known = np.isfinite(graphs.targets).sum(axis=1)
    if graphs.level == "graph":
        return np.asarray(known, dtype=np.int64)
    offsets = graphs.node_offsets if graphs.level == "node" else graphs.edge_offsets
    running = np.concatenate([[0], np.cumsum(known)])
    counts: Ints = running[offsets[1:]] - running[offsets[:-1]]
    return counts
