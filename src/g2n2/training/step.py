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

from ..data.batch import GraphBatch, PackedBatch
from ..data.graph_set import GraphSet, Ints
from ..data.store import GraphStore
from ..errors import DataError, TrainingError
from ..nn.model import GrammarGNN
from .checkpoint import write_whole
from .cuda_graphs import GraphedStep, Recorded
from .optimiser import Learner, set_rate
from .processes import Processes, free_cached_memory, out_of_memory
from .task import row_offsets

CHECK_EVERY = 50
"""Steps between two looks at the losses on a GPU, where each look waits for the device."""

BAD_BATCH = "bad_batch.npz"

Note = Callable[[str], None]


class Stepper:
    """Takes the steps of a learner and keeps their losses until they are read.

    `recorded` takes whole steps as CUDA graphs if possible. `micro` is the number of graphs in a
    micro-batch. A batch whose loss is not finite is saved in `folder`.
    """

    def __init__(
        self, learner: Learner, processes: Processes, recorded: Recorded, folder: Path, note: Note
    ) -> None:
        self.learner, self.processes, self.recorded = learner, processes, recorded
        self.folder, self.note, self.micro = folder, note, learner.batch
        self.store, self.weights = learner.store, learner.weights
        self.known_targets = _known_by_graph(learner.store.graphs)
        self.waiting: list[tuple[Tensor, Tensor, Ints]] = []

    def step(self, indices: Ints, rate: float, number: int = 1) -> None:
        """Step `number` of the run, from 1, on these graphs; each process takes its share."""
        recorded = self.recorded.step
        if recorded and recorded.fits(indices) and self._replayed(recorded, indices, rate, number):
            return
        set_rate(self.learner.optimiser, rate)
        with self.processes.all_or_none():
            loss = self._within_memory(indices)
        loss = self.processes.add_up(loss, self.weights)
        norm = nn.utils.clip_grad_norm_(self.weights, self.learner.clip or math.inf)
        self.learner.optimiser.step()
        self.waiting.append((loss, norm, indices))
        self.learner.average.update(number)
        if self.recorded.step is not None:
            self.recorded.step.copies.refresh()

    def _replayed(self, recorded: GraphedStep, indices: Ints, rate: float, number: int) -> bool:
        """Take the step as a CUDA graph; on lack of memory, go on without CUDA graphs."""
        try:
            self.waiting.append((*recorded.step(indices, rate, number), indices))
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
        learner, store = self.learner, self.store
        learner.optimiser.zero_grad()
        weight = float(len(mine) > 0)
        mine = mine if len(mine) else batch_indices[:1]
        scale = weight / max(1, int(self.known_targets[batch_indices].sum()))
        losses = []
        for start in range(0, len(mine), self.micro):
            batch = batch_for(learner.model, store, mine[start : start + self.micro])
            assert batch.targets is not None, "the store always gives targets"
            with torch.autocast(store.device.type, torch.bfloat16, enabled=learner.half):
                outputs = learner.model(batch)
            loss, _ = learner.task.loss(outputs, batch.targets)
            (loss * scale).backward()  # type: ignore[no-untyped-call]
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
            if self.processes.rank == 0:
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


def _known_by_graph(graphs: GraphSet) -> Ints:
    """`[G]` known targets of each graph."""
    known = np.isfinite(graphs.targets).sum(axis=1)
    running, offsets = np.concatenate([[0], np.cumsum(known)]), row_offsets(graphs)
    counts: Ints = running[offsets[1:]] - running[offsets[:-1]]
    return counts
