"""The networks of Q4, built for one grid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from g2n2.compiler.presets import find_preset
from g2n2.nn.baselines import baseline
from g2n2.nn.model import GrammarGNN
from g2n2.nn.supports import SpectralSupports

from .chebyshev_start import write_chebyshev_start, write_linear_readout
from .filter_runs import PARTS, Array, Images
from .q4 import FilterNetwork

SHRINK = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridge strengths of the read-out's start; the validation image chooses one."""


class OneGraph(nn.Module):
    """Spectral supports of a graph that never changes: its eigenvectors are found once."""

    def __init__(self, supports: SpectralSupports, adjacency: Tensor, mask: Tensor) -> None:
        super().__init__()
        self.mix = supports.mix
        with torch.no_grad():
            designed = supports.designed(adjacency, mask)
            if self.mix is None:
                # Matrix by matrix, as products want them: no step has to move 36 MB for that.
                designed = designed.movedim(-1, 0).contiguous().movedim(0, -1)
            self.register_buffer("designed", designed, persistent=False)

    def forward(self, adjacency: Tensor, mask: Tensor) -> Tensor:
        """`[1, N, N, k]`, whatever graph is asked about."""
        designed: Tensor = self.get_buffer("designed")
        return designed if self.mix is None else self.mix(designed)


def make_network(network: FilterNetwork, images: Images, seed: int) -> nn.Module:
    """A network on the images' device, its weights a function of the seed."""
    torch.manual_seed(seed)
    shape: dict[str, Any] = {"node_features": 1, "layers": network.layers, "task": "node"}
    if network.baseline is not None:
        model = baseline(
            network.baseline,
            **shape,
            width=network.width,
            decision=(network.hidden,),
            **network.options,
        ).to(images.device)
        supports = getattr(model, "supports", None)
        if isinstance(supports, SpectralSupports):
            batch = images.batches["train"]
            model.supports = OneGraph(supports, batch.adjacency, batch.mask)
        return model
    options = dict(network.options)
    decision = tuple(options.pop("decision", (network.hidden,)))
    model = GrammarGNN(
        "r-G_L3",
        **shape,
        width={"M": network.matrix_width or network.width, "V_c": network.width},
        preset=replace(find_preset(network.preset), **options),
        decision=decision,
        typical_size=float(len(images.mask)),
    )
    if network.corner is not None:
        channels = write_chebyshev_start(model, network.corner, network.hold)
        solve_readout(model.to(images.device), images, channels)
    elif network.solved:
        channels = list(range(model.plan.readout.local_width))
        solve_readout(model.to(images.device), images, channels)
    return model.to(images.device)


def solve_readout(model: GrammarGNN, images: Images, channels: list[int]) -> None:
    """Start the decision layers at the best linear map of some of what they read.

    It is fitted on the training image, and the validation image says how far to shrink it.
    """
    features = {part: read_features(model, images, part)[:, channels] for part in PARTS[:2]}
    inner = images.mask
    fits = []
    for shrink in SHRINK:
        weights, offset = ridge(features["train"][inner], images.target("train")[inner], shrink)
        score = images.score("validation", features["validation"] @ weights + offset)
        fits.append((score, weights, offset))
    _, weights, offset = max(fits, key=lambda row: row[0])
    start = torch.zeros(model.plan.readout.local_width, device=images.device)
    start[channels] = torch.from_numpy(weights).to(start)
    write_linear_readout(model.readout, start, offset)


@torch.no_grad()
def read_features(model: GrammarGNN, images: Images, part: str) -> Array:
    """`[n, P]` what the decision layers read."""
    batch = images.batches[part]
    memories, constants = model.final(*model.checked(batch))
    features: Array = np.asarray(
        model.readout.features(memories, batch.mask, constants)[0].double().cpu()
    )
    return features


def ridge(columns: Array, truth: Array, shrink: float) -> tuple[Array, float]:
    """Weights `[P]` and offset of a linear map, shrunk in units of each column's deviation."""
    mean, deviation = columns.mean(0), columns.std(0)
    useful = deviation > 1e-6 * max(1.0, float(deviation.max()))
    scaled = np.where(useful, (columns - mean) / np.where(useful, deviation, 1.0), 0.0)
    square = scaled.T @ scaled + shrink * len(scaled) * np.eye(scaled.shape[1])
    solved = np.linalg.solve(square, scaled.T @ (truth - truth.mean()))
    weights: Array = np.where(useful, solved / np.where(useful, deviation, 1.0), 0.0)
    return weights, float(truth.mean() - mean @ weights)
