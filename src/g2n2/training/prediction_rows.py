"""Predictions as rows of a CSV file: the input's ids in the input's order, units in the header."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from ..data.graph_set import GraphSet
from .checkpoints import write_whole
from .evaluation import Predictions
from .tasks import Task

Row = dict[str, Any]

OWN = {
    "graph": ("id", "note"),
    "node": ("id", "node", "note"),
    "edge": ("id", "source", "target", "note"),
}
"""Columns that hold no target, by what the targets belong to."""


def prediction_rows(
    graphs: GraphSet, task: Task, made: Predictions, *, truth: bool, unread: bool
) -> list[Row]:
    """One row for each prediction, in the order of the input.

    Nodes and edges are counted from 0 within their graph. A target called as another column of
    the file (`id`, `note`, `true a` beside a target a) stands there as `predicted NAME`.

    Args:
        graphs: What was predicted.
        task: What the values mean.
        made: The predictions.
        truth: Whether the known targets stand beside them.
        unread: Whether the rows are all records of the input; one that could not be read gets a
            row that says why.

    Ids are the user's own, even where they repeat.
    """
    lost: dict[int, str] = dict(graphs.source.get("unread", {})) if unread else {}
    names = graphs.source.get("record_ids")
    columns = _columns(graphs.level, task, made, truth)
    places = _places(graphs, made)
    rows: dict[int, list[Row]] = {}
    record_of = graphs.source.get("rows")
    if record_of is not None and len(record_of) != len(graphs):
        record_of, names = None, None  # some graphs of a set put together elsewhere
    for number, (graph, place) in enumerate(places):
        record = graph if record_of is None else record_of[graph]
        values = {name: cells[number] for name, cells in columns.items()}
        name = _id(graphs, graph) if names is None else names[record]
        rows.setdefault(record, []).append({"id": name, **place, **values})
    for record, why in lost.items():
        rows[record] = [
            {"id": str(record) if names is None else names[record], "note": f"not predicted: {why}"}
        ]
    return [row for record in sorted(rows) for row in rows[record]]


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write rows as CSV, whole or not at all; a cell a row does not have is empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if "note" in names:  # last, where it disturbs least
        names = [*(name for name in names if name != "note"), "note"]
    text = io.StringIO()
    table = csv.DictWriter(text, fieldnames=names, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    write_whole(path, text.getvalue().encode(), shared=True)


def _places(graphs: GraphSet, made: Predictions) -> list[tuple[int, Row]]:
    """The graph of each row, and which of its nodes or edges the row is about."""
    if graphs.level == "graph":
        return [(int(row), {}) for row in made.rows]
    offsets = graphs.node_offsets if graphs.level == "node" else graphs.edge_offsets
    owners = np.searchsorted(offsets, made.rows, side="right") - 1
    if graphs.level == "node":
        return [
            (int(graph), {"node": int(row - offsets[graph])})
            for graph, row in zip(owners, made.rows, strict=True)
        ]
    return [
        (int(graph), {"source": int(graphs.edges[0, row]), "target": int(graphs.edges[1, row])})
        for graph, row in zip(owners, made.rows, strict=True)
    ]


def _columns(level: str, task: Task, made: Predictions, truth: bool) -> dict[str, list[Any]]:
    """What is known and what is predicted, each under a name no other column has.

    The names of predictions are the same with and without the truth.
    """
    taken = set(OWN[level])
    columns: dict[str, list[Any]] = {}
    for what, pairs in (("true", _truth(task, made)), ("predicted", task.table(made.values))):
        for name, cells in pairs:
            while name in taken:
                name = f"{what} {name}"
            taken.add(name)
            if truth or what == "predicted":
                columns[name] = cells
    return columns


def _truth(task: Task, made: Predictions) -> list[tuple[str, list[Any]]]:
    """Columns of what is known, empty where nothing is."""
    found: list[tuple[str, list[Any]]] = []
    for column, values in zip(task.columns, made.targets.T, strict=True):
        name = f"true {column.name}" + (f" [{column.unit}]" if column.unit else "")
        named = column.classes or ("0", "1")
        cells = [
            "" if np.isnan(v) else float(v) if task.kind == "regression" else named[int(v)]
            for v in values
        ]
        found.append((name, cells))
    return found


def _id(graphs: GraphSet, index: int) -> str:
    return graphs.ids[index] if graphs.ids else str(index)


def _cell(value: Any) -> Any:
    return f"{value:.9g}" if isinstance(value, float) else value
