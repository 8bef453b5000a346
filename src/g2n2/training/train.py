"""Train: config -> run folder, in one short list of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..data.graph_set import GraphSet
from ..errors import DataError
from .building import Parts, load_graphs, make_model, make_store, prepare
from .checkpoints import load_checkpoint
from .config import RunConfig
from .devices import make_fabric
from .evaluation import Scores, predict, score
from .loop import Hooks, Loop
from .metrics import metrics
from .models import load_best, save_best
from .run_folder import RunFolder


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


@dataclass(frozen=True)
class Result:
    """How a run ended.

    Attributes:
        folder: Its files.
        scores: Of the best model on the test graphs, by target.
        history: One row for each epoch.
        best_epoch: Counted from 1.
    """

    folder: Path
    scores: Scores
    history: list[dict[str, float]]
    best_epoch: int


def train(
    config: RunConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    graphs: GraphSet | None = None,
    watch: Watch | None = None,
) -> Result:
    """Run a config from data to test scores.

    Args:
        config: Settings; where resuming, those of the folder are used.
        folder: The run folder; made where it is not there.
        resume: Go on from the last checkpoint in the folder.
        graphs: Graphs already in memory, in place of the config's data set.
        watch: Told what happens.

    Raises:
        DataError: Bad settings or data, or a folder that holds another run.
        TrainingError: The run cannot go on.
    """
    watch = watch or Watch()
    files = RunFolder(folder)
    started = (files.path / "config.json").is_file()
    if resume:
        if not started:
            raise DataError(f"nothing to resume in {folder}: it holds no run")
        config = replace(files.config(), device=config.device, devices=config.devices)
    elif started:
        raise DataError(f"{folder} holds a run already; go on with --resume, or name another --out")
    fabric = make_fabric(config.checked())
    everything = load_graphs(config) if graphs is None else graphs.check()
    parts = prepare(config, everything, files.splits() if resume else None)
    if resume:
        files.refuse_other_data(parts.graphs)
        parts = replace(parts, scaling=files.scaling())
    elif fabric.is_global_zero:
        files.describe(config, parts)
    model = make_model(config, parts)
    dtype = torch.float64 if config.precision == "64" else torch.float32
    store = make_store(config, learned(parts), fabric.device, dtype)
    watch.summary(config, parts, model)
    loop = Loop(
        config,
        fabric,
        model,
        store,
        parts.task,
        parts.splits["train"],
        lambda net: score(net, parts, store, parts.splits["validation"], fabric),
        files.path,
        _hooks(config, parts, files, fabric, watch),
    )
    if resume:
        content, troubles = load_checkpoint(files.path)
        for trouble in troubles:
            watch.note(f"{trouble}; going on from the one before it")
        if content is not None:
            loop.restore(content)
    watch.start(loop)
    loop.run()
    best = loop.progress.best(loop.metric, parts.task.higher_is_better)[0]
    if best < 0:
        raise DataError("no epoch was finished, so there is no model; give the run more time")
    scores = _test(config, parts, files, store, fabric)
    return Result(files.path, scores, loop.progress.history, best + 1)


def learned(parts: Parts) -> GraphSet:
    """The graphs with targets as the loss sees them."""
    return replace(parts.graphs, targets=parts.scaling.scale(parts.task, parts.graphs))


def _hooks(config: RunConfig, parts: Parts, files: RunFolder, fabric: Any, watch: Watch) -> Hooks:
    def epoch(loop: Loop) -> None:
        if fabric.is_global_zero:
            files.write_metrics(loop.progress.history)
        watch.epoch(loop)

    def best(model: nn.Module) -> None:
        if fabric.is_global_zero:
            save_best(files, model)

    return Hooks(step=watch.step, epoch=epoch, best=best, note=watch.note)


def _test(config: RunConfig, parts: Parts, files: RunFolder, store: Any, fabric: Any) -> Scores:
    """Scores of the best weights on the test graphs, written into the folder."""
    fabric.barrier()
    model = load_best(files, config, parts).to(fabric.device)
    made = predict(model, parts, store, parts.splits["test"], fabric)
    scores = metrics(parts.task, made.values, made.targets)
    if fabric.is_global_zero:
        files.write_json("result.json", {"test": scores, "graphs": len(parts.splits["test"])})
    return scores
