"""Cells made of one training run: done in slices of whole epochs, scored by the best weights.

Metrics of such a record, beside those a cell adds:

    test MAE r2 (bohr²)           of the best validation weights; one for each target
    parameters                    of the network
    seconds per epoch (training)  the median over epochs; validation is not counted
    best epoch                    counted from 1

Its detail holds `validation`, `loss` and `seconds`, one number for each epoch, and `guess`, the
error of the training mean for each target.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..training.config import FREE, RunConfig
from .cell import Cell, NothingYetError, Slice
from .machines import free_gpu, machine, precision_on
from .record import Record
from .shared_data import graphs_of

if TYPE_CHECKING:
    from torch import nn

    from ..data.graph_set import GraphSet
    from ..training.cuda_graphs import Recorded
    from ..training.evaluate import Scores
    from ..training.loop import Loop
    from ..training.predict import Outcome
    from ..training.run_folder import RunFolder
    from ..training.setup import Parts

SECONDS_PER_EPOCH = "seconds per epoch (training)"

SMALL_BATCH = 32
"""Graphs in a step where there are only a few hundred."""

SETTLED = ("precision", "batch", "rules")
"""Settings a run decides when it starts; the rest must not have changed when it is taken up."""

LATE = 60.0
"""Seconds a slice may take longer to end with an epoch; one that takes more is left within."""

Adapt = Callable[[RunConfig, Slice], int]
Measure = Callable[["Outcome", Path], Mapping[str, float]]


@dataclass
class Trained:
    """What a slice of training gave.

    Attributes:
        parameters: Of the network.
        scores: Of the best weights on the test graphs; None where the run has not ended.
        guesses: The same for a guess that looks at no graph.
    """

    parameters: int = 0
    scores: Scores | None = None
    guesses: Scores = field(default_factory=dict)


class SliceOverError(Exception):
    """The time of a slice is over; its checkpoint is written."""


def training_cell(
    question: str,
    name: str,
    budget: str,
    config: RunConfig,
    *,
    optional: bool = False,
    adapt: Adapt | None = None,
    measure: Measure | None = None,
) -> Cell:
    """A cell of one run.

    Args:
        question: It belongs to.
        name: Of the cell.
        budget: Whose settings it has.
        config: Of the run; its precision is for a GPU, a CPU takes 32 bits.
        optional: Whether it is one.
        adapt: Says how many epochs, where that can be known only when the run starts.
        measure: More metrics, of what the best weights say of the test graphs.
    """

    def run(given: Slice) -> Record:
        epochs = _adapted(config, given, adapt) if adapt else config.epochs
        return run_slice(question, name, budget, replace(config, epochs=epochs), given, measure)

    settings = run_settings(config, *(("epochs",) if adapt else ()))
    return Cell(
        question, name, config.seed, budget, run, (config.dataset,), optional, settings=settings
    )


def run_settings(config: RunConfig, *free: str) -> dict[str, Any]:
    """What decides a run's numbers; `free` names settings that are known only when it starts."""
    left_out = {*FREE, *SETTLED, *free}
    return {name: value for name, value in config.as_dict().items() if name not in left_out}


def run_slice(
    question: str,
    name: str,
    budget: str,
    config: RunConfig,
    given: Slice,
    measure: Measure | None = None,
) -> Record:
    """Train for a slice and score what there is then.

    Raises:
        DataError: The run was started with other settings.
        NothingYetError: No epoch fitted into the slice.
    """
    from ..training.checkpoint import load_checkpoint
    from ..training.run_folder import RunFolder

    begun = time.monotonic()
    folder = given.work / "run"
    graphs = graphs_of(config, given)
    trained = train_slice(config, folder, given, graphs, begun)
    files = RunFolder(folder)
    content, _ = load_checkpoint(folder)
    history: list[dict[str, float]] = content["progress"]["history"] if content else []
    ran = files.config()
    planned = ran.effective_recipe().epochs
    if not history:
        raise NothingYetError(planned, "epochs")
    judged = "validation " + ("mae" if len(files.columns()) == 1 else "relative_mae")
    best = min(history, key=lambda row: row[judged])
    metrics: dict[str, float | None] = {
        **_errors(trained, files, graphs, given, measure),
        "parameters": trained.parameters,
        SECONDS_PER_EPOCH: epoch_seconds(history),
        "best epoch": best["epoch"],
    }
    return Record(
        question=question,
        cell=name,
        seed=config.seed,
        budget=budget,
        done=content["progress"]["epoch"] if content else 0,
        planned=planned,
        unit="epochs",
        metrics=metrics,
        config=run_config_said(ran),
        data={config.dataset: files.read_json("data.json")["sha256"]},
        provenance=machine(given.device),
        seconds=given.seconds(begun),
        detail={
            "validation": [row[judged] for row in history],
            "loss": [row["loss"] for row in history],
            "seconds": [round(row["seconds"], 3) for row in history],
            "guess": {target: row["mae"] for target, row in trained.guesses.items()},
        },
    )


