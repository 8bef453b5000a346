"""Cells made of training runs: one run, or one run for each fold.

Metrics of a cell of one run: the test error of each target (`test MAE r2 (bohr²)`) by the weights
with the best validation error, `parameters`, `seconds per epoch (training)` (median, without
validation) and `best epoch` (from 1). Its detail has `validation`, `loss` and `seconds` of each
epoch, and `guess`, the error of the training mean for each target.
"""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from g2n2.data.catalogue import dataset_options, find_dataset
from g2n2.data.graph_set import GraphSet, Ints
from g2n2.training.config import FREE, RunConfig
from g2n2.training.cuda_graphs import Recorded
from g2n2.training.evaluate import Outcome
from g2n2.training.processes import free_cached_memory
from g2n2.training.run import Run
from g2n2.training.run_folder import RunFolder
from g2n2.training.session import Result, train_config
from g2n2.training.setup import chosen_graphs, read_source

from .pyg_networks import add_to_baselines
from .runner import Cell, Job, Measurement

SMALL_BATCH = 32
"""Batch size for the few graphs of smoke runs."""
SETTLED = ("precision", "batch", "rules")
"""Settings that a run decides when it starts."""
BY_SIZE = ("width", "rate", "epochs")
"""Settings that it decides by the number of graphs, where the cell names none."""
PERCENT_DIGITS = 3

Measure = Callable[[Outcome, Path], Mapping[str, float]]
Source = Callable[[str | None], GraphSet]
"""Graphs that are not simply those of a data set, given the folder of data files."""


def load(config: RunConfig, job: Job, source: Source | None = None) -> GraphSet:
    """The graphs of a run. The whole data set stays in memory for the next cell."""
    if source:
        return chosen_graphs(config, source(job.data)).check()
    takes_cache = job.cache and "cache" in dataset_options(find_dataset(config.dataset))
    options = {**config.options, **({"cache": job.cache} if takes_cache else {})}
    whole = _whole(config.dataset, job.data, tuple(sorted(options.items())))
    return chosen_graphs(config, whole).check()


@lru_cache(maxsize=2)  # QM9 with distances and without
def _whole(dataset: str, data: str | None, options: tuple[tuple[str, Any], ...]) -> GraphSet:
    return read_source(dataset, data, dict(options))


def train(
    config: RunConfig, folder: Path, job: Job, graphs: GraphSet, recorded: Recorded | None = None
) -> Result:
    """Train, or resume from the last checkpoint of the folder.

    A CPU computes in 32 bits, whatever the settings say. Runs on the same graphs can share their
    `recorded` CUDA graphs.
    """
    add_to_baselines()
    try:
        return train_config(
            replace(config, device=job.device, precision=run_precision(config, job)),
            folder,
            resume=RunFolder(folder).started,
            graphs=graphs,
            pictures=False,
            recorded=recorded,
        )
    finally:
        gc.collect()  # a run's CUDA graphs hold memory until the loop is collected
        free_cached_memory(job.torch_device())


def run_precision(config: RunConfig, job: Job) -> str:
    return config.precision if job.torch_device().type == "cuda" else "32"


def training_cell(
    question: str,
    name: str,
    config: RunConfig,
    *,
    measure: Measure | None = None,
    epochs: Callable[[RunConfig, Job], int] | None = None,
    source: Source | None = None,
    **options: Any,
) -> Cell:
    """A cell of one training run.

    `measure` adds metrics from the predictions for the test graphs, `epochs` decides the number of
    epochs when the run starts, `source` gives the graphs in place of the data set.
    """

    def run(job: Job) -> Measurement:
        planned = config
        if epochs:
            planned = replace(config, epochs=job.kept("epochs", epochs, config, job))
        return _measure_run(planned, job, measure, source)

    settings = run_settings(config, *(("epochs",) if epochs else ()))
    return Cell(question, name, run, settings, config.seed, **options)


def _measure_run(
    config: RunConfig, job: Job, measure: Measure | None, source: Source | None
) -> Measurement:
    folder, graphs = job.work / "run", load(config, job, source)
    trained, files = train(config, folder, job, graphs), RunFolder(folder)
    columns, history = files.trained_on.columns, trained.history
    score = "validation " + ("mae" if len(columns) == 1 else "relative_mae")
    metrics: dict[str, float | None] = {
        mae_key(column.name, column.unit): trained.scores[column.name]["mae"] for column in columns
    }
    if measure:
        metrics |= measure(Run(folder, job.device).evaluate("test", graphs), folder)
    metrics |= {
        "parameters": files.read_json("result.json")["parameters"],
        "seconds per epoch (training)": epoch_seconds(history),
        "best epoch": min(history, key=lambda row: row[score])["epoch"],
    }
    data = {config.dataset: files.read_json("data.json")["sha256"]}
    detail = {
        "validation": [row[score] for row in history],
        "loss": [row["loss"] for row in history],
        "seconds": [round(row["seconds"], 3) for row in history],
        "guess": {target: row["mae"] for target, row in trained.guesses.items()},
    }
    described_run = described(files.config())
    return Measurement(len(history), "epochs", metrics, data, described_run, detail)


def train_folds(
    config: RunConfig, graphs: GraphSet, folds: Mapping[str, Mapping[str, Ints]], job: Job
) -> list[dict[str, Any]]:
    """A classifier trained on each of several splits of a set; the folders of runs are removed.

    Of each: `curve`, the validation accuracy after every epoch, and `test`, that of the best
    weights, both in percent, and `seconds`.
    """
    recorded = Recorded()

    def one(name: str) -> dict[str, Any]:
        start, folder = time.monotonic(), job.work / name
        trained = train(config, folder, job, replace(graphs, splits=folds[name]), recorded)
        shutil.rmtree(folder)
        test = trained.scores["all"]["accuracy"] if trained.scores else None
        return {
            "curve": [percent(row["validation accuracy"]) for row in trained.history],
            "test": None if test is None else percent(test),
            "seconds": round(time.monotonic() - start, 1),
        }

    return job.kept_parts({name: (name,) for name in folds}, one)


def percent(share: float) -> float:
    return round(100.0 * share, PERCENT_DIGITS)


def run_settings(config: RunConfig, *undecided: str) -> dict[str, Any]:
    """The settings a run's numbers depend on, without those decided when it starts."""
    settings = config.as_dict()
    open_ones = {name for name in BY_SIZE if settings[name] is None}
    left_out = {*FREE, *SETTLED, *open_ones, *undecided}
    return {name: value for name, value in settings.items() if name not in left_out}


def described(config: RunConfig) -> dict[str, Any]:
    """All settings of a run, including those of its recipe."""
    return {**config.as_dict(), "recipe settings": asdict(config.effective_recipe())}


def mae_key(target: str, unit: str) -> str:
    """`test MAE r2 (bohr²)`."""
    return f"test MAE {target}" + (f" ({unit.replace('a₀', 'bohr')})" if unit else "")


def epoch_seconds(history: list[dict[str, float]]) -> float | None:
    """Median seconds of an epoch's steps, without the first epoch, which compiles and records."""
    times = [row["seconds"] for row in history]
    each = [after - before for before, after in pairwise(times)]
    return median(each) if each else None
