"""Predictions as data: `Outcome`, rows of a CSV file, and columns matched to the training set."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..data.graph_set import Floats, GraphSet, Target
from ..described import Described, some
from ..errors import DataError
from .calibration import INTERVAL, Calibration, Reliability
from .checkpoint import write_whole
from .evaluate import Predictions, Scores
from .task import Task, Values

Row = dict[str, Any]

ID_COLUMNS = {"graph": ("id",), "node": ("id", "node"), "edge": ("id", "source", "target")}
"""Columns that say what a row is about, by the level of the targets."""


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Described):
    """Predictions with the graphs and the task they belong to.

    Attributes:
        graphs: The graphs, as the network saw them.
        made: A row for each graph, node or listed edge.
        scores: By target, if some targets are known; else empty.
        task: What the values mean.
        calibration: Of the run; None if it has none.
        interval: The level of the intervals; 0 for none.
    """

    graphs: GraphSet
    made: Predictions
    scores: Scores
    task: Task
    calibration: Calibration | None = None
    interval: float = INTERVAL

    @property
    def values(self) -> Values:
        """`[rows, out]` predictions in their units, or calibrated probabilities."""
        if self.calibration is None:
            return self.made.values
        return self.calibration.probabilities(self.task, self.made.values)

    @property
    def intervals(self) -> tuple[Values, Values] | None:
        """Lower and upper ends, each `[rows, T]`; infinite with too few validation graphs.

        None for classes, for a run without calibration, and for `interval=0`.
        """
        if self.calibration is None or self.task.kind != "regression" or not self.interval:
            return None
        return self.calibration.bounds(self.made.values, self.interval)

    @cached_property
    def notes(self) -> list[str]:
        """For each row how it is unlike the training graphs; empty if it is not."""
        if self.calibration is None:
            return [""] * len(self)
        return self.calibration.notes(self.graphs, self.task, self.made)

    @property
    def reliability(self) -> Reliability:
        """How intervals or probabilities do on known targets; see `Calibration.reliability`."""
        if self.calibration is None:
            return {}
        return self.calibration.reliability(self.task, self.made, self.interval)

    def __len__(self) -> int:
        return len(self.made.rows)

    def facts(self) -> dict[str, str]:
        facts = {
            "predictions": f"{len(self):,}",
            "graphs": f"{len(self.graphs):,}",
            "of": self.graphs.name,
            "targets": some(column.name for column in self.task.columns),
        }
        if unread := len(self.graphs.source.get("unread", ())):
            facts["not read"] = f"{unread:,}"
        return facts

    def rows(self, truth: bool = False) -> list[Row]:
        """One dict for each prediction, with the input's ids in its order, units in the names.

        A record that could not be read has a row that says why. Columns `NAME low` and `NAME high`
        are the ends of the interval; `note` says how a graph is unlike the training graphs.

        Args:
            truth: Whether to add the known targets.
        """
        return prediction_rows(
            self.graphs,
            self.task,
            self.made,
            truth=truth,
            unread=not truth,
            calibration=self.calibration,
            interval=self.interval,
        )

    def to_csv(self, path: str | Path, truth: bool = False) -> None:
        """Write `rows` as CSV, whole or not at all."""
        write_rows(Path(path), self.rows(truth), self.columns(truth))

    def columns(self, truth: bool = False) -> list[str]:
        """The names of all columns `rows` may fill, `note` last."""
        return prediction_columns(
            self.graphs.level, self.task, self.calibration, truth=truth, interval=self.interval
        )


def prediction_columns(
    level: str,
    task: Task,
    calibration: Calibration | None,
    *,
    truth: bool,
    interval: float = INTERVAL,
) -> list[str]:
    """The names of all columns `prediction_rows` may fill, `note` last."""
    empty = Predictions.empty(task)
    columns = _columns(level, task, empty, truth, calibration, interval)
    return [*ID_COLUMNS[level], *columns, "note"]


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
    """One row for each prediction, in the order of the input, with the user's ids.

    Nodes and edges are counted from 0 within their graph. If a target has the same name as another
    output column (`id`, `note`, `true a` beside a target a), its predictions are in
    `predicted NAME`. A `note` says how the graph or prediction is unlike the training graphs.

    Args:
        graphs: What was predicted.
        task: What the values mean.
        made: The predictions.
        truth: Whether to add the known targets.
        unread: Whether records that could not be read get a row that says why.
        calibration: Of the run; without it there are no intervals and no notes, and probabilities
            are not calibrated.
        interval: The level of the intervals, in columns `NAME low` and `NAME high`; 0 for none.
    """
    columns = _columns(graphs.level, task, made, truth, calibration, interval)
    notes = [] if calibration is None else calibration.notes(graphs, task, made)
    ids, record_of = graphs.source.get("record_ids"), graphs.source.get("rows")
    if record_of is not None and len(record_of) != len(graphs):
        record_of, ids = None, None  # some graphs of a set put together elsewhere
    rows: dict[int, list[Row]] = {}
    for number, (graph, place) in enumerate(_places(graphs, made)):
        record = graph if record_of is None else record_of[graph]
        values = {name: cells[number] for name, cells in columns.items()}
        own_id = graphs.ids[graph] if graphs.ids else str(graph)
        note = {"note": notes[number]} if notes and notes[number] else {}
        row = {"id": own_id if ids is None else ids[record], **place, **values, **note}
        rows.setdefault(record, []).append(row)
    reasons: dict[int, str] = graphs.source.get("unread", {}) if unread else {}
    for record, why in reasons.items():
        name = str(record) if ids is None else ids[record]
        rows[record] = [{"id": name, "note": f"not predicted: {why}"}]
    return [row for record in sorted(rows) for row in rows[record]]


def csv_lines(rows: list[Row], columns: Sequence[str]) -> bytes:
    """Rows as lines of CSV; missing cells are empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, fieldnames=columns, restval="", lineterminator="\n")
    for row in rows:
        table.writerow({k: f"{v:.9g}" if isinstance(v, float) else v for k, v in row.items()})
    return text.getvalue().encode(errors="replace")


