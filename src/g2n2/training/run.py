"""`Run`: a trained run loaded from its folder: its network, its scores, predictions."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from ..data.graph_set import GraphSet, Ints
from ..data.readers import Options
from ..data.readers.molecule_files import holds_molecule_files
from ..data.readers.molecules import ATOM_FEATURES, read_smiles_list
from ..data.reading import (
    SMILES,
    GraphStream,
    graphs_in_memory,
    open_stream,
    read_with,
    reading_options,
    takes_option,
)
from ..errors import DataError
from ..graphs.text import chemistry, parse_smiles
from ..input_files import read_text_file
from ..validation import check
from .calibration import INTERVAL, NO_CALIBRATION, Calibration, check_interval
from .config import RunConfig, names_dataset
from .evaluate import Outcome, predict
from .processes import find_device
from .run_folder import RunFolder
from .setup import (
    Parts,
    graphs_of_run,
    make_store,
    prepare,
    read_source,
    takes_edges,
    without_edge_features,
)
from .task import Scores, Task

if TYPE_CHECKING:
    from .predict import PredictionFile


PRETRAINED = Path(__file__).resolve().parents[1] / "pretrained_networks"
"""Run folders that come with the package, without checkpoints and the split; each has a
`training.toml` for `g2n2 train --config` and a model card."""
HELD_OUT = "held_out.csv"
"""Graphs the network was not trained on, with their true values."""
INHERITED_OPTIONS = ("smiles", "id", "hydrogens", "largest", "stereo", "directed")
"""Options of the training file that also hold for new files."""
SMILES_OPTIONS = ("hydrogens", "largest", "stereo", "descriptors")
"""Options that also hold for molecules in memory."""


class Run:
    """A run folder: its best network, its scores, and predictions for new graphs.

    Returned by `g2n2.train` and `g2n2.load(folder)`:

    >>> from g2n2 import Run
    >>> Run("no-such-run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    g2n2.errors.DataError: no-such-run is no run folder: there is nothing at that path: ...

    Args:
        folder: Written by `train`; or the name of a network of `pretrained`, as `qm9`.
        device: `auto`, `cpu` or `cuda`.
        graphs: The graphs it was trained on, if they are not in a file.

    Attributes:
        config: Its settings.
        task: What it learned.
        trained_on: The graphs it learned from.
        note: A sentence if the folder, of an earlier version or an unfinished run, has no
            checksums or no calibration; else empty.

    Raises:
        DataError: It is no run folder, or its files do not belong together.
    """

    def __init__(
        self, folder: str | Path, device: str = "auto", graphs: GraphSet | None = None
    ) -> None:
        self.files = RunFolder.existing(run_path(folder), pretrained_names())
        self._graphs = graphs
        self.note = "; ".join(filter(None, (self.files.checksum_note, self.files.calibration_note)))
        self.config: RunConfig = self.files.config()
        self.trained_on = self.files.trained_on
        self.task = Task(self.trained_on.columns, self.trained_on.columns[0].kind)
        self.device = find_device(device)

    @property
    def folder(self) -> Path:
        """The folder; `g2n2.training.run_folder` lists its files."""
        return self.files.path

    @cached_property
    def model(self) -> nn.Module:
        """The network with the best weights, in evaluation mode: a `GrammarGNN` or a baseline.

        Its outputs are scaled as in training; `predict` gives them in their units.
        """
        scaling, no_graphs = self.trained_on.scaling, self.trained_on.no_graphs()
        parts = Parts(no_graphs, {}, self.task, scaling, ())
        return self.files.load_best(self.config, parts).to(self.device).eval()

    @cached_property
    def calibration(self) -> Calibration | None:
        """Intervals, temperatures and training ranges; None if the folder has none."""
        return self.files.calibration(self.task)

    @property
    def scores(self) -> Scores:
        """Of the best network on the test graphs, by target; empty if there were none."""
        return self._result("test")

    @property
    def guesses(self) -> Scores:
        """The same for a constant guess: the mean, or the most frequent class."""
        return self._result("test_of_constant_guess")

    def _result(self, field: str) -> Scores:
        result = self.files.read_json("result.json")
        check(result, {field: {str: {str: (None, float)}}}, "result", self.folder / "result.json")
        return {
            target: {k: float("nan") if v is None else v for k, v in scores.items()}
            for target, scores in result[field].items()
        }

    @property
    def history(self) -> list[dict[str, float]]:
        """Loss and validation scores of each epoch; for classes the validation loss too.

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
            graphs: The run's graphs, if they are in memory; else they are read again.
            interval: The level of the intervals; 0 for none.

        Raises:
            DataError: There is no such part, its targets are unknown, or the data has changed.
        """
        if is_pretrained(self.folder):
            raise DataError(
                f"the network {self.folder.name} comes without the graphs it was trained on; "
                f"score it on a file with targets: g2n2 evaluate {self.folder.name} --on FILE"
            )
        splits = self.files.splits()
        if part not in splits:
            raise DataError(f"the run has no part {part!r}; it has {', '.join(splits)}")
        if not len(splits[part]):
            raise DataError(f"the part {part} of this run holds no graph")
        graphs = self.own_graphs() if graphs is None else graphs
        parts = prepare(self.config, graphs, splits)
        self.trained_on.refuse_other(parts.graphs, self.folder)
        self._refuse_unknown(parts.graphs.select(splits[part]), f"the part {part} of this run")
        return self.outcome(replace(parts, scaling=self.trained_on.scaling), splits[part], interval)

    def own_graphs(self) -> GraphSet:
        """The graphs of the run: those in memory, or read again."""
        return graphs_of_run(self.config, self.folder) if self._graphs is None else self._graphs

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
                graphs or PyG `Data`, of SMILES or RDKit molecules for a run on molecules (or one of
                them), or of anything `g2n2.graphs.adjacency` takes for one on graphs without
                features.
            options: Of reading; by default those of the training file.
            targets: Whether the source must hold the targets, to score the predictions.
            interval: The share of graphs whose interval is to hold the true value; 0 for no
                interval.

        Raises:
            DataError: It cannot be read, or its features are not those of the training graphs.
        """
        graphs = self.read(source, options, targets)
        parts = self.parts_of(graphs)
        if targets:
            self._refuse_unknown(parts.graphs, graphs.name)
        return self.outcome(parts, np.arange(len(graphs)), interval)

    def read(
        self,
        source: str | Path | GraphSet | Iterable[Any],
        options: Mapping[str, Any] | None = None,
        targets: bool = False,
    ) -> GraphSet:
        """New graphs, read with the options of training; the arguments are those of `predict`."""
        if isinstance(source, GraphSet):
            return source
        if isinstance(source, str | Path):
            if self._on_molecules and isinstance(source, str) and _is_smiles(source):
                return self._read_list([source], options)
            reading = self._reading(source, options, targets)
            return read_source(str(source), self.config.data, reading)
        return self._read_list(source, options)

    def parts_of(self, graphs: GraphSet) -> Parts:
        """New graphs as the network reads them; a DataError if their features do not match."""
        trained = self.trained_on
        matched = trained.preprocessing.apply(trained.without_labels(graphs))
        matched = matched if takes_edges(self.config) else without_edge_features(matched)
        matched = trained.matched(matched.check()).check()
        vars(matched)["directed"] = graphs.directed  # a chunk may have symmetric graphs only
        return Parts(matched, {}, self.task, trained.scaling, ())

    def predict_to(
        self,
        source: str | Path | GraphSet,
        out: str | Path,
        options: Mapping[str, Any] | None = None,
        interval: float = INTERVAL,
        **how: Any,
    ) -> PredictionFile:
        """Write predictions for the graphs of a file to a CSV file, chunk by chunk.

        The rows are those of `predict(source).to_csv(out)`. Memory does not grow with the file if
        it is of molecules: CSV with SMILES, `.smi`, SDF, XYZ. Until it is complete the output is
        called `OUT.partial`.

        `how` may be `resume`, `chunk`, `engine`, `progress` …, those of
        `g2n2.training.predict.predict_to`; the other arguments are those of `predict`.

        Raises:
            DataError: As `predict`; another process writes the output; or it cannot be written.
            KeyboardInterrupt: Ctrl-C or SIGTERM; what was made is kept for `resume=True`.
        """
        from .predict import predict_to

        return predict_to(self, source, Path(out), options, interval, **how)

    def stream(
        self, source: str | Path | GraphSet, options: Mapping[str, Any] | None = None
    ) -> GraphStream:
        """The graphs of a file, to be read a chunk at a time with the options of `predict`."""
        if isinstance(source, GraphSet):
            return GraphStream.of_graphs(source, source.name, Options(target=()))
        if self._on_molecules:
            _refuse_smiles(source)
        name, reading = str(source), self._reading(source, options, targets=False)
        if names_dataset(name) or not os.path.exists(source):
            graphs = read_source(name, self.config.data, reading)
            return GraphStream.of_graphs(graphs, name, Options(target=()))
        return open_stream(source, reading_options(reading))

    def outcome(self, parts: Parts, indices: Ints, interval: float) -> Outcome:
        """Predictions for some graphs."""
        calibration, interval = self.calibration, check_interval(interval)
        store = make_store(self.config, parts.graphs, self.device)
        outcome = predict(self.model, parts, store, indices, half=self.config.precision == "bf16")
        return replace(outcome, calibration=calibration or NO_CALIBRATION, interval=interval)

    def _refuse_unknown(self, graphs: GraphSet, what: str) -> None:
        if not np.isfinite(graphs.targets).any():
            names = ", ".join(column.name for column in self.task.columns)
            raise DataError(f"{what} has no value of {names} to compare with")

    @property
    def _on_molecules(self) -> bool:
        """Whether it was trained on the features of molecules."""
        return self.trained_on.node_names[: len(ATOM_FEATURES)] == ATOM_FEATURES

    @cached_property
    def reading_of_training(self) -> dict[str, Any]:
        """The options that give new graphs the features of training; some sets name their own."""
        source = self.trained_on.source
        of_source = {name: source[name] for name in ("hydrogens", "stereo") if name in source}
        options = {**of_source, **self.config.options}
        inherited = {name: options[name] for name in INHERITED_OPTIONS if name in options}
        return {**inherited, **self.trained_on.preprocessing.reading}

    def _reading(
        self, source: str | Path, options: Mapping[str, Any] | None, targets: bool
    ) -> dict[str, Any]:
        """Options of reading: by default those of the training file."""
        carried = self.reading_of_training
        if not os.path.exists(source):
            carried = dict(self.config.options)  # a data set by name: its own options hold
        elif holds_molecule_files(Path(source)):
            carried = {name: value for name, value in carried.items() if name != "smiles"}
            trained = self.trained_on.source
            if trained.get("format") == "smiles" or "hydrogens" in trained:
                carried = {"hydrogens": False, **carried}
        wanted = tuple(column.name for column in self.task.columns) if targets else ()
        reading = {"target": wanted, **carried, **(options or {})}
        in_file = os.path.exists(source) and not names_dataset(str(source))
        if targets and in_file and takes_option(source, "task", reading):
            # What the targets are is known, however few a file has; classes are matched by name.
            kind = "regression" if self.task.kind == "regression" else "multiclass"
            reading = {"task": kind, **reading}
        return reading

    def _read_list(self, source: Iterable[Any], options: Mapping[str, Any] | None) -> GraphSet:
        """Graphs in memory; bare strings are SMILES where the run was trained on molecules."""
        items: list[Any] = [source] if _is_molecule(source) else graphs_in_memory(source)
        if self._on_molecules and any(map(_is_molecule, items)):
            with chemistry() as chem:  # None is what RDKit gives for a molecule it cannot read
                items = [chem.MolToSmiles(item) if _is_molecule(item) else item for item in items]
            items = ["" if item is None else item for item in items]
        if self._on_molecules and all(isinstance(item, str) for item in items):
            reading = {**self.reading_of_training, **(options or {})}
            if odd := [name for name in options or () if name not in SMILES_OPTIONS]:
                raise DataError(
                    f"the option {odd[0]!r} says nothing about a list of SMILES; "
                    f"known: {', '.join(SMILES_OPTIONS)}"
                )
            texts = [text.removeprefix(SMILES) for text in items]
            how = {name: reading[name] for name in SMILES_OPTIONS if name in reading}
            return read_smiles_list(texts, reading_options({"target": (), **how}))
        return read_with(items, options or {})


def _is_molecule(item: object) -> bool:
    return hasattr(item, "GetNumAtoms")


def _is_smiles(text: str) -> bool:
    """Whether a text is a SMILES, and no file, folder or data set."""
    if os.path.exists(text) or names_dataset(text):
        return False
    with chemistry() as chem:
        try:
            parse_smiles(chem, text.removeprefix(SMILES))
        except DataError:
            return False
    return True


def _refuse_smiles(source: str | Path) -> None:
    """Refuse a SMILES where a file is expected, and say how one is given."""
    if _is_smiles(text := str(source)):
        raise DataError(
            f"no file, folder or data set {text!r}: a SMILES is given by --smiles, in Python in a "
            f"list: [{text!r}]"
        )


def pretrained_names() -> list[str]:
    """The networks that are there."""
    return sorted(path.parent.name for path in PRETRAINED.glob("*/config.json"))


def pretrained(name: str = "qm9", device: str = "auto") -> Run:
    """A trained run that comes with the package, ready to predict.

    >>> from g2n2 import pretrained
    >>> run = pretrained("qm9")
    >>> [column.name for column in run.task.columns][:5]
    ['mu', 'alpha', 'homo', 'lumo', 'gap']

    Args:
        name: `qm9`: twelve quantum-chemical properties of molecules of H, C, N, O and F.
        device: `auto`, `cpu` or `cuda`.

    Raises:
        DataError: There is no such network, or its files were altered.
    """
    if name not in (known := pretrained_names()):
        raise DataError(
            f"no network called {name!r} comes with g2n2; there is: {', '.join(known) or 'none'}"
        )
    return Run(PRETRAINED / name, device)


def run_path(folder: str | Path) -> Path:
    """The folder of a run: the one of that path, else that of a pretrained network so called."""
    path = Path(folder)
    if not os.path.exists(path) and str(folder) in pretrained_names():
        return PRETRAINED / str(folder)
    return path


def is_pretrained(folder: str | Path) -> bool:
    """Whether a run folder is one of the package."""
    return Path(folder).parent == PRETRAINED
