"""Train: config -> run folder, in one short list of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import __version__
from ..data.graph_set import GraphSet
from ..data.store import GraphStore
from ..described import Described
from ..errors import DataError
from ..ops.precision import float32_products
from .calibration import Calibration, Reliability
from .checkpoint import load_checkpoint
from .config import RunConfig
from .cuda_graphs import Recorded
from .curves import TensorBoardCurves
from .devices import make_fabric
from .evaluate import Predictions, Scores, constant_guess, predict, score
from .loop import Hooks, Loop
from .metrics import for_json, metrics
from .models import load_best, refuse_lost_best, save_best
from .plots import draw
from .precompute_supports import precompute_supports
from .predict import prediction_rows, write_rows
from .processes import Processes
from .provenance import provenance
from .run_folder import RunFolder, checksum
from .settings import first_process, with_rules
from .setup import (
    Parts,
    distance_kinds,
    load_graphs,
    make_model,
    make_store,
    prepare,
    refuse_unknown_names,
    with_batch,
)


@dataclass(frozen=True, eq=False)
class Watch:
    """What a run tells the person waiting for it.

    Attributes:
        summary: The parts, before the first step.
        start: The loop, before its first step.
        step: After each step.
        epoch: After each epoch.
        note: A sentence.
    """

    summary: Callable[[RunConfig, Parts, nn.Module], None] = lambda *_: None
    start: Callable[[Loop], None] = lambda _: None
    step: Callable[[Loop], None] = lambda _: None
    epoch: Callable[[Loop], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, eq=False, repr=False)
class Result(Described):
    """How a run ended.

    Attributes:
        folder: Its files.
        parts: What it worked with.
        scores: Of the best model on the test graphs, by target; empty where there are none.
        guesses: The same for a guess that looks at no graph: the mean, or the commonest class.
        reliability: How intervals or probabilities do on the test graphs, by target.
        history: One row for each epoch.
        best_epoch: Counted from 1; 0 before there is one.
        epochs: Finished so far, and planned at most.
        stopped: Whether the time was up before the run came to its end. The test graphs were not
            looked at then.
    """

    folder: Path
    parts: Parts
    scores: Scores
    guesses: Scores
    reliability: Reliability
    history: list[dict[str, float]]
    best_epoch: int
    epochs: tuple[int, int]
    stopped: bool

    def facts(self) -> dict[str, str]:
        """The result in a few words, for `repr` and notebooks."""
        done, planned = self.epochs
        return {
            "folder": str(self.folder),
            "epochs": f"{done:,} of {planned:,}",
            "best_epoch": f"{self.best_epoch:,}",
            **{name: f"{value:.4g}" for name, value in self.scores.get("all", {}).items()},
            "stopped": "yes" if self.stopped else "no",
        }


def train_config(
    config: RunConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    graphs: GraphSet | None = None,
    watch: Watch | None = None,
    pictures: bool = True,
    recorded: Recorded | None = None,
) -> Result:
    """Run a config from data to test scores.

    Args:
        config: Settings; where resuming, those of the folder are used.
        folder: The run folder; made where it is not there.
        resume: Go on from the last checkpoint in the folder.
        graphs: Graphs already in memory, in place of the config's data set.
        watch: Told what happens.
        pictures: Whether learning curves and predictions are drawn.
        recorded: Given to several runs on the same graphs, it spares a GPU recording steps again.

    Raises:
        DataError: Bad settings or data, or a folder that holds another run.
        TrainingError: The run cannot go on.
        KeyboardInterrupt: Ctrl-C or SIGTERM; a checkpoint is left.
    """
    if not first_process():  # the others start later, when the folder is already in use
        return _settled(config, folder, resume, graphs, watch, pictures, recorded)
    files = RunFolder(folder)
    _refuse_folder(files, resume)  # before anything is made there
    with files.sole_writer():
        _refuse_folder(files, resume)  # another process may have been here just before
        try:
            return _settled(config, folder, resume, graphs, watch, pictures, recorded)
        except BaseException:
            if not files.started:  # the name is free again
                files.forget()
            raise


def _settled(
    config: RunConfig,
    folder: str | Path,
    resume: bool,
    graphs: GraphSet | None,
    watch: Watch | None,
    pictures: bool,
    recorded: Recorded | None,
) -> Result:
    """Train with the settings that hold: the folder's own where a run is taken up again."""
    if resume:
        free = {name: getattr(config, name) for name in ("device", "devices", "minutes")}
        config = replace(RunFolder(folder).config(), **free)
    config = with_rules(config)
    refuse_unknown_names(config, resume=resume)
    # Beside bfloat16, what is left in float32 may lose as much. For this run only: the next one in
    # this process may ask for every digit.
    with float32_products(tf32=config.checked().precision in ("tf32", "bf16")):
        return _train(config, folder, resume, graphs, watch or Watch(), pictures, recorded)


