"""GraphStore: a GraphSet as tensors on the device, and its batches, built without the host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..ops.packing import Packing
from .batch import LARGE, GraphBatch, PackedBatch
from .distances import channels_of_steps, distance_width
from .graph_set import GraphSet, Ints, ragged_rows


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
    """

    # `[ΣP, k]` precomputed spectral supports of the pairs of all graphs, or None
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
        graphs, widest = self.graphs, int(self.graphs.sizes[indices].max())
        node_rows, edge_rows = self._node_rows(indices), self._edge_rows(indices)
        owner, ends = self._graph_of_edge(indices), self.edges[:, edge_rows]
        batch = GraphBatch.from_edges(
            self._index(graphs.sizes[indices]),
            owner,
            ends,
            nodes=self.node_features[node_rows],
            edges=self.edge_features[edge_rows],
            weights=None if self.weights is None else self.weights[edge_rows],
            directed=graphs.directed,
            widest=widest,
            sparse=self.sparse(widest),
        )
        is_sparse = batch.adjacency.is_sparse
        if self.positions is not None and not is_sparse:
            batch = batch.with_distances(self.positions[node_rows], self.distance, self.squared)
        if self.designed is not None:
            pairs = batch.mask[:, :, None] & batch.mask[:, None]
            designed = self.designed.new_zeros(*pairs.shape, self.designed.shape[1])
            designed[pairs] = self.designed[self._rows(self.pair_offsets, indices)]
            batch = replace(batch, designed=designed)
        if graphs.level == "graph":
            targets = self.targets[self._index(indices)]
        elif graphs.level == "edge" and is_sparse:
            targets = self.targets[edge_rows]
        else:
            of_nodes = graphs.level == "node"
            shape = batch.mask.shape if of_nodes else batch.adjacency.shape
            targets = self.targets.new_full((*shape, self.targets.shape[1]), torch.nan)
            where = (batch.mask,) if of_nodes else (owner, *ends)
            targets[where] = self.targets[node_rows if of_nodes else edge_rows]
        return replace(batch, targets=targets)

    def packed(self, indices: Ints) -> PackedBatch:
        """The graphs of these indices as rows, the smallest first, with targets."""
        sizes = self.graphs.sizes
        indices = indices[np.argsort(sizes[indices], kind="stable")]
        packing = Packing(sizes[indices].tolist(), self.device)
        node_rows, edge_rows = self._node_rows(indices), self._edge_rows(indices)
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
            start, end = first, first - packing.place[first] + number
            places = self.positions[node_rows]
            steps = places.index_select(0, start) - places.index_select(0, end)
            if self.distance:
                channels = channels_of_steps(steps, start != end, self.distance)
                edges = torch.cat([edges, channels], dim=-1)
            if self.squared:
                designed = steps.square().sum(-1, keepdim=True)
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
        start, end = self.edges[:, self._edge_rows(indices)]
        starts = sizes.square().cumsum(0) - sizes.square()
        start, end = (end, start) if reverse else (start, end)
        pairs: Tensor = starts[owner] + start * sizes[owner] + end
        return pairs

    def _graph_of_edge(self, indices: Ints) -> Tensor:
        counts = self.graphs.edge_counts[indices]
        numbers = torch.arange(len(indices), device=self.device)
        return torch.repeat_interleave(numbers, self._index(counts), output_size=int(counts.sum()))

    def _node_rows(self, indices: Ints) -> Tensor:
        return self._rows(self.node_offsets, indices)

    def _edge_rows(self, indices: Ints) -> Tensor:
        return self._rows(self.edge_offsets, indices)

    def _rows(self, offsets: Ints, indices: Ints) -> Tensor:
        return self._index(ragged_rows(offsets, indices))

    def _index(self, values: Ints) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64)).to(
            self.device, non_blocking=True
        )

    def _put(self, values: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        return tensor.to(self.device, self.dtype if tensor.is_floating_point() else torch.int64)
