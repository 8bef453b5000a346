"""Outputs, predictions and scores of a model on some graphs, in the targets' units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batching import ordered_batches
from ..data.graph_set import GraphSet, Ints
from ..data.store import GraphStore
from ..described import Described
from ..errors import TrainingError
from .processes import free_cached_memory, out_of_memory
from .setup import Parts
from .task import Metrics, Task, Values, metrics

Scores = dict[str, Metrics]

AT_ONCE = {"cuda": (2048, 2**21), "cpu": (256, 2**18)}
"""Graphs in a batch, and entries of its padded matrices: as QM9's largest need."""


@torch.no_grad()
def outputs(
    model: nn.Module, store: GraphStore, indices: Ints, batch: int | None = None
) -> tuple[Values, Ints]:
    """Outputs for some graphs; a batch that runs out of memory is cut in two.

    Args:
        model: Takes a GraphBatch; left in evaluation mode.
        store: Holds the graphs.
        indices: Which of them.
        batch: Graphs at a time; chosen by their size if None.

    Returns:
        `[rows, out]` in float64 and, for each row, its index among the rows of the set's targets:
        a graph, a node or a listed edge.

    Raises:
        TrainingError: Memory does not suffice for one graph.
    """
    model.eval()
    values, rows = [], []
    sizes = store.graphs.sizes[indices]
    most, entries = AT_ONCE["cuda" if store.device.type == "cuda" else "cpu"]
    batches = ordered_batches(sizes, batch) if batch else ordered_batches(sizes, most, entries)
    waiting = [indices[chosen] for chosen in reversed(batches)]
    while waiting:
        graphs, graph_batch = waiting.pop(), None
        try:
            graph_batch = store.batch(graphs)
            out = model(graph_batch).to(torch.float64)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            if len(graphs) == 1:
                raise TrainingError(
                    f"memory does not suffice for one graph of {store.graphs.sizes[graphs[0]]} "
                    f"nodes: {error}"
                ) from None
            half = len(graphs) // 2
            waiting += [graphs[half:], graphs[:half]]
            graph_batch = None
        if graph_batch is None:  # the traceback, which held the tensors, is gone only here
            free_cached_memory(store.device)
            continue
        if store.graphs.level == "node":
            out = out[graph_batch.mask]
            rows.append(_rows(store.node_offsets, graphs))
        elif store.graphs.level == "edge":
            out = _at_edges(out, store, graphs, graph_batch.adjacency.is_sparse)
            rows.append(_rows(store.edge_offsets, graphs))
        else:
            rows.append(graphs)
        values.append(out.cpu().numpy())
    return np.concatenate(values), np.concatenate(rows)


def _at_edges(values: Tensor, store: GraphStore, graphs: Ints, listed: bool) -> Tensor:
    """Outputs of the edges; `listed` if there is one row for each edge and no other."""
    rows = torch.from_numpy(_rows(store.edge_offsets, graphs)).to(values.device)
    counts = store.graphs.edge_counts[graphs]
    owner = torch.from_numpy(np.repeat(np.arange(len(graphs)), counts)).to(values.device)
    start, end = store.edges[:, rows]
    if store.graphs.directed:
        return values if listed else values[owner, start, end]
    # Both directions of an undirected edge get the same output.
    if not listed:
        return (values[owner, start, end] + values[owner, end, start]) / 2
    n = int(torch.maximum(start, end).max()) + 1 if len(start) else 1
    keys, order = ((owner * n + start) * n + end).sort()
    reverse = order[torch.searchsorted(keys, (owner * n + end) * n + start)]
    return (values + values[reverse]) / 2


def _rows(offsets: Ints, graphs: Ints) -> Ints:
    return np.concatenate([np.arange(offsets[g], offsets[g + 1]) for g in graphs])


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Described):
    """Predictions of a model for some graphs.

    Attributes:
        rows: Index of each row among the rows of the set's targets.
        values: `[rows, out]` values in their units, or probabilities.
        targets: `[rows, T]`, NaN where unknown.
    """

    rows: Ints
    values: Values
    targets: Values

    @classmethod
    def empty(cls, task: Task) -> Predictions:
        no_targets = np.zeros((0, len(task.columns)))
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, task.out)), no_targets)

    def owners(self, graphs: GraphSet) -> Ints:
        """The graph of each row."""
        if graphs.level == "graph":
            return self.rows
        offsets = graphs.node_offsets if graphs.level == "node" else graphs.edge_offsets
        return np.searchsorted(offsets, self.rows, side="right") - 1

    def facts(self) -> dict[str, str]:
        known = int(np.isfinite(self.targets).any(axis=1).sum()) if self.targets.size else 0
        return {
            "rows": f"{len(self.rows):,}",
            "columns": str(self.values.shape[-1]),
            "with known targets": f"{known:,}",
        }


def predict(
    model: nn.Module, parts: Parts, store: GraphStore, indices: Ints, fabric: Any = None
) -> Predictions:
    """Predictions in the set's order; several processes share the graphs and all get them."""
    rank, world = (fabric.global_rank, fabric.world_size) if fabric is not None else (0, 1)
    mine = indices[rank::world]
    if len(mine):
        raw, rows = outputs(model, store, mine)
    else:
        raw, rows = np.zeros((0, parts.task.out)), np.zeros(0, dtype=np.int64)
    if world > 1:
        from torch.distributed import all_gather_object

        gathered: list[Any] = [None] * world
        all_gather_object(gathered, (raw, rows))
        raw = np.concatenate([part for part, _ in gathered])
        rows = np.concatenate([part for _, part in gathered])
    order = np.argsort(rows)
    raw, rows = raw[order], rows[order]
    everything = np.zeros((len(parts.graphs.targets), raw.shape[1]))
    everything[rows] = raw
    in_units = parts.scaling.unscale(parts.task, parts.graphs, everything)[rows]
    return Predictions(rows, parts.task.decode(in_units), parts.graphs.targets[rows])


def constant_guess(parts: Parts, predictions: Predictions) -> tuple[Values, Values]:
    """Decoded values that do not depend on the graph, and the targets: a model should beat them.

    The mean of the training graphs, or the frequency of each class among them.
    """
    targets = parts.graphs.select(parts.splits["train"]).targets
    if parts.task.kind == "multiclass":
        classes = targets[np.isfinite(targets)].astype(np.int64)
        guess = np.bincount(classes, minlength=parts.task.out) / max(1, len(classes))
    else:
        counts = np.isfinite(targets).sum(axis=0)
        guess = np.nansum(targets, axis=0) / np.maximum(counts, 1)
    return np.tile(guess, (len(predictions.rows), 1)), predictions.targets


def score(
    model: nn.Module, parts: Parts, store: GraphStore, indices: Ints, fabric: Any = None
) -> Scores:
    """Metrics of each target and their mean (`all`)."""
    predictions = predict(model, parts, store, indices, fabric)
    return metrics(parts.task, predictions.values, predictions.targets)
