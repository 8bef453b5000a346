"""graph8c: how many of 61.8 million pairs networks with random weights leave merged, in float64.

Two graphs are told apart by a network if some number differs by more than ten times what any
relabelling of any graph changes it, and by a contender if one of its networks does. (gnn-matlang
asks for a difference of 0.001, which depends on the size of the weights.)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.suites import load_suite
from ...graphs import Adjacency
from ...nn.expressivity import FLOOR_ULPS, MARGIN, build
from ...power.suites import SameSizePairs, Suite
from ..cell import Cell, Slice
from ..exact_cells import suite_checksum
from ..kept import keep, read_kept
from ..machines import device_called, machine
from ..record import Record
from .contenders import Contender
from .exact import exact_power

SEPARATED = "separated by random weights"
MERGED = "merged by random weights"
RELABELINGS = 3
GRAPHS_AT_A_TIME = 2048

Pairs = NDArray[np.int64]


def graph8c_cell(contender: Contender, budget: str, networks: int, limit: int) -> Cell:
    """A contender on graph8c.

    Args:
        contender: The network.
        budget: Whose settings it has.
        networks: How many, with seeds from 0 on.
        limit: Only the first graphs; 0 for all.
    """

    def run(given: Slice) -> Record:
        return run_graph8c(contender, budget, networks, limit, given)

    settings = {"contender": contender.as_dict(), "networks": networks}
    return Cell("power", f"graph8c/{contender.name}", 0, budget, run, settings=settings)


def run_graph8c(
    contender: Contender, budget: str, networks: int, limit: int, given: Slice
) -> Record:
    """Networks one after the other, as many as the slice allows, one at least."""
    begun = time.monotonic()
    suite = graph8c(limit)
    kept = given.work / "networks.json"
    left, merged = read_kept(kept, _understood) or ([], None)
    for seed in range(len(left), networks):
        if left and time.monotonic() > given.ends(begun):
            break
        given.tell(f"network {seed + 1}", seed, networks)
        values, tolerance = embeddings(contender, suite.graphs, seed, device_called(given.device))
        merged = close_pairs(values, tolerance, merged)
        left.append(len(merged))
        keep(kept, {"left": left, "merged": merged.tolist()})
        given.note()
    exact = exact_power(contender, suite, given.work / "exact.json")
    return Record(
        question="power",
        cell=f"graph8c/{contender.name}",
        seed=0,
        budget=budget,
        done=len(left),
        planned=networks,
        unit="networks",
        metrics={SEPARATED: exact.pairs - left[-1], MERGED: left[-1], **exact.metrics()},
        config={
            "contender": contender.as_dict(),
            "networks": networks,
            "graphs": len(suite.graphs),
            "precision": "float64",
        },
        data={"graph8c": suite_checksum(suite)},
        provenance=machine(given.device),
        seconds=given.seconds(begun),
        detail={"merged after each network": left},
    )


def _understood(said: Any) -> tuple[list[int], Pairs]:
    """How many pairs each network left merged, and those that all of them did, as they were kept.

    Raises:
        ValueError: They are something else.
    """
    left = [int(count) for count in said["left"]]
    merged = np.array(said["merged"], dtype=np.int64).reshape(-1, 2)
    if not left or left[-1] != len(merged):
        raise ValueError
    return left, merged


def embeddings(
    contender: Contender, graphs: Sequence[Adjacency], seed: int, device: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`[G, d]` of a network with random weights, and `[d]` what a difference has to exceed."""
    import torch

    from .siamese import plain_embedding

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
    """`[K, 2]` the pairs of rows that agree in every column to its tolerance.

    Args:
        values: `[G, d]`.
        tolerance: `[d]`.
        among: Pairs to look at; all where None.
    """
    close = partial(_agree, values, tolerance)
    if among is not None:
        return close(among)
    # Along the column that says most, only neighbours need be looked at.
    column = int(np.argmax(values.std(0) / tolerance))
    order = np.argsort(values[:, column])
    sorted_values = values[order, column]
    ends = np.searchsorted(sorted_values, sorted_values + tolerance[column], side="right")
    found = [np.zeros((0, 2), dtype=np.int64)]
    for place, end in enumerate(ends.tolist()):
        others = order[place + 1 : end]
        if len(others):
            pairs = np.column_stack([np.full(len(others), order[place]), others])
            found.append(close(np.sort(pairs, axis=1)))
    return np.concatenate(found)


def _agree(values: NDArray[np.float64], tolerance: NDArray[np.float64], pairs: Pairs) -> Pairs:
    apart = np.abs(values[pairs[:, 0]] - values[pairs[:, 1]])
    return pairs[(apart <= tolerance).all(1)]


@lru_cache(maxsize=2)
def graph8c(limit: int) -> Suite:
    suite = load_suite("graph8c")
    if not limit:
        return suite
    graphs = suite.graphs[:limit]
    return Suite("graph8c", graphs, SameSizePairs.of(graphs))
