"""PackedBatch: graphs of several sizes as rows without padding, ready for a network."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..ops.packing import Packing
from .graph_set import Ints


@dataclass(frozen=True, eq=False)
class PackedBatch:
    """Graphs of a set, the smallest first; see `ops.packing` for what P and Q count.

    Attributes:
        packing: Where each graph lies.
        indices: `[G]` which graphs of the set they are.
        adjacency: `[P, 1]` entries of A.
        nodes: `[Q, F]` node features.
        edges: `[P, E]` edge features.
        directed: Whether some A is not symmetric.
        targets: `[G, T]`, `[Q, T]` or `[P, T]`, NaN where there is none.
        designed: `[P, k]` precomputed spectral supports, or D, or None.
    """

    packing: Packing
    indices: Ints
    adjacency: Tensor
    nodes: Tensor
    edges: Tensor
    directed: bool
    targets: Tensor
    designed: Tensor | None = None

    def __len__(self) -> int:
        return self.packing.graphs
