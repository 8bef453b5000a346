"""One run: learn the training image, keep the weights that are best on the validation image.

There is one graph to a step and the loss is squared, so this loop is its own; checkpoints and the
schedule are those of `training`. A run can be stopped at any look and taken up again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import TrainingError
from ...training.checkpoint import load_checkpoint, save_checkpoint
from ...training.config import RECIPES
from ...training.optimiser import cosine_rate
from .descent import Descent
from .images import Array, Images
from .settings import Budget, Network

SAVE_EVERY = 20.0
"""Seconds between two checkpoints: no more than that is lost where a run is killed."""


@dataclass
class Fit:
    """Where a run is.

    Attributes:
        step: Done so far.
        best_step: After which the validation image was told best.
        scores: R² of each image then.
        values: `[n]` the test image then.
        curve: R² of the validation image at each look.
        died: A gradient or an output was not finite; what was best before counts.
    """

    step: int = 0
    best_step: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    values: list[float] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)
    died: bool = False

    def over(self, budget: Budget) -> bool:
        return self.step >= budget.steps or self.step - self.best_step >= budget.patience


def fit(
    model: nn.Module,
    images: Images,
    network: Network,
    budget: Budget,
    folder: Path,
    deadline: float,
    looked: Callable[[Fit], None] = lambda _: None,
) -> Fit | None:
    """Train until nothing gets better, or `time.monotonic()` passes `deadline`.

    Args:
        model: The network.
        images: Of one filter.
        network: Its settings.
        budget: How long.
        folder: For its checkpoints.
        deadline: See above.
        looked: Told where the run is after each look at the validation image.

    Returns:
        The run, or None where time was over before it; its checkpoint is kept.

    Raises:
        TrainingError: The network gives no finite numbers to begin with.
    """
    recipe = replace(RECIPES["paper"], rate=network.rate)
    descent = Descent(model, images, network.rate)
    progress = _taken_up(model, descent.optimiser, folder)
    if not progress.curve:
        _look(model, images, progress)
    if progress.died:
        raise TrainingError("the network gives no finite numbers before it is trained")
    saved = time.monotonic()
    while not progress.over(budget):
        norm = descent.step(cosine_rate(recipe, progress.step, budget.steps))
        progress.step += 1
        due = progress.step % budget.every == 0 or progress.step == budget.steps
        late = time.monotonic() > deadline
        if (due or late) and not math.isfinite(float(norm)):  # once it is not, no later one is
            progress.died = True
            return progress
        if due:
            _look(model, images, progress)
            if progress.died:
                return progress
            looked(progress)
        if progress.over(budget):
            return progress
        if late or (due and time.monotonic() - saved > SAVE_EVERY):
            saved = time.monotonic()
            save_checkpoint(folder, _content(model, descent.optimiser, progress))
        if late:
            return None
    return progress


@torch.no_grad()
def outputs(model: nn.Module, images: Images, part: str) -> Array:
    """`[n]` what a network makes of an image."""
    model.eval()
    made: Array = model(images.batches[part])[0, :, 0].double().cpu().numpy()
    return made


def _look(model: nn.Module, images: Images, progress: Fit) -> None:
    """Score the validation image, and all where it is told better than ever."""
    score = images.score("validation", outputs(model, images, "validation"))
    if not math.isfinite(score):
        progress.died = True
        return
    if not progress.scores or score > progress.scores["validation"]:
        values = outputs(model, images, "test")
        progress.best_step = progress.step
        progress.values = [float(value) for value in values]
        progress.scores = {
            "train": images.score("train", outputs(model, images, "train")),
            "validation": score,
            "test": images.score("test", values),
        }
    progress.curve.append(round(score, 6))


def _content(model: nn.Module, optimiser: torch.optim.Optimizer, progress: Fit) -> dict[str, Any]:
    return {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "progress": asdict(progress),
    }


def _taken_up(model: nn.Module, optimiser: torch.optim.Optimizer, folder: Path) -> Fit:
    content, _ = load_checkpoint(folder) if folder.is_dir() else (None, [])
    if content is None:
        return Fit()
    model.load_state_dict(content["model"])
    optimiser.load_state_dict(content["optimiser"])
    return Fit(**content["progress"])


def ridge(columns: Array, truth: Array, shrink: float) -> tuple[Array, float]:
    """Weights `[P]` and offset of a linear map, shrunk in units of each column's deviation."""
    mean, deviation = columns.mean(0), columns.std(0)
    useful = deviation > 1e-6 * max(1.0, float(deviation.max()))
    scaled = np.where(useful, (columns - mean) / np.where(useful, deviation, 1.0), 0.0)
    square = scaled.T @ scaled + shrink * len(scaled) * np.eye(scaled.shape[1])
    solved = np.linalg.solve(square, scaled.T @ (truth - truth.mean()))
    weights: Array = np.where(useful, solved / np.where(useful, deviation, 1.0), 0.0)
    return weights, float(truth.mean() - mean @ weights)
