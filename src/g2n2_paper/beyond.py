"""Networks with marks beside those without: counts beyond 3-WL, and ZINC.

    counting/beyond/CONTENDER     K4, C7, C8 and the connected induced subgraphs of four vertices,
                                  all at once, in the random graphs of `counting`
    zinc/CONTENDER                penalised logP, resampled training set, equal parameters

Counts are made here and not by the library's formulas, whose networks they judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from g2n2.data.benchmarks import load_counting, substructure_counts
from g2n2.data.graph_set import GraphSet, Target
from g2n2.graphs import Adjacency
from g2n2.training.config import RunConfig

from .contenders import Contender
from .runner import Cell
from .runs import training_cell

Ints = NDArray[np.int64]
LARGE = ("K4", "7_cycle", "8_cycle")
INDUCED = ("path", "claw", "cycle", "paw", "diamond")
"""Connected graphs of four vertices besides K4."""
BEYOND_COUNTS = (*LARGE, *(f"induced_{name}" for name in INDUCED))
BEYOND_EPOCHS, BEYOND_BATCH = 250, 32
ZINC_EPOCHS, ZINC_BATCH = 24, 64
ZINC_SEEDS = (0, 1, 2)
ZINC_WIDTH = 48
ZINC_DECISION = {"r-G_L3": (480,), "r-G_L3Σ": (256,)}
"""Hidden units of the decision layers that make both networks equally large."""
PATHS_AT_ONCE = 100
"""Graphs whose paths are listed together."""


def zinc_cell(contender: Contender, seed: int, epochs: int = ZINC_EPOCHS, **more: Any) -> Cell:
    """A contender on ZINC; bonds are all it reads, so that marks on inner atoms lose nothing.

    Its training set is a resampled one: other molecules of the pool ZINC-12k was drawn from.
    """
    config = RunConfig(
        "zinc",
        grammar=contender.network,
        marks="heavy" if contender.options.get("marks") else "all",
        trunk=contender.options.get("trunk", 0),
        width=ZINC_WIDTH,
        decision=ZINC_DECISION[contender.network],
        layers=contender.layers,
        batch=ZINC_BATCH,
        epochs=epochs,
        precision="tf32",
        seed=seed,
        **more,
    )
    return training_cell("power", f"zinc/{contender.name}", config)


@lru_cache(maxsize=1)
def beyond_graphs(data: str | None) -> GraphSet:
    """The random graphs of the counting set with other counts."""
    graphs = load_counting(data)
    counts = beyond_counts([graphs.adjacency(index) for index in range(len(graphs))])
    return replace(
        graphs,
        targets=np.stack([counts[name] for name in BEYOND_COUNTS], axis=1),
        columns=tuple(Target(name, unit="count") for name in BEYOND_COUNTS),
    ).check()


def beyond_counts(graphs: Sequence[Adjacency]) -> dict[str, NDArray[np.float64]]:
    """`[G]` numbers of each subgraph; K4 and cycles need not be induced."""
    sizes = np.array([len(graph) for graph in graphs])
    counts_by_name: dict[str, NDArray[np.float64]] = {}
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        stack = np.stack([graphs[i] for i in members.tolist()]).astype(np.float64)
        for name, values in {**substructure_counts(stack), **_of_four(stack)}.items():
            counts_by_name.setdefault(name, np.zeros(len(graphs)))[members] = values
    cycles = cycle_counts(graphs, (7, 8))
    four = counts_by_name["K4"]
    diamond = counts_by_name["chordal_cycle"] - 6 * four
    cycle = counts_by_name["4_cycle"] - diamond - 3 * four
    paw = counts_by_name["tailed_triangle"] - 4 * diamond - 12 * four
    claw = counts_by_name["3_star"] - paw - 2 * diamond - 4 * four
    path = counts_by_name["path"] - 2 * paw - 4 * cycle - 6 * diamond - 12 * four
    induced = zip(INDUCED, (path, claw, cycle, paw, diamond), strict=True)
    return {
        "K4": four,
        **{f"{length}_cycle": counts for length, counts in cycles.items()},
        **{f"induced_{name}": values for name, values in induced},
    }


def _of_four(stack: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """K4 and paths of four vertices in a stack `[B, n, n]`."""
    triangles = np.einsum("bij,bik,bjk->bijk", stack, stack, stack)
    four = np.einsum("bijk,bil,bjl,bkl->b", triangles, stack, stack, stack, optimize=True) / 24
    degrees = stack.sum(-1)
    ends = stack * (degrees[:, :, None] - 1) * (degrees[:, None] - 1)
    closed = (stack * (stack @ stack)).sum((1, 2)) / 2  # three for each triangle
    return {"K4": four, "path": ends.sum((1, 2)) / 2 - closed}


def cycle_counts(
    graphs: Sequence[Adjacency], lengths: Sequence[int]
) -> dict[int, NDArray[np.float64]]:
    """Numbers of cycles, by listing the paths that begin at the least vertex of a cycle."""
    counts = {length: np.zeros(len(graphs)) for length in lengths}
    for start in range(0, len(graphs), PATHS_AT_ONCE):
        some = graphs[start : start + PATHS_AT_ONCE]
        graph_of = np.repeat(np.arange(len(some)), [len(graph) for graph in some])
        joined = block_diag(*some) != 0
        origins, ends = np.nonzero(joined)
        first = np.searchsorted(origins, np.arange(len(joined) + 1))
        paths: Ints = np.arange(len(joined))[:, None]
        for length in range(2, max(lengths) + 1):
            degrees = np.diff(first)[paths[:, -1]]
            rows = np.repeat(np.arange(len(paths)), degrees)
            within = np.arange(len(rows)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
            paths = paths[rows]
            following = ends[first[paths[:, -1]] + within]
            new = (following > paths[:, 0]) & (following[:, None] != paths).all(1)
            paths = np.column_stack([paths[new], following[new]])
            if length in counts:
                closed = joined[paths[:, -1], paths[:, 0]]
                closed_counts = np.bincount(graph_of[paths[closed, 0]], minlength=len(some))
                counts[length][start : start + len(some)] = (
                    closed_counts / 2
                )  # in two directions each
    return counts
