"""From the tables of a TU dataset to a GraphSet, with a note for everything that was unusual."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..assembly import one_hot
from ..graph_set import Floats, GraphSet, Ints, Target
from .text import RawFiles, Table

Degree = Literal["one-hot", "value", "none"]
Columns = tuple[Floats, tuple[str, ...]]
MOST_LABELS = 4096


def graph_set_of(raw: RawFiles, *, attributes: bool, degree: Degree, directed: bool) -> GraphSet:
    """Number the graphs, nodes and edges of a dataset and make its features and targets.

    Args:
        raw: The tables.
        attributes: Append node and edge attributes to the one-hot labels.
        degree: The node feature of a set that has no other.
        directed: Keep an edge listed in one direction as it is, rather than add the other.
    """
    notes = [
        f"{table.blank_lines} blank line(s) of {table.file} were skipped"
        for table in raw.tables.values()
        if table.blank_lines
    ]
    indicator = _part(raw, "graph_indicator")
    if not len(indicator.values):
        raise DataError(f"{indicator.file} is empty: expected the graph id of every node")
    graph_ids, owner = np.unique(indicator.integers()[:, 0], return_inverse=True)
    order = np.argsort(owner, kind="stable")
    if (order != np.arange(len(owner))).any():
        notes.append(f"the nodes of a graph are not together in {indicator.file}; they were sorted")
    targets, columns = _targets(raw, graph_ids, notes)
    node_features, node_names = _features(raw, "node", len(owner), attributes)
    edges, origin = _edges(raw, owner, order, notes, directed)
    listed = len(_part(raw, "A").values)
    edge_features, edge_names = _features(raw, "edge", listed, attributes)
    sizes = np.bincount(owner, minlength=len(graph_ids)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    owner = owner[order]
    node_features = node_features[order]
    if not node_names and degree != "none":
        degrees = np.bincount(edges[0], minlength=len(owner))
        node_features, node_names = _degree_features(degrees, degree)
        notes.append(f"no node labels: the node feature is the degree ({degree})")
    return GraphSet(
        name=raw.name,
        sizes=sizes,
        edge_counts=np.bincount(owner[edges[0]], minlength=len(sizes)).astype(np.int64),
        edges=edges - offsets[owner[edges[0]]],
        node_features=node_features,
        edge_features=edge_features[origin],
        targets=targets,
        columns=columns,
        node_names=node_names,
        edge_names=edge_names,
        ids=tuple(str(int(number)) for number in graph_ids),
        notes=tuple(notes),
    ).check()


def _part(raw: RawFiles, part: str) -> Table:
    if part not in raw.tables:
        raise DataError(f"the dataset {raw.name} has no file {raw.name}_{part}.txt")
    return raw.tables[part]


def _edges(
    raw: RawFiles, owner: Ints, order: Ints, notes: list[str], directed: bool
) -> tuple[Ints, Ints]:
    """Edges `[2, E]` between the sorted nodes, by graph, and the row each was listed in."""
    table = _part(raw, "A")
    nodes = len(owner)
    if len(table.values) and table.values.shape[1] != 2:
        raise DataError(f"{table.at(0)}: got {table.values.shape[1]} columns, expected 2: i, j")
    listed = table.integers().reshape(-1, 2).astype(np.int64) - 1
    outside = ((listed < 0) | (listed >= nodes)).any(axis=1)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(
            f"{table.at(row)}: edge {listed[row, 0] + 1}, {listed[row, 1] + 1} names no node: "
            f"expected 1 to {nodes}, counted from 1 through all graphs"
        )
    across = owner[listed[:, 0]] != owner[listed[:, 1]]
    if across.any():
        row = int(np.flatnonzero(across)[0])
        raise DataError(
            f"{table.at(row)}: edge {listed[row, 0] + 1}, {listed[row, 1] + 1} joins two graphs"
        )
    place = np.empty(nodes, dtype=np.int64)
    place[order] = np.arange(nodes)
    start, end = place[listed].T
    keys, origin = np.unique(start * nodes + end, return_index=True)
    if len(keys) < len(listed):
        repeated = len(listed) - len(keys)
        notes.append(f"{repeated} edge(s) of {table.file} are repeated; the first was kept")
    if loops := int((start[origin] == end[origin]).sum()):
        notes.append(f"{loops} self-loop(s) in {table.file} were kept")
    backwards = end[origin] * nodes + start[origin]
    alone = ~np.isin(backwards, keys)
    if alone.any() and not directed:
        notes.append(
            f"{int(alone.sum())} edge(s) of {table.file} are listed in one direction only; the "
            "other was added (directed=True keeps them as they are)"
        )
        keys = np.concatenate([keys, backwards[alone]])
        origin = np.concatenate([origin, origin[alone]])
        by_key = np.argsort(keys)
        keys, origin = keys[by_key], origin[by_key]
    return np.stack(np.divmod(keys, nodes)), origin


def _features(raw: RawFiles, what: str, rows: int, attributes: bool) -> Columns:
    """One-hot labels, then attributes if asked for; `[rows, 0]` where there are none."""
    parts: list[Columns] = [(np.zeros((rows, 0), dtype=np.float32), ())]
    labels = raw.tables.get(f"{what}_labels")
    if labels is not None and len(labels.values):
        parts += [_label_columns(labels, column) for column in range(labels.values.shape[1])]
    values = raw.tables.get(f"{what}_attributes")
    if values is not None and attributes:
        names = tuple(f"attribute {k + 1}" for k in range(values.values.shape[1]))
        parts.append((values.numbers().astype(np.float32), names))
    for table in (labels, values):
        if table is not None and len(table.values) != rows:
            raise DataError(
                f"{table.file} has {len(table.values)} rows, expected {rows}: one per {what}"
            )
    return (
        np.concatenate([array for array, _ in parts], axis=1),
        tuple(name for _, names in parts for name in names),
    )


def _label_columns(table: Table, column: int) -> Columns:
    """One column for every whole number from the smallest label to the largest, as PyG does."""
    labels = table.integers()[:, column].astype(np.int64)
    low, high = int(labels.min()), int(labels.max())
    if high - low >= MOST_LABELS:
        raise DataError(
            f"{table.file} has labels from {low} to {high}, the limit for one-hot columns is "
            f"{MOST_LABELS}: number the labels without gaps, or give them as attributes"
        )
    prefix = "label" if table.values.shape[1] == 1 else f"label {column + 1}"
    names = tuple(f"{prefix} {value}" for value in range(low, high + 1))
    return one_hot(labels - low, high - low + 1), names


def _degree_features(degrees: NDArray[np.int64], degree: Degree) -> Columns:
    if degree == "value":
        return degrees[:, None].astype(np.float32), ("degree",)
    present, place = np.unique(degrees, return_inverse=True)
    return one_hot(place, len(present)), tuple(f"degree {value}" for value in present)


def _targets(
    raw: RawFiles, graph_ids: NDArray[np.float64], notes: list[str]
) -> tuple[NDArray[np.float64], tuple[Target, ...]]:
    """Classes from 0 of `graph_labels`, or else the real values of `graph_attributes`."""
    table = raw.tables.get("graph_labels", raw.tables.get("graph_attributes"))
    if table is None:
        notes.append(f"{raw.name} has no graph labels and no graph attributes: no targets")
        return np.zeros((len(graph_ids), 0)), ()
    rows = _rows_of_graphs(table, graph_ids, notes)
    if "graph_labels" in raw.tables:
        values = table.integers(allow_missing=True)[rows]
        columns = []
        for k in range(values.shape[1]):
            known = ~np.isnan(values[:, k])
            classes, values[known, k] = np.unique(values[known, k], return_inverse=True)
            name = "class" if values.shape[1] == 1 else f"class {k + 1}"
            names = tuple(str(int(value)) for value in classes)
            columns.append(
                Target(name, kind="binary" if len(names) <= 2 else "multiclass", classes=names)
            )
    else:
        values = table.values[rows]
        columns = [Target(f"value {k + 1}") for k in range(values.shape[1])]
    if missing := int(np.isnan(values).sum()):
        notes.append(f"{missing} target(s) of {table.file} are missing (NaN)")
    return values, tuple(columns)


def _rows_of_graphs(table: Table, graph_ids: NDArray[np.float64], notes: list[str]) -> Ints:
    """Which row belongs to each graph: by its id, or by its place where ids have gaps."""
    rows, graphs = len(table.values), len(graph_ids)
    first, last = int(graph_ids[0]), int(graph_ids[-1])
    gaps = last - first + 1 - graphs
    if gaps == 0 and rows == graphs:
        return np.arange(graphs)
    if first >= 1 and rows == last:
        notes.append(f"{rows - graphs} graph(s) of {table.file} have no nodes and were left out")
        return graph_ids.astype(np.int64) - 1
    if rows == graphs:
        notes.append(f"{gaps} number(s) between graph ids {first} and {last} are not used")
        return np.arange(graphs)
    raise DataError(
        f"{table.file} has {rows} rows, expected {graphs}: one per graph of the indicator file"
    )
