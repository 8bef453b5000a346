"""Counting sets: random graphs labelled with exact numbers of small subgraphs.

Labels count subgraphs that need not be induced, computed from powers of the adjacency matrix,
whatever labels a file may carry: `er_graphs.npz` stores induced counts of tailed triangles and
chordal cycles, which are other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import Adjacency, adjacency
from ..archives import read_npz
from ..files import find_checked
from ..graph_set import GraphSet, Ints, Target, plain_graphs

Stack = NDArray[np.float64]
Counts = NDArray[np.float64]
_FILES = {
    "random": (
        "random_graphs.npz",
        "e4d596e53114cddcc33d54f74b7051e3fb64ea232d286f8dce4be9e2296f9370",
    ),
    "er": ("er_graphs.npz", "e2267fe23197c2a830aa458fcd82149a11f71fe0b952b1dc02f5fc1dffce6fa5"),
}
MOST_ENTRIES = 10**8
"""Of all adjacency matrices of a generated set together, which are made dense."""
# Chen et al. 2020: a random regular graph of (nodes, degree), less as many edges as it has nodes.
_CHEN_SHAPES = ((10, 6), (15, 6), (20, 5), (30, 5))


def load_counting(
    data: str | Path | None = None, *, graphs: Literal["random", "er"] = "random"
) -> GraphSet:
    """Load the random graphs of Chen et al. 2020, 5,000 of them, with the published splits.

    Args:
        data: Folder searched first.
        graphs: `random` for the graphs of 10 to 30 nodes most papers use, `er` for the
            Erdős-Rényi graphs of 10 nodes.
    """
    if graphs not in _FILES:
        raise DataError(f"graphs: got {graphs!r}, expected one of {', '.join(_FILES)}")
    file, sha256 = _FILES[graphs]
    reason = "The dataset counting-generated has graphs of the same kind and needs no file."
    path, content = find_checked("counting", file, sha256, data, "counting", reason)
    arrays = read_npz(content, name=str(path))
    matrices = _matrices(arrays["num_nodes"], arrays["num_edges"], arrays["edges"])
    splits = {
        name: arrays[f"{key}_idx"].astype(np.int64)
        for name, key in (("train", "train"), ("validation", "val"), ("test", "test"))
    }
    name = "counting" if graphs == "random" else "counting-er"
    return labelled(name, matrices, splits, {"path": str(path), "sha256": sha256})


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
        matrices.append(adjacency(matrix))
    source = {"generator": "generate_counting", "count": count, "seed": seed}
    return labelled("counting-generated", matrices, _shares(count, 0.3, 0.2), source)


def regular_counting_set(
    count: int = 1500, nodes: int = 16, degree: int = 3, seed: int = 0
) -> GraphSet:
    """Make random regular graphs of one size, labelled with triangles and 4-cycles.

    1-WL gives all of them one colour, so a network it bounds can only answer the mean.

    Args:
        count: How many graphs; 60 % train, 20 % validation, 20 % test.
        nodes: Nodes of each.
        degree: Degree of every node; `nodes * degree` is even and `degree < nodes`.
        seed: Of all random choices.
    """
    if not 0 < degree < nodes or nodes * degree % 2:
        raise DataError(
            f"no graph with {nodes} nodes, all of degree {degree}: expected 0 < degree < nodes "
            "and an even product"
        )
    _check_size(count, nodes)
    random = np.random.default_rng(seed)
    matrices = [adjacency(_regular(nodes, degree, random)) for _ in range(count)]
    settings = {"count": count, "nodes": nodes, "degree": degree, "seed": seed}
    source, splits = {"generator": "regular_counting_set", **settings}, _shares(count, 0.6, 0.2)
    return labelled("regular", matrices, splits, source, ("triangle", "4_cycle"))


def _check_size(count: int, nodes: int) -> None:
    if not 0 < count * nodes**2 <= MOST_ENTRIES:
        raise DataError(
            f"cannot make {count} graphs of {nodes} nodes: expected at least 1 and at most "
            f"{MOST_ENTRIES:,} entries in all adjacency matrices"
        )


def labelled(
    name: str,
    graphs: Sequence[Adjacency],
    splits: dict[str, Ints],
    source: dict[str, Any],
    targets: Sequence[str] = (),
) -> GraphSet:
    """Count the named substructures in every graph and make a GraphSet with one constant feature.

    Args:
        name: What the set is called.
        graphs: Simple undirected graphs.
        splits: Indices by name.
        source: Where the graphs come from.
        targets: Names in `SUBSTRUCTURES`; all without any.
    """
    targets = targets or tuple(SUBSTRUCTURES)
    counts = np.zeros((len(graphs), len(targets)))
    sizes = np.array([len(matrix) for matrix in graphs])
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        stack = np.stack([graphs[i] for i in members.tolist()])
        counts[members] = np.stack([SUBSTRUCTURES[key](stack) for key in targets], axis=1)
    return plain_graphs(
        name,
        graphs,
        targets=counts,
        columns=tuple(Target(key, unit="count") for key in targets),
        splits=splits,
        notes=("labels count subgraphs that need not be induced",),
        source=source,
    )


def _regular(nodes: int, degree: int, random: np.random.Generator) -> NDArray[np.float64]:
    graph = nx.random_regular_graph(degree, nodes, seed=int(random.integers(2**32)))
    return np.array(nx.to_numpy_array(graph, nodelist=range(nodes)))


def _shares(count: int, train: float, validation: float) -> dict[str, Ints]:
    """Consecutive splits; the graphs are independent draws, so their order is random already."""
    ends = [round(count * train), round(count * (train + validation))]
    parts = np.split(np.arange(count, dtype=np.int64), ends)
    return dict(zip(("train", "validation", "test"), parts, strict=True))


def _matrices(nodes: Ints, edge_counts: Ints, edges: Ints) -> list[Adjacency]:
    matrices = []
    ends = np.cumsum(edge_counts.astype(np.int64))[:-1]
    for size, (u, v) in zip(nodes.tolist(), np.split(edges, ends, axis=1), strict=True):
        matrix = np.zeros((size, size))
        matrix[u, v] = matrix[v, u] = 1
        matrices.append(adjacency(matrix))
    return matrices


# The functions below take a stack `[B, n, n]` of simple undirected graphs and return counts `[B]`.


def triangles(A: Stack) -> Counts:
    """Cycles of three nodes."""
    return _sum(_triangles_at(A)) / 3


def tailed_triangles(A: Stack) -> Counts:
    """Triangles with an edge to a fourth node."""
    return _sum(_triangles_at(A) * (_sum(A) - 2))


def three_stars(A: Stack) -> Counts:
    """Nodes with three of their neighbours."""
    d = _sum(A)
    return _sum(d * (d - 1) * (d - 2)) / 6


def four_cycles(A: Stack) -> Counts:
    """Cycles of four nodes."""
    return _sum(_four_cycles_at(A)) / 4


def chordal_cycles(A: Stack) -> Counts:
    """Cycles of four nodes with one chord: two triangles on a common edge."""
    return _sum(_sum(A * _pairs(A @ A))) / 2


def five_cycles(A: Stack) -> Counts:
    """Cycles of five nodes: closed walks of five steps, less those that stay on a triangle."""
    closed_walks = _trace(A @ A @ A @ A @ A)
    # 30 walks stay on each triangle, 10 on each triangle with a tail.
    return (closed_walks - 30 * triangles(A) - 10 * tailed_triangles(A)) / 10


def six_cycles(A: Stack) -> Counts:
    """Cycles of six nodes (Harary and Manvel 1971).

    Closed walks of six steps, less those that run over a smaller subgraph: each such subgraph is
    counted and taken off as often as a closed walk of six steps covers exactly it.
    """
    d, diamonds = _sum(A), chordal_cycles(A)
    cube = A @ A @ A
    joined = _sum(_sum(A * (d[..., None] - 1) * (d[..., None, :] - 1))) / 2
    covered = (
        2 * _sum(d) / 2  # an edge
        + 12 * _sum(_pairs(d))  # a path of two edges
        + 6 * (joined - 3 * triangles(A))  # a path of three edges
        + 12 * three_stars(A)
        + 24 * triangles(A)
        + 48 * four_cycles(A)
        + 12 * (_sum(_four_cycles_at(A) * (d - 2)) - 2 * diamonds)  # a 4-cycle with a tail
        + 36 * diamonds
        + 24 * (_sum(_pairs(_triangles_at(A))) - 2 * diamonds)  # two triangles at one node
    )
    return (_trace(cube @ cube) - covered) / 12


SUBSTRUCTURES: dict[str, Callable[[Stack], Counts]] = {
    "triangle": triangles,
    "tailed_triangle": tailed_triangles,
    "3_star": three_stars,
    "4_cycle": four_cycles,
    "5_cycle": five_cycles,
    "6_cycle": six_cycles,
    "chordal_cycle": chordal_cycles,
}


def _triangles_at(A: Stack) -> Counts:
    """`[B, n]` triangles through each node."""
    return _sum(A * (A @ A)) / 2


def _four_cycles_at(A: Stack) -> Counts:
    """`[B, n]` 4-cycles through each node: pairs of two-step ways to the node opposite."""
    return _sum(_pairs(A @ A) * (1 - np.eye(A.shape[-1])))


def _pairs(x: Stack) -> Stack:
    """x choose 2, entry by entry."""
    return x * (x - 1) / 2


def _trace(A: Stack) -> Counts:
    return _sum(np.diagonal(A, axis1=-2, axis2=-1))


def _sum(x: Stack) -> Counts:
    """Sum over the last axis."""
    total: Counts = x.sum(-1)
    return total
