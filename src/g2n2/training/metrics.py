"""MAE, RMSE, R², accuracy and ROC-AUC, in float64, over known targets only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .task import Task, Values

Metrics = dict[str, float]


def metrics(task: Task, decoded: Values, targets: Values) -> dict[str, Metrics]:
    """The metrics of each target, and under the name `all` their mean over targets that have one.

    Args:
        task: What the numbers mean.
        decoded: `[rows, out]` values or probabilities; see `Task.decode`.
        targets: `[rows, T]`, NaN where unknown. A metric without a known target is NaN.
    """
    table: dict[str, Metrics] = {}
    for place, column in enumerate(task.columns):
        truth = targets[:, place]
        known = np.isfinite(truth)
        if task.kind == "multiclass":
            table[column.name] = {"accuracy": _mean(decoded[known].argmax(-1) == truth[known])}
        elif task.kind == "binary":
            table[column.name] = _binary(decoded[known, place], truth[known])
        else:
            table[column.name] = _regression(decoded[known, place], truth[known])
            if len(task.columns) > 1:
                table[column.name]["relative_mae"] = _relative(
                    table[column.name]["mae"], truth[known]
                )
    names = list(next(iter(table.values())))
    # A rare label may be unknown, or of one class only, in a small part: the others still count.
    rows = list(table.values())
    table["all"] = {
        name: _mean([row[name] for row in rows if np.isfinite(row[name])]) for name in names
    }
    return table


def for_json(scores: dict[str, Metrics]) -> dict[str, dict[str, float | None]]:
    """Metrics as JSON can hold them: None where there is no number."""
    return {
        target: {name: value if np.isfinite(value) else None for name, value in row.items()}
        for target, row in scores.items()
    }


def roc_auc(scores: Values, truth: Values) -> float:
    """Area under the ROC curve: the chance that a positive scores above a negative, ties half."""
    positive = truth > 0.5
    ups, downs = int(positive.sum()), int((~positive).sum())
    if not ups or not downs:
        return float("nan")
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2.0)[place]
    return float((ranks[positive].sum() - ups * (ups + 1) / 2.0) / (ups * downs))


def _regression(values: Values, truth: Values) -> Metrics:
    error = values - truth
    spread = float(((truth - _mean(truth)) ** 2).sum()) if len(truth) else 0.0
    return {
        "mae": _mean(np.abs(error)),
        "rmse": float(np.sqrt(_mean(error**2))),
        "r2": 1.0 - float((error**2).sum()) / spread if spread else float("nan"),
    }


def _relative(mae: float, truth: Values) -> float:
    """An error in parts of what guessing the mean makes: targets of several units compare."""
    spread = _mean(np.abs(truth - _mean(truth)))
    return mae / spread if spread else float("nan")


def _binary(probabilities: Values, truth: Values) -> Metrics:
    return {
        "accuracy": _mean((probabilities >= 0.5) == (truth > 0.5)),
        "roc_auc": roc_auc(probabilities, truth),
    }


def _mean(values: NDArray[np.generic] | list[float]) -> float:
    known = np.asarray(values, dtype=np.float64)
    return float(known.mean()) if known.size else float("nan")
