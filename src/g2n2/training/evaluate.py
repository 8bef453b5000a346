"""Predictions and scores of a network in the targets' units, and predictions as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batching import ordered_batches
from ..data.graph_set import GraphSet, Ints
from ..data.packed_batch import PackedBatch
from ..data.store import GraphStore
from ..described import Described, some
from ..errors import TrainingError
from .calibration import INTERVAL, Calibration, Reliability
from .checkpoint import write_whole
from .cuda_graphs import Recorded, graphed_outputs
from .processes import free_cached_memory, out_of_memory
from .setup import Parts
from .step import batch_for
from .task import Scores, Task, Values, metrics

Row = dict[str, Any]

AT_ONCE = {"cuda": (2048, 2**21), "cpu": (256, 2**18)}
"""Graphs in a batch, and its pairs: as QM9's largest need."""
ID_COLUMNS = {"graph": ("id",), "node": ("id", "node"), "edge": ("id", "source", "target")}
"""Columns that identify a row, by the level of the targets."""


@torch.no_grad()
def outputs(
    model: nn.Module,
    store: GraphStore,
    indices: Ints,
    recorded: Recorded | None = None,
    half: bool = False,
) -> tuple[Values, Ints]:
    """Outputs for some graphs of a store; the model is left in evaluation mode.

    A batch that runs out of memory is cut in two.

    Args:
        model: The network.
        store: The graphs.
        indices: Which of them.
        recorded: CUDA graphs of the run the network is trained in.
        half: Whether a GPU computes in bfloat16, as a network trained so does.

    Returns:
        `[rows, out]` in float64 and, for each row, its index among the rows of the set's targets:
        a graph, a node or a listed edge.

    Raises:
        TrainingError: Memory does not suffice for one graph.
    """
    model.eval()
    half = half and store.device.type == "cuda"
    values, rows = [], []
    try:
        replayed = graphed_outputs(recorded, model, store, indices, half)
        parts = replayed(indices) if replayed else _in_batches(model, store, indices, half)
        for graphs, out in parts:
            out, places = _at_targets(out, store, graphs)
            values.append(out.to(torch.float64).cpu().numpy())
            rows.append(places)
        return np.concatenate(values), np.concatenate(rows)
    except RuntimeError as error:
        if recorded is None or recorded.outputs is None or not out_of_memory(error):
            raise
    recorded.outputs = recorded.step = None  # memory does not suffice for CUDA graphs
    free_cached_memory(store.device)
    return outputs(model, store, indices, None, half)


def _in_batches(
    model: nn.Module, store: GraphStore, indices: Ints, half: bool
) -> Iterator[tuple[Ints, Tensor]]:
    """Graphs, and a row for each graph, node, pair or listed edge of them."""
    limits = AT_ONCE["cuda" if store.device.type == "cuda" else "cpu"]
    batches = ordered_batches(store.graphs.sizes[indices], *limits)
    waiting = [indices[chosen] for chosen in reversed(batches)]
    while waiting:
        graphs = waiting.pop()
        try:
            batch = batch_for(model, store, graphs)
            with torch.autocast("cuda", torch.bfloat16, enabled=half):
                out = model(batch)
            if isinstance(batch, PackedBatch):
                graphs = batch.indices
            elif store.graphs.level == "node":
                out = out[batch.mask]
            elif store.graphs.level == "edge" and not batch.adjacency.is_sparse:
                out = out[batch.mask[:, :, None] & batch.mask[:, None]]
            yield graphs, out
            continue
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            if len(graphs) == 1:
                raise TrainingError(
                    f"memory does not suffice for one graph of {store.graphs.sizes[graphs[0]]} "
                    f"nodes: {error}"
                ) from None
        # Only here are the tensors of the failed attempt gone, which its traceback held.
        half_of = len(graphs) // 2
        waiting += [graphs[half_of:], graphs[:half_of]]
        free_cached_memory(store.device)


def _at_targets(out: Tensor, store: GraphStore, graphs: Ints) -> tuple[Tensor, Ints]:
    """Outputs for the targets of graphs, and the rows of the set's targets."""
    if store.graphs.level == "graph":
        return out, graphs
    if store.graphs.level == "node":
        return out, _rows(store.node_offsets, graphs)
    listed = store.sparse(int(store.graphs.sizes[graphs].max()))
    return _at_edges(out, store, graphs, listed), _rows(store.edge_offsets, graphs)


