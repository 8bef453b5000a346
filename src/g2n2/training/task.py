"""What is learned: losses, scaled targets, predictions in the user's terms, and metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ..data.atom_references import BETWEEN, fit_references, reference_sums
from ..data.graph_set import GraphSet, Target
from ..errors import DataError

Values = NDArray[np.float64]
LABELS = {
    "mae": "MAE",
    "relative_mae": "MAE / spread",
    "rmse": "RMSE",
    "r2": "R²",
    "accuracy": "accuracy",
    "roc_auc": "ROC-AUC",
}
"""Metrics as they are shown."""
Scores = dict[str, dict[str, float]]
"""Metrics of each target by name, and of `all`."""
Kind = Literal["regression", "binary", "multiclass"]
DIGITS = 9
"""Significant digits of numbers in files of predictions, enough for a float32."""
NOISE = 1e-9
"""Of the largest target: a deviation up to that is rounding, and the column a constant."""


@dataclass(frozen=True)
class Task:
    """The learning task of a set's columns."""

    columns: tuple[Target, ...]  # the targets, all of one kind; a multiclass task has one
    kind: Kind  # regression, binary (several columns: multi-label) or multiclass

    @classmethod
    def of(cls, graphs: GraphSet) -> Task:
        """The task of a set; a DataError without targets, or if they cannot be learned together."""
        kinds = {column.kind for column in graphs.columns}
        names = ", ".join(column.name for column in graphs.columns)
        if not kinds:
            notes = "".join(f" {note}" for note in graphs.notes)  # what the reader made of it
            advice = graphs.target_place or "name one with --target"
            raise DataError(f"{graphs.name} has no target to learn; {advice}.{notes}")
        if len(kinds) > 1:
            raise DataError(
                f"the targets {names} mix {' and '.join(sorted(kinds))}; "
                "choose those of one kind with --target"
            )
        if len(graphs.columns) > 1 and any(column.name == "all" for column in graphs.columns):
            raise DataError("a target called 'all' is taken for the mean of all: rename its column")
        kind = kinds.pop()
        if kind == "multiclass" and len(graphs.columns) > 1:
            raise DataError(f"{names} are several multiclass targets; choose one with --target")
        return cls(graphs.columns, kind)

    @property
    def out(self) -> int:
        """Outputs of the network."""
        return len(self.columns[0].classes) if self.kind == "multiclass" else len(self.columns)

    @property
    def metric(self) -> str:
        """What the best model is chosen by; errors of several targets relative to their spread.

        Of two classes the ROC-AUC: where one is rare, a constant guess is nearly always right.
        """
        if self.kind != "regression":
            return "roc_auc" if self.kind == "binary" else "accuracy"
        return "mae" if len(self.columns) == 1 else "relative_mae"

    @property
    def higher_is_better(self) -> bool:
        return self.kind != "regression"

    def loss(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Sum of the losses of all known targets, and their number; NaN is unknown.

        L1 for regression, cross-entropy otherwise, in float32 at least.
        """
        outputs = outputs if outputs.dtype == torch.float64 else outputs.float()
        known = self.known(targets)
        filled = targets.nan_to_num(0.0, 0.0, 0.0).to(outputs.dtype)
        if self.kind == "multiclass":
            known = known[..., 0]  # its one column
            each = functional.cross_entropy(
                outputs.flatten(0, -2), filled[..., 0].long().flatten(), reduction="none"
            ).view(known.shape)
        elif self.kind == "binary":
            each = functional.binary_cross_entropy_with_logits(outputs, filled, reduction="none")
        else:
            each = (outputs - filled).abs()
        return (each * known).sum(), known.sum()

    @staticmethod
    def known(targets: Tensor) -> Tensor:
        """Where a target is neither NaN nor infinite."""
        return (targets - targets) == 0

    def decode(self, outputs: Values) -> Values:
        """Outputs in the user's terms: values, or probabilities."""
        if self.kind == "regression":
            return outputs
        if self.kind == "binary":
            return 0.5 * (1.0 + np.tanh(0.5 * outputs))
        return softmax(outputs)

    def table(self, decoded: Values) -> list[tuple[str, list[Any]]]:
        """Columns of a predictions file; names may repeat."""
        if self.kind == "multiclass":
            names = self.columns[0].classes
            best = decoded.argmax(axis=-1)
            shares = [(f"p({name})", decoded[:, k].tolist()) for k, name in enumerate(names)]
            return [(self.columns[0].name, [names[i] for i in best]), *shares]
        table: list[tuple[str, list[Any]]] = []
        for index, column in enumerate(self.columns):
            values = decoded[:, index]
            if self.kind == "binary":
                names = column.classes or ("0", "1")
                table.append((column.name, [names[int(p >= 0.5)] for p in values]))
                table.append((f"p({column.name}={names[1]})", values.tolist()))
            else:
                table.append((with_unit(column.name, column.unit), values.tolist()))
        return table


@dataclass(frozen=True)
class Scaling:
    """`learned = (target − reference − mean) / deviation`."""

    mean: tuple[float, ...]  # `[T]`
    deviation: tuple[float, ...]  # `[T]`, never zero
    # for each target the fitted value of each element and pair of elements, by the names of
    # `reference_sums`
    references: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        task: Task,
        train: GraphSet,
        normalise: bool,
        references: bool = False,
        extent: bool = False,
    ) -> Scaling:
        """Fitted on training graphs; the identity for classes, or if nothing is asked for."""
        columns = len(task.columns)
        plain = cls((0.0,) * columns, (1.0,) * columns)
        if task.kind != "regression":
            return plain
        fitted: dict[str, Mapping[str, float]] = {}
        if references or extent:
            names = [column.name for column in task.columns]
            fits = fit_references(train, np.arange(len(train)), names, extent=extent)
            fitted |= {name: fit.coefficients for name, fit in fits.items()}
        plain = cls(plain.mean, plain.deviation, fitted)
        if not normalise:
            return plain
        mean, deviation = [], []
        rest = train.targets - plain.reference(task, train)
        for values, whole in zip(rest.T, train.targets.T, strict=True):
            known = values[np.isfinite(values)]
            spread = float(known.std()) if known.size else 0.0
            mean.append(float(known.mean()) if known.size else 0.0)
            # A constant column has rounding noise for a deviation; scaling by that explodes. Noise
            # goes with the size of the targets themselves, whatever was taken off them.
            noise = NOISE * float(np.abs(whole[np.isfinite(whole)]).max(initial=0.0))
            deviation.append(spread if spread > noise else 1.0)
        return cls(tuple(mean), tuple(deviation), fitted)

    @property
    def digits(self) -> int:
        """Significant digits of predictions in a file: more if means are large beside spreads."""
        pairs = zip(self.mean, self.deviation, strict=True)
        ratio = max((abs(mean) / deviation for mean, deviation in pairs), default=1.0)
        return min(17, DIGITS + max(0, math.ceil(math.log10(max(ratio, 1.0))) - 2))

    def reference(self, task: Task, graphs: GraphSet) -> Values:
        """`[rows, T]` the part of the targets explained by elements and, with extent, distances."""
        values = np.zeros((len(graphs.targets), len(task.columns)))
        if not self.references:
            return values
        extent = any(BETWEEN in name for fitted in self.references.values() for name in fitted)
        sums = reference_sums(graphs, extent=extent)
        for place, column in enumerate(task.columns):
            for name, value in self.references.get(column.name, {}).items():
                if name not in sums:
                    raise DataError(f"{graphs.name} has no node feature for {name}")
                values[:, place] += value * sums[name]
        return values

    def scale(self, task: Task, graphs: GraphSet) -> Values:
        """All targets of a set as the loss sees them, computed in float64."""
        if task.kind != "regression":
            return graphs.targets
        rest = graphs.targets - self.reference(task, graphs) - np.asarray(self.mean)
        scaled: Values = rest / np.asarray(self.deviation)
        return scaled

    def unscale(self, task: Task, graphs: GraphSet, outputs: Values) -> Values:
        """Outputs, one row for each row of the targets, in the targets' units."""
        if task.kind != "regression":
            return outputs
        values: Values = outputs * np.asarray(self.deviation) + np.asarray(self.mean)
        return values + self.reference(task, graphs)


