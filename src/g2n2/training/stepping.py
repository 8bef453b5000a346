"""One optimiser step: gradients part by part, memory that runs out, losses that are not finite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import GraphBatch
from ..data.graph_set import GraphSet, Ints
from ..data.store import GraphStore
from ..errors import MemoryBudgetError, TrainingError
from .tasks import Task

CHECK_EVERY = 50
"""Steps between two looks at the losses on a GPU, where each look waits for the device."""

Note = Callable[[str], None]


class Stepper:
    """Takes optimiser steps and keeps the sum of their losses.

    Args:
        fabric: A launched Fabric.
        model: The network; Fabric wraps it for several processes.
        optimiser: Of that network.
        store: All graphs, with targets as the loss sees them.
        task: What is learned.
        clip: Largest gradient norm; 0 for none.
        micro: Graphs sent through the network at once.
        folder: Where a batch that cannot be learned is saved.
        note: Told in words what the stepper had to do.
    """

    def __init__(
        self,
        fabric: Any,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        store: GraphStore,
        task: Task,
        clip: float,
        micro: int,
        folder: Path,
        note: Note,
    ) -> None:
        self.fabric, self.store, self.task = fabric, store, task
        self.clip, self.micro, self.folder, self.note = clip, micro, folder, note
        self.bare = optimiser
        self.checked = cast(Callable[[GraphBatch], tuple[Tensor, ...]], model.checked)
        self.model, self.optimiser = fabric.setup(_OnTensors(model), optimiser)
        self.known_targets = _known_by_graph(store.graphs)
        self.waiting: list[tuple[Tensor, Tensor, Ints]] = []

    def step(self, indices: Ints, rate: float) -> None:
        """One step on these graphs; the micro-batch is halved where memory does not suffice."""
        for group in self.bare.param_groups:
            group["lr"] = rate
        while True:
            try:
                loss, known = self._gradients(indices)
                break
            except (torch.OutOfMemoryError, MemoryBudgetError) as error:
                if self.micro == 1:
                    raise TrainingError(
                        f"memory does not suffice for one graph at a time: {error}"
                    ) from None
                self.micro = max(1, self.micro // 2)
                self.note(
                    f"out of memory: going on with {self.micro} graphs at once, "
                    f"the batch is still {len(indices)}"
                )
        if self.clip:
            self.fabric.clip_gradients(
                self.model, self.optimiser, max_norm=self.clip, error_if_nonfinite=False
            )
        self.optimiser.step()
        self.waiting.append((loss, known, indices))

    @property
    def due(self) -> bool:
        """Whether it is time to look at the losses: always on a CPU, where a look costs nothing."""
        return self.store.device.type == "cpu" or len(self.waiting) >= CHECK_EVERY

    def settle(self) -> tuple[float, int]:
        """The losses since the last look: their sum, and how many targets stand behind it.

        Raises:
            TrainingError: One of them is not finite; its batch is saved.
        """
        if not self.waiting:
            return 0.0, 0
        losses = torch.stack([loss for loss, _, _ in self.waiting]).double().cpu()
        known = torch.stack([known for _, known, _ in self.waiting]).cpu()
        if not bool(torch.isfinite(losses).all()):
            place = int((~torch.isfinite(losses)).nonzero()[0])
            path = _save_batch(self.folder, self.store, self.waiting[place][2])
            raise TrainingError(
                f"the loss became NaN or infinite; the batch is saved in {path}, and the last good "
                "checkpoint is kept: lower --rate, or look for extreme values in that batch"
            )
        self.waiting.clear()
        return float(losses.sum()), int(known.sum())

    def _gradients(self, indices: Ints) -> tuple[Tensor, Tensor]:
        """Gradients of the mean loss over the known targets of a batch, micro-batch by micro-batch.

        Several processes share a batch; DDP averages their gradients, so each weighs its own by
        how many there are.
        """
        self.optimiser.zero_grad()
        mine = indices[self.fabric.global_rank :: self.fabric.world_size]
        share = float(len(mine) > 0)
        mine = mine if len(mine) else indices[:1]  # every process takes part in every step
        scale = share * self.fabric.world_size / max(1, int(self.known_targets[indices].sum()))
        pieces = [mine[start : start + self.micro] for start in range(0, len(mine), self.micro)]
        losses, counts = [], []
        for number, piece in enumerate(pieces, start=1):
            batch = self.store.batch(piece)
            assert batch.targets is not None, "the store always gives targets"
            with self.fabric.no_backward_sync(self.model, enabled=number < len(pieces)):
                loss, known = self.task.loss(self.model(*self.checked(batch)), batch.targets)
                self.fabric.backward(loss * scale)
            losses.append(loss.detach() * share)
            counts.append(known * share)
        return torch.stack(losses).sum(), torch.stack(counts).sum()


class _OnTensors(nn.Module):
    """A network as a function of tensors, which is what Fabric can move, cast and wrap."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.network = cast(Callable[..., Tensor], model.network)

    def forward(self, *tensors: Tensor) -> Tensor:
        return self.network(*tensors)


def _known_by_graph(graphs: GraphSet) -> Ints:
    """`[G]` known targets of each graph."""
    known = np.isfinite(graphs.targets).sum(axis=1)
    if graphs.level == "graph":
        return np.asarray(known, dtype=np.int64)
    offsets = graphs.node_offsets if graphs.level == "node" else graphs.edge_offsets
    running = np.concatenate([[0], np.cumsum(known)])
    counts: Ints = running[offsets[1:]] - running[offsets[:-1]]
    return counts


def _save_batch(folder: Path, store: GraphStore, indices: Ints) -> Path:
    """Keep a batch for inspection: which graphs, and the tensors the network saw."""
    path = folder / "bad_batch.npz"
    batch = store.batch(indices)
    ids = [store.graphs.ids[i] if store.graphs.ids else str(i) for i in indices]
    assert batch.targets is not None, "the store always gives targets"
    np.savez_compressed(
        path,
        indices=indices,
        ids=np.array(ids),
        adjacency=batch.adjacency.cpu().numpy(),
        nodes=batch.nodes.cpu().numpy(),
        edges=batch.edges.cpu().numpy(),
        mask=batch.mask.cpu().numpy(),
        learned_targets=batch.targets.cpu().numpy(),
    )
    return path
