"""What a network reads of every graph, computed once and kept on the device where it fits.

It depends on no weight: distances, radial functions and one-hot channels need not be made anew at
every step. A batch is then one gather for each memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..data.dense_store import DenseStore
from ..data.store import GraphStore
from ..nn.fast import halved
from ..nn.layer import Memories
from ..nn.model import GrammarGNN


class Inputs:
    """The first memories of a store's graphs.

    Args:
        model: The network that reads them.
        store: The graphs.
        dtype: Half precision the network computes in, or None; memories that are embedded then come
            in two halves (`nn.fast.halved`).
        keep: Make all of them now, padded to the largest graph; else those of each batch.
    """

    def __init__(
        self, model: GrammarGNN, store: DenseStore, dtype: torch.dtype | None, keep: bool = True
    ) -> None:
        self.model, self.store, self.dtype = model, store, dtype
        self.needs_adjacency = model.names_adjacency
        self.memories: Memories | None = None
        if keep:
            everything = torch.arange(len(store.sizes), device=store.device)
            pieces = [self._made(chosen, store.most) for chosen in everything.split(store.at_once)]  # type: ignore[no-untyped-call]
            self.memories = {
                letter: torch.cat([piece[letter] for piece in pieces]) for letter in pieces[0]
            }

    @torch.no_grad()
    def _made(self, indices: Tensor, widest: int) -> Memories:
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
        """First memories, adjacency, mask and supports of some graphs, cut to `widest`.

        The adjacency is a single 0 where no rule names it; there are no supports unless the store
        has them.
        """
        store = self.store
        mask = (
            torch.arange(widest, device=store.device)
            < store.sizes.index_select(0, indices)[:, None]
        )
        if self.memories is None:
            first = self._made(indices, widest)
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
