"""A fold's two runs: one on its whole training part, watched by its test graphs, and one nested."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...data.assembly import frozen
from ...data.splits import split
from ...errors import DataError
from ...training.config import RunConfig
from ..cell import Slice
from ..kept import keep, percentages, read_kept
from ..training_cells import train_slice
from .statistics import KEPT_DIGITS

if TYPE_CHECKING:
    from ...data.graph_set import GraphSet, Ints
    from ...training.cuda_graphs import Recorded

Protocol = Literal["whole", "nested"]
HELD_BACK = 0.1
"""Of a training fold, for validation in a nested run."""


@dataclass(frozen=True)
class FoldRun:
    """One run of a cell.

    Attributes:
        protocol: `whole` trains on the whole training fold and scores the test fold after every
            epoch; `nested` chooses its weights on what is held out and scores the test fold once.
        fold: From 1.
    """

    protocol: Protocol
    fold: int

    @property
    def name(self) -> str:
        return f"{self.protocol}-{self.fold}"

    def parts(self, graphs: GraphSet, seed: int) -> Mapping[str, Ints]:
        """The graphs to train on, choose by and test on."""
        test = graphs.splits[f"fold-{self.fold}"]
        rest = np.setdiff1d(np.arange(len(graphs)), test)
        if self.protocol == "whole":
            return {"train": rest, "validation": test}
        inside = split(graphs.select(rest), "random", seed, (1.0 - HELD_BACK, HELD_BACK, 0.0))
        return {
            "train": rest[inside["train"]],
            "validation": rest[inside["validation"]],
            "test": test,
        }


def run_fold(
    config: RunConfig,
    run: FoldRun,
    graphs: GraphSet,
    given: Slice,
    begun: float,
    recorded: Recorded | None = None,
) -> list[float] | None:
    """Do a run, or go on with it.

    Args:
        config: Of all runs of the cell.
        run: Which one.
        graphs: The whole set.
        given: The slice.
        begun: When it was.
        recorded: Shared by the runs of a cell: none but the first records its steps.

    Returns:
        Accuracies in percent: of the test fold after every epoch (`whole`), or of the test fold and
        of the held-out graphs, both of the chosen weights (`nested`); None where the slice ended
        before the run.
    """
    kept = given.work / f"{run.name}.json"
    count = 2 if run.protocol == "nested" else config.effective_recipe().epochs
    if before := read_kept(kept, lambda found: percentages(found, count)):
        return before
    folder = given.work / run.name
    with_parts = replace(graphs, splits=frozen(dict(run.parts(graphs, config.seed))))
    trained = train_slice(config, folder, given, with_parts, begun, recorded)
    if trained.scores is None:
        return None
    found = _curve(folder)
    if run.protocol == "nested":
        found = [trained.scores["all"]["accuracy"], max(found)]
    found = [round(100.0 * value, KEPT_DIGITS) for value in found]
    keep(kept, found)
    shutil.rmtree(folder)  # ten folds of weights and checkpoints that nobody reads again
    return found


def _curve(folder: Path) -> list[float]:
    from ...training.checkpoint import load_checkpoint

    content, _ = load_checkpoint(folder)
    if content is None:
        raise DataError(f"{folder} has lost its checkpoint; delete it to run that fold again")
    return [row["validation accuracy"] for row in content["progress"]["history"]]
