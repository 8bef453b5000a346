"""Cells made of training runs: one run, or one run for each fold.

Metrics of a cell made of one run:

    test MAE r2 (bohr²)           of the weights with the best validation error, for each target
    parameters                    of the network
    seconds per epoch (training)  median over epochs, without validation
    best epoch                    counted from 1

Its detail has `validation`, `loss` and `seconds`, one number for each epoch, and `guess`, the error
of the training mean for each target.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from g2n2.errors import DataError
from g2n2.training.config import FREE, RunConfig

from .runner import Cell, Job, Measurement

if TYPE_CHECKING:
    from torch import nn

    from g2n2.data.graph_set import GraphSet, Ints
    from g2n2.training.cuda_graphs import Recorded
    from g2n2.training.evaluate import Scores
    from g2n2.training.predict import Outcome

SMALL_BATCH = 32
"""Batch size for the few graphs of smoke runs."""
SETTLED = ("precision", "batch", "rules")
"""Settings that a run decides when it starts."""

Measure = Callable[["Outcome", Path], Mapping[str, float]]


@dataclass
class Trained:
    """A finished run.

    Attributes:
        parameters: Number of weights.
        scores: Of the best weights on the test graphs, by target; empty without test graphs.
        guesses: The same for a constant guess.
        history: One row for each epoch.
    """

    parameters: int
    scores: Scores
    guesses: Scores
    history: list[dict[str, float]]


def load(config: RunConfig, job: Job) -> GraphSet:
    """The graphs of a run. The whole data set stays in memory for the next cell."""
    from g2n2.data.catalogue import dataset_options, find_dataset
    from g2n2.training.setup import chosen_graphs

    known = dataset_options(find_dataset(config.dataset))
    cache = {"cache": job.cache} if job.cache and "cache" in known else {}
    options = tuple(sorted({**config.options, **cache}.items()))
    return chosen_graphs(config, _whole(config.dataset, job.data, options)).check()


@lru_cache(maxsize=2)  # QM9 with distances and without
def _whole(dataset: str, data: str | None, options: tuple[tuple[str, Any], ...]) -> GraphSet:
    from g2n2.training.setup import read_source

    return read_source(dataset, data, dict(options))


@lru_cache(maxsize=64)
def missing_data(name: str, job: Job) -> str:
    """Why a data set cannot be read here; empty if it can. QM9, which is large, is not loaded."""
    from importlib.util import find_spec

    from g2n2.data.catalogue import load_dataset
    from g2n2.data.files import cache_folder
    from g2n2.data.qm9 import has_raw_files

    if name == "qm9":
        cache = Path(job.cache) if job.cache else cache_folder() / "qm9.cache"
        if cache.is_file() or find_spec("qm9pack") is not None or has_raw_files(job.data):
            return ""
        return "QM9 is missing: pip install 'g2n2[chem]', or name its cache file with --cache"
    try:
        load_dataset(name, job.data)
    except DataError as error:
        return str(error)
    return ""


def train(
    config: RunConfig, folder: Path, job: Job, graphs: GraphSet, recorded: Recorded | None = None
) -> Trained:
    """Train, or resume from the last checkpoint of the folder.

    Args:
        config: Settings. A CPU computes in 32 bits, whatever they say.
        folder: The run folder.
        job: Device and data.
        graphs: In place of the data set of the config.
        recorded: CUDA graphs shared by runs on the same graphs.
    """
    from g2n2.training.processes import free_cached_memory
    from g2n2.training.run_folder import RunFolder
    from g2n2.training.session import Watch, train_config

    weights = 0

    def summary(_config: RunConfig, _parts: Any, model: nn.Module) -> None:
        nonlocal weights
        weights = sum(weight.numel() for weight in model.parameters())

    precision = run_precision(config, job)
    try:
        result = train_config(
            replace(config, device=job.device, precision=precision),
            folder,
            resume=RunFolder(folder).started,
            graphs=graphs,
            watch=Watch(summary=summary),
            pictures=False,
            recorded=recorded,
        )
    finally:
        gc.collect()  # a run's CUDA graphs hold memory until the loop is collected
        free_cached_memory(job.torch_device())
    return Trained(weights, result.scores, result.guesses, result.history)


def run_precision(config: RunConfig, job: Job) -> str:
    return config.precision if job.torch_device().type == "cuda" else "32"


def training_cell(
    question: str,
    name: str,
    config: RunConfig,
    *,
    measure: Measure | None = None,
    epochs: Callable[[RunConfig, Job], int] | None = None,
    **options: Any,
) -> Cell:
    """A cell of one training run.

    Args:
        question: Its question.
        name: Of the cell.
        config: Settings of the run.
        measure: Adds metrics, from the predictions for the test graphs.
        epochs: Decides the number of epochs when the run starts.
        options: Of the cell.
    """

    def run(job: Job) -> Measurement:
        planned = config
        if epochs:
            planned = replace(config, epochs=job.kept("epochs", epochs, config, job))
        return _measure_run(planned, job, measure)

    settings = run_settings(config, *(("epochs",) if epochs else ()))
    return Cell(question, name, run, settings, config.seed, (config.dataset,), **options)


def _measure_run(config: RunConfig, job: Job, measure: Measure | None) -> Measurement:
    from g2n2.training.run import Run
    from g2n2.training.run_folder import RunFolder

    folder = job.work / "run"
    graphs = load(config, job)
    trained = train(config, folder, job, graphs)
    files = RunFolder(folder)
    columns = files.columns()
    score = "validation " + ("mae" if len(columns) == 1 else "relative_mae")
    history = trained.history
    metrics: dict[str, float | None] = {
        mae_key(column.name, column.unit): trained.scores[column.name]["mae"] for column in columns
    }
    if measure:
        metrics |= measure(Run(folder, job.device).evaluate("test", graphs), folder)
    metrics |= {
        "parameters": trained.parameters,
        "seconds per epoch (training)": epoch_seconds(history),
        "best epoch": min(history, key=lambda row: row[score])["epoch"],
    }
    return Measurement(
        done=len(history),
        unit="epochs",
        metrics=metrics,
        config=described(files.config()),
        data={config.dataset: files.read_json("data.json")["sha256"]},
        detail={
            "validation": [row[score] for row in history],
            "loss": [row["loss"] for row in history],
            "seconds": [round(row["seconds"], 3) for row in history],
            "guess": {target: row["mae"] for target, row in trained.guesses.items()},
        },
    )


def train_fold(
    config: RunConfig,
    graphs: GraphSet,
    splits: Mapping[str, Ints],
    folder: Path,
    job: Job,
    recorded: Recorded,
) -> Trained:
    """A run on the given parts of a set; its folder is removed when it has ended."""
    fold = replace(graphs, splits=splits)
    trained = train(config, folder, job, fold, recorded)
    shutil.rmtree(folder)
    return trained


def run_settings(config: RunConfig, *undecided: str) -> dict[str, Any]:
    """The settings a run's numbers depend on, without those decided when it starts."""
    left_out = {*FREE, *SETTLED, *undecided}
    return {name: value for name, value in config.as_dict().items() if name not in left_out}


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
