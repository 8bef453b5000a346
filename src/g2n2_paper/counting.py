"""Subgraph counts in random graphs, by networks and by the words of their grammars.

    counting/joint/CONTENDER      six counts at once (not necessarily induced)
    counting/beyond/CONTENDER     K4, C7, C8 and the connected induced subgraphs of four vertices at
                                  once: counts beyond 3-WL, made here and not by the library's
                                  formulas, whose networks they judge
    counting/exact/CONTENDER      `pairs merged` by the words, among the connected graphs of eight
                                  nodes, and of these `pairs merged, other COUNT`: 0 means that the
                                  words determine the count there
    counting/written/COUNT        a count written into the weights of a network with a mark, before
                                  and after training on it. It computes in float64, where sums of
                                  whole numbers are exact: a loss of 0 has no gradient, and training
                                  then leaves every weight as it is. `gradient` is the largest that
                                  any weight had

Errors are divided by the deviation of the counts in the training graphs (Chen et al. 2020).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import block_diag
from torch import Tensor

from g2n2.data.batch import GraphBatch
from g2n2.data.benchmarks import load_counting, substructure_counts
from g2n2.data.graph_set import GraphSet, Ints, Target
from g2n2.formulas.formula_plan import requirements
from g2n2.formulas.writing import write_formula
from g2n2.grammars.subgraph_counts import formula
from g2n2.graphs import Adjacency
from g2n2.nn.model import GrammarGNN
from g2n2.training.evaluate import Outcome
from g2n2.training.run_folder import RunFolder
from g2n2.training.trained_on import checksum

from .contenders import Contender, suite_checksum, word_classes
from .graph8c import graph8c
from .runner import Cell, Job, Measurement
from .runs import training_cell

Floats = NDArray[np.float64]
COUNTS = ("triangle", "tailed_triangle", "3_star", "4_cycle", "5_cycle", "6_cycle")
INDUCED = ("path", "claw", "cycle", "paw", "diamond")
"""Connected graphs of four vertices besides K4."""
BEYOND_COUNTS = ("K4", "7_cycle", "8_cycle", *(f"induced_{name}" for name in INDUCED))
WRITTEN = {"K4": "K4", "8_cycle": "C8"}
"""Names of counts to those of their formulas."""
MERGED, OTHER = "pairs merged", "pairs merged, other {}"
NORMALISED = "normalised test MAE {}"
MARKED_GRAMMAR = "r-G_L3Σ"
WRITTEN_BATCH, WRITTEN_RATE = 32, 1e-3
PATHS_AT_ONCE = 100
"""Graphs whose paths are listed together."""


def counting_cell(
    contender: Contender, epochs: int = 200, limit: int = 0, threads: int = 0
) -> Cell:
    """A contender on six counts."""
    config = contender.config(
        "counting", target=COUNTS, epochs=epochs, limit=limit, threads=threads
    )
    name = f"counting/joint/{contender.name}"
    return training_cell("power", name, config, measure=normalised_errors)


def beyond_cell(contender: Contender) -> Cell:
    """A contender on counts beyond 3-WL."""
    config = contender.config("counting", target=BEYOND_COUNTS, marks="all", batch=32, epochs=250)
    name = f"counting/beyond/{contender.name}"
    return training_cell("power", name, config, measure=normalised_errors, source=beyond_graphs)


def normalised_errors(outcome: Outcome, folder: Path) -> dict[str, float]:
    """Test MAE of every count over the deviation of that count in the training graphs."""
    train = outcome.graphs.select(RunFolder(folder).splits()["train"]).targets
    return {
        NORMALISED.format(column.name): outcome.scores[column.name]["mae"] / float(deviation)
        for column, deviation in zip(outcome.graphs.columns, train.std(axis=0), strict=True)
    }


def exact_cell(contender: Contender, limit: int = 0) -> Cell:
    """Which counts the words of a contender's grammar determine at its depth."""

    def run(job: Job) -> Measurement:
        suite = graph8c(limit)
        classes = word_classes(contender, suite)
        assert classes is not None, "a contender without a grammar has no such cell"
        merged = equal_pairs(classes)
        by_name = substructure_counts(np.stack(suite.graphs).astype(np.float64))
        pairs = {
            count: list(zip(classes, by_name[count].tolist(), strict=True)) for count in COUNTS
        }
        other = {OTHER.format(count): merged - equal_pairs(pairs[count]) for count in COUNTS}
        data, config = {"graph8c": suite_checksum(suite)}, {"graphs": len(suite.graphs)}
        return Measurement(1, "measurements", {MERGED: merged, **other}, data, config)

    settings, name = {"contender": contender.as_dict(), "limit": limit}, contender.name
    return Cell("power", f"counting/exact/{name}", run, settings, defaults={"limit": 0})


def equal_pairs(values: Sequence[object]) -> int:
    """The number of pairs of equal values."""
    return sum(comb(times, 2) for times in Counter(values).values())


