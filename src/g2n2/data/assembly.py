"""Pieces a reader makes a GraphSet of: flat arrays from matrices, one-hot columns, folds."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..graphs import Adjacency
from .graph_set import Floats, GraphSet, Ints


def plain_graphs(
    name: str, graphs: Sequence[Adjacency], node_features: Floats | None = None, **fields: Any
) -> GraphSet:
    """Lay simple graphs out as a GraphSet.

    Args:
        name: What the set is called.
        graphs: Adjacency matrices of 0 and 1.
        node_features: `[ΣN, F]`; a constant 1 for every node where None.
        fields: The other fields of the GraphSet; targets are none unless given.
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


def both_directions(edges: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """List undirected edges both ways, each graph's edges kept together.

    Args:
        edges: `[2, M]`, each edge once.
        counts: `[G]` edges of each graph.

    Returns:
        The edges `[2, 2M]`, and for each of them its column `[2M]` in what was given.
    """
    origin = np.tile(np.arange(edges.shape[1], dtype=np.int64), 2)
    owner = np.repeat(np.arange(len(counts)), counts)
    order = np.argsort(owner[origin], kind="stable")
    return np.concatenate([edges, edges[::-1]], axis=1)[:, order], origin[order]


def one_hot(values: NDArray[Any], width: int) -> Floats:
    """`[N]` numbers from 0 -> `[N, width]` with a single 1 in each row."""
    columns: Floats = np.eye(width, dtype=np.float32)[values]
    return columns


def stratified_folds(labels: NDArray[Any], folds: int = 10, seed: int = 0) -> dict[str, Ints]:
    """Deal graphs out to folds of equal class balance; each fold names its test graphs.

    The same folds as scikit-learn's `StratifiedKFold(folds, shuffle=True, random_state=seed)`,
    which the field's published numbers rest on.

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
