"""PairTable: values for every pair of nodes of every graph, stored without padding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .batch import GraphBatch
from .batching import ordered_batches
from .store import GraphStore

AT_ONCE = 2**20
"""Padded pairs computed together."""


class PairTable:
    """A function of a graph's structure on its pairs, computed once for all graphs.

    Args:
        store: The graphs.
        make: A batch -> `[B, N, N, k]`.
    """

    def __init__(self, store: GraphStore, make: Callable[[GraphBatch], Tensor]) -> None:
        sizes = store.graphs.sizes
        starts = np.zeros(len(sizes), dtype=np.int64)
        rows, filled = torch.empty(0), 0
        for chosen in ordered_batches(sizes, len(sizes), AT_ONCE):
            batch = store.batch(chosen)
            pairs = batch.mask[:, :, None] & batch.mask[:, None]
            values = make(batch)[pairs]
            if not filled:
                rows = values.new_empty(int((sizes**2).sum()), values.shape[-1])
            counts = sizes[chosen] ** 2
            starts[chosen] = filled + np.cumsum(counts) - counts
            rows[filled : filled + len(values)] = values
            filled += len(values)
        self.rows = rows
        self.starts = torch.from_numpy(starts).to(store.device)
        self.sizes = torch.as_tensor(sizes, device=store.device)

    @staticmethod
    def bytes_of(store: GraphStore, channels: int) -> int:
        """Device memory it takes."""
        return int((store.graphs.sizes**2).sum()) * channels * store.dtype.itemsize

    def batch(self, indices: Tensor, widest: int) -> Tensor:
        """`[B, widest, widest, k]` of the graphs of an index tensor, zero at the padding."""
        sizes, starts = (
            t.index_select(0, indices)[:, None, None] for t in (self.sizes, self.starts)
        )
        nodes = torch.arange(widest, device=self.rows.device)
        rows, columns = nodes[:, None], nodes[None]
        inside = (rows < sizes) & (columns < sizes)
        chosen = torch.where(inside, starts + rows * sizes + columns, 0)
        values = self.rows.index_select(0, chosen.reshape(-1))
        return values.view(*chosen.shape, -1) * inside.unsqueeze(-1)
