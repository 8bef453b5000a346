"""The three images of TwoDGrid30: one grid, one input, one filter's output, R² on the mask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data.benchmarks.filtering import FILTERS
from ...data.graph_set import GraphSet
from ...data.store import GraphStore

if TYPE_CHECKING:
    from ...data.batch import GraphBatch

Array = NDArray[np.float64]
CPU = torch.device("cpu")
PARTS = ("train", "validation", "test")


def r_squared(values: Array, truth: Array) -> float:
    """1 − Σ(values − truth)² / Σ(truth − mean)²."""
    return 1.0 - float(((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


@dataclass(frozen=True, eq=False)
class Images:
    """The images and one filter to learn.

    Attributes:
        graphs: As `load_filtering` gives them.
        filter: One of `FILTERS`.
        device: Where batches live.
    """

    graphs: GraphSet
    filter: str
    device: torch.device = CPU

    def place(self, part: str) -> int:
        return int(self.graphs.splits[part][0])

    @cached_property
    def adjacency(self) -> Array:
        """`[n, n]` of the grid, the same for all images."""
        return self.graphs.adjacency(0)

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """`[n]` true where a node is scored."""
        known: NDArray[np.bool_] = np.isfinite(self.target("train"))
        return known

    def input(self, part: str) -> Array:
        """`[n]` grey values."""
        return self._of(part, self.graphs.node_features[:, 0].astype(np.float64))

    def target(self, part: str) -> Array:
        """`[n]` filtered, NaN outside the mask."""
        return self._of(part, self.graphs.targets[:, FILTERS.index(self.filter)])

    def score(self, part: str, values: Array) -> float:
        """R² of values `[n]` on the mask."""
        return r_squared(values[self.mask], self.target(part)[self.mask])

    @cached_property
    def batches(self) -> dict[str, GraphBatch]:
        """Each image as a batch of its own."""
        store = GraphStore(self.graphs, self.device)
        return {part: store.batch(self.graphs.splits[part]) for part in PARTS}

    def known(self, part: str) -> tuple[Tensor, Tensor]:
        """`[m]` numbers of the scored nodes, and `[m]` what they should give, on the device."""
        nodes = np.flatnonzero(self.mask)
        truth = torch.from_numpy(self.target(part)[nodes]).float()
        return torch.from_numpy(nodes).to(self.device), truth.to(self.device)

    def _of(self, part: str, values: Array) -> Array:
        start, end = self.graphs.node_offsets[self.place(part) :][:2]
        return values[start:end]