def _train(
    config: RunConfig,
    folder: str | Path,
    resume: bool,
    graphs: GraphSet | None,
    watch: Watch,
    pictures: bool,
    recorded: Recorded | None,
) -> Result:
    fabric = make_fabric(config)
    files = RunFolder(fabric.broadcast(str(folder)))
    processes = Processes(fabric)
    with processes.ending_together(files.path):
        return _in_processes(
            config, files, fabric, processes, resume, graphs, watch, pictures, recorded
        )


def _in_processes(
    config: RunConfig,
    files: RunFolder,
    fabric: Any,
    processes: Processes,
    resume: bool,
    graphs: GraphSet | None,
    watch: Watch,
    pictures: bool,
    recorded: Recorded | None,
) -> Result:
    everything = processes.in_turn(
        lambda: load_graphs(config) if graphs is None else graphs.check()
    )
    parts = prepare(config, everything, files.splits() if resume else None)
    if resume:
        files.refuse_other_data(parts.graphs)
        parts = replace(parts, scaling=files.scaling())
    config = with_batch(config, len(parts.splits["train"]))
    dtype = torch.float64 if config.precision == "64" else torch.float32
    model = make_model(config, parts).to(dtype)
    store = make_store(config, learned(parts), fabric.device, dtype)
    recorded = recorded or Recorded()
    precompute_supports(model, store, recorded)
    watch.summary(config, parts, model)
    curves: TensorBoardCurves | None = None
    loop: Loop | None = None
    try:
        with processes.all_or_none():
            if fabric.is_global_zero:
                files.drop_unfinished()
                if not resume:
                    files.describe(config, parts)
                elif files.unchecked:
                    watch.note(f"{files.unchecked}; from here on it is")
                    files.adopt()
                curves = TensorBoardCurves(files.path / "tensorboard")
                if curves.missing:
                    watch.note(curves.missing)
        loop = Loop(
            config,
            fabric,
            processes,
            model,
            store,
            parts.task,
            parts.splits["train"],
            lambda net: score(net, parts, store, parts.splits["validation"], fabric),
            files.path,
            _hooks(files, curves, watch),
            recorded,
        )
        if resume:
            _take_up(loop, files, watch)
        watch.start(loop)
        loop.run()
    except Exception:
        begun = resume or (loop is not None and loop.progress.steps > 0)
        if fabric.is_global_zero and not begun:  # nothing to go on with, and the name is free again
            files.forget()
        raise
    best = loop.progress.best(loop.metric, parts.task.higher_is_better)[0]
    epochs = loop.progress.epoch, loop.recipe.epochs
    history = loop.progress.history
    if curves is not None:
        curves.close()
    if not loop.finished:
        return Result(files.path, parts, {}, {}, {}, history, best + 1, epochs, stopped=True)
    made, calibration = _ended(config, parts, files, store, fabric)
    known = bool(np.isfinite(made.targets).any())
    scores = metrics(parts.task, made.values, made.targets) if known else {}
    guesses = metrics(parts.task, *constant_guess(parts, made)) if scores else {}
    trust = calibration.reliability(parts.task, made)
    result = Result(
        files.path, parts, scores, guesses, trust, history, best + 1, epochs, stopped=False
    )
    if curves is not None:
        if pictures and not draw(files.path, parts.task, result.history, made):
            watch.note('matplotlib is not installed, so nothing is drawn: pip install "g2n2[plot]"')
        _write_result(config, result, loop, made, calibration)
    return result