def _errors(
    trained: Trained, files: RunFolder, graphs: GraphSet, given: Slice, measure: Measure | None
) -> dict[str, float]:
    """Test errors of the best weights so far, and what else is measured of them."""
    from ..training.run import Run

    scores, extra = trained.scores, dict[str, float]()
    if scores is None or measure is not None:
        outcome = Run(files.path, given.device).evaluate("test", graphs)
        scores = outcome.scores
        extra |= measure(outcome, files.path) if measure else {}
    units = {column.name: column.unit for column in files.columns()}
    return {mae_key(name, unit): scores[name]["mae"] for name, unit in units.items()} | extra


def run_config_said(config: RunConfig) -> dict[str, Any]:
    """Every setting of a run, those its recipe brings among them."""
    return {**config.as_dict(), "recipe settings": asdict(config.effective_recipe())}


def train_slice(
    config: RunConfig,
    folder: Path,
    given: Slice,
    graphs: GraphSet,
    begun: float,
    recorded: Recorded | None = None,
) -> Trained:
    """Train until the run or the slice ends; `recorded` is shared by runs on the same graphs."""
    from ..training.session import Watch, train_config

    config = replace(config, device=given.device, precision=precision_on(config, given.device))
    resume = started(folder)
    if resume:
        refuse_other_settings(config, folder)

    trained = Trained()

    def late() -> float:
        """Seconds since the slice should have ended."""
        return time.monotonic() - given.ends(begun)

    def step(loop: Loop) -> None:
        if late() > LATE:
            loop.pause()
            given.note()
            raise SliceOverError

    def summary(_config: RunConfig, _parts: Parts, model: nn.Module) -> None:
        trained.parameters = sum(weights.numel() for weights in model.parameters())

    def epoch(loop: Loop) -> None:
        validation = loop.progress.history[-1][loop.metric]
        epochs = loop.recipe.epochs
        given.tell(f"validation {validation:.4g}", loop.progress.epoch, epochs)
        given.note()
        if late() > 0 and not loop.finished:
            loop.save()
            raise SliceOverError

    try:
        watch = Watch(summary=summary, step=step, epoch=epoch)
        result = train_config(
            config,
            folder,
            resume=resume,
            graphs=graphs,
            watch=watch,
            pictures=False,
            recorded=recorded,
        )
        trained.scores, trained.guesses = result.scores, result.guesses
    except SliceOverError:
        pass
    finally:
        free_gpu()
    return trained


def _adapted(config: RunConfig, given: Slice, adapt: Adapt) -> int | None:
    """What a run was started with, or what it is to start with."""
    from ..training.run_folder import RunFolder

    folder = given.work / "run"
    return RunFolder(folder).config().epochs if started(folder) else adapt(config, given)


def started(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def refuse_other_settings(config: RunConfig, folder: Path) -> None:
    """Compare the settings of a cell with those its run was started with.

    Raises:
        DataError: They differ: the run would not be what its record says.
    """
    from ..training.run_folder import RunFolder

    then = RunFolder(folder).config().as_dict()
    differ = [
        f"{name} {then[name]!r}, now {value!r}"
        for name, value in config.as_dict().items()
        if name not in (*FREE, *SETTLED) and then[name] != value
    ]
    if differ:
        raise DataError(
            f"{folder} was started with other settings ({'; '.join(differ)}); delete that folder "
            "to start again"
        )


def mae_key(target: str, unit: str) -> str:
    """`test MAE r2 (bohr²)`."""
    return f"test MAE {target}" + (f" ({unit.replace('a₀', 'bohr')})" if unit else "")


def epoch_seconds(history: list[dict[str, float]]) -> float | None:
    """Median seconds of an epoch's steps, without the first, which compiles and records."""
    times = [row["seconds"] for row in history]
    each = [after - before for before, after in pairwise(times)]
    return median(each) if each else None
