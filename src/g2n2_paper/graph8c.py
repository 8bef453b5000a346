"""graph8c: how many of 61.8 million pairs networks with random weights merge, in float64.

Two graphs are told apart by a network if some number differs by more than ten times what any
relabelling of any graph changes it, and by a contender if one of its networks tells them apart.
(gnn-matlang asks for a difference of 0.001, which depends on the size of the weights.) Metrics are
`separated by random weights`, `merged by random weights` and those of `suites`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from g2n2.data.suites import load_suite
from g2n2.graphs import Adjacency
from g2n2.nn.expressivity import FLOOR_ULPS, MARGIN, build
from g2n2.power.suites import SameSizePairs, Suite

from .runner import Cell, Job, Measurement
from .suites import Contender, exact_power, suite_checksum

MERGED_AT_RANDOM = "merged by random weights"
RELABELINGS = 3
GRAPHS_AT_A_TIME = 2048

Pairs = NDArray[np.int64]


def graph8c_cell(contender: Contender, networks: int, limit: int = 0) -> Cell:
    """A contender on graph8c.

    Args:
        contender: The network.
        networks: How many, with seeds from 0.
        limit: Only the first graphs; 0 for all.
    """
    settings = {"contender": contender.as_dict(), "networks": networks}

    def run(job: Job) -> Measurement:
        suite = graph8c(limit)
        merged, counts = None, []
        for seed in range(networks):
            values, tolerance = embeddings(contender, suite.graphs, seed, job.torch_device())
            merged = close_pairs(values, tolerance, merged)
            counts.append(len(merged))
        exact = exact_power(contender, suite)
        separated = exact.pairs - counts[-1]
        return Measurement(
            done=networks,
            unit="networks",
            metrics={
                "separated by random weights": separated,
                MERGED_AT_RANDOM: counts[-1],
                **exact.metrics(),
            },
            config={**settings, "graphs": len(suite.graphs), "precision": "float64"},
            data={"graph8c": suite_checksum(suite)},
            detail={"merged after each network": counts},
        )

    return Cell("power", f"graph8c/{contender.name}", run, settings)


def embeddings(
    contender: Contender, graphs: Sequence[Adjacency], seed: int, device: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Embeddings `[G, d]` by random weights, and `[d]` what a difference has to exceed."""
    import torch

    from .embeddings import plain_embedding

    model: Any = build(lambda _: plain_embedding(contender), seed, "float64")
    model.to(device)
    stack = torch.tensor(np.stack(graphs), dtype=torch.float64, device=device)
    orders = np.random.default_rng(seed)

    @torch.no_grad()
    def run(order: NDArray[np.int64]) -> NDArray[np.float64]:
        chosen = torch.as_tensor(order, device=device)
        moved = stack[:, chosen][:, :, chosen]
        rows = [
            model(moved[start : start + GRAPHS_AT_A_TIME])
            for start in range(0, len(moved), GRAPHS_AT_A_TIME)
        ]
        values: NDArray[np.float64] = torch.cat(rows).cpu().numpy()
        return values

    nodes = stack.shape[1]
    values = run(np.arange(nodes))
    noise = [np.abs(run(orders.permutation(nodes)) - values).max(0) for _ in range(RELABELINGS)]
    floor = FLOOR_ULPS * np.finfo(np.float64).eps * np.abs(values).max(0)
    return values, MARGIN * np.max(noise, axis=0) + floor


def close_pairs(
    values: NDArray[np.float64], tolerance: NDArray[np.float64], among: Pairs | None = None
) -> Pairs:
    """The pairs `[K, 2]` of rows that agree in every column to its tolerance.

    Args:
        values: `[G, d]`.
        tolerance: `[d]`.
        among: Candidate pairs; None for all.
    """
    close = partial(_agree, values, tolerance)
    if among is not None:
        return close(among)
    # Sorted by the column that varies most, only neighbours can agree.
    column = int(np.argmax(values.std(0) / tolerance))
    order = np.argsort(values[:, column])
    sorted_values = values[order, column]
    ends = np.searchsorted(sorted_values, sorted_values + tolerance[column], side="right")
    pairs_found = [np.zeros((0, 2), dtype=np.int64)]
    for place, end in enumerate(ends.tolist()):
        others = order[place + 1 : end]
        if len(others):
            pairs = np.column_stack([np.full(len(others), order[place]), others])
            pairs_found.append(close(np.sort(pairs, axis=1)))
    return np.concatenate(pairs_found)


def _agree(values: NDArray[np.float64], tolerance: NDArray[np.float64], pairs: Pairs) -> Pairs:
    apart = np.abs(values[pairs[:, 0]] - values[pairs[:, 1]])
    return pairs[(apart <= tolerance).all(1)]


@lru_cache(maxsize=2)
def graph8c(limit: int = 0) -> Suite:
    """The suite, or only its first graphs."""
    suite = load_suite("graph8c")
    if not limit:
        return suite
    graphs = suite.graphs[:limit]
    return Suite("graph8c", graphs, SameSizePairs.of(graphs))
