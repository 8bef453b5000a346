"""Counting sets: random graphs labelled with exact numbers of small subgraphs.

Labels count subgraphs that need not be induced, computed from powers of the adjacency matrix,
whatever labels a file may carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import Adjacency, adjacency
from ..archives import read_npz
from ..files import DataFile
from ..graph_set import GraphSet, Ints, Target, plain_graphs

Array = NDArray[np.float64]
_FILE = DataFile(
    *("counting", "random_graphs.npz", "counting"),
    "e4d596e53114cddcc33d54f74b7051e3fb64ea232d286f8dce4be9e2296f9370",
    hint="The dataset counting-generated has graphs of the same kind and needs no file.",
)
MOST_ENTRIES = 10**8
"""Of all adjacency matrices of a generated set together, which are made dense."""
# Chen et al. 2020: a random regular graph of (nodes, degree), less as many edges as it has nodes.
_CHEN_SHAPES = ((10, 6), (15, 6), (20, 5), (30, 5))


def load_counting(data: str | Path | None = None) -> GraphSet:
    """Load the random graphs of Chen et al. 2020, 5,000 of 10 to 30 nodes, with their splits."""
    path, content = _FILE.read(data)
    arrays = read_npz(content, name=str(path))
    ends = np.cumsum(arrays["num_edges"].astype(np.int64))[:-1]
    matrices = []
    for n, (u, v) in zip(arrays["num_nodes"], np.split(arrays["edges"], ends, axis=1), strict=True):
        matrix = np.zeros((n, n))
        matrix[u, v] = matrix[v, u] = 1
        matrices.append(matrix)
    keys = {"train": "train_idx", "validation": "val_idx", "test": "test_idx"}
    splits = {part: arrays[key].astype(np.int64) for part, key in keys.items()}
    return labelled("counting", matrices, splits, {"path": str(path), "sha256": _FILE.sha256})


def generate_counting(count: int = 5000, seed: int = 0) -> GraphSet:
    """Make graphs by the recipe of Chen et al. 2020, split 30/20/50 as the published set."""
    _check_size(count, 16)
    random = np.random.default_rng(seed)
    matrices = []
    for _ in range(count):
        nodes, degree = _CHEN_SHAPES[random.integers(len(_CHEN_SHAPES))]
        matrix = _regular(nodes, degree, random)
        rows, columns = np.nonzero(np.triu(matrix))
        dropped = random.choice(len(rows), size=nodes, replace=False)
        matrix[rows[dropped], columns[dropped]] = matrix[columns[dropped], rows[dropped]] = 0
        matrices.append(matrix)
    source = {"generator": "generate_counting", "count": count, "seed": seed}
    return labelled("counting-generated", matrices, _shares(count, 0.3, 0.2), source)


def regular_counting_set(
    count: int = 1500, nodes: int = 16, degree: int = 3, seed: int = 0
) -> GraphSet:
    """Make random regular graphs of one size, labelled with triangles and 4-cycles; split 60/20/20.

    1-WL gives all of them one colour, so a network it bounds can only answer the mean. There is
    such a graph if `nodes * degree` is even and `degree < nodes`.
    """
    if not 0 < degree < nodes or nodes * degree % 2:
        raise DataError(
            f"no graph with {nodes} nodes, all of degree {degree}: expected 0 < degree < nodes "
            "and an even product"
        )
    _check_size(count, nodes)
    random = np.random.default_rng(seed)
    matrices = [_regular(nodes, degree, random) for _ in range(count)]
    settings = {"count": count, "nodes": nodes, "degree": degree, "seed": seed}
    source, splits = {"generator": "regular_counting_set", **settings}, _shares(count, 0.6, 0.2)
    return labelled("regular", matrices, splits, source, ("triangle", "4_cycle"))


def _check_size(count: int, nodes: int) -> None:
    if not 0 < count * nodes**2 <= MOST_ENTRIES:
        raise DataError(
            f"cannot make {count} graphs of {nodes} nodes: expected at least 1 and at most "
            f"{MOST_ENTRIES:,} entries in all adjacency matrices"
        )


def _regular(nodes: int, degree: int, random: np.random.Generator) -> Array:
    graph = nx.random_regular_graph(degree, nodes, seed=int(random.integers(2**32)))
    return np.array(nx.to_numpy_array(graph, nodelist=range(nodes)))


def _shares(count: int, train: float, validation: float) -> dict[str, Ints]:
    """Consecutive splits; the graphs are independent draws, so their order is random already."""
    ends = [round(count * train), round(count * (train + validation))]
    parts = np.split(np.arange(count, dtype=np.int64), ends)
    return dict(zip(("train", "validation", "test"), parts, strict=True))


def labelled(
    name: str,
    graphs: Sequence[Adjacency],
    splits: dict[str, Ints],
    source: dict[str, Any],
    targets: Sequence[str] = (),
) -> GraphSet:
    """Simple graphs with their counts of the named substructures, all seven if none is named."""
    sizes = np.array([len(matrix) for matrix in graphs])
    counts: dict[str, Array] = {}
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        stack = np.stack([graphs[i] for i in members.tolist()])
        for key, values in substructure_counts(stack).items():
            counts.setdefault(key, np.zeros(len(graphs)))[members] = values
    targets = targets or tuple(counts)
    return plain_graphs(
        name,
        [adjacency(matrix) for matrix in graphs],
        targets=np.stack([counts[key] for key in targets], axis=1),
        columns=tuple(Target(key, unit="count") for key in targets),
        splits=splits,
        notes=("labels count subgraphs that need not be induced",),
        source=source,
    )


def substructure_counts(A: Array) -> dict[str, Array]:
    """`[B]` counts of seven substructures in a stack `[B, n, n]` of simple undirected graphs.

    A cycle of five or six nodes is counted by closed walks, less those that run over a smaller
    subgraph: each such subgraph is counted and taken off as often as a closed walk covers exactly
    it (Harary and Manvel 1971).
    """

    def pairs(x: Array) -> Array:
        return x * (x - 1) / 2

    def trace(x: Array) -> Array:
        return np.asarray(np.trace(x, axis1=-2, axis2=-1))

    square, d = A @ A, A.sum(-1)
    triangles_at = (A * square).sum(-1) / 2
    # Pairs of two-step ways to the node opposite.
    four_cycles_at = (pairs(square) * (1 - np.eye(A.shape[-1]))).sum(-1)
    triangles, stars = triangles_at.sum(-1) / 3, (d * (d - 1) * (d - 2)).sum(-1) / 6
    tailed = (triangles_at * (d - 2)).sum(-1)
    four_cycles, diamonds = four_cycles_at.sum(-1) / 4, (A * pairs(square)).sum((-1, -2)) / 2
    ends = (A * (d[..., None] - 1) * (d[..., None, :] - 1)).sum((-1, -2)) / 2
    covered = (
        d.sum(-1)  # an edge, twice
        + 12 * pairs(d).sum(-1)  # a path of two edges
        + 6 * (ends - 3 * triangles)  # a path of three edges
        + 12 * stars
        + 24 * triangles
        + 48 * four_cycles
        + 12 * ((four_cycles_at * (d - 2)).sum(-1) - 2 * diamonds)  # a 4-cycle with a tail
        + 36 * diamonds
        + 24 * (pairs(triangles_at).sum(-1) - 2 * diamonds)  # two triangles at one node
    )
    return {
        "triangle": triangles,
        "tailed_triangle": tailed,
        "3_star": stars,
        "4_cycle": four_cycles,
        # 30 closed walks of five steps stay on each triangle, 10 on each triangle with a tail.
        "5_cycle": (trace(square @ square @ A) - 30 * triangles - 10 * tailed) / 10,
        "6_cycle": (trace(square @ square @ square) - covered) / 12,
        "chordal_cycle": diamonds,
    }
