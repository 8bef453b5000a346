"""Predictions and scores of a network in the targets' units, and predictions as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..atomic_files import refuse_overwriting
from ..data.batch import PackedBatch
from ..data.batching import ordered_batches
from ..data.graph_set import GraphSet, Ints, ragged_rows
from ..data.store import GraphStore
from ..described import Described, some
from ..errors import TrainingError
from .calibration import INTERVAL, NO_CALIBRATION, Calibration, Reliability
from .checkpoint import write_whole
from .cuda_graphs import Recorded
from .processes import Processes, free_cached_memory, within_memory
from .setup import Parts, batch_for
from .task import DIGITS, Scores, Task, Values, metrics, with_unit

Row = dict[str, Any]

AT_ONCE = {"cuda": (2048, 2**21), "cpu": (256, 2**18)}
"""Graphs in a batch, and its pairs: as QM9's largest need."""
ID_COLUMNS = {"graph": ("id",), "node": ("id", "node"), "edge": ("id", "source", "target")}
"""Columns that identify a row, by the level of the targets."""
NOT_PREDICTED = "not predicted: "
"""Begins the note of a record without a prediction."""


@torch.no_grad()
def outputs(
    model: nn.Module,
    store: GraphStore,
    indices: Ints,
    recorded: Recorded | None = None,
    half: bool = False,
) -> tuple[Values, Ints]:
    """Outputs for some graphs of a store; the model is left in evaluation mode.

    `recorded` has the CUDA graphs of the run the network is trained in; with `half` a GPU computes
    in bfloat16, as a network trained so does. Returns `[rows, out]` in float64 and, for each row,
    its index among the rows of the set's targets: a graph, a node or a listed edge.
    """
    model.eval()

    def joined(parts: Iterable[tuple[Ints, Tensor]]) -> tuple[Values, Ints]:
        values, rows = [], []
        for graphs, out in parts:
            out = _at_edges(out, store, graphs) if store.graphs.level == "edge" else out
            values.append(out.to(torch.float64).cpu().numpy())
            rows.append(ragged_rows(store.graphs.row_offsets, graphs))
        return np.concatenate(values), np.concatenate(rows)

    half, recorded = half and store.device.type == "cuda", recorded or Recorded()
    if replayed := recorded.outputs_of(model, store, indices, half):
        result, _ = within_memory(store.device, partial(joined, replayed(indices)))
        if result is not None:
            return result
        recorded.forget_graphs()  # memory does not suffice for them
        free_cached_memory(store.device)
    return joined(_in_batches(model, store, indices, half))


def _in_batches(
    model: nn.Module, store: GraphStore, indices: Ints, half: bool
) -> Iterator[tuple[Ints, Tensor]]:
    """Graphs, and a row for each graph, node, pair or listed edge of them.

    A batch that runs out of memory is cut in two.
    """

    def compute(graphs: Ints) -> tuple[Ints, Tensor]:
        batch = batch_for(model, store, graphs)
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            out = model(batch)
        if isinstance(batch, PackedBatch):
            graphs = batch.indices
        elif store.graphs.level == "node":
            out = out[batch.mask]
        elif store.graphs.level == "edge" and not batch.adjacency.is_sparse:
            out = out[batch.mask[:, :, None] & batch.mask[:, None]]
        return graphs, out

    limits = AT_ONCE["cuda" if store.device.type == "cuda" else "cpu"]
    batches = ordered_batches(store.graphs.sizes[indices], *limits)
    waiting = [indices[chosen] for chosen in reversed(batches)]
    while waiting:
        graphs = waiting.pop()
        result, lack = within_memory(store.device, partial(compute, graphs))
        if result is not None:
            yield result
        elif len(graphs) == 1:
            size = store.graphs.sizes[graphs[0]]
            raise TrainingError(f"memory does not suffice for one graph of {size} nodes: {lack}")
        else:
            middle = len(graphs) // 2
            waiting += [graphs[middle:], graphs[:middle]]