def softmax(logits: Values) -> Values:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Values = shifted / shifted.sum(axis=-1, keepdims=True)
    return shares


def with_unit(name: str, unit: str) -> str:
    """`homo [eV]`."""
    return f"{name} [{unit}]" if unit else name


def metrics(task: Task, decoded: Values, targets: Values) -> Scores:
    """The metrics of each target, and under `all` their mean over targets that have one.

    `decoded` is `[rows, out]`, see `Task.decode`; a metric without a known target is NaN.
    """
    table: Scores = {}
    for index, column in enumerate(task.columns):
        truth = targets[:, index]
        known = np.isfinite(truth)
        if task.kind == "multiclass":
            table[column.name] = {"accuracy": _mean(decoded[known].argmax(-1) == truth[known])}
        elif task.kind == "binary":
            probabilities = decoded[known, index]
            table[column.name] = {
                "accuracy": _mean((probabilities >= 0.5) == (truth[known] > 0.5)),
                "roc_auc": roc_auc(probabilities, truth[known]),
            }
        else:
            row = _regression(decoded[known, index], truth[known])
            if len(task.columns) > 1:  # relative to guessing the mean, so that units compare
                spread = _mean(np.abs(truth[known] - _mean(truth[known])))
                row["relative_mae"] = row["mae"] / spread if spread else float("nan")
            table[column.name] = row
    rows = list(table.values())
    # A rare label may be unknown, or of one class only, in a small part: the others still count.
    table["all"] = {
        name: _mean([row[name] for row in rows if np.isfinite(row[name])]) for name in rows[0]
    }
    return table


def for_json(scores: Scores) -> dict[str, dict[str, float | None]]:
    """Metrics for JSON: None in place of NaN."""
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
    _, index, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[index]
    return float((ranks[positive].sum() - ups * (ups + 1) / 2.0) / (ups * downs))


def log_loss(task: Task, decoded: Values, targets: Values) -> float:
    """The mean cross-entropy of all known targets of classes: `Task.loss`, out of probabilities.

    Unlike the metrics it tells how sure a network is. A sure mistake counts 36, since 1 − p is
    exact to 2e-16. NaN without a known target.
    """
    known = np.isfinite(targets)
    if task.kind == "multiclass":
        rows = known[:, 0]
        right = decoded[rows, targets[rows, 0].astype(np.int64)]
    else:
        right = np.where(targets > 0.5, decoded, 1.0 - decoded)[known]
    return _mean(np.abs(np.log(np.maximum(right, np.finfo(np.float64).eps))))


def _regression(values: Values, truth: Values) -> dict[str, float]:
    error = values - truth
    spread = float(((truth - _mean(truth)) ** 2).sum()) if len(truth) else 0.0
    return {
        "mae": _mean(np.abs(error)),
        "rmse": float(np.sqrt(_mean(error**2))),
        "r2": 1.0 - float((error**2).sum()) / spread if spread else float("nan"),
    }


def _mean(values: NDArray[np.generic] | list[float]) -> float:
    array = np.asarray(values, dtype=np.float64)
    return float(array.mean()) if array.size else float("nan")