def learned(parts: Parts) -> GraphSet:
    """The graphs with targets as the loss sees them."""
    return replace(parts.graphs, targets=parts.scaling.scale(parts.task, parts.graphs))


def _refuse_folder(files: RunFolder, resume: bool) -> None:
    started = files.started
    if resume and not started:
        raise DataError(f"nothing to resume in {files.path}: it holds no run; start one there")
    if not resume and not started and (others := files.foreign()):
        raise DataError(
            f"{files.path} holds other files ({', '.join(others[:3])}); "
            "name a new folder with --out"
        )
    if started and not resume:
        raise DataError(
            f"{files.path} holds a run already; go on with --resume {files.path}, "
            "or name another --out"
        )


def _hooks(files: RunFolder, curves: TensorBoardCurves | None, watch: Watch) -> Hooks:
    """What the first process writes, and what is told."""

    def epoch(loop: Loop) -> None:
        if curves is not None:
            files.write_metrics(loop.progress.history)
            curves.update(loop.progress.history)
        watch.epoch(loop)

    def best(model: nn.Module) -> None:
        if curves is not None:
            save_best(files, model)

    return Hooks(step=watch.step, epoch=epoch, best=best, note=watch.note)


def _take_up(loop: Loop, files: RunFolder, watch: Watch) -> None:
    content, troubles = load_checkpoint(files.path)
    for trouble in troubles:
        watch.note(f"{trouble}; going on from the one before it")
    if content is None:
        return
    if (then := content.get("g2n2", "an earlier version")) != __version__:
        watch.note(f"the checkpoint is of g2n2 {then}, this is {__version__}; going on with it")
    loop.restore(content)
    if loop.progress.history:
        refuse_lost_best(files)


def _ended(
    config: RunConfig, parts: Parts, files: RunFolder, store: GraphStore, fabric: Any
) -> tuple[Predictions, Calibration]:
    """What the best weights say of the test graphs, and how far it can be trusted."""
    fabric.barrier()
    model = load_best(files, config, parts).to(fabric.device)
    train, validation, test = (
        predict(model, parts, store, parts.splits[part], fabric)
        for part in ("train", "validation", "test")
    )
    distances = bool(distance_kinds(config, parts.graphs))
    return test, Calibration.fit(parts, train, validation, distances=distances)


def _write_result(
    config: RunConfig, result: Result, loop: Loop, made: Predictions, calibration: Calibration
) -> None:
    """Everything the run leaves behind besides its weights."""
    files, parts = RunFolder(result.folder), result.parts
    files.write_calibration(calibration)
    files.keep_only_best()
    rows = prediction_rows(
        parts.graphs, parts.task, made, truth=True, unread=False, calibration=calibration
    )
    write_rows(files.path / "test.csv", rows)
    files.write_json(
        "result.json",
        {
            "data": parts.graphs.name,
            "test": for_json(result.scores),
            "test_of_constant_guess": for_json(result.guesses),
            "test_reliability": for_json(result.reliability),
            "units": {column.name: column.unit for column in parts.task.columns},
            "best_epoch": result.best_epoch,
            "epochs": loop.progress.epoch,
            "seconds": round(loop.progress.seconds, 3),
            "parameters": sum(p.numel() for p in loop.model.parameters()),
            "graphs": {part: len(members) for part, members in parts.splits.items()},
            "data_sha256": checksum(parts.graphs),
            "made_with": provenance(loop.fabric.device),
            "config": config.as_dict(),
        },
    )
