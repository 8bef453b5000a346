"""Curves for TensorBoard, and pictures of a run: learning curve, parity, confusion of classes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ..data.graph_set import Target
from .checkpoint import write_whole
from .evaluate import Outcome
from .task import LABELS, Task, Values, with_unit


class TensorBoardCurves:
    """The history as TensorBoard scalars, written anew on resume; `missing` says why not."""

    def __init__(self, folder: Path) -> None:
        self.missing, self._written = "", 0
        self._writer: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self.missing = (
                "no curves for TensorBoard, which is not installed: pip install tensorboard"
            )
            return
        for stale in folder.glob("events.out.tfevents.*"):
            stale.unlink()
        self._writer = SummaryWriter(str(folder))

    def update(self, history: list[dict[str, float]]) -> None:
        if self._writer is None:
            return
        for row in history[self._written :]:
            for name, value in row.items():
                if name not in ("epoch", "seconds"):
                    self._writer.add_scalar(name.replace(" ", "/"), value, int(row["epoch"]))
        self._written = len(history)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e5e5e5",
    "axes.axisbelow": True,
    "font.size": 9,
    "figure.constrained_layout.use": True,
}
BLUE, ORANGE = "#2a6f97", "#d1603d"
MOST_PANELS = 12
MOST_POINTS = 20_000


def draw(
    folder: Path, task: Task, history: list[dict[str, float]], outcome: Outcome, best_epoch: int
) -> list[str]:
    """Draw the pictures of a run; returns the names of the files, none without matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return []
    with rc_context(STYLE):
        figures = {"learning_curve.png": Figure(figsize=(6.4, 5.2))}
        _learning_curve(figures["learning_curve.png"], task, history, best_epoch)
        if np.isfinite(outcome.targets).any():
            name = "parity.png" if task.kind == "regression" else "confusion.png"
            figures[name] = Figure()
            _panels(figures[name], task, outcome)
        for name, figure in figures.items():
            picture = io.BytesIO()
            figure.savefig(picture, format="png", dpi=130)
            write_whole(folder / name, picture.getvalue())
    return list(figures)


def _learning_curve(
    figure: Any, task: Task, history: list[dict[str, float]], best_epoch: int
) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    epochs, values = ([row[k] for row in history] for k in ("epoch", f"validation {task.metric}"))
    style = {"marker": "o" if len(epochs) < 30 else "", "markersize": 3, "linewidth": 1.5}
    above.plot(epochs, [row["loss"] for row in history], color=BLUE, **style)
    above.set_ylabel("training loss")
    below.plot(epochs, values, color=ORANGE, **style)
    best = values[best_epoch - 1]
    if np.isfinite(best):
        below.plot(best_epoch, best, "o", color=ORANGE, markersize=7)
        below.set_title(f"best {best:.4g} in epoch {best_epoch}", fontsize=9)
    unit = task.columns[0].unit if task.metric == "mae" else ""
    below.set_ylabel(with_unit(f"validation {LABELS[task.metric]}", unit))
    below.set_xlabel("epoch")
    below.xaxis.get_major_locator().set_params(integer=True)
    if task.kind == "regression" and min(values) > 0 and max(values) > 10 * min(values):
        below.set_yscale("log")


def _panels(figure: Any, task: Task, outcome: Outcome) -> None:
    """A parity plot or a table of confusion for each target."""
    count = min(len(task.columns), MOST_PANELS)
    across = min(count, 4)
    down = -(-count // across)
    figure.set_size_inches(max(4.4, 3.4 * across), max(4.0, 3.2 * down))
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    for index, axes in enumerate(grid.flat[:count]):
        column, truth = task.columns[index], outcome.targets[:, index]
        values, known = outcome.predicted, np.isfinite(truth)
        values = values if task.kind == "multiclass" else values[:, index]
        panel = _parity if task.kind == "regression" else _confusion
        if known.any():
            panel(axes, column, values[known], truth[known])
        else:
            axes.set_title(f"{column.symbol or column.name}: no known value", fontsize=9)


def _parity(axes: Any, column: Target, values: Values, truth: Values) -> None:
    shown = slice(None, None, 1 + len(truth) // MOST_POINTS)
    axes.scatter(truth[shown], values[shown], s=9, alpha=0.5, color=BLUE, linewidths=0)
    ends = [min(truth.min(), values.min()), max(truth.max(), values.max())]
    axes.plot(ends, ends, color="#888888", linewidth=1, zorder=0)
    axes.set_xlabel(with_unit("target", column.unit))
    axes.set_ylabel(with_unit("prediction", column.unit))
    error = with_unit(f"MAE {np.abs(values - truth).mean():.4g}", column.unit)
    axes.set_title(f"{column.symbol or column.name}: {error}")


def _confusion(axes: Any, column: Target, values: Values, truth: Values) -> None:
    """Counts of each true class by predicted class, shaded by the share of the true class."""
    names = column.classes or ("0", "1")
    guess = values.argmax(-1) if values.ndim > 1 else (values >= 0.5).astype(int)
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (truth.astype(int), guess), 1)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.grid(False)
    for (row, place), count in np.ndenumerate(counts if len(names) <= 15 else counts[:0]):
        colour = "white" if shares[row, place] > 0.5 else "black"
        axes.text(place, row, str(count), ha="center", va="center", color=colour)
    axes.set_xticks(range(len(names)), names, rotation=45 if len(names) > 3 else 0)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(f"{column.name}: {(guess == truth).mean():.1%} right")