def _at_edges(values: Tensor, store: GraphStore, graphs: Ints) -> Tensor:
    """Outputs of the edges, of one row for each edge or for each pair."""
    listed = store.sparse(int(store.graphs.sizes[graphs].max()))
    if store.graphs.directed:
        return values if listed else values[store.pair_rows(graphs)]
    # Both directions of an undirected edge get the same output.
    if not listed:
        there, back = store.pair_rows(graphs), store.pair_rows(graphs, reverse=True)
        return (values[there] + values[back]) / 2
    rows = torch.from_numpy(ragged_rows(store.edge_offsets, graphs)).to(values.device)
    counts = store.graphs.edge_counts[graphs]
    owner = torch.from_numpy(np.repeat(np.arange(len(graphs)), counts)).to(values.device)
    start, end = store.edges[:, rows]
    n = int(torch.maximum(start, end).max()) + 1 if len(start) else 1
    keys, order = ((owner * n + start) * n + end).sort()
    reverse = order[torch.searchsorted(keys, (owner * n + end) * n + start)]
    return (values + values[reverse]) / 2


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Described):
    """Predictions for some graphs: a row for each graph, node or listed edge, in the set's order.

    Attributes:
        graphs: The graphs, as the network saw them.
        task: What the values mean.
        index: Index of each row among the rows of the set's targets.
        predicted: `[rows, out]` what the network gives, in units, or probabilities before
            calibration; for unseen elements too, which `values` leaves out.
        calibration: Of the run.
        interval: The level of the intervals; 0 for none.
        digits: Significant digits of numbers in a file.
    """

    graphs: GraphSet
    task: Task
    index: Ints
    predicted: Values
    calibration: Calibration = NO_CALIBRATION
    interval: float = INTERVAL
    digits: int = DIGITS

    @property
    def targets(self) -> Values:
        """`[rows, T]`, NaN where unknown."""
        return self.graphs.targets[self.index]

    @cached_property
    def scores(self) -> Scores:
        """By target, if some targets are known; else empty."""
        known = np.isfinite(self.targets).any()
        return metrics(self.task, self.predicted, self.targets) if known else {}

    @property
    def values(self) -> Values:
        """`[records, out]` predictions in their units, or calibrated probabilities.

        In the order of the input, as `rows()`; NaN for a record that cannot be read and for a
        molecule with an element that no training molecule has.
        """
        return self._by_record(self.calibrated)

    @property
    def intervals(self) -> tuple[Values, Values] | None:
        """Lower and upper ends, each `[records, T]`.

        They are infinite with too few validation graphs, and for a graph far larger or smaller
        than any training graph or a value far from theirs.

        None for classes, for a run without calibration, and for `interval=0`.
        """
        bounds = self._bounds
        return None if bounds is None else (self._by_record(bounds[0]), self._by_record(bounds[1]))

    @property
    def notes(self) -> list[str]:
        """For each record why there is no prediction, or how it is unlike the training graphs."""
        return [row["note"] for row in self.rows()]

    @property
    def calibrated(self) -> Values:
        """`[rows, out]` what the network gives, with calibrated probabilities."""
        return self.calibration.probabilities(self.task, self.predicted)

    @property
    def _bounds(self) -> tuple[Values, Values] | None:
        if not self.calibration.errors or not self.interval:
            return None
        half = self.calibration.half_widths(self.interval)
        half = np.where(self.calibration.far(self), np.inf, half)
        return self.predicted - half, self.predicted + half

    @cached_property
    def unlike(self) -> list[str]:
        """For each row how it is unlike the training graphs; empty if it is not."""
        return self.calibration.notes(self)

    @cached_property
    def unseen(self) -> NDArray[np.bool_]:
        """For each row whether it is of a molecule with an element never seen in training."""
        elements = self.calibration.training.unseen_elements(self.graphs)
        if not any(elements):
            return np.zeros(len(self), dtype=bool)
        return np.array([bool(elements[graph]) for graph in self.owners], dtype=bool)

    @property
    def _unread(self) -> Mapping[int, str]:
        """Why records cannot be read, by their number; none for a part of a set."""
        everything = len(self.index) == len(self.graphs.targets)
        return self.graphs.source.get("unread", {}) if everything else {}

    @property
    def _records(self) -> list[int]:
        """The number of each row's graph in the input."""
        numbers = self.graphs.source.get("rows", ())
        if len(numbers) != len(self.graphs):  # a set put together elsewhere
            numbers = range(len(self.graphs))
        return [numbers[graph] for graph in self.owners.tolist()]

    @property
    def _record_ids(self) -> Sequence[str] | None:
        """The user's name for each record; None if it has none, or the set is put together."""
        source, graphs = self.graphs.source, len(self.graphs)
        return (
            source.get("record_ids") if len(source.get("rows", range(graphs))) == graphs else None
        )

    @property
    def names(self) -> Sequence[str]:
        """The user's name for each graph, which may be repeated; else its id, or its number."""
        numbers = range(len(self.graphs))
        if (ids := self._record_ids) is not None:
            return [ids[record] for record in self.graphs.source.get("rows", numbers)]
        return self.graphs.ids or [*map(str, numbers)]

    def _by_record(self, values: Values) -> Values:
        """Values of the rows in the order of the input, with a row of NaN where there is none."""
        missing = np.full((len(self._unread), values.shape[1]), np.nan)
        everything = np.concatenate([np.where(self.unseen[:, None], np.nan, values), missing])
        order = np.argsort([*self._records, *self._unread], kind="stable")
        ordered: Values = everything[order]
        return ordered

    @property
    def reliability(self) -> Reliability:
        """How intervals or probabilities do on known targets; see `Calibration.reliability`."""
        return self.calibration.reliability(self)

    @property
    def owners(self) -> Ints:
        """The graph of each row."""
        return np.searchsorted(self.graphs.row_offsets, self.index, side="right") - 1

    def __len__(self) -> int:
        return len(self.index)

    def facts(self) -> dict[str, str]:
        facts = {
            "predictions": f"{len(self) - int(self.unseen.sum()):,}",
            "graphs": f"{len(self.graphs):,}",
            "of": self.graphs.name,
            "targets": some(column.name for column in self.task.columns),
        }
        if unread := len(self._unread):
            facts["not read"] = f"{unread:,}"
        if self.unseen.any():
            facts["unseen elements"] = f"{int(self.unseen.sum()):,}"
        return facts

    def rows(self, truth: bool = False) -> list[Row]:
        """One dict for each record, in the order of the input, with the user's ids.

        Nodes have the names the user gave them, or else numbers from 0 within their graph. If a
        target has the same name as another column (`id`, `note`, `true a` beside a target a), its
        predictions are in `predicted NAME`. `NAME low` and `NAME high` are the ends of the
        interval, NaN where there is none; `note` says how the graph or prediction is unlike the
        training graphs, and is empty if it is not.

        A record that cannot be read and a molecule with an element that no training molecule has
        get NaN, and a note that says why.

        With `truth` the known targets are added, and the rows are those that are scored: with
        numbers for unseen elements, without records that cannot be read.
        """
        columns, ids = self._cells(truth), self._record_ids
        nothing = {
            name: "" if any(isinstance(cell, str) for cell in cells) else float("nan")
            for name, cells in columns.items()
        }
        rows: list[tuple[int, Row]] = []
        numbered, names = zip(self._records, self._items(), strict=True), self.names
        for number, (record, (graph, item)) in enumerate(numbered):
            row = {"id": names[graph], **item}
            if self.unseen[number] and not truth:
                row |= {**nothing, "note": f"{NOT_PREDICTED}{self.unlike[number]}"}
            else:
                row |= {name: cells[number] for name, cells in columns.items()}
                row["note"] = self.unlike[number]
            rows.append((record, row))
        for record, reason in ({} if truth else self._unread).items():
            record_id = str(record) if ids is None else ids[record]
            rows.append((record, {"id": record_id, **nothing, "note": f"{NOT_PREDICTED}{reason}"}))
        return [row for _, row in sorted(rows, key=itemgetter(0))]

    def to_csv(self, path: str | Path, truth: bool = False) -> None:
        """Write `rows` as CSV, whole or not at all."""
        refuse_overwriting(Path(path), *filter(None, [self.graphs.source.get("path")]))
        write_rows(Path(path), self.rows(truth), self.columns(truth), self.digits)

    def columns(self, truth: bool = False) -> list[str]:
        """The names of all columns `rows` may fill, `note` last."""
        return [*ID_COLUMNS[self.graphs.level], *self._cells(truth), "note"]

    def _items(self) -> list[tuple[int, Row]]:
        """The graph of each row, and which of its nodes or edges the row is about."""
        graphs, owners = self.graphs, self.owners.tolist()
        if graphs.level == "graph":
            return [(graph, {}) for graph in owners]
        rows = zip(owners, self.index.tolist(), strict=True)
        name = graphs.node_name
        if graphs.level == "node":
            first = graphs.node_offsets.tolist()
            return [(graph, {"node": name(graph, row - first[graph])}) for graph, row in rows]
        starts, ends = graphs.edges.tolist()
        return [
            (graph, {"source": name(graph, starts[r]), "target": name(graph, ends[r])})
            for graph, r in rows
        ]

    def _cells(self, truth: bool) -> dict[str, list[Any]]:
        """Known and predicted values, under unique names.

        The names of predictions do not depend on whether truth or intervals are asked for.
        """
        taken = {*ID_COLUMNS[self.graphs.level], "note"}

        def unique(prefix: str, name: str) -> str:
            while name in taken:
                name = f"{prefix} {name}"
            taken.add(name)
            return name

        columns: dict[str, list[Any]] = {}
        for column, values in zip(self.task.columns, self.targets.T, strict=True):
            classes = column.classes or ("0", "1")
            columns[unique("true", with_unit(f"true {column.name}", column.unit))] = [
                "" if np.isnan(v) else float(v) if column.kind == "regression" else classes[int(v)]
                for v in values
            ]
        predicted = {
            unique("predicted", name): cells for name, cells in self.task.table(self.calibrated)
        }
        columns = columns if truth else {}
        if (bounds := self._bounds) is None:
            return {**columns, **predicted}
        for number, (column, name) in enumerate(zip(self.task.columns, predicted, strict=True)):
            columns[name] = predicted[name]
            for end, values in zip(("low", "high"), bounds, strict=True):
                columns[unique("interval", with_unit(f"{column.name} {end}", column.unit))] = [
                    float(value) if np.isfinite(value) else float("nan")
                    for value in values[:, number]
                ]
        return columns


