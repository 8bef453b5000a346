"""A trained run put to use: its network and scores, predictions for new graphs."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from ..data.graph_set import GraphSet, Ints
from ..data.readers.molecules import ATOM_FEATURES
from ..data.readers.options import Options
from ..data.readers.smiles_tables import read_smiles_list
from ..data.reading import SMILES, read_with, reading_options
from ..data.streaming import GraphStream, open_stream
from ..described import Described, some
from ..errors import DataError
from ..input_files import read_text_file
from ..validation import check
from .alignment import match_training_columns
from .calibration import INTERVAL, Calibration, Reliability, check_interval
from .config import RunConfig
from .evaluate import Predictions, Scores, predict
from .metrics import metrics
from .models import load_best
from .predict import Row, prediction_columns, prediction_rows, write_rows
from .run_folder import RunFolder
from .scaling import Scaling
from .setup import (
    Parts,
    load_graphs,
    make_store,
    names_dataset,
    prepare,
    read_source,
    takes_edges,
    without_edge_features,
)
from .task import Task, Values

if TYPE_CHECKING:
    from .predict_file import Predicted

CARRIED = ("smiles", "id", "hydrogens", "largest", "directed")
"""Options of reading that hold for new files as they did for the training file."""
READ_BACK = (
    "positions",
    "level",
    "node_features",
    "edge_features",
    "node_names",
    "edge_names",
)
"""What new graphs are compared with."""
OF_MOLECULES = ("hydrogens", "largest")
"""Those that hold for molecules in memory too."""


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Described):
    """Predictions with what they are about.

    Attributes:
        graphs: The graphs, as the network saw them.
        made: A row for each graph, node or listed edge.
        scores: By target, where some targets are known; else empty.
        task: What the values mean.
        calibration: How far they can be trusted; None where the run does not say it.
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

        None for classes, for a run that has no calibration, and where none are asked for.
        """
        if self.calibration is None or self.task.kind != "regression" or not self.interval:
            return None
        return self.calibration.bounds(self.made.values, self.interval)

    @cached_property
    def notes(self) -> list[str]:
        """For each row in what it is unlike the training graphs; empty where it is not."""
        if self.calibration is None:
            return [""] * len(self)
        return self.calibration.notes(self.graphs, self.task, self.made)

    @property
    def reliability(self) -> Reliability:
        """How intervals or probabilities do where targets are known; see `Calibration`."""
        if self.calibration is None:
            return {}
        return self.calibration.reliability(self.task, self.made, self.interval)

    def __len__(self) -> int:
        return len(self.made.rows)

    def facts(self) -> dict[str, str]:
        """The predictions in a few words, for `repr` and notebooks."""
        found = {
            "predictions": f"{len(self):,}",
            "graphs": f"{len(self.graphs):,}",
            "of": self.graphs.name,
            "targets": some(column.name for column in self.task.columns),
        }
        if lost := len(self.graphs.source.get("unread", ())):
            found["not read"] = f"{lost:,}"
        return found

    def rows(self, truth: bool = False) -> list[Row]:
        """One dict for each prediction, with the input's ids in its order, units in the names.

        A record that could not be read has a row that says why. Columns `NAME low` and `NAME high`
        are the ends of the interval; `note` says in what a graph is unlike the training graphs.

        Args:
            truth: Whether the known targets stand beside the predictions.
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


