"""A trained run put to use: scores on its own parts or another file, predictions for new graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.graph_set import GraphSet, Ints
from ..errors import DataError
from .alignment import align
from .building import (
    Parts,
    load_graphs,
    make_store,
    prepare,
    read_source,
    takes_edges,
    without_edge_features,
)
from .config import RunConfig
from .evaluation import Predictions, Scores, predict
from .metrics import metrics
from .models import load_best
from .run_folder import RunFolder
from .tasks import Task

CARRIED = ("smiles", "id", "hydrogens", "directed")
"""Options of reading that hold for new files as they did for the training file."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions with what they are about.

    Attributes:
        graphs: The graphs, as the network saw them.
        made: A row for each graph, node or listed edge.
        scores: By target, where some targets are known; else empty.
    """

    graphs: GraphSet
    made: Predictions
    scores: Scores


class TrainedRun:
    """A run folder whose best network is used.

    Args:
        folder: Written by `train`.
        device: `auto`, `cpu` or `cuda`.

    Raises:
        DataError: It is no run folder.
    """

    def __init__(self, folder: str | Path, device: str = "auto") -> None:
        self.files = RunFolder.existing(folder)
        self.config: RunConfig = self.files.config()
        columns = self.files.columns()
        self.task = Task(columns, columns[0].kind)
        found = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(found if device == "auto" else device)

    def evaluate(self, part: str, graphs: GraphSet | None = None) -> Outcome:
        """Predictions and scores on a part of the run's own data.

        Args:
            part: `train`, `validation` or `test`.
            graphs: The run's graphs, where they are in memory; else they are read again.

        Raises:
            DataError: There is no such part, it has no target to compare with, or the data is no
                longer what it was.
        """
        splits = self.files.splits()
        if part not in splits:
            raise DataError(f"the run has no part {part!r}; it has {', '.join(splits)}")
        if not len(splits[part]):
            raise DataError(f"the part {part} of this run holds no graph")
        everything = load_graphs(self.config) if graphs is None else graphs
        parts = prepare(self.config, everything, splits)
        self.files.refuse_other_data(parts.graphs)
        self._refuse_unknown(parts.graphs.select(splits[part]), f"the part {part} of this run")
        return self._outcome(replace(parts, scaling=self.files.scaling()), splits[part])

    def predict(
        self,
        source: str | Path | GraphSet,
        options: Mapping[str, Any] | None = None,
        targets: bool = False,
    ) -> Outcome:
        """Predictions for new graphs, in their order.

        Args:
            source: A file, a folder, a data set's name, or graphs in memory.
            options: Of reading; those of the training file hold where they are not named.
            targets: Whether the source must hold the targets, to score the predictions.

        Raises:
            DataError: It cannot be read, or its features are not those of the training graphs.
        """
        graphs = source if isinstance(source, GraphSet) else self._read(source, options, targets)
        if not takes_edges(self.config):
            graphs = without_edge_features(graphs)
        described = self.files.read_json("data.json")
        graphs = align(graphs.check(), described, self.task).check()
        if targets:
            self._refuse_unknown(graphs, graphs.name)
        parts = Parts(graphs, {}, self.task, self.files.scaling(), ())
        return self._outcome(parts, np.arange(len(graphs)))

    def _refuse_unknown(self, graphs: GraphSet, what: str) -> None:
        if not np.isfinite(graphs.targets).any():
            names = ", ".join(column.name for column in self.task.columns)
            raise DataError(f"{what} has no value of {names} to compare with")

    def _read(
        self, source: str | Path, options: Mapping[str, Any] | None, targets: bool
    ) -> GraphSet:
        carried = {k: v for k, v in self.config.options.items() if k in CARRIED}
        if not Path(source).exists():
            carried = dict(self.config.options)  # a data set by name: its own options hold
        wanted = tuple(column.name for column in self.task.columns) if targets else ()
        chosen = {"target": wanted, **carried, **(options or {})}
        return read_source(str(source), self.config.data, chosen)

    def _outcome(self, parts: Parts, indices: Ints) -> Outcome:
        dtype = torch.float64 if self.config.precision == "64" else torch.float32
        model = load_best(self.files, self.config, parts).to(self.device)
        store = make_store(self.config, parts.graphs, self.device, dtype)
        made = predict(model, parts, store, indices)
        known = bool(np.isfinite(made.targets).any())
        scores = metrics(self.task, made.values, made.targets) if known else {}
        return Outcome(parts.graphs, made, scores)
