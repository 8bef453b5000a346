"""The training loop: steps, epochs, validation, checkpoints.

The loop is our own, because a run must resume at any step with byte-equal weights. A step adds up
the gradients of micro-batches, halves those if memory runs out, and refuses a loss that is not
finite; recorded CUDA graphs take the steps where there are some.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import __version__
from ..data.batching import epoch_batches
from ..data.graph_set import Ints
from ..data.store import GraphStore
from ..described import counted
from ..errors import DataError, TrainingError
from .checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint, write_whole
from .config import FREE, RunConfig, upgraded
from .cuda_graphs import Recorded
from .evaluate import Outcome, predict
from .optimiser import Learner, cosine_rate, plateau_rate, set_rate
from .plots import TensorBoardCurves
from .processes import Interruption, Processes, within_memory
from .run_folder import RunFolder
from .setup import Parts
from .task import log_loss, metrics

CHECK_EVERY = 50
"""Steps between two looks at the losses on a GPU."""
BAD_BATCH = "bad_batch.npz"
VALIDATION_LOSS = "validation loss"
"""The column of the history that decides between epochs of equal results, for classes."""
SHORT_EPOCH = 2.0
"""Seconds: epochs shorter than that share a checkpoint."""
DEVICE_SETTINGS = ("lr", "capturable", "fused")
"""An optimiser's settings that follow the device; the rate is set before every step anyway."""


