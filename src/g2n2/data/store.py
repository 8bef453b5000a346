"""GraphStore: a GraphSet as tensors on the device, from which batches are cut without the host."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from .batch import LARGE, GraphBatch, dense, sparse
from .distances import distance_channels, distance_width
from .graph_set import GraphSet, Ints

if TYPE_CHECKING:
    from .pair_table import PairTable


class GraphStore:
    """All graphs of a set on one device.

    Args:
        graphs: The set.
        device: Where the tensors live and batches are made.
        distance: Edge channels made of the positions: `raw`, `square`, `inverse`, `rbf16` ….
        dtype: Of features and targets.
        columns_only: Whether the batches are for a network that is: A of large graphs is sparse.

    Attributes:
        designed: Spectral supports of all graphs, where somebody has made them.
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

    def bytes(self) -> int:
        """Device memory the set takes."""
        kept = (self.edges, self.node_features, self.edge_features, self.targets, self.weights)
        tensors = [t for t in (*kept, self.positions) if t is not None]
        return sum(int(t.nbytes) for t in tensors)

    def batch(self, indices: Ints) -> GraphBatch:
        """The graphs of these indices as one batch, targets included.

        Targets of nodes are `[B, N, T]` and of edges `[B, N, N, T]`, NaN where there is none; those
        of edges `[E, T]` where A is sparse.
        """
        sizes = self.graphs.sizes[indices]
        counts = self.graphs.edge_counts[indices]
        node_rows = self._rows(self.node_offsets[indices], sizes)
        edge_rows = self._rows(self.edge_offsets[indices], counts)
        on_device = self._index(sizes)
        owner = torch.repeat_interleave(
            torch.arange(len(indices), device=self.device),
            self._index(counts),
            output_size=int(counts.sum()),
        )
        ends = self.edges[:, edge_rows]
        nodes = self.node_features[node_rows]
        weights = None if self.weights is None else self.weights[edge_rows]
        widest, directed = int(sizes.max()), self.graphs.directed
        if self.sparse(widest):
            made = sparse(
                on_device,
                owner,
                ends,
                nodes=nodes,
                weights=weights,
                edge_features=self.edge_features.shape[1],
                directed=directed,
                widest=widest,
            )
        else:
            made = dense(
                on_device,
                owner,
                ends,
                nodes=nodes,
                edges=self.edge_features[edge_rows],
                weights=weights,
                directed=directed,
                widest=widest,
            )
        edges = made.edges
        if self.positions is not None and not made.adjacency.is_sparse:
            place = self.positions.new_zeros(*made.mask.shape, 3)
            place[made.mask] = self.positions[node_rows]
            edges = torch.cat([edges, distance_channels(place, made.mask, self.distance)], dim=-1)
        targets = self._targets(made, indices, node_rows, edge_rows, owner, ends)
        designed = None
        if self.designed is not None:
            designed = self.designed.batch(self._index(indices), made.mask.shape[1])
        return replace(made, edges=edges, targets=targets, designed=designed)

    def padded(self, span: slice, widest: int) -> GraphBatch:
        """Some graphs in a row, padded to `widest` nodes, without distances or targets."""
        numbers = np.arange(len(self))[span]
        sizes, counts = self.graphs.sizes[numbers], self.graphs.edge_counts[numbers]
        edge_rows = self._rows(self.edge_offsets[numbers], counts)
        return dense(
            self._index(sizes),
            self._index(np.repeat(np.arange(len(numbers)), counts)),
            self.edges[:, edge_rows],
            nodes=self.node_features[self._rows(self.node_offsets[numbers], sizes)],
            edges=self.edge_features[edge_rows],
            weights=None if self.weights is None else self.weights[edge_rows],
            directed=self.graphs.directed,
            widest=widest,
        )

    def padded_positions(self, widest: int) -> Tensor | None:
        """`[G, widest, 3]`, or None where there are none."""
        if self.positions is None:
            return None
        mask = torch.arange(widest, device=self.device) < self._index(self.graphs.sizes)[:, None]
        place = self.positions.new_zeros(*mask.shape, 3)
        place[mask] = self.positions
        return place

    def _targets(
        self,
        batch: GraphBatch,
        indices: Ints,
        node_rows: Tensor,
        edge_rows: Tensor,
        owner: Tensor,
        ends: Tensor,
    ) -> Tensor:
        columns = self.targets.shape[1]
        if self.graphs.level == "graph":
            return self.targets[self._index(indices)]
        if self.graphs.level == "node":
            values = self.targets.new_full((*batch.mask.shape, columns), torch.nan)
            values[batch.mask] = self.targets[node_rows]
            return values
        if batch.adjacency.is_sparse:
            return self.targets[edge_rows]
        values = self.targets.new_full((*batch.adjacency.shape, columns), torch.nan)
        values[owner, ends[0], ends[1]] = self.targets[edge_rows]
        return values

    def _rows(self, starts: Ints, counts: Ints) -> Tensor:
        """Flat rows of ragged pieces."""
        shift = starts - np.concatenate([[0], np.cumsum(counts)[:-1]])
        return self._index(np.repeat(shift, counts) + np.arange(int(counts.sum())))

    def _index(self, values: Ints) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64)).to(
            self.device, non_blocking=True
        )

    def _put(self, values: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        return tensor.to(self.device, self.dtype if tensor.is_floating_point() else torch.int64)
