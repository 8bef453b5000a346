"""graph8c: how many of 61.8 million pairs networks with random weights merge, in float64.

Two graphs are told apart by a network if some number differs by more than ten times what any
relabelling of any graph changes it, and by a contender if one of its networks tells them apart.
(gnn-matlang asks for a difference of 0.001, which depends on the size of the weights.)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from g2n2.data.suites import load_suite
from g2n2.graphs import Adjacency
from g2n2.nn.expressivity import FLOOR_ULPS, MARGIN, build
from g2n2.power.suites import SameSizePairs, Suite

from .contenders import PAIRS, Contender, exact_power, plain_embedding, suite_checksum
from .runner import Cell, Job, Measurement

MERGED_AT_RANDOM = "merged by random weights"
RELABELINGS = 3
GRAPHS_AT_A_TIME = 2048

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]


def graph8c_cell(contender: Contender, networks: int, limit: int = 0) -> Cell:
    """A contender on graph8c, or on its first graphs: so many networks, with seeds from 0."""

    def run(job: Job) -> Measurement:
        suite = graph8c(limit)
        merged, counts = None, []
        for seed in range(networks):
            values, tolerance = embeddings(contender, suite.graphs, seed, job.torch_device())
            merged = close_pairs(values, tolerance, merged)
            counts.append(len(merged))
        exact = exact_power(contender, suite).metrics
        separated = (exact[PAIRS] or 0) - counts[-1]
        random = {"separated by random weights": separated, MERGED_AT_RANDOM: counts[-1]}
        return Measurement(
            networks,
            "networks",
            {**random, **exact},
            data={"graph8c": suite_checksum(suite)},
            config={"graphs": len(suite.graphs), "precision": "float64"},
            detail={"merged after each network": counts},
        )

    settings = {"contender": contender.as_dict(), "networks": networks}
    return Cell("power", f"graph8c/{contender.name}", run, settings)


@torch.no_grad()
def embeddings(
    contender: Contender, graphs: Sequence[Adjacency], seed: int, device: torch.device
) -> tuple[Floats, Floats]:
    """Embeddings `[G, d]` by random weights, and `[d]` what a difference has to exceed."""
    model: Any = build(lambda _: plain_embedding(contender), seed, "float64")
    model.to(device)
    stack = torch.tensor(np.stack(graphs), dtype=torch.float64, device=device)
    orders = np.random.default_rng(seed)

    def run(order: Pairs) -> Floats:
        chosen = torch.as_tensor(order, device=device)
        moved = stack[:, chosen][:, :, chosen]
        parts = torch.split(moved, GRAPHS_AT_A_TIME)
        return np.asarray(torch.cat([model(part) for part in parts]).cpu())

    nodes = stack.shape[1]
    values = run(np.arange(nodes))
    noise = [np.abs(run(orders.permutation(nodes)) - values).max(0) for _ in range(RELABELINGS)]
    floor = FLOOR_ULPS * np.finfo(np.float64).eps * np.abs(values).max(0)
    return values, MARGIN * np.max(noise, axis=0) + floor


def close_pairs(values: Floats, tolerance: Floats, among: Pairs | None = None) -> Pairs:
    """The pairs `[K, 2]` of rows of `[G, d]` that agree in every column to its tolerance `[d]`.

    Candidates are those of `among`, or all.
    """
    if among is not None:
        difference = np.abs(values[among[:, 0]] - values[among[:, 1]])
        return among[(difference <= tolerance).all(1)]
    units = values / np.where(tolerance > 0, tolerance, 1.0)
    candidates = cKDTree(units).query_pairs(1.001, p=np.inf, output_type="ndarray")
    return close_pairs(values, tolerance, candidates)


@lru_cache(maxsize=2)
def graph8c(limit: int = 0) -> Suite:
    """The suite, or only its first graphs."""
    suite = load_suite("graph8c")
    graphs = suite.graphs[: limit or None]
    return Suite("graph8c", graphs, SameSizePairs.of(graphs)) if limit else suite
