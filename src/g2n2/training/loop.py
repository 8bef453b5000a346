"""The training loop: epochs, validation, checkpoints; the same numbers after any interruption.

Lightning Fabric starts the processes (`processes`). The loop is our own, because a run must resume
at any step with byte-equal weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..data.batching import epoch_batches
from ..data.store import GraphStore
from ..errors import DataError, TrainingError
from .checkpoint import Progress, save_checkpoint
from .config import FREE, RunConfig, upgraded
from .cuda_graphs import Recorded
from .evaluate import Outcome, predict
from .optimiser import Average, Learner, cosine_rate, make_optimiser, plateau_rate
from .plots import TensorBoardCurves
from .processes import Interruption, Processes
from .run_folder import RunFolder
from .setup import Parts
from .step import Stepper
from .task import metrics

SHORT_EPOCH = 2.0
"""Seconds: epochs shorter than that share a checkpoint."""
DEVICE_SETTINGS = ("lr", "capturable", "fused")
"""An optimiser's settings that follow the device; the rate is set before every step anyway."""


@dataclass(frozen=True, eq=False)
class Watch:
    """Callbacks: `summary` and `start` before the first step, `note` for a sentence to the user."""

    summary: Callable[[RunConfig, Parts, nn.Module], None] = lambda *_: None
    start: Callable[[Loop], None] = lambda _: None
    step: Callable[[Loop], None] = lambda _: None
    epoch: Callable[[Loop], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None


@dataclass(eq=False)
class Loop:
    """One run; `store` has scaled targets, only the first process has `curves`."""

    config: RunConfig
    processes: Processes
    model: nn.Module
    store: GraphStore
    parts: Parts
    files: RunFolder
    curves: TensorBoardCurves | None
    watch: Watch
    recorded: Recorded

    def __post_init__(self) -> None:
        config, device = self.config, self.processes.device
        self.recipe, self.folder = config.effective_recipe(), self.files.path
        self.task, self.train = self.parts.task, self.parts.splits["train"]
        optimiser = make_optimiser(self.model.to(device), self.recipe, device)
        self.processes.give_weights(self.model)
        average, half = Average(self.model, self.recipe.ema), config.precision == "bf16"
        batch, clip = self.recipe.batch, self.recipe.clip
        self.learner = Learner(
            self.model, optimiser, average, self.store, self.task, batch, clip, half
        )
        self.stepper = Stepper(
            self.learner, self.processes, self.recorded, self.folder, self.watch.note
        )
        self.progress = Progress(micro=batch, metric=f"validation {self.task.metric}")
        self.epoch_steps = config.passes * math.ceil(len(self.train) / batch)
        self.saved = self.begun = time.monotonic()
        self.share_before = self.ending = 0.0

    @property
    def metric(self) -> str:
        """The column of the history by which the best model is chosen."""
        return self.progress.metric

    @property
    def planned_steps(self) -> int:
        """Steps of all epochs; fewer are taken if the minutes are over before."""
        return self.epoch_steps * self.recipe.epochs

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        if self.recipe.schedule == "cosine":
            position = max(self.progress.steps, int(self.progress.share * self.planned_steps))
            return cosine_rate(self.recipe, position, self.planned_steps)
        seen = [row[self.metric] for row in self.progress.history]
        return plateau_rate(self.recipe, seen, self.task.higher_is_better)

    @property
    def finished(self) -> bool:
        too_low = self.recipe.schedule == "plateau" and self.rate < self.recipe.least_rate
        return self.progress.epoch >= self.recipe.epochs or self.progress.share >= 1 or too_low

    def _share(self, now: float) -> float:
        """How much of the minutes is over; they count from where this process starts or resumes.

        The time it takes to predict all graphs once, at the end, is kept for that.
        """
        if not self.config.minutes:
            return self.progress.share
        given = self.config.minutes * 60.0
        limit = max(given - self.ending, 0.5 * given)
        spent = (now - self.begun) / limit
        return min(1.0, self.share_before + (1.0 - self.share_before) * spent)

    def run(self) -> None:
        """Train until the end or an interruption; always leaves a checkpoint."""
        self.begun = time.monotonic()
        if self.processes.count > 1:
            self.recorded.step = None
        else:  # once the weights are those the run starts or resumes with
            self.recorded.record_steps(self.learner)
        with Interruption() as interruption:
            while not self.finished:
                self._epoch(interruption)

    def _epoch(self, interruption: Interruption) -> None:
        progress = self.progress
        passes, sizes = self.config.passes, self.store.graphs.sizes[self.train]
        order = self.recipe.batch, self.config.seed
        batches = [
            chosen
            for number in range(progress.epoch * passes, (progress.epoch + 1) * passes)
            for chosen in epoch_batches(sizes, *order, number, self.config.window or 1)
        ]
        self.model.train()
        before = time.monotonic()
        for chosen in batches[progress.step :]:
            self.stepper.step(self.train[chosen], self.rate, progress.steps + 1)
            progress.step += 1
            progress.steps += 1
            if self.stepper.due:
                self._settle()
            now = time.monotonic()
            asked, progress.seconds, unsaved, progress.share = self.processes.largest(
                float(interruption.asked),
                progress.seconds + now - before,
                now - self.saved,
                self._share(now),
            )
            before = now
            self.watch.step(self)
            if asked or unsaved > self.config.checkpoint_seconds:
                self._settle()
                self.save()
            if asked:
                raise KeyboardInterrupt
            if progress.share >= 1:
                break
        self._settle()
        self._validate()
        progress.epoch, progress.step = progress.epoch + 1, 0
        progress.loss, progress.known = 0.0, 0
        with self.processes.all_or_none():
            if self.curves is not None:
                self.files.write_metrics(progress.history)
                self.curves.update(progress.history)
            self.watch.epoch(self)
        (unsaved,) = self.processes.largest(time.monotonic() - self.saved)
        if self.finished or unsaved >= min(SHORT_EPOCH, self.config.checkpoint_seconds):
            self.save()

    def _validate(self) -> None:
        """Score the averaged weights, and keep them if they are the best so far."""
        progress, parts = self.progress, self.parts
        row = {
            "epoch": float(progress.epoch + 1),
            "loss": progress.loss / max(1, progress.known),
            "rate": self.rate,
            "seconds": progress.seconds,
        }
        begin = time.monotonic()
        with self.learner.average.applied():
            outcome = self.predict("validation", self.model)
            each = (time.monotonic() - begin) / len(parts.splits["validation"])
            self.ending = each * sum(map(len, parts.splits.values()))
            scores = metrics(self.task, outcome.predicted, outcome.targets)
            row |= {f"validation {name}": value for name, value in scores["all"].items()}
            progress.history.append(row)
            best = progress.best(self.metric, self.task.higher_is_better)
            with self.processes.all_or_none():
                if best == progress.epoch and self.curves is not None:
                    self.files.save_best(self.model)

    def predict(self, part: str, model: nn.Module) -> Outcome:
        """Predictions of a network for the graphs of a part, shared by all processes."""
        indices, how = self.parts.splits[part], (self.processes, self.recorded, self.learner.half)
        return predict(model, self.parts, self.store, indices, *how)

    def _settle(self) -> None:
        """Add the losses one by one: their sum does not depend on how often this is called."""
        for loss, known in self.stepper.settle():
            self.progress.loss += loss
            self.progress.known += known

    def save(self) -> None:
        """Write a checkpoint, all losses settled; if the first process cannot, all stop.

        Raises:
            DataError: The disk refuses.
            TrainingError: The weights are not finite; the last good checkpoint stays.
        """
        with self.processes.all_or_none():
            if self.processes.rank == 0:
                weights = self.model.state_dict()
                if not all(bool(torch.isfinite(w).all()) for w in weights.values()):
                    raise TrainingError(
                        "the weights became NaN or infinite; the last good checkpoint is kept: "
                        "start again with a lower --rate"
                    )
                self.progress.micro = self.stepper.micro
                content = {
                    "model": weights,
                    "optimiser": self.learner.optimiser.state_dict(),
                    "average": self.learner.average.state(),
                    "random": self._random_states(),
                    "progress": asdict(self.progress),
                    "config": self.config.as_dict(),
                }
                save_checkpoint(self.folder, content)
        self.saved = time.monotonic()

    def _random_states(self) -> dict[str, Tensor]:
        """States of the random generators a step may draw from."""
        device = self.processes.device
        on_gpu = {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
        return {"cpu": torch.get_rng_state(), **on_gpu}

    def restore(self, content: dict[str, Any]) -> None:
        """Resume from a checkpoint; a DataError if it belongs to a run with other settings."""
        try:
            self._refuse_other_run(content["config"])
            self.model.load_state_dict(content["model"])
            optimiser = self.learner.optimiser
            optimiser.load_state_dict(with_device_settings(content["optimiser"], optimiser))
            self.learner.average.restore(content["average"])
            torch.set_rng_state(content["random"]["cpu"])
            if self.processes.device.type == "cuda" and "cuda" in content["random"]:
                torch.cuda.set_rng_state(content["random"]["cuda"], self.processes.device)
            self.progress = Progress(**content["progress"])
            self.progress.metric = self.progress.metric or self._metric_before()
            self.stepper.micro, self.share_before = self.progress.micro, self.progress.share
        except (KeyError, RuntimeError, ValueError, TypeError, AttributeError) as error:
            raise DataError(
                f"the checkpoint in {self.folder} does not fit this run "
                f"({str(error).splitlines()[0]}); resume with the settings it was started with"
            ) from None

    def _metric_before(self) -> str:
        """What the best epoch was chosen by where a checkpoint does not say: in 0.2 and before."""
        return f"validation {'accuracy' if self.task.kind == 'binary' else self.task.metric}"

    def _refuse_other_run(self, saved: dict[str, Any]) -> None:
        # Earlier versions did not record what follows from the number of graphs.
        written = RunConfig.from_dict(upgraded(saved)).sized(len(self.train), costly=False)
        mine, theirs = (RunConfig.completed(c.as_dict()) for c in (self.config, written))
        if "pooling" not in saved and mine["readout"] in (None, "pooled"):
            theirs["readout"] = mine["readout"]  # weights of another read-out do not fit anyway
        same = (*FREE, *(() if theirs["rules"] else ("rules",)))  # older ones name the grammar only
        differ = [k for k in mine if k not in same and theirs[k] != mine[k]]
        if differ:
            differences = ", ".join(f"{k} {theirs[k]!r} and not {mine[k]!r}" for k in differ)
            raise ValueError(f"it was written with {differences}")


def with_device_settings(state: dict[str, Any], optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """A saved state with the settings of this optimiser's device: a run may change devices."""
    groups = [
        {**saved, **{name: group[name] for name in DEVICE_SETTINGS}}
        for saved, group in zip(state["param_groups"], optimiser.param_groups, strict=True)
    ]
    return {**state, "param_groups": groups}
