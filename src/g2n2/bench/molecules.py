"""Graphs to measure with: molecules of QM9's sizes, and single graphs of any size.

The work of a dense network depends on the sizes alone, so that drawn molecules cost what the real
ones do; the real ones are taken where they are at hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..data.graph_set import GraphSet, Ints, Target
from .cases import Case

QM9_SIZES = {
    3: 2, 4: 4, 5: 5, 6: 12, 7: 20, 8: 65, 9: 172, 10: 483, 11: 1053, 12: 2189, 13: 4027,
    14: 6758, 15: 10216, 16: 13824, 17: 16969, 18: 17442, 19: 18146, 20: 12403, 21: 13166,
    22: 4428, 23: 6362, 24: 712, 25: 1923, 26: 59, 27: 356, 29: 35,
}  # fmt: skip
"""Atoms of a molecule to how many of the 130,831 molecules of QM9 have so many."""
NODE_FEATURES, EDGE_FEATURES = 11, 4
DISTANCE = {"paper": ("raw",), "modern": ("raw", "square", "rbf16")}
"""Edge channels made of positions, as the recipe of that name has them."""


def graphs_of(case: Case, cache: Path | None = None, seed: int = 0) -> GraphSet:
    """The graphs of one pass.

    Args:
        case: Says how many and which.
        cache: The cache file of QM9, for real molecules.
        seed: Of the choice.
    """
    count = case.batch * case.batches
    if case.nodes:
        return grids(count, case.nodes) if case.shape == "grid" else sparse(count, case.nodes, seed)
    return drawn_molecules(count, seed) if cache is None else real_molecules(count, cache, seed)


def source_of(case: Case, cache: Path | None) -> str:
    """What a case is measured on, in words: molecules of QM9 or such as are drawn."""
    if case.kind == "product":
        return "random matrices"
    if case.nodes:
        return "grids" if case.shape == "grid" else "random graphs"
    return "QM9's own" if cache or case.kind == "epoch" else "drawn at QM9's sizes"


def sizes_of(case: Case) -> Ints:
    """Sizes of the graphs of one pass, before any is made."""
    count = case.batch * case.batches
    return np.full(count, case.nodes) if case.nodes else qm9_sizes(count)


def qm9_sizes(count: int, seed: int = 0) -> Ints:
    """`[count]` sizes drawn as QM9's are distributed."""
    sizes, often = np.array(list(QM9_SIZES)), np.array(list(QM9_SIZES.values()))
    chosen = np.random.default_rng(seed).choice(sizes, size=count, p=often / often.sum())
    return chosen.astype(np.int64)


def drawn_molecules(count: int, seed: int = 0) -> GraphSet:
    """Random trees of QM9's sizes, with as many features as QM9 has, and positions."""
    sizes = qm9_sizes(count, seed)
    draw = np.random.default_rng([seed, 1])
    within = _within(sizes)
    bonded = within > 0  # every atom but the first is bonded to one before it
    child = within[bonded]
    parent = (draw.random(len(child)) * child).astype(np.int64)
    there, back = np.stack([child, parent], axis=1), np.stack([parent, child], axis=1)
    order = draw.integers(0, 3, len(child)).repeat(2)
    atoms = int(sizes.sum())
    return GraphSet(
        name="molecules of QM9's sizes",
        sizes=sizes,
        edge_counts=2 * (sizes - 1),
        edges=np.stack([there.ravel(), back.ravel()]),
        node_features=np.eye(NODE_FEATURES, dtype=np.float32)[draw.integers(0, 5, atoms)],
        edge_features=np.eye(EDGE_FEATURES, dtype=np.float32)[order],
        targets=draw.normal(size=(count, 1)),
        columns=(Target("value"),),
        positions=draw.normal(scale=2.0, size=(atoms, 3)).astype(np.float32),
    )


def real_molecules(count: int, cache: Path, seed: int = 0) -> GraphSet:
    """Molecules of QM9 chosen at random, with one target of mean 0 and deviation 1."""
    from dataclasses import replace

    from ..data.qm9 import load_qm9

    everything = load_qm9(track="distance", targets="r2", cache=cache, progress=False)
    draw = np.random.default_rng(seed)
    chosen = everything.select(draw.choice(len(everything), count, replace=count > len(everything)))
    targets = (chosen.targets - everything.targets.mean()) / everything.targets.std()
    return replace(chosen, targets=targets)


def sparse(count: int, nodes: int, seed: int = 0) -> GraphSet:
    """Random graphs with about three edges for each node."""
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, nodes, (2, count, 3 * nodes))
    lower, upper = np.sort(ends, axis=0)
    edges = []
    for graph in range(count):
        pairs = np.unique(lower[graph] * nodes + upper[graph])
        one, other = pairs // nodes, pairs % nodes
        one, other = one[one != other], other[one != other]
        edges.append(np.stack([np.concatenate([one, other]), np.concatenate([other, one])]))
    return _featureless("random graphs", nodes, edges)


def grids(count: int, nodes: int) -> GraphSet:
    """Square grids, of the largest side that needs no more nodes."""
    side = int(np.sqrt(nodes))
    number = np.arange(side * side).reshape(side, side)
    one = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    other = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    both = np.stack([np.concatenate([one, other]), np.concatenate([other, one])])
    return _featureless("grids", side * side, [both] * count)


def _featureless(name: str, nodes: int, edges: list[Ints]) -> GraphSet:
    counts = np.array([pairs.shape[1] for pairs in edges])
    return GraphSet(
        name=name,
        sizes=np.full(len(edges), nodes),
        edge_counts=counts,
        edges=np.concatenate(edges, axis=1),
        node_features=np.zeros((len(edges) * nodes, 0), dtype=np.float32),
        edge_features=np.zeros((int(counts.sum()), 0), dtype=np.float32),
        targets=np.zeros((len(edges), 1)),
        columns=(Target("value"),),
    )


def _within(sizes: Ints) -> Ints:
    """Each node's number within its graph."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