class Run:
    """A run folder: its best network, its scores, and predictions for new graphs.

    `g2n2.train` gives one, and `g2n2.load(folder)`:

    >>> from g2n2 import Run
    >>> Run("no-such-run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    g2n2.errors.DataError: no-such-run is no run folder: it has no config.json; ...

    Args:
        folder: Written by `train`.
        device: `auto`, `cpu` or `cuda`.
        graphs: The graphs it was trained on, where they are in memory and in no file.

    Attributes:
        config: Its settings.
        task: What it learned.
        note: What there is to say about the folder: that its files are not checked, or that it does
            not say how far to trust predictions, where an earlier version wrote it or the run has
            not ended; else empty.

    Raises:
        DataError: It is no run folder, or its files do not belong together.
    """

    def __init__(
        self, folder: str | Path, device: str = "auto", graphs: GraphSet | None = None
    ) -> None:
        self.files = RunFolder.existing(folder)
        self._graphs = graphs
        self.note = "; ".join(filter(None, (self.files.unchecked, self.files.uncalibrated)))
        self.config: RunConfig = self.files.config()
        columns = self.files.columns()
        self.task = Task(columns, columns[0].kind)
        found = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(found if device == "auto" else device)

    @property
    def folder(self) -> Path:
        """Where everything about the run is written; `run_folder` says what."""
        return self.files.path

    @cached_property
    def model(self) -> nn.Module:
        """The network with the best weights, in evaluation mode: a `GrammarGNN` or a baseline.

        Its outputs are scaled as in training; `predict` gives them in their units.
        """
        parts = self._parts() if self.config.baseline else None
        return load_best(self.files, self.config, parts).to(self.device).eval()

    @cached_property
    def calibration(self) -> Calibration | None:
        """How far predictions can be trusted; None where the folder does not say it.

        Raises:
            DataError: Its file is damaged, was altered, or is of another run.
        """
        return self.files.calibration(self.task)

    @property
    def scores(self) -> Scores:
        """Of the best network on the test graphs, by target; empty where there were none."""
        return self._result("test")

    @property
    def guesses(self) -> Scores:
        """The same for a guess that looks at no graph: the mean, or the commonest class."""
        return self._result("test_of_constant_guess")

    def _result(self, field: str) -> Scores:
        said = self.files.read_json("result.json")
        check(said, {field: {str: {str: (None, float)}}}, "result", self.folder / "result.json")
        return _numbers(said[field])

    @property
    def history(self) -> list[dict[str, float]]:
        """Loss and validation scores of each epoch.

        Raises:
            DataError: No epoch was finished, or metrics.csv is damaged.
        """
        path = self.folder / "metrics.csv"
        if not path.exists():
            raise DataError(f"{self.folder} has no metrics.csv: no epoch was finished")
        rows = csv.DictReader(read_text_file(path, "expected a table of epochs").splitlines())
        try:
            return [{name: float(value) for name, value in row.items()} for row in rows]
        except (ValueError, TypeError, csv.Error):  # no number, or more or fewer cells than names
            raise DataError(
                f"{path} is damaged in line {rows.line_num}: expected numbers; "
                f"g2n2 train --resume {self.folder} writes it again"
            ) from None

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def __str__(self) -> str:
        lines = [f"{self.config.baseline or self.config.grammar} on {self.config.dataset}"]
        scores = self.scores if (self.folder / "result.json").is_file() else {}
        for name, values in scores.items():
            shown = ", ".join(f"{metric} {value:.4g}" for metric, value in values.items())
            lines.append(f"  test {name}: {shown}")
        lines.append(f"  run folder: {self.folder}")
        return "\n".join([*lines, *([f"  note: {self.note}"] if self.note else [])])

    def evaluate(
        self, part: str = "test", graphs: GraphSet | None = None, interval: float = INTERVAL
    ) -> Outcome:
        """Predictions and scores on a part of the run's own data.

        Args:
            part: `train`, `validation` or `test`.
            graphs: The run's graphs, where they are in memory; else they are read again.
            interval: The level of the intervals; 0 for none.

        Raises:
            DataError: There is no such part, it has no target to compare with, or the data is no
                longer what it was.
        """
        splits = self.files.splits()
        if part not in splits:
            raise DataError(f"the run has no part {part!r}; it has {', '.join(splits)}")
        if not len(splits[part]):
            raise DataError(f"the part {part} of this run holds no graph")
        parts = self._parts(graphs)
        self.files.refuse_other_data(parts.graphs)
        self._refuse_unknown(parts.graphs.select(splits[part]), f"the part {part} of this run")
        return self._outcome(replace(parts, scaling=self.files.scaling()), splits[part], interval)

    def _parts(self, graphs: GraphSet | None = None) -> Parts:
        """What the run worked with."""
        known = self._graphs if graphs is None else graphs
        everything = load_graphs(self.config) if known is None else known
        return prepare(self.config, everything, self.files.splits())

    def predict(
        self,
        source: str | Path | GraphSet | Iterable[Any],
        options: Mapping[str, Any] | None = None,
        targets: bool = False,
        interval: float = INTERVAL,
    ) -> Outcome:
        """Predictions for new graphs, in their order.

        Args:
            source: A file, a folder, a data set's name, or graphs in memory: a list of networkx
                graphs or PyG `Data`, of SMILES for a run on molecules, or of anything
                `g2n2.graphs.adjacency` takes for one on graphs without features.
            options: Of reading; those of the training file hold where they are not named.
            targets: Whether the source must hold the targets, to score the predictions.
            interval: The share of graphs whose interval is to hold the true value; 0 for no
                interval.

        Raises:
            DataError: It cannot be read, or its features are not those of the training graphs.
        """
        if isinstance(source, GraphSet):
            graphs = source
        elif isinstance(source, str | Path):
            graphs = self._read(source, options, targets)
        else:
            graphs = self._read_list(source, options)
        parts = self.parts_of(graphs)
        if targets:
            self._refuse_unknown(parts.graphs, graphs.name)
        return self._outcome(parts, np.arange(len(graphs)), interval)

    def parts_of(self, graphs: GraphSet) -> Parts:
        """New graphs as the network takes them.

        Raises:
            DataError: Their features are not those of the training graphs.
        """
        known = graphs if takes_edges(self.config) else without_edge_features(graphs)
        aligned = match_training_columns(known.check(), self._described, self.task).check()
        vars(aligned)["directed"] = graphs.directed  # which that of some of them need not be
        return Parts(aligned, {}, self.task, self._scaling, ())

    @cached_property
    def _described(self) -> dict[str, Any]:
        return {name: self.files.data(name) for name in READ_BACK}

    @cached_property
    def _scaling(self) -> Scaling:
        return self.files.scaling()

    def predict_to(
        self,
        source: str | Path | GraphSet,
        out: str | Path,
        options: Mapping[str, Any] | None = None,
        interval: float = INTERVAL,
        **how: Any,
    ) -> Predicted:
        """Predictions for the graphs of a file, written to a CSV file chunk by chunk.

        The rows are those of `predict(source).to_csv(out)`, and memory does not grow with the
        file where its format has one record after the other: CSV with SMILES, `.smi`, SDF, XYZ,
        graph6. While it is made the output is called `OUT.partial`.

        Args:
            source: A file, a folder, a data set's name, or graphs.
            out: The CSV file.
            options: Of reading; those of the training file hold where they are not named.
            interval: As of `predict`.
            how: Of `predict_file.predict_to`: `resume`, `chunk`, `engine`, `progress`.

        Raises:
            DataError: As `predict`; another process writes the output; or it cannot be written.
            KeyboardInterrupt: Ctrl-C or SIGTERM; what was made is kept for `resume=True`.
        """
        from .predict_file import predict_to

        return predict_to(self, source, Path(out), options, interval, **how)

    def stream(
        self, source: str | Path | GraphSet, options: Mapping[str, Any] | None = None
    ) -> GraphStream:
        """The graphs of a file, to be read a chunk at a time with the options of `predict`."""
        if isinstance(source, GraphSet):
            return GraphStream.of_graphs(source, source.name, Options(target=()))
        name, said = str(source), self._reading(source, options, targets=False)
        if names_dataset(name) or not os.path.exists(source):
            return GraphStream.of_graphs(
                read_source(name, self.config.data, said), name, Options(target=())
            )
        return open_stream(source, reading_options(said))

    def network(self, parts: Parts) -> nn.Module:
        """The network with the best weights, as it is in the folder now.

        Args:
            parts: Graphs as the network takes them, after which a baseline is made.
        """
        return load_best(self.files, self.config, parts).to(self.device)

    def made_by(self, model: nn.Module, parts: Parts, indices: Ints) -> Predictions:
        """What the network says of some graphs."""
        dtype = torch.float64 if self.config.precision == "64" else torch.float32
        return predict(
            model, parts, make_store(self.config, parts.graphs, self.device, dtype), indices
        )

    def _refuse_unknown(self, graphs: GraphSet, what: str) -> None:
        if not np.isfinite(graphs.targets).any():
            names = ", ".join(column.name for column in self.task.columns)
            raise DataError(f"{what} has no value of {names} to compare with")

    def _read(
        self, source: str | Path, options: Mapping[str, Any] | None, targets: bool
    ) -> GraphSet:
        said = self._reading(source, options, targets)
        return read_source(str(source), self.config.data, said)

    def _reading(
        self, source: str | Path, options: Mapping[str, Any] | None, targets: bool
    ) -> dict[str, Any]:
        """How a file is read: as the training file was, where nothing else is said."""
        carried = {k: v for k, v in self.config.options.items() if k in CARRIED}
        if not os.path.exists(source):
            carried = dict(self.config.options)  # a data set by name: its own options hold
        wanted = tuple(column.name for column in self.task.columns) if targets else ()
        return {"target": wanted, **carried, **(options or {})}

    def _read_list(self, source: Iterable[Any], options: Mapping[str, Any] | None) -> GraphSet:
        """Graphs in memory; bare strings are SMILES where the run was trained on molecules."""
        items = source if hasattr(source, "edge_index") else list(source)
        molecules = self.files.data("node_names") == list(ATOM_FEATURES)
        if molecules and isinstance(items, list) and all(isinstance(x, str) for x in items):
            said = {**self.config.options, **(options or {})}
            if odd := [name for name in options or () if name not in OF_MOLECULES]:
                raise DataError(
                    f"the option {odd[0]!r} says nothing about a list of SMILES; "
                    f"known: {', '.join(OF_MOLECULES)}"
                )
            texts = [text.removeprefix(SMILES) for text in items]
            hydrogens, largest = (bool(said.get(name, False)) for name in OF_MOLECULES)
            chosen = Options(target=(), hydrogens=hydrogens, largest=largest)
            return read_smiles_list(texts, chosen)
        return read_with(items, options or {})

    def _outcome(self, parts: Parts, indices: Ints, interval: float) -> Outcome:
        calibration, interval = self.calibration, check_interval(interval)
        made = self.made_by(self.network(parts), parts, indices)
        known = bool(np.isfinite(made.targets).any())
        scores = metrics(self.task, made.values, made.targets) if known else {}
        return Outcome(parts.graphs, made, scores, self.task, calibration, interval)


def _numbers(scores: dict[str, dict[str, float | None]]) -> Scores:
    """Scores as JSON holds them, where what is no number is null."""
    return {
        name: {metric: float("nan") if value is None else value for metric, value in own.items()}
        for name, own in scores.items()
    }
