"""Predictions as rows of a CSV file: the input's ids in the input's order, units in the header."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.graph_set import GraphSet
from .calibration import INTERVAL, Calibration
from .checkpoint import write_whole
from .evaluate import Predictions
from .task import Task, Values

Row = dict[str, Any]

OWN = {
    "graph": ("id", "note"),
    "node": ("id", "node", "note"),
    "edge": ("id", "source", "target", "note"),
}
"""Columns that hold no target, by what the targets belong to."""


def prediction_columns(
    level: str,
    task: Task,
    calibration: Calibration | None,
    *,
    truth: bool,
    interval: float = INTERVAL,
) -> list[str]:
    """The names of all columns `prediction_rows` may fill, `note` last.

    Args:
        level: What the targets belong to: `graph`, `node` or `edge`.
        task: What the values mean.
        calibration: Of the run.
        truth: Whether the known targets stand beside the predictions.
        interval: The level of the intervals; 0 for none.
    """
    none = np.zeros((0, len(task.columns)))
    made = Predictions(np.zeros(0, dtype=np.int64), np.zeros((0, task.out)), none)
    own = [name for name in OWN[level] if name != "note"]
    return [*own, *_columns(level, task, made, truth, calibration, interval), "note"]


def prediction_rows(
    graphs: GraphSet,
    task: Task,
    made: Predictions,
    *,
    truth: bool,
    unread: bool,
    calibration: Calibration | None = None,
    interval: float = INTERVAL,
) -> list[Row]:
    """One row for each prediction, in the order of the input.

    Nodes and edges are counted from 0 within their graph. A target called as another column of
    the file (`id`, `note`, `true a` beside a target a) stands there as `predicted NAME`. A row has
    a `note` where its graph or its prediction is unlike the training graphs.

    Args:
        graphs: What was predicted.
        task: What the values mean.
        made: The predictions.
        truth: Whether the known targets stand beside them.
        unread: Whether the rows are all records of the input; one that could not be read gets a
            row that says why.
        calibration: Of the run; without it there are no intervals and no notes, and probabilities
            are the network's own.
        interval: The level of the intervals, in columns `NAME low` and `NAME high`; 0 for none.

    Ids are the user's own, even where they repeat.
    """
    lost: dict[int, str] = dict(graphs.source.get("unread", {})) if unread else {}
    names = graphs.source.get("record_ids")
    columns = _columns(graphs.level, task, made, truth, calibration, interval)
    notes = [] if calibration is None else calibration.notes(graphs, task, made)
    places = _places(graphs, made)
    rows: dict[int, list[Row]] = {}
    record_of = graphs.source.get("rows")
    if record_of is not None and len(record_of) != len(graphs):
        record_of, names = None, None  # some graphs of a set put together elsewhere
    for number, (graph, place) in enumerate(places):
        record = graph if record_of is None else record_of[graph]
        values = {name: cells[number] for name, cells in columns.items()}
        name = _id(graphs, graph) if names is None else names[record]
        note = {"note": notes[number]} if notes and notes[number] else {}
        rows.setdefault(record, []).append({"id": name, **place, **values, **note})
    for record, why in lost.items():
        rows[record] = [
            {"id": str(record) if names is None else names[record], "note": f"not predicted: {why}"}
        ]
    return [row for record in sorted(rows) for row in rows[record]]


def csv_lines(rows: list[Row], columns: Sequence[str]) -> bytes:
    """Rows as lines of CSV; a cell a row does not have is empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, fieldnames=columns, restval="", lineterminator="\n")
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode(errors="replace")


def csv_header(columns: Sequence[str]) -> bytes:
    """The first line of a CSV file."""
    return csv_lines([{name: name for name in columns}], columns)


def write_rows(path: Path, rows: list[Row], columns: Sequence[str] = ()) -> None:
    """Write rows as CSV, whole or not at all.

    Args:
        path: The file.
        rows: Those of `prediction_rows`.
        columns: In their order; those the rows have where empty, `note` last.
    """
    if not columns:
        names = dict.fromkeys(name for row in rows for name in row if name != "note")
        columns = [*names, *(["note"] if any("note" in row for row in rows) else ())]
    write_whole(path, csv_header(columns) + csv_lines(rows, columns), shared=True)


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


def _columns(
    level: str,
    task: Task,
    made: Predictions,
    truth: bool,
    calibration: Calibration | None,
    interval: float,
) -> dict[str, list[Any]]:
    """What is known and what is predicted, each under a name no other column has.

    The names of predictions are the same with and without the truth, and with and without
    intervals.
    """
    taken = set(OWN[level])

    def named(what: str, pairs: list[tuple[str, list[Any]]]) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {}
        for name, cells in pairs:
            while name in taken:
                name = f"{what} {name}"
            taken.add(name)
            columns[name] = cells
        return columns

    values = made.values if calibration is None else calibration.probabilities(task, made.values)
    known = named("true", _truth(task, made))
    predicted = named("predicted", task.table(values))
    if not truth:
        known = {}
    if calibration is None or task.kind != "regression" or not interval:
        return {**known, **predicted}
    ends = list(named("interval", _ends(task, calibration.bounds(values, interval))).items())
    columns = known
    for place, (name, cells) in enumerate(predicted.items()):
        columns |= {name: cells, **dict(ends[2 * place : 2 * place + 2])}
    return columns


def _ends(task: Task, bounds: tuple[Values, Values]) -> list[tuple[str, list[Any]]]:
    """Both ends of each target's intervals, empty where an interval has none."""
    return [
        (
            f"{column.name} {end}" + (f" [{column.unit}]" if column.unit else ""),
            [float(value) if np.isfinite(value) else "" for value in values[:, place]],
        )
        for place, column in enumerate(task.columns)
        for end, values in zip(("low", "high"), bounds, strict=True)
    ]


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
