"""GraphStore: a GraphSet as tensors on the device, and its batches, built without the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from .batch import LARGE, GraphBatch, dense, sparse
from .distances import distance_channels, distance_width
from .graph_set import GraphSet, Ints, ragged_rows

if TYPE_CHECKING:
    from .pair_table import PairTable


class GraphStore:
    """All graphs of a set on one device.

    Args:
        graphs: The set.
        device: Where the tensors are kept and batches are built.
        distance: Edge channels computed from the positions: `raw`, `square`, `inverse`, `rbf16` ….
        dtype: Of features and targets.
        columns_only: Whether the batches are for a `columns_only` network, which takes a sparse A
            of large graphs.

    Attributes:
        designed: Precomputed spectral supports of all graphs, or None.
    """

    designed: PairTable | None = None

    def __init__(
        self,
        graphs: GraphSet,
        device: torch.device | str = "cpu",
        distance: tuple[str, ...] = (),
        dtype: torch.dtype = torch.float32,
        columns_only: bool = False,
    ) -> None:
        self.graphs, self.distance, self.columns_only = graphs, distance, columns_only
        self.device, self.dtype = torch.device(device), dtype
        self.node_offsets = graphs.node_offsets
        self.edge_offsets = graphs.edge_offsets
        self.edges = self._put(graphs.edges)
        self.node_features = self._put(graphs.node_features)
        self.edge_features = self._put(graphs.edge_features)
        self.targets = self._put(graphs.targets)
        self.weights = None if graphs.weights is None else self._put(graphs.weights)
        self.positions = None
        if distance and graphs.positions is not None:
            self.positions = self._put(graphs.positions)

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def edge_width(self) -> int:
        """Edge channels of a batch besides A."""
        extra = sum(map(distance_width, self.distance)) if self.positions is not None else 0
        return int(self.graphs.edge_features.shape[1]) + extra

    def sparse(self, nodes: int) -> bool:
        """Whether A is sparse in a batch whose largest graph has that many nodes."""
        return self.columns_only and nodes >= LARGE

    def batch(self, indices: Ints) -> GraphBatch:
        """The graphs of these indices as one batch, with targets.

        Targets of nodes are `[B, N, T]` and of edges `[B, N, N, T]`, NaN where there is none; those
        of edges are `[E, T]` if A is sparse.
        """
        widest = int(self.graphs.sizes[indices].max())
        batch = self._build(sparse if self.sparse(widest) else dense, indices, widest)
        edges = batch.edges
        if self.positions is not None and not batch.adjacency.is_sparse:
            positions = self.positions.new_zeros(*batch.mask.shape, 3)
            positions[batch.mask] = self.positions[self._rows(self.node_offsets, indices)]
            channels = distance_channels(positions, batch.mask, self.distance)
            edges = torch.cat([edges, channels], dim=-1)
        designed = None
        if self.designed is not None:
            designed = self.designed.batch(self._index(indices), widest)
        return replace(batch, edges=edges, targets=self._targets(batch, indices), designed=designed)

    def padded(self, span: slice, widest: int) -> GraphBatch:
        """Consecutive graphs, padded to `widest` nodes, without distances or targets."""
        return self._build(dense, np.arange(len(self))[span], widest)

    def padded_positions(self, widest: int) -> Tensor | None:
        """`[G, widest, 3]`, or None without positions."""
        if self.positions is None:
            return None
        mask = torch.arange(widest, device=self.device) < self._index(self.graphs.sizes)[:, None]
        positions = self.positions.new_zeros(*mask.shape, 3)
        positions[mask] = self.positions
        return positions

    def _build(self, build: Callable[..., GraphBatch], indices: Ints, widest: int) -> GraphBatch:
        edge_rows = self._rows(self.edge_offsets, indices)
        return build(
            self._index(self.graphs.sizes[indices]),
            self._graph_of_edge(indices),
            self.edges[:, edge_rows],
            nodes=self.node_features[self._rows(self.node_offsets, indices)],
            edges=self.edge_features[edge_rows],
            weights=None if self.weights is None else self.weights[edge_rows],
            directed=self.graphs.directed,
            widest=widest,
        )

    def _graph_of_edge(self, indices: Ints) -> Tensor:
        counts = self.graphs.edge_counts[indices]
        numbers = torch.arange(len(indices), device=self.device)
        return torch.repeat_interleave(numbers, self._index(counts), output_size=int(counts.sum()))

    def _targets(self, batch: GraphBatch, indices: Ints) -> Tensor:
        if self.graphs.level == "graph":
            return self.targets[self._index(indices)]
        columns = self.targets.shape[1]
        if self.graphs.level == "node":
            values = self.targets.new_full((*batch.mask.shape, columns), torch.nan)
            values[batch.mask] = self.targets[self._rows(self.node_offsets, indices)]
            return values
        edge_rows = self._rows(self.edge_offsets, indices)
        if batch.adjacency.is_sparse:
            return self.targets[edge_rows]
        values = self.targets.new_full((*batch.adjacency.shape, columns), torch.nan)
        start, end = self.edges[:, edge_rows]
        values[self._graph_of_edge(indices), start, end] = self.targets[edge_rows]
        return values

    def _rows(self, offsets: Ints, indices: Ints) -> Tensor:
        return self._index(ragged_rows(offsets, indices))

    def _index(self, values: Ints) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64)).to(
            self.device, non_blocking=True
        )

    def _put(self, values: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        return tensor.to(self.device, self.dtype if tensor.is_floating_point() else torch.int64)
