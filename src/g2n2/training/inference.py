"""Outputs of a model for every graph of a set, in the set's own order."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..data.batching import ordered_batches
from ..data.store import GraphStore
from ..errors import TrainingError
from .devices import free_cached_memory, out_of_memory
from .task import Values

Ints = NDArray[np.int64]

AT_ONCE = {"cuda": (2048, 2**21), "cpu": (256, 2**18)}
"""Graphs in a batch, and entries of its padded matrices: as QM9's largest need."""


@torch.no_grad()
def outputs(
    model: nn.Module, store: GraphStore, indices: Ints, batch: int | None = None
) -> tuple[Values, Ints]:
    """Outputs for some graphs.

    Args:
        model: Takes a GraphBatch; left in evaluation mode.
        store: Holds the graphs.
        indices: Which of them.
        batch: Graphs at a time; by what they take, and many on a GPU, where None. A batch for
            which memory does not suffice is cut in two.

    Returns:
        `[rows, out]` in float64 and, for each row, its place among the rows of the set's targets:
        a graph, a node or a listed edge.

    Raises:
        TrainingError: Memory does not suffice for one graph.
    """
    model.eval()
    level = store.graphs.level
    values, places = [], []
    sizes = store.graphs.sizes[indices]
    many, entries = AT_ONCE["cuda" if store.device.type == "cuda" else "cpu"]
    batches = ordered_batches(sizes, batch) if batch else ordered_batches(sizes, many, entries)
    left = [indices[chosen] for chosen in batches]
    left.reverse()
    while left:
        graphs, made = left.pop(), None
        try:
            made = store.batch(graphs)
            rows = model(made).to(torch.float64)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            if len(graphs) == 1:
                raise TrainingError(
                    f"memory does not suffice for one graph of {store.graphs.sizes[graphs[0]]} "
                    f"nodes: {error}"
                ) from None
            half = len(graphs) // 2
            left += [graphs[half:], graphs[:half]]
            made = None
        if made is None:
            free_cached_memory(store.device)
            continue
        if level == "node":
            rows = rows[made.mask]
            places.append(_rows(store.node_offsets, graphs))
        elif level == "edge":
            rows = _at_edges(rows, store, graphs, made.adjacency.is_sparse)
            places.append(_rows(store.edge_offsets, graphs))
        else:
            places.append(graphs)
        values.append(rows.cpu().numpy())
    return np.concatenate(values), np.concatenate(places)


def _at_edges(values: Tensor, store: GraphStore, graphs: Ints, listed: bool) -> Tensor:
    """Outputs of the edges; `listed` says that there are no others."""
    rows = torch.from_numpy(_rows(store.edge_offsets, graphs)).to(values.device)
    counts = store.graphs.edge_counts[graphs]
    owner = torch.from_numpy(np.repeat(np.arange(len(graphs)), counts)).to(values.device)
    start, end = store.edges[:, rows]
    if store.graphs.directed:
        return values if listed else values[owner, start, end]
    # An undirected edge has one answer.
    if listed:
        return (values + values[_back(owner, start, end)]) / 2
    return (values[owner, start, end] + values[owner, end, start]) / 2


def _back(owner: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """For each edge the place of the one that leads back, which an undirected graph has."""
    n = int(torch.maximum(start, end).max()) + 1 if len(start) else 1
    ordered, places = ((owner * n + start) * n + end).sort()
    return places[torch.searchsorted(ordered, (owner * n + end) * n + start)]


def _rows(offsets: Ints, graphs: Ints) -> Ints:
    return np.concatenate([np.arange(offsets[g], offsets[g + 1]) for g in graphs])
