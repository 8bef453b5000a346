"""What depends on no weight, computed once before training: input memories, spectral supports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ..data.dense_store import DenseStore
from ..data.graph_set import GraphSet
from ..data.pair_table import PairTable
from ..data.store import GraphStore
from ..nn.fast import halved
from ..nn.layer import Memories
from ..nn.model import GrammarGNN
from ..nn.supports import SpectralSupports
from .processes import free_cached_memory, out_of_memory

if TYPE_CHECKING:
    from .cuda_graphs import Recorded


class Inputs:
    """The input memories of a store's graphs; a batch is one gather for each memory.

    Args:
        model: The network that reads them.
        store: The graphs.
        dtype: Half precision the network computes in, or None; memories that are embedded then come
            in two halves (`nn.fast.halved`).
        keep: Compute all of them now, padded to the largest graph; else those of each batch.
    """

    def __init__(
        self, model: GrammarGNN, store: DenseStore, dtype: torch.dtype | None, keep: bool = True
    ) -> None:
        self.model, self.store, self.dtype = model, store, dtype
        self.needs_adjacency = model.names_adjacency
        self.memories: Memories | None = None
        if keep:
            every = torch.arange(len(store.sizes), device=store.device).split(store.at_once)  # type: ignore[no-untyped-call]
            pieces = [self._computed(chosen, store.most) for chosen in every]
            self.memories = {
                letter: torch.cat([piece[letter] for piece in pieces]) for letter in pieces[0]
            }

    @torch.no_grad()
    def _computed(self, indices: Tensor, widest: int) -> Memories:
        batch = self.store.batch(indices, widest)
        designed = self._designed(indices, widest)
        constants = self.model.constants(batch.adjacency, batch.mask, designed)
        first = self.model.first(batch.nodes, batch.edges, constants)
        return first if self.dtype is None else _rounded(first, self.model, self.dtype)

    @staticmethod
    def bytes_of(model: GrammarGNN, store: GraphStore) -> int:
        """Device memory all of them take."""
        most = int(store.graphs.sizes.max())
        entries = {"M": most**2, "V": most, "R": most, "S": 1}
        widths = model.plan.inputs.widths.items()
        return 4 * len(store.graphs) * sum(entries[sort.letter] * w for sort, w in widths)

    def batch(self, indices: Tensor, widest: int) -> tuple[Memories, Tensor, Tensor, Tensor | None]:
        """Memories, adjacency, mask and supports of some graphs, cut to `widest` nodes.

        The adjacency is a single 0 if no rule names it.
        """
        store = self.store
        mask = (
            torch.arange(widest, device=store.device)
            < store.sizes.index_select(0, indices)[:, None]
        )
        if self.memories is None:
            first = self._computed(indices, widest)
        else:
            first = {
                letter: _cut(values, letter, widest).index_select(0, indices)
                for letter, values in self.memories.items()
            }
        if not self.needs_adjacency:
            return first, store.targets.new_zeros((), dtype=store.store.dtype), mask, None
        adjacency = _cut(store.adjacency, "M", widest).index_select(0, indices)
        return first, adjacency.to(store.store.dtype), mask, self._designed(indices, widest)

    def _designed(self, indices: Tensor, widest: int) -> Tensor | None:
        table = self.store.store.designed
        return None if table is None else table.batch(indices, widest)


def _rounded(first: Memories, model: GrammarGNN, dtype: torch.dtype) -> Memories:
    """The memories as a network in half precision reads them."""
    if model.by_reference:
        return first
    return {
        letter: halved(values, dtype) if letter in model.embeddings else values.to(dtype)
        for letter, values in first.items()
    }


def _cut(values: Tensor, letter: str, widest: int) -> Tensor:
    if letter == "S":
        return values
    return values[:, :widest, :widest] if letter == "M" else values[:, :widest]


SHARE = 0.25
"""Of the device's free memory, at most, for all graphs padded to the largest."""
LARGEST = 2**31
"""Bytes a table may take, and no more than a share of a GPU's free memory; beyond, supports are
made for every batch."""


def precompute_supports(model: nn.Module, store: GraphStore, recorded: Recorded) -> None:
    """Keep the spectral supports of a network, if it has some, with the graphs.

    `recorded` may hold those of a run before this one, and keeps these for the next.
    """
    supports = getattr(model, "supports", None)
    if type(supports) is not SpectralSupports:
        return
    budget = LARGEST
    if store.device.type == "cuda":
        budget = min(budget, int(SHARE * torch.cuda.mem_get_info(store.device)[0]))
    if PairTable.bytes_of(store, supports.count) > budget:
        return
    key = (supports.extra_repr(), store.device, store.dtype)
    before = recorded.designed
    if before is not None and before[0] == key and same_graphs(before[1].graphs, store.graphs):
        store.designed = before[1].designed
    else:
        store.designed = _table(supports, store)
    recorded.designed = (key, store)


def _table(supports: SpectralSupports, store: GraphStore) -> PairTable | None:
    try:
        return PairTable(store, lambda batch: supports.designed(batch.adjacency, batch.mask))
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
    free_cached_memory(store.device)
    return None


def same_graphs(graphs: GraphSet, others: GraphSet) -> bool:
    """Whether two sets have the same arrays, or arrays without content."""
    names = ("sizes", "edges", "node_features", "edge_features", "weights", "positions")
    for mine, theirs in ((getattr(graphs, n), getattr(others, n)) for n in names):
        if mine is not theirs and (np.size(mine) or np.size(theirs)):
            return False
    return graphs.targets.shape == others.targets.shape