@dataclass
class Progress:
    """How far a run is; part of every checkpoint."""

    epoch: int = 0  # counted from 0
    step: int = 0  # steps done in this epoch
    steps: int = 0  # steps done in all
    loss: float = 0.0  # sum of the losses of this epoch
    known: int = 0  # number of known targets in that sum
    seconds: float = 0.0  # time spent training
    # how much of the minutes a run was given is over, from 0 to 1; 0 without a limit
    share: float = 0.0
    metric: str = ""  # the column of the history by which the best epoch is chosen
    micro: int = 0  # graphs in a micro-batch; fewer than in a batch if memory is short
    # one row of numbers for each finished epoch
    history: list[dict[str, float]] = field(default_factory=list)


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
        self.processes.give_weights(self.model.to(device))
        self.learner = Learner.of(config, self.model, self.store, self.task)
        graphs = self.store.graphs
        known = np.concatenate([[0], np.isfinite(graphs.targets).sum(axis=1).cumsum()])
        self.known_targets = np.diff(known[graphs.row_offsets])  # of each graph
        self.waiting: list[tuple[Tensor, Tensor, Ints]] = []  # loss, gradient norm, graphs
        self.progress = Progress(micro=self.recipe.batch, metric=f"validation {self.task.metric}")
        self.epoch_steps = config.passes * math.ceil(len(self.train) / self.recipe.batch)
        self.saved = self.begun = time.monotonic()
        self.share_before = self.ending = 0.0

    @property
    def best_epoch(self) -> int:
        """From 1; the one with the best result, else the last; 0 before there is one.

        Accuracy and ROC-AUC tie often, at 1 long before a network is sure. Of epochs that tie, the
        best has the lowest validation loss; of those, or without such a column, it is the first.
        """
        sign = 1.0 if self.task.higher_is_better else -1.0
        history = self.progress.history
        ranks = [(sign * row[self.progress.metric], _sureness(row)) for row in history]
        finite = [epoch for epoch, (result, _) in enumerate(ranks) if math.isfinite(result)]
        return 1 + max(finite, key=ranks.__getitem__, default=len(ranks) - 1)

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
        seen = [row[self.progress.metric] for row in self.progress.history]
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
            self.step(self.train[chosen])
            progress.step += 1
            progress.steps += 1
            if self.due:
                self.settle()
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
                self.settle()
                self.save()
            if asked:
                raise KeyboardInterrupt
            if progress.share >= 1:
                break
        self.settle()
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
            if self.task.kind != "regression":
                row[VALIDATION_LOSS] = log_loss(self.task, outcome.predicted, outcome.targets)
            progress.history.append(row)
            with self.processes.all_or_none():
                if self.best_epoch == len(progress.history) and self.curves is not None:
                    self.files.save_best(self.model)

    def predict(self, part: str, model: nn.Module) -> Outcome:
        """Predictions of a network for the graphs of a part, shared by all processes."""
        indices, how = self.parts.splits[part], (self.processes, self.recorded, self.learner.half)
        return predict(model, self.parts, self.store, indices, *how)

    def step(self, indices: Ints) -> None:
        """Take the next step, on these graphs; each process takes its share of them."""
        rate, number, device = self.rate, self.progress.steps + 1, self.store.device
        recorded = self.recorded.step
        if recorded and recorded.fits(indices):
            results, _ = within_memory(device, lambda: recorded.step(indices, rate, number))
            if results is not None:
                self.waiting.append((*results, indices))
                return
            self.recorded.step = None
            self.watch.note("out of memory for CUDA graphs: going on without them, more slowly")
        set_rate(self.learner.optimiser, rate)
        with self.processes.all_or_none():
            loss = self._gradients(indices)
        loss = self.processes.add_up(loss, self.learner.weights)
        self.waiting.append((loss, self.learner.step(number), indices))
        if self.recorded.step is not None:
            self.recorded.step.copies.refresh()

    def _gradients(self, indices: Ints) -> Tensor:
        """Gradients of this process's share of a batch; returns the sum of its losses.

        Gradients are those of the mean over the known targets of the whole batch. A process without
        a graph takes one with weight 0, so that the same parameters have gradients everywhere. The
        micro-batch is halved until memory suffices.
        """
        mine, progress, device = self.processes.share(indices), self.progress, self.store.device
        weight = float(len(mine) > 0)
        mine = mine if len(mine) else indices[:1]
        scale = weight / max(1, int(self.known_targets[indices].sum()))
        while True:
            given = mine, progress.micro, scale
            loss, lack = within_memory(device, partial(self.learner.gradients, *given))
            if loss is not None:
                return loss * weight
            at_once = min(progress.micro, len(mine))
            if at_once <= 1:
                largest = int(self.store.graphs.sizes[indices].max())
                raise TrainingError(
                    f"memory does not suffice for one graph of {largest} nodes: {lack}"
                )
            progress.micro = at_once // 2
            self.watch.note(
                f"out of memory: going on with {counted(progress.micro, 'graph')} at once, "
                f"the batch is still {len(indices)}"
            )

    @property
    def due(self) -> bool:
        """Whether to read the losses, for which a GPU waits."""
        return self.store.device.type == "cpu" or len(self.waiting) >= CHECK_EVERY

    def settle(self) -> None:
        """Read the losses of the steps since the last call; none may be NaN or infinite.

        They are added one by one, so that the sum does not depend on how often this is called.
        """
        if not self.waiting:
            return
        losses, norms, batches = zip(*self.waiting, strict=True)
        read = [torch.stack(values).double().cpu().tolist() for values in (losses, norms)]
        self.waiting = []
        for loss, norm, indices in zip(*read, batches, strict=True):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                what = "gradient" if math.isfinite(loss) else "loss"
                raise TrainingError(
                    f"the {what} became NaN or infinite; {self._keep(indices)}, and the last "
                    "good checkpoint is kept: look for extreme values in that batch, or start "
                    "again with a lower --rate"
                )
            self.progress.loss += loss
            self.progress.known += int(self.known_targets[indices].sum())

    def _keep(self, indices: Ints) -> str:
        """Save a batch for inspection, and return a sentence that says where."""
        batch, names, buffer = self.store.batch(indices), self.store.graphs.ids, io.BytesIO()
        arrays: dict[str, Any] = {
            "nodes": batch.nodes,
            "edges": batch.edges,
            "mask": batch.mask,
            "learned_targets": batch.targets,
        }
        if batch.adjacency.is_sparse:
            arrays["adjacency_places"] = batch.adjacency._indices()
            arrays["adjacency_values"] = batch.adjacency._values()
        else:
            arrays["adjacency"] = batch.adjacency
        arrays = {name: values.cpu() for name, values in arrays.items()}
        ids = np.array([names[i] if names else str(i) for i in indices])
        np.savez_compressed(buffer, indices=indices, ids=ids, **arrays)
        try:
            if self.processes.rank == 0:
                write_whole(self.folder / BAD_BATCH, buffer.getvalue())
        except DataError as error:
            return f"the batch could not be saved ({error})"
        return f"the batch is saved in {self.folder / BAD_BATCH}"

    def save(self) -> None:
        """Write a checkpoint, all losses settled; if the first process cannot, all stop."""
        with self.processes.all_or_none():
            if self.processes.rank == 0:
                weights = self.model.state_dict()
                if not all(bool(torch.isfinite(w).all()) for w in weights.values()):
                    raise TrainingError(
                        "the weights became NaN or infinite; the last good checkpoint is kept: "
                        "start again with a lower --rate"
                    )
                device = self.processes.device
                random = {"cpu": torch.get_rng_state()}
                if device.type == "cuda":
                    random["cuda"] = torch.cuda.get_rng_state(device)
                content = {
                    "model": weights,
                    "optimiser": self.learner.optimiser.state_dict(),
                    "average": self.learner.average.shadow,
                    "random": random,
                    "progress": asdict(self.progress),
                    "config": self.config.as_dict(),
                }
                save_checkpoint(self.folder, content)
        self.saved = time.monotonic()

    def restore(self) -> None:
        """Resume from the last checkpoint, if there is one; a DataError if it does not fit."""
        content, troubles = load_checkpoint(self.folder)
        for trouble in troubles:
            self.watch.note(f"{trouble}; going on from the one before it")
        if content is None:
            return
        if (version := content.get("g2n2", "an earlier version")) != __version__:
            self.watch.note(
                f"the checkpoint is of g2n2 {version}, this is {__version__}; going on with it"
            )
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
            # In 0.2 and before a checkpoint did not say what the best epoch is chosen by.
            before = "accuracy" if self.task.kind == "binary" else self.task.metric
            self.progress.metric = self.progress.metric or f"validation {before}"
            self.share_before = self.progress.share
        except (KeyError, RuntimeError, ValueError, TypeError, AttributeError) as error:
            raise DataError(
                f"the checkpoint in {self.folder} does not fit this run "
                f"({str(error).splitlines()[0]}); resume with the settings it was started with"
            ) from None
        if self.progress.history:
            self.files.refuse_lost_best()
        if troubles and self.processes.rank == 0:  # it must not take the place of the good one
            (self.folder / CHECKPOINT).unlink()

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


def _sureness(row: dict[str, float]) -> float:
    """Higher for a lower validation loss; lowest for NaN.

    Highest for an epoch of an earlier version, which did not keep it: what ties later with such an
    epoch does not replace its weights.
    """
    loss = row.get(VALIDATION_LOSS, -math.inf)
    return -math.inf if math.isnan(loss) else -loss


def with_device_settings(state: dict[str, Any], optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """A saved state with the settings of this optimiser's device: a run may change devices."""
    groups = [
        {**saved, **{name: group[name] for name in DEVICE_SETTINGS}}
        for saved, group in zip(state["param_groups"], optimiser.param_groups, strict=True)
    ]
    return {**state, "param_groups": groups}
