"""Counting: subgraphs that need not be induced, in the random graphs of Chen et al. 2020.

Errors are divided by the deviation of the counts in the training graphs. Beside `joint`, one
network for all six counts, full runs have a network for each, as is usual.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...training.config import RunConfig
from ..cell import Cell
from ..training_cells import training_cell
from .contenders import Contender

if TYPE_CHECKING:
    from ...training.predict import Outcome

COUNTS = ("triangle", "tailed_triangle", "3_star", "4_cycle", "5_cycle", "6_cycle")


def counting_cell(
    contender: Contender,
    budget: str,
    epochs: int,
    count: str = "",
    limit: int = 0,
    threads: int = 0,
    seed: int = 0,
) -> Cell:
    """A contender on one count, or on all of them.

    Args:
        contender: The network.
        budget: Whose settings it has.
        epochs: Of the run.
        count: One of `COUNTS`, an optional cell; all of them where empty.
        limit: Graphs; 0 for all.
        threads: Of a CPU; as many as it has where 0.
        seed: Of the run.
    """
    config = RunConfig(
        "counting",
        target=(count,) if count else COUNTS,
        **contender.built,
        width=2 * contender.width,
        layers=contender.layers,
        epochs=epochs,
        limit=limit,
        precision="tf32",
        threads=threads,
        seed=seed,
    )
    name = f"counting/{count or 'joint'}/{contender.name}"
    return training_cell(
        "power", name, budget, config, optional=bool(count), measure=normalised_errors
    )


def normalised_errors(outcome: Outcome, folder: Path) -> dict[str, float]:
    """Test MAE of every count over the deviation of that count in the training graphs."""
    from ...training.run_folder import RunFolder

    train = outcome.graphs.select(RunFolder(folder).splits()["train"]).targets
    deviations = train.std(axis=0)
    return {
        normalised_key(column.name): outcome.scores[column.name]["mae"] / float(deviation)
        for column, deviation in zip(outcome.graphs.columns, deviations, strict=True)
    }


def normalised_key(count: str) -> str:
    """`normalised test MAE 6_cycle`."""
    return f"normalised test MAE {count}"