def _at_edges(values: Tensor, store: GraphStore, graphs: Ints, listed: bool) -> Tensor:
    """Outputs of the edges; `listed` if there is one row for each edge, and not for each pair."""
    if store.graphs.directed:
        return values if listed else values[store.pair_rows(graphs)]
    # Both directions of an undirected edge get the same output.
    if not listed:
        there, back = store.pair_rows(graphs), store.pair_rows(graphs, reverse=True)
        return (values[there] + values[back]) / 2
    rows = torch.from_numpy(_rows(store.edge_offsets, graphs)).to(values.device)
    counts = store.graphs.edge_counts[graphs]
    owner = torch.from_numpy(np.repeat(np.arange(len(graphs)), counts)).to(values.device)
    start, end = store.edges[:, rows]
    n = int(torch.maximum(start, end).max()) + 1 if len(start) else 1
    keys, order = ((owner * n + start) * n + end).sort()
    reverse = order[torch.searchsorted(keys, (owner * n + end) * n + start)]
    return (values + values[reverse]) / 2


def _rows(offsets: Ints, graphs: Ints) -> Ints:
    return np.concatenate([np.arange(offsets[g], offsets[g + 1]) for g in graphs])


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Described):
    """Predictions of a model for some graphs.

    Attributes:
        rows: Index of each row among the rows of the set's targets.
        values: `[rows, out]` values in their units, or probabilities.
        targets: `[rows, T]`, NaN where unknown.
    """

    rows: Ints
    values: Values
    targets: Values

    @classmethod
    def empty(cls, task: Task) -> Predictions:
        no_targets = np.zeros((0, len(task.columns)))
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, task.out)), no_targets)

    def owners(self, graphs: GraphSet) -> Ints:
        """The graph of each row."""
        if graphs.level == "graph":
            return self.rows
        offsets = graphs.node_offsets if graphs.level == "node" else graphs.edge_offsets
        return np.searchsorted(offsets, self.rows, side="right") - 1

    def facts(self) -> dict[str, str]:
        known = int(np.isfinite(self.targets).any(axis=1).sum())
        return {
            "rows": f"{len(self.rows):,}",
            "columns": str(self.values.shape[-1]),
            "with known targets": f"{known:,}",
        }


def predict(
    model: nn.Module,
    parts: Parts,
    store: GraphStore,
    indices: Ints,
    fabric: Any = None,
    recorded: Recorded | None = None,
    half: bool = False,
) -> Predictions:
    """Predictions in the set's order; several processes share the graphs and all get them.

    See `outputs` for `recorded` and `half`.
    """
    rank, world = (fabric.global_rank, fabric.world_size) if fabric is not None else (0, 1)
    mine = indices[rank::world]
    if len(mine):
        raw, rows = outputs(model, store, mine, recorded, half)
    else:
        raw, rows = np.zeros((0, parts.task.out)), np.zeros(0, dtype=np.int64)
    if world > 1:
        from torch.distributed import all_gather_object

        gathered: list[Any] = [None] * world
        all_gather_object(gathered, (raw, rows))
        raw = np.concatenate([part for part, _ in gathered])
        rows = np.concatenate([part for _, part in gathered])
    order = np.argsort(rows)
    raw, rows = raw[order], rows[order]
    everything = np.zeros((len(parts.graphs.targets), raw.shape[1]))
    everything[rows] = raw
    in_units = parts.scaling.unscale(parts.task, parts.graphs, everything)[rows]
    return Predictions(rows, parts.task.decode(in_units), parts.graphs.targets[rows])


def constant_guess(parts: Parts, predictions: Predictions) -> tuple[Values, Values]:
    """The mean of the training targets, or the frequency of each class, for each row; targets."""
    targets = parts.graphs.select(parts.splits["train"]).targets
    if parts.task.kind == "multiclass":
        classes = targets[np.isfinite(targets)].astype(np.int64)
        guess = np.bincount(classes, minlength=parts.task.out) / max(1, len(classes))
    else:
        counts = np.isfinite(targets).sum(axis=0)
        guess = np.nansum(targets, axis=0) / np.maximum(counts, 1)
    return np.tile(guess, (len(predictions.rows), 1)), predictions.targets