def written_cell(count: str, epochs: int = 3) -> Cell:
    """One count of `beyond_counts`."""

    def run(job: Job) -> Measurement:
        graphs, device = beyond_graphs(job.data), job.torch_device()
        term = formula(WRITTEN[count])
        needed = requirements(MARKED_GRAMMAR, term)  # of a network just large enough
        shape: dict[str, Any] = {"width": dict(needed.width), "layers": needed.depth}
        model = GrammarGNN(MARKED_GRAMMAR, **shape, decision=(2,), preset="paper").double()
        write_formula(model, term)
        model = model.to(device)
        column = [target.name for target in graphs.columns].index(count)

        def part(name: str) -> tuple[list[GraphBatch], Tensor]:
            some = graphs.select(graphs.splits[name])
            dense = [some.adjacency(index) for index in range(len(some))]
            groups = (dense[i : i + WRITTEN_BATCH] for i in range(0, len(dense), WRITTEN_BATCH))
            batches = [GraphBatch.of(group, dtype=torch.float64).to(device) for group in groups]
            return batches, torch.tensor(some.targets[:, column], device=device)

        train, test = part("train"), part("test")
        unit = float(train[1].std(correction=0)) or 1.0
        name = NORMALISED.format(count)
        metrics: dict[str, float | None] = {f"{name}, written": _error(model, *test) / unit}
        metrics["gradient"] = train_written(model, *train, epochs, unit)
        metrics |= {f"{name}, trained": _error(model, *test) / unit}
        metrics |= {"parameters": model.parameter_count}
        config = {"formula": model.formula, "precision": "float64"}
        steps = epochs * len(train[0])
        return Measurement(steps, "steps", metrics, {"counting": checksum(graphs)}, config)

    settings = {"count": count, "epochs": epochs, "limit": 0, "grammar": MARKED_GRAMMAR}
    settings["rate"] = WRITTEN_RATE
    return Cell("power", f"counting/written/{count}", run, settings)


@torch.no_grad()
def _error(model: GrammarGNN, batches: Sequence[GraphBatch], counts: Tensor) -> float:
    """Mean absolute error."""
    return float((torch.cat([model(batch)[:, 0] for batch in batches]) - counts).abs().mean())


def train_written(
    model: GrammarGNN, batches: Sequence[GraphBatch], counts: Tensor, epochs: int, unit: float
) -> float:
    """Adam on the mean squared error; the largest gradient of any weight."""
    optimizer = torch.optim.Adam(model.parameters(), WRITTEN_RATE)
    parts, largest = torch.split(counts, WRITTEN_BATCH), counts.new_zeros(())
    for _ in range(epochs):
        for batch, wanted in zip(batches, parts, strict=True):
            optimizer.zero_grad()
            loss = ((model(batch)[:, 0] - wanted) / unit).square().mean()
            torch.autograd.backward(loss)
            slopes = [w.grad.abs().max() for w in model.parameters() if w.grad is not None]
            largest = torch.maximum(largest, torch.stack(slopes).max())
            optimizer.step()
    return float(largest)


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


def beyond_counts(graphs: Sequence[Adjacency]) -> dict[str, Floats]:
    """`[G]` numbers of each subgraph; K4 and cycles need not be induced."""
    sizes = np.array([len(graph) for graph in graphs])
    by_name: dict[str, Floats] = {}
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        stack = np.stack([graphs[i] for i in members.tolist()]).astype(np.float64)
        for name, values in {**substructure_counts(stack), **_of_four(stack)}.items():
            by_name.setdefault(name, np.zeros(len(graphs)))[members] = values
    four = by_name["K4"]
    diamond = by_name["chordal_cycle"] - 6 * four
    cycle = by_name["4_cycle"] - diamond - 3 * four
    paw = by_name["tailed_triangle"] - 4 * diamond - 12 * four
    claw = by_name["3_star"] - paw - 2 * diamond - 4 * four
    path = by_name["path"] - 2 * paw - 4 * cycle - 6 * diamond - 12 * four
    counts = (four, *cycle_counts(graphs, (7, 8)).values(), path, claw, cycle, paw, diamond)
    return dict(zip(BEYOND_COUNTS, counts, strict=True))


def _of_four(stack: Floats) -> dict[str, Floats]:
    """K4 and paths of four vertices in a stack `[B, n, n]`."""
    triangles = np.einsum("bij,bik,bjk->bijk", stack, stack, stack)
    four = np.einsum("bijk,bil,bjl,bkl->b", triangles, stack, stack, stack, optimize=True) / 24
    degrees = stack.sum(-1)
    ends = stack * (degrees[:, :, None] - 1) * (degrees[:, None] - 1)
    closed = (stack * (stack @ stack)).sum((1, 2)) / 2  # three for each triangle
    return {"K4": four, "path": ends.sum((1, 2)) / 2 - closed}


def cycle_counts(graphs: Sequence[Adjacency], lengths: Sequence[int]) -> dict[int, Floats]:
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
                closed = paths[joined[paths[:, -1], paths[:, 0]], 0]
                both_ways = np.bincount(graph_of[closed], minlength=len(some))
                counts[length][start : start + len(some)] = both_ways / 2
    return counts