def csv_header(columns: Sequence[str]) -> bytes:
    """The first line of a CSV file."""
    return csv_lines([{name: name for name in columns}], columns)


def write_rows(path: Path, rows: list[Row], columns: Sequence[str] = ()) -> None:
    """Write rows as CSV, whole or not at all; by default the columns the rows have, `note` last."""
    if not columns:
        names = dict.fromkeys(name for row in rows for name in row if name != "note")
        columns = [*names, *(["note"] if any("note" in row for row in rows) else ())]
    write_whole(path, csv_header(columns) + csv_lines(rows, columns), shared=True)


def _places(graphs: GraphSet, made: Predictions) -> list[tuple[int, Row]]:
    """The graph of each row, and which of its nodes or edges the row is about."""
    owners = made.owners(graphs).tolist()
    if graphs.level == "graph":
        return [(graph, {}) for graph in owners]
    rows = zip(owners, made.rows.tolist(), strict=True)
    if graphs.level == "node":
        return [(graph, {"node": row - int(graphs.node_offsets[graph])}) for graph, row in rows]
    starts, ends = graphs.edges
    return [(graph, {"source": int(starts[r]), "target": int(ends[r])}) for graph, r in rows]


def _columns(
    level: str,
    task: Task,
    made: Predictions,
    truth: bool,
    calibration: Calibration | None,
    interval: float,
) -> dict[str, list[Any]]:
    """Known and predicted values, under unique names.

    The names of predictions do not depend on whether truth or intervals are asked for.
    """
    taken = {*ID_COLUMNS[level], "note"}

    def unique(prefix: str, pairs: list[tuple[str, list[Any]]]) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {}
        for name, cells in pairs:
            while name in taken:
                name = f"{prefix} {name}"
            taken.add(name)
            columns[name] = cells
        return columns

    values = made.values if calibration is None else calibration.probabilities(task, made.values)
    columns = unique("true", _truth(task, made))
    predicted = unique("predicted", task.table(values))
    if not truth:
        columns = {}
    if calibration is None or task.kind != "regression" or not interval:
        return {**columns, **predicted}
    ends = [
        (
            f"{column.name} {end}" + (f" [{column.unit}]" if column.unit else ""),
            [float(value) if np.isfinite(value) else "" for value in bounds[:, index]],
        )
        for index, column in enumerate(task.columns)
        for end, bounds in zip(("low", "high"), calibration.bounds(values, interval), strict=True)
    ]
    named_ends = list(unique("interval", ends).items())
    for index, (name, cells) in enumerate(predicted.items()):
        columns |= {name: cells, **dict(named_ends[2 * index : 2 * index + 2])}
    return columns