def predict(
    model: nn.Module,
    parts: Parts,
    store: GraphStore,
    indices: Ints,
    processes: Processes | None = None,
    recorded: Recorded | None = None,
    half: bool = False,
) -> Outcome:
    """Predictions for some graphs; several processes share the graphs and all get them.

    See `outputs` for `recorded` and `half`.
    """
    mine = processes.share(indices) if processes else indices
    if len(mine):
        raw, rows = outputs(model, store, mine, recorded, half)
    else:
        raw, rows = np.zeros((0, parts.task.out)), np.zeros(0, dtype=np.int64)
    if processes:
        raw, rows = map(np.concatenate, zip(*processes.gathered((raw, rows)), strict=True))
    order = np.argsort(rows)
    raw, rows = raw[order], rows[order]
    everything = np.zeros((len(parts.graphs.targets), raw.shape[1]))
    everything[rows] = raw
    in_units = parts.scaling.unscale(parts.task, parts.graphs, everything)[rows]
    decoded = parts.task.decode(in_units)
    return Outcome(parts.graphs, parts.task, rows, decoded, digits=parts.scaling.digits)


def constant_guess(parts: Parts, test: Outcome) -> Scores:
    """The scores of the mean of the training targets, or of the frequency of each class."""
    targets = parts.graphs.select(parts.splits["train"]).targets
    if parts.task.kind == "multiclass":
        classes = targets[np.isfinite(targets)].astype(np.int64)
        guess = np.bincount(classes, minlength=parts.task.out) / max(1, len(classes))
    else:
        counts = np.isfinite(targets).sum(axis=0)
        guess = np.nansum(targets, axis=0) / np.maximum(counts, 1)
    return replace(test, predicted=np.tile(guess, (len(test), 1))).scores


def csv_lines(
    rows: list[Row], columns: Sequence[str], header: bool = False, digits: int = DIGITS
) -> bytes:
    """Rows as lines of CSV; missing cells and NaN are empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, fieldnames=columns, restval="", lineterminator="\n")
    if header:
        table.writeheader()

    def shown(cell: Any) -> Any:
        return ("" if np.isnan(cell) else f"{cell:.{digits}g}") if isinstance(cell, float) else cell

    table.writerows({name: shown(cell) for name, cell in row.items()} for row in rows)
    return text.getvalue().encode(errors="replace")


def write_rows(path: Path, rows: list[Row], columns: Sequence[str], digits: int = DIGITS) -> None:
    """Write rows as CSV, whole or not at all."""
    write_whole(path, csv_lines(rows, columns, True, digits), shared=True)
