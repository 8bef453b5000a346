"""From graphs read one by one to a GraphSet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..graph_set import Floats, GraphSet, Ints


@dataclass(frozen=True, eq=False)
class Record:
    """One graph as a reader finds it; the fields are those of `GraphSet`.

    Attributes:
        size: Number of nodes.
        edges: `[2, E]`.
        node_features: `[n, F]`, or None.
        edge_features: `[E, K]`, or None.
        weights: `[E]`, or None where all are 1.
        positions: `[n, 3]`, or None.
    """

    size: int
    edges: Ints
    node_features: Floats | None = None
    edge_features: Floats | None = None
    weights: Floats | None = None
    positions: Floats | None = None


def from_matrix(matrix: NDArray[Any]) -> Record:
    """One graph from its adjacency matrix `[n, n]`, edges row by row."""
    edges = np.stack(np.nonzero(matrix)).astype(np.int64)
    weights = matrix[edges[0], edges[1]].astype(np.float32)
    return Record(len(matrix), edges, weights=None if (weights == 1).all() else weights)


def assemble(records: Sequence[Record], *, ids: Sequence[str], **rest: Any) -> GraphSet:
    """Join records into a checked GraphSet.

    Args:
        records: At least one graph.
        ids: One per record.
        rest: Every other field of `GraphSet` as it stands there; without `targets`, there is none.
            Nodes without features get a constant 1.

    Raises:
        DataError: If the features of two graphs do not agree, or `GraphSet.check` refuses them.
    """
    if not records:
        raise DataError(f"{rest['name']} holds no graph")
    rest.setdefault("targets", np.zeros((len(records), 0)))
    notes = list(rest.pop("notes", ()))
    places = [record.positions for record in records if record.positions is not None]
    if 0 < len(places) < len(records):
        notes.append(f"{len(records) - len(places)} graphs lack 3D positions, so none are kept.")
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
    if not node_features.shape[1]:
        node_features = np.ones((len(node_features), 1), np.float32)
        rest["node_names"] = ("one",)
        notes.append("Nodes have no features: each gets a constant 1.")
    return GraphSet(
        sizes=np.array([record.size for record in records], dtype=np.int64),
        edge_counts=np.array([record.edges.shape[1] for record in records], dtype=np.int64),
        edges=np.concatenate([record.edges for record in records], axis=1),
        node_features=node_features,
        edge_features=edge_features,
        weights=_joined_weights(records),
        positions=np.concatenate(places) if len(places) == len(records) else None,
        ids=tuple(ids),
        notes=tuple(notes),
        **rest,
    ).check()


def _joined_weights(records: Sequence[Record]) -> Floats | None:
    if all(record.weights is None for record in records):
        return None
    return np.concatenate(
        [
            np.ones(record.edges.shape[1], np.float32) if record.weights is None else record.weights
            for record in records
        ]
    )


def _stacked(
    blocks: Sequence[tuple[Floats | None, int]], ids: Sequence[str], what: str, width: int
) -> Floats:
    """One block of features `[rows, width]`; graphs without rows (no edges) fit any width."""
    kept: list[Floats] = []
    first = ""
    for (values, rows), name in zip(blocks, ids, strict=True):
        block = np.zeros((rows, 0), np.float32) if values is None else values
        if len(block) != rows:
            raise DataError(f"graph {name!r} has {len(block)} rows of {what}, expected {rows}")
        if not rows:
            continue
        if kept and block.shape[1] != width:
            raise DataError(
                f"graph {name!r} has {block.shape[1]} {what} and graph {first!r} has {width}; "
                "expected the same number everywhere: fill in what is missing"
            )
        if not kept:
            width, first = block.shape[1], name
        kept.append(block)
    return np.concatenate(kept) if kept else np.zeros((0, width), np.float32)