def score(
    model: nn.Module,
    parts: Parts,
    store: GraphStore,
    indices: Ints,
    fabric: Any = None,
    recorded: Recorded | None = None,
    half: bool = False,
) -> Scores:
    """Metrics of each target and their mean (`all`); the arguments are those of `predict`."""
    predictions = predict(model, parts, store, indices, fabric, recorded, half)
    return metrics(parts.task, predictions.values, predictions.targets)


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
        """One dict for each prediction, in the order of the input, with the user's ids.

        Nodes and edges are counted from 0 within their graph. If a target has the same name as
        another column (`id`, `note`, `true a` beside a target a), its predictions are in
        `predicted NAME`. `NAME low` and `NAME high` are the ends of the interval; `note` says how
        the graph or prediction is unlike the training graphs.

        Args:
            truth: Whether to add the known targets; else a record that could not be read has a row
                that says why.
        """
        graphs = self.graphs
        columns = _columns(
            graphs.level, self.task, self.made, self.calibration, self.interval, truth
        )
        ids, record_of = graphs.source.get("record_ids"), graphs.source.get("rows")
        if record_of is not None and len(record_of) != len(graphs):
            record_of, ids = None, None  # some graphs of a set put together elsewhere
        rows: dict[int, list[Row]] = {}
        for number, (graph, item) in enumerate(self._items()):
            record = graph if record_of is None else record_of[graph]
            graph_id = graphs.ids[graph] if graphs.ids else str(graph)
            row = {"id": graph_id if ids is None else ids[record], **item}
            row |= {name: cells[number] for name, cells in columns.items()}
            if self.notes[number]:
                row["note"] = self.notes[number]
            rows.setdefault(record, []).append(row)
        unread: dict[int, str] = {} if truth else graphs.source.get("unread", {})
        for record, reason in unread.items():
            record_id = str(record) if ids is None else ids[record]
            rows[record] = [{"id": record_id, "note": f"not predicted: {reason}"}]
        return [row for record in sorted(rows) for row in rows[record]]

    def to_csv(self, path: str | Path, truth: bool = False) -> None:
        """Write `rows` as CSV, whole or not at all."""
        write_rows(Path(path), self.rows(truth), self.columns(truth))

    def columns(self, truth: bool = False) -> list[str]:
        """The names of all columns `rows` may fill, `note` last."""
        level = self.graphs.level
        return prediction_columns(level, self.task, self.calibration, self.interval, truth)

    def _items(self) -> list[tuple[int, Row]]:
        """The graph of each row, and which of its nodes or edges the row is about."""
        graphs, owners = self.graphs, self.made.owners(self.graphs).tolist()
        if graphs.level == "graph":
            return [(graph, {}) for graph in owners]
        rows = zip(owners, self.made.rows.tolist(), strict=True)
        if graphs.level == "node":
            return [(graph, {"node": row - int(graphs.node_offsets[graph])}) for graph, row in rows]
        starts, ends = graphs.edges
        return [(graph, {"source": int(starts[r]), "target": int(ends[r])}) for graph, r in rows]


def prediction_columns(
    level: str, task: Task, calibration: Calibration | None, interval: float, truth: bool = False
) -> list[str]:
    """The names of all columns `Outcome.rows` may fill, `note` last."""
    columns = _columns(level, task, Predictions.empty(task), calibration, interval, truth)
    return [*ID_COLUMNS[level], *columns, "note"]


def _columns(
    level: str,
    task: Task,
    predictions: Predictions,
    calibration: Calibration | None,
    interval: float,
    truth: bool,
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

    values = predictions.values
    if calibration is not None:
        values = calibration.probabilities(task, values)
    columns = unique("true", _known_targets(task, predictions.targets))
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


def _known_targets(task: Task, targets: Values) -> list[tuple[str, list[Any]]]:
    """Columns of known targets, empty where unknown."""
    columns: list[tuple[str, list[Any]]] = []
    for column, values in zip(task.columns, targets.T, strict=True):
        classes = column.classes or ("0", "1")
        cells = [
            "" if np.isnan(v) else float(v) if task.kind == "regression" else classes[int(v)]
            for v in values
        ]
        columns.append(
            (f"true {column.name}" + (f" [{column.unit}]" if column.unit else ""), cells)
        )
    return columns


def csv_lines(rows: list[Row], columns: Sequence[str], header: bool = False) -> bytes:
    """Rows as lines of CSV; missing cells are empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, fieldnames=columns, restval="", lineterminator="\n")
    if header:
        table.writeheader()
    for row in rows:
        table.writerow({k: f"{v:.9g}" if isinstance(v, float) else v for k, v in row.items()})
    return text.getvalue().encode(errors="replace")


def write_rows(path: Path, rows: list[Row], columns: Sequence[str] = ()) -> None:
    """Write rows as CSV, whole or not at all; by default the columns the rows have, `note` last."""
    if not columns:
        names = dict.fromkeys(name for row in rows for name in row if name != "note")
        columns = [*names, *(["note"] if any("note" in row for row in rows) else ())]
    write_whole(path, csv_lines(rows, columns, header=True), shared=True)
