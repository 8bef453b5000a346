"""What a GraphSet is made of: graphs one by one, adjacency matrices, one-hot columns, folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..graphs import Adjacency
from .graph_set import Floats, GraphSet, Ints


@dataclass(frozen=True, eq=False)
class GraphRecord:
    """One graph as a reader finds it; the fields are those of `GraphSet`.

    Attributes:
        size: Number of nodes.
        edges: `[2, E]`.
        node_features: `[n, F]`, or None.
        edge_features: `[E, K]`, or None.
        weights: `[E]`, or None if all are 1.
        positions: `[n, 3]`, or None.
    """

    size: int
    edges: Ints
    node_features: Floats | None = None
    edge_features: Floats | None = None
    weights: Floats | None = None
    positions: Floats | None = None


def from_matrix(matrix: NDArray[Any]) -> GraphRecord:
    """One graph from its adjacency matrix `[n, n]`, edges row by row."""
    edges = np.stack(np.nonzero(matrix)).astype(np.int64)
    weights = matrix[edges[0], edges[1]].astype(np.float32)
    return GraphRecord(len(matrix), edges, weights=None if (weights == 1).all() else weights)


def assemble(records: Sequence[GraphRecord], *, ids: Sequence[str], **rest: Any) -> GraphSet:
    """Join records into a checked GraphSet; nodes without features get a constant 1.

    Args:
        records: At least one graph.
        ids: One per record.
        rest: Any other fields of `GraphSet`; there are no targets unless given.

    Raises:
        DataError: If the features of two graphs do not agree, or `GraphSet.check` refuses them.
    """
    if not records:
        raise DataError(f"{rest['name']} holds no graph")
    rest.setdefault("targets", np.zeros((len(records), 0)))
    notes = list(rest.pop("notes", ()))
    edge_counts = np.array([record.edges.shape[1] for record in records], dtype=np.int64)
    positions = [record.positions for record in records if record.positions is not None]
    if 0 < len(positions) < len(records):
        notes.append(f"{len(records) - len(positions)} graphs lack 3D positions, so none are kept.")
    node_features = _stacked(
        [(record.node_features, record.size) for record in records],
        ids,
        "node features",
        len(rest.get("node_names", ())),
    )
    edge_features = _stacked(
        [(record.edge_features, record.edges.shape[1]) for record in records],
        ids,
        "edge features",
        len(rest.get("edge_names", ())),
    )
    weights = None
    if any(record.weights is not None for record in records):
        weights = np.concatenate(
            [
                np.ones(count, np.float32) if record.weights is None else record.weights
                for record, count in zip(records, edge_counts, strict=True)
            ]
        )
    if not node_features.shape[1]:
        node_features = np.ones((len(node_features), 1), np.float32)
        rest["node_names"] = ("one",)
        notes.append("Nodes have no features: each gets a constant 1.")
    return GraphSet(
        sizes=np.array([record.size for record in records], dtype=np.int64),
        edge_counts=edge_counts,
        edges=np.concatenate([record.edges for record in records], axis=1),
        node_features=node_features,
        edge_features=edge_features,
        weights=weights,
        positions=np.concatenate(positions) if len(positions) == len(records) else None,
        ids=tuple(ids),
        notes=tuple(notes),
        **rest,
    ).check()


def _stacked(
    blocks: Sequence[tuple[Floats | None, int]], ids: Sequence[str], what: str, width: int
) -> Floats:
    """One block of features `[rows, width]`; graphs without rows (no edges) fit any width."""
    stacked: list[Floats] = []
    first = ""
    for (values, rows), name in zip(blocks, ids, strict=True):
        block = np.zeros((rows, 0), np.float32) if values is None else values
        if len(block) != rows:
            raise DataError(f"graph {name!r} has {len(block)} rows of {what}, expected {rows}")
        if not rows:
            continue
        if stacked and block.shape[1] != width:
            raise DataError(
                f"graph {name!r} has {block.shape[1]} {what} and graph {first!r} has {width}; "
                "expected the same number everywhere: fill in what is missing"
            )
        if not stacked:
            width, first = block.shape[1], name
        stacked.append(block)
    return np.concatenate(stacked) if stacked else np.zeros((0, width), np.float32)


def plain_graphs(
    name: str, graphs: Sequence[Adjacency], node_features: Floats | None = None, **fields: Any
) -> GraphSet:
    """Make a GraphSet of simple graphs.

    Args:
        name: What the set is called.
        graphs: Adjacency matrices of 0 and 1.
        node_features: `[ΣN, F]`; None for a constant 1.
        fields: The other fields of the GraphSet; there are no targets unless given.
    """
    sizes = np.array([len(matrix) for matrix in graphs], dtype=np.int64)
    edges = [np.stack(np.nonzero(matrix)) for matrix in graphs]
    counts = np.array([part.shape[1] for part in edges], dtype=np.int64)
    if node_features is None:
        node_features = np.ones((sizes.sum(), 1), dtype=np.float32)
        fields.setdefault("node_names", ("one",))
    fields.setdefault("targets", np.zeros((len(graphs), 0)))
    return GraphSet(
        name=name,
        sizes=sizes,
        edge_counts=counts,
        edges=np.concatenate(edges, axis=1).astype(np.int64),
        node_features=node_features,
        edge_features=np.zeros((counts.sum(), 0), dtype=np.float32),
        **fields,
    )


def one_hot(values: NDArray[Any], width: int) -> Floats:
    """`[N]` numbers from 0 -> `[N, width]` with a single 1 in each row."""
    columns: Floats = np.eye(width, dtype=np.float32)[values]
    return columns


def stratified_folds(labels: NDArray[Any], folds: int = 10, seed: int = 0) -> dict[str, Ints]:
    """Folds of equal class balance; each fold names its test graphs.

    The same folds as scikit-learn's `StratifiedKFold(folds, shuffle=True, random_state=seed)`,
    on which the field's published numbers are based.

    Args:
        labels: `[G]` class of each graph.
        folds: How many.
        seed: Of the shuffle.

    Raises:
        DataError: If every class has fewer graphs than there are folds.
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    appearance = np.argsort(np.argsort(first))[inverse]  # classes numbered as they first appear
    sizes = np.bincount(appearance)
    if sizes.max() < folds:
        raise DataError(
            f"{folds} folds need a class of at least {folds} graphs, the largest has {sizes.max()}"
        )
    ordered = np.sort(appearance)
    shares = [np.bincount(ordered[i::folds], minlength=len(sizes)) for i in range(folds)]
    generator = np.random.RandomState(seed)
    fold_of = np.empty(len(labels), dtype=np.int64)
    for number in range(len(sizes)):
        dealt = np.repeat(np.arange(folds), [share[number] for share in shares])
        generator.shuffle(dealt)
        fold_of[appearance == number] = dealt
    return {f"fold-{k + 1}": np.flatnonzero(fold_of == k).astype(np.int64) for k in range(folds)}


def frozen(mapping: dict[str, Any]) -> MappingProxyType[str, Any]:
    """Wrap a mapping so that a frozen GraphSet stays frozen."""
    return MappingProxyType(mapping)
