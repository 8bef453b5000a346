"""GraphStore: a GraphSet as tensors on the device, and its batches, built without the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..ops.packing import Packing
from .batch import LARGE, GraphBatch, dense, sparse
from .distances import (
    distance_channels,
    distance_rows,
    distance_width,
    squared_distance_rows,
    squared_distances,
)
from .graph_set import GraphSet, Ints, ragged_rows
from .packed_batch import PackedBatch


class GraphStore:
    """All graphs of a set on one device.

    Args:
        graphs: The set.
        device: Where the tensors are kept and batches are built.
        distance: Edge channels computed from the positions: `raw`, `square`, `inverse`, `rbf16`,
            `rbf32:6` ….
        dtype: Of features and targets.
        columns_only: Whether the batches are for a `columns_only` network, which takes a sparse A
            of large graphs.
        squared: Whether batches have the squared distances D of the positions as `designed`.

    Attributes:
        designed: `[ΣP, k]` precomputed spectral supports of the pairs of all graphs, or None.
    """

    designed: Tensor | None = None

    def __init__(
        self,
        graphs: GraphSet,
        device: torch.device | str = "cpu",
        distance: tuple[str, ...] = (),
        dtype: torch.dtype = torch.float32,
        columns_only: bool = False,
        squared: bool = False,
    ) -> None:
        self.graphs, self.distance, self.columns_only = graphs, distance, columns_only
        self.squared = squared and graphs.positions is not None
        self.device, self.dtype = torch.device(device), dtype
        self.node_offsets, self.edge_offsets = graphs.node_offsets, graphs.edge_offsets
        self.pair_offsets = np.concatenate([[0], np.cumsum(graphs.sizes**2)])
        self.edges = self._put(graphs.edges)
        self.node_features = self._put(graphs.node_features)
        self.edge_features = self._put(graphs.edge_features)
        self.targets = self._put(graphs.targets)
        self.weights = None if graphs.weights is None else self._put(graphs.weights)
        self.positions = None
        if (distance or squared) and graphs.positions is not None:
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
        edges, designed = batch.edges, None
        if self.positions is not None and not batch.adjacency.is_sparse:
            positions = self.positions.new_zeros(*batch.mask.shape, 3)
            positions[batch.mask] = self.positions[self._rows(self.node_offsets, indices)]
            if self.distance:
                channels = distance_channels(positions, batch.mask, self.distance)
                edges = torch.cat([edges, channels], dim=-1)
            if self.squared:
                designed = squared_distances(positions, batch.mask)
        if self.designed is not None:
            pairs = batch.mask[:, :, None] & batch.mask[:, None]
            designed = self.designed.new_zeros(*pairs.shape, self.designed.shape[1])
            designed[pairs] = self.designed[self._rows(self.pair_offsets, indices)]
        return replace(batch, edges=edges, targets=self._targets(batch, indices), designed=designed)

    def packed(self, indices: Ints) -> PackedBatch:
        """The graphs of these indices as rows, the smallest first, with targets."""
        sizes = self.graphs.sizes
        indices = indices[np.argsort(sizes[indices], kind="stable")]
        packing = Packing(sizes[indices].tolist(), self.device)
        edge_rows = self._rows(self.edge_offsets, indices)
        node_rows = self._rows(self.node_offsets, indices)
        pairs = self.pair_rows(indices)
        adjacency = torch.zeros(packing.pairs, 1, dtype=self.dtype, device=self.device)
        if self.weights is None:
            adjacency.index_add_(0, pairs, adjacency.new_ones(len(pairs), 1))
        else:
            adjacency.index_add_(0, pairs, self.weights[edge_rows].unsqueeze(1))
        edges = adjacency.new_zeros(packing.pairs, self.edge_features.shape[1])
        edges.index_add_(0, pairs, self.edge_features[edge_rows])
        designed = None
        if self.positions is not None:
            first, number = packing.ends
            ends = first, first - packing.place[first] + number
            if self.distance:
                channels = distance_rows(self.positions[node_rows], *ends, self.distance)
                edges = torch.cat([edges, channels], dim=-1)
            if self.squared:
                designed = squared_distance_rows(self.positions[node_rows], *ends)
        if self.graphs.level == "graph":
            targets = self.targets[self._index(indices)]
        elif self.graphs.level == "node":
            targets = self.targets[node_rows]
        else:
            targets = self.targets.new_full((packing.pairs, self.targets.shape[1]), torch.nan)
            targets[pairs] = self.targets[edge_rows]
        if self.designed is not None:
            designed = self.designed[self._rows(self.pair_offsets, indices)]
        return PackedBatch(
            packing,
            indices,
            adjacency,
            self.node_features[node_rows],
            edges,
            self.graphs.directed,
            targets,
            designed,
        )

    def pair_rows(self, indices: Ints, reverse: bool = False) -> Tensor:
        """Which pair each edge of some graphs is, counted over the graphs one after the other.

        With `reverse`, the pair of the same nodes the other way round.
        """
        sizes = self._index(self.graphs.sizes[indices])
        owner = self._graph_of_edge(indices)
        start, end = self.edges[:, self._rows(self.edge_offsets, indices)]
        starts = sizes.square().cumsum(0) - sizes.square()
        start, end = (end, start) if reverse else (start, end)
        pairs: Tensor = starts[owner] + start * sizes[owner] + end
        return pairs

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
