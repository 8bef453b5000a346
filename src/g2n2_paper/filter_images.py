"""The images of Q4, their scores, and how strongly a filter passes each frequency."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from g2n2.data.batch import GraphBatch
from g2n2.data.benchmarks import FILTERS
from g2n2.data.graph_set import GraphSet
from g2n2.data.store import GraphStore
from g2n2.spectral.response import spectrum

Array = NDArray[np.float64]
CPU = torch.device("cpu")
PARTS = ("train", "validation", "test")
BANDS = 40


@dataclass(frozen=True, eq=False)
class Images:
    """The graphs of `load_filtering` and one of its filters to learn, on a device."""

    graphs: GraphSet
    filter: str
    device: torch.device = CPU
    contrast: float = 1.0  # what the grey values of the batches are multiplied by

    @cached_property
    def adjacency(self) -> Array:
        """`[n, n]` of the grid, the same for all images."""
        return self.graphs.adjacency(0)

    @cached_property
    def nodes(self) -> Tensor:
        """`[m]` the nodes that are scored."""
        return torch.from_numpy(np.flatnonzero(self.mask)).to(self.device)

    @cached_property
    def truth(self) -> Tensor:
        """`[m]` the training image's target there."""
        return torch.from_numpy(self.target("train")[self.mask]).to(self.device)

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """`[n]` true where a node is scored."""
        return np.asarray(np.isfinite(self.target("train")))

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
        grey = self.graphs.node_features * np.float32(self.contrast)
        store = GraphStore(replace(self.graphs, node_features=grey), self.device)
        return {part: store.batch(self.graphs.splits[part]) for part in PARTS}

    def _of(self, part: str, values: Array) -> Array:
        graph = int(self.graphs.splits[part][0])
        start, end = self.graphs.node_offsets[graph : graph + 2]
        return values[start:end]


def r_squared(values: Array, truth: Array) -> float:
    """1 − Σ(values − truth)² / Σ(truth − mean)²."""
    return 1.0 - float(((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def band_response(images: Images, part: str, values: Array) -> dict[str, list[float]]:
    """Slopes of `values` `[n]` and of the truth over the input, for each band that is not empty.

    A network need not be linear, so its spectral response is a regression: in each narrow band of
    eigenvalues of D − A, the slope of the output's components over those of the input. Only the
    scored nodes count, so the eigenvectors are those of their own grid; each image is taken less
    its mean.

    Returns:
        `eigenvalues` (middles of bands), `learned` and `truth`.
    """
    inner = images.mask
    frequencies = spectrum(images.adjacency[np.ix_(inner, inner)], "combinatorial")
    edges = np.linspace(0.0, float(frequencies.eigenvalues[-1]), BANDS + 1)
    band = np.clip(np.digitize(frequencies.eigenvalues, edges) - 1, 0, BANDS - 1)

    def components(image: Array) -> Array:
        return np.asarray(frequencies.vectors.T @ (image[inner] - image[inner].mean()))

    entering = components(images.input(part))
    power = np.bincount(band, entering**2, BANDS)
    filled = np.flatnonzero(power > 0)

    def slopes(image: Array) -> list[float]:
        passed = np.bincount(band, entering * components(image), BANDS)
        return [round(float(value), 6) for value in passed[filled] / power[filled]]

    middles = (edges[:-1] + edges[1:])[filled] / 2
    return {
        "eigenvalues": [round(float(value), 6) for value in middles],
        "learned": slopes(values),
        "truth": slopes(images.target(part)),
    }
