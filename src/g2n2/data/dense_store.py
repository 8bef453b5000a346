"""DenseStore: every graph padded once and kept on the device, so that a batch is a few gathers.

A batch is a function of an index tensor with no work on the host, which is what a CUDA graph needs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import DataError
from .batch import GraphBatch
from .distances import distance_channels
from .graph_set import Ints
from .store import GraphStore

ENTRIES = 2**22
"""Padded entries built at once, which bounds the temporary memory."""


class DenseStore:
    """A GraphStore of graph-level targets, padded to its largest graph.

    Small whole numbers are kept as bytes: one-hot features and plain adjacency take a quarter.

    Args:
        store: The flat store; stays where it is.

    Raises:
        DataError: Its targets belong to nodes or edges.
    """

    def __init__(self, store: GraphStore) -> None:
        graphs = store.graphs
        if graphs.level != "graph":
            raise DataError(
                f"{graphs.name} has one target for each {graphs.level}, and only those of graphs "
                "can be kept dense: cut its batches with GraphStore"
            )
        self.store, self.device = store, store.device
        self.most = int(graphs.sizes.max())
        self.sizes = torch.as_tensor(graphs.sizes, device=store.device)
        self.targets = store.targets
        blocks = []
        self.at_once = max(1, ENTRIES // self.most**2)
        for start in range(0, len(graphs), self.at_once):
            batch = store.padded(slice(start, start + self.at_once), self.most)
            blocks.append(tuple(map(_smallest, (batch.adjacency, batch.nodes, batch.edges))))
        # One block that needs more than bytes makes all of them wide again.
        self.adjacency, self.nodes, self.edges = map(torch.cat, zip(*blocks, strict=True))
        self.positions = store.padded_positions(self.most)

    @staticmethod
    def bytes_of(store: GraphStore) -> int:
        """Upper bound of the device memory it takes."""
        most = int(store.graphs.sizes.max())
        channels = 1 + int(store.graphs.edge_features.shape[1])
        per_pair = 4 * channels * most**2
        per_node = 4 * (int(store.graphs.node_features.shape[1]) + 3) * most
        return len(store.graphs) * (per_pair + per_node)

    def batch(self, indices: Tensor, widest: int) -> GraphBatch:
        """The graphs of an index tensor `[B]`, cut to `widest` nodes, which must hold them all."""
        dtype = self.store.dtype
        mask = torch.arange(widest, device=self.device) < self.sizes[indices, None]
        edges = self.edges[:, :widest, :widest].index_select(0, indices).to(dtype)
        if self.positions is not None:
            positions = self.positions[:, :widest].index_select(0, indices)
            channels = distance_channels(positions, mask, self.store.distance)
            edges = torch.cat([edges, channels], dim=-1)
        return GraphBatch(
            self.adjacency[:, :widest, :widest].index_select(0, indices).to(dtype),
            self.nodes[:, :widest].index_select(0, indices).to(dtype),
            edges,
            mask,
            self.store.graphs.directed,
            self.targets.index_select(0, indices),
        )

    def widest(self, indices: Ints) -> int:
        """Nodes of the largest of some graphs."""
        return int(self.store.graphs.sizes[indices].max())


def _smallest(values: Tensor) -> Tensor:
    """As bytes if all are whole numbers below 256."""
    narrow = values.to(torch.uint8)
    return narrow if bool((narrow == values).all()) else values
