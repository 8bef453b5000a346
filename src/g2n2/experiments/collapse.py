"""Whether a run has died to a constant: how much its predictions vary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..training.predict import Outcome

SPREAD = "spread of predictions / spread of targets"
LEAST_SPREAD = 0.1
"""Below this share of the targets' standard deviation a run counts as dead."""


def spread_of_predictions(outcome: Outcome, folder: Path) -> Mapping[str, float]:
    """Standard deviation of predictions over that of targets, on the test graphs.

    What the elements alone give is taken from both: it is fitted before the network is, and varies
    whether or not the network has learned anything.

    Args:
        outcome: What the best weights say of the test graphs; one target.
        folder: Of the run.
    """
    from ..training.run_folder import RunFolder
    from ..training.task import Task

    scaling = RunFolder(folder).scaling()
    known = scaling.reference(Task.of(outcome.graphs), outcome.graphs)[outcome.made.rows]
    predicted, wanted = outcome.made.values - known, outcome.made.targets - known
    return {SPREAD: float(predicted.std() / wanted.std())}
