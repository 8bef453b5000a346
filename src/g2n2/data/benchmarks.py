"""Benchmark sets: counting subgraphs, filtering an image, ZINC-12k with a surrogate training set.

- *Counting*: random graphs labelled with exact numbers of small subgraphs, which need not be
  induced. Labels are computed from powers of A, whatever labels a file may carry.
- *Filtering* (TwoDGrid30): learn low-, high- and band-pass filters of an image on a 30×30 grid. The
  targets are 2-D Fourier filters of a whole 95×95 picture, cut to 30×30 afterwards. They are no
  functions of the grid's Laplacian, so no network of the graph alone reaches R² = 1 on all three.
- *ZINC-12k*: penalised logP of drug-like molecules. Validation and test molecules are the official
  ones, in official order. The training molecules are a SURROGATE: 10,000 others drawn from the same
  pool, because the official list was not available. Results must be called "ZINC-12k test,
  resampled training set", never "ZINC-12k".
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..graphs import Adjacency, adjacency
from .archives import read_npz
from .files import DataFile
from .graph_set import GraphSet, Ints, Target, one_hot, plain_graphs, split_matrices

Array = NDArray[np.float64]
_COUNTING = DataFile(
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
    path, content = _COUNTING.read(data)
    arrays = read_npz(content, name=str(path))
    one_way = split_matrices(*(arrays[key] for key in ("num_nodes", "num_edges", "edges")))
    matrices = [matrix + matrix.T for matrix in one_way]
    keys = {"train": "train_idx", "validation": "val_idx", "test": "test_idx"}
    splits = {part: arrays[key].astype(np.int64) for part, key in keys.items()}
    return labelled("counting", matrices, splits, {"path": str(path), "sha256": _COUNTING.sha256})


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


FILTERS = ("low", "high", "band")
_FILTERING = DataFile(
    *("filtering", "TwoDGrid30.mat", "filtering"),
    "8e3fc2c8fb115f40d3b03d5d38d07e724f2a22100d2a8982dbce3ba1d4613e40",
    hint="It is in dataset/TwoDGrid30/raw of https://github.com/balcilar/gnn-matlang.",
)
_FILTERING_SPLITS = {"train": [0], "test": [1], "validation": [2]}


def load_filtering(data: str | Path | None = None) -> GraphSet:
    """Load three images on the 30×30 grid, one to train, one to validate, one to test on.

    Node r + 30 c is the pixel in row r, column c. Targets are NaN where a node is not scored, on a
    border of two pixels.
    """
    path, content = _FILTERING.read(data)
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise DataError("TwoDGrid30.mat needs scipy: pip install 'g2n2[train]'") from error
    arrays: dict[str, Any] = loadmat(io.BytesIO(content))
    columns = arrays["F"].T
    images = columns[:12].reshape(3, 4, -1)  # input, band, low, high
    scored = columns[12] == 1
    targets = np.where(scored[None, :, None], images[:, [2, 3, 1]].transpose(0, 2, 1), np.nan)
    return plain_graphs(
        "filtering",
        [arrays["A"]] * len(images),
        node_features=images[:, 0].reshape(-1, 1).astype(np.float32),
        targets=targets.reshape(-1, len(FILTERS)),
        columns=tuple(Target(name, symbol=f"{name}-pass") for name in FILTERS),
        level="node",
        node_names=("grey",),
        ids=tuple(f"image {k + 1}" for k in range(len(images))),
        splits={name: np.array(indices) for name, indices in _FILTERING_SPLITS.items()},
        notes=(f"{(~scored).sum()} border nodes of each image have no target, not scored",),
        source={"path": str(path), "sha256": _FILTERING.sha256},
    )


ZINC_LABEL = "ZINC-12k test, resampled training set"
_ZINC = DataFile(
    *("zinc", "zinc12k_val_test_and_surrogate_train.npz", "zinc"),
    "09b8fc967cf67bd271b7f11854db1d2734ab9cc940830e507dafd6df8cc3d0b8",
    hint="There is nothing to download: the official files are pickles, which can run any code "
    "when opened, and are refused.",
)
_PARTS = {"train": "train_surrogate", "validation": "val", "test": "test"}
_BONDS = ("single", "double", "triple")


def load_zinc(data: str | Path | None = None) -> GraphSet:
    """Load 12,000 molecules: 10,000 surrogate training, 1,000 validation, 1,000 test.

    Node features are one-hot of 28 atom types, edge features of 3 bond types.
    """
    path, content = _ZINC.read(data)
    arrays = read_npz(content, name=str(path))

    def joined(key: str, dtype: type = np.int64) -> NDArray[Any]:
        parts = [arrays[f"{part}_{key}"] for part in _PARTS.values()]
        return np.concatenate(parts, axis=-1).astype(dtype)

    counts, bonds = joined("num_edges"), joined("edges")
    # Each bond is stored once: list it both ways, the bonds of a molecule together.
    origin = np.tile(np.arange(bonds.shape[1], dtype=np.int64), 2)
    order = np.argsort(np.repeat(np.arange(len(counts)), counts)[origin], kind="stable")
    edges, origin = np.concatenate([bonds, bonds[::-1]], axis=1)[:, order], origin[order]
    atoms = tuple(str(name) for name in arrays["atom_names"])
    lengths = {name: len(arrays[f"{part}_y"]) for name, part in _PARTS.items()}
    ends = np.cumsum(list(lengths.values()))
    ranges = np.split(np.arange(ends[-1], dtype=np.int64), ends[:-1])
    return GraphSet(
        name="zinc-SURROGATE-train",
        sizes=joined("num_nodes"),
        edge_counts=2 * counts,
        edges=edges,
        node_features=one_hot(joined("atom_type"), len(atoms)),
        edge_features=one_hot(joined("bond_type")[origin] - 1, len(_BONDS)),
        targets=joined("y", np.float64)[:, None],
        columns=(Target("penalised_logP", symbol="plogP"),),
        node_names=atoms,
        edge_names=_BONDS,
        ids=tuple(
            f"{'surrogate ' * (name == 'train')}{name} {i}"
            for name, length in lengths.items()
            for i in range(length)
        ),
        splits=dict(zip(_PARTS, ranges, strict=True)),
        notes=(
            "the training set is a SURROGATE: 10,000 other molecules of the same pool, not the "
            f'official ones; call results "{ZINC_LABEL}"',
        ),
        source={"path": str(path), "sha256": _ZINC.sha256, "label": ZINC_LABEL},
    ).check()