def _truth(task: Task, made: Predictions) -> list[tuple[str, list[Any]]]:
    """Columns of known targets, empty where unknown."""
    columns: list[tuple[str, list[Any]]] = []
    for column, values in zip(task.columns, made.targets.T, strict=True):
        name = f"true {column.name}" + (f" [{column.unit}]" if column.unit else "")
        classes = column.classes or ("0", "1")
        cells = [
            "" if np.isnan(v) else float(v) if task.kind == "regression" else classes[int(v)]
            for v in values
        ]
        columns.append((name, cells))
    return columns


def match_training_columns(graphs: GraphSet, trained: dict[str, Any], task: Task) -> GraphSet:
    """A set with the features and target columns of the one a network was trained on.

    Targets of the set get the run's class numbers; missing ones are NaN.

    Args:
        graphs: As read.
        trained: Fields of the run's `data.json`.
        task: The run's.

    Raises:
        DataError: Features are missing or unknown, positions are missing, or a class is unknown.
    """
    if trained["positions"] and graphs.positions is None:
        raise DataError(
            f"{graphs.name} has no positions, and the run was trained on distances; "
            "give SDF or XYZ files"
        )
    level = trained["level"]
    labels = {column.name for column in task.columns}
    nodes, edges = (_matched_features(graphs, what, trained, labels) for what in ("node", "edge"))
    rows = {"graph": len(graphs), "node": int(graphs.sizes.sum()), "edge": graphs.edges.shape[1]}
    targets = np.full((rows[level], len(task.columns)), np.nan)
    if graphs.level == level:
        by_name = {column.name.lower(): index for index, column in enumerate(graphs.columns)}
        for index, column in enumerate(task.columns):
            if (source := by_name.get(column.name.lower())) is not None:
                values = graphs.targets[:, source]
                targets[:, index] = _recoded(values, graphs.columns[source], column)
    return replace(
        graphs,
        node_features=nodes,
        edge_features=edges,
        node_names=tuple(trained["node_names"]),
        edge_names=tuple(trained["edge_names"]),
        positions=graphs.positions if trained["positions"] else None,
        targets=targets,
        columns=task.columns,
        level=level,
    )


def _matched_features(
    graphs: GraphSet, what: str, trained: dict[str, Any], labels: set[str]
) -> Floats:
    """Columns in the order of training; a column that is a target of the run is no feature."""
    wanted, width = trained[f"{what}_names"], trained[f"{what}_features"]
    values: Floats = graphs.node_features if what == "node" else graphs.edge_features
    names = graphs.node_names if what == "node" else graphs.edge_names
    if len(wanted) < width or len(names) < values.shape[1]:  # some have no name
        if values.shape[1] != width:
            listed = f": {', '.join(wanted)}" if wanted else ""
            raise DataError(
                f"{graphs.name} has {values.shape[1]} {what} features, the run was trained on "
                f"{width}{listed}; give the features the run was trained on"
            )
        return values
    missing = [name for name in wanted if name not in names]
    unknown = [name for name in names if name not in wanted and name not in labels]
    if missing or unknown:
        faults = [
            f"{verb} the {what} feature{'s' * (len(odd) > 1)} {', '.join(odd)}"
            for verb, odd in (("lacks", missing), ("has unknown to the run", unknown))
            if odd
        ]
        raise DataError(
            f"{graphs.name} {' and '.join(faults)}; give the features the run was trained on, "
            "listed in its data.json"
        )
    return values[:, [names.index(name) for name in wanted]]


def _recoded(values: Values, column: Target, trained: Target) -> Values:
    """Class numbers of a file as those of the run, by the classes' names."""
    if trained.kind == "regression":
        return values
    number_of = {name: float(number) for number, name in enumerate(trained.classes)}
    coded = np.full(len(values), np.nan)
    for row in np.flatnonzero(np.isfinite(values)):
        value = values[row]
        name = column.classes[int(value)] if column.classes else f"{value:g}"
        if name not in number_of:
            raise DataError(
                f"target {trained.name} has the class {name!r}, unknown to the run; "
                f"it knows {', '.join(trained.classes)}"
            )
        coded[row] = number_of[name]
    return coded
