"""How far a prediction can be trusted: intervals, calibrated probabilities, notes.

Fitted on validation graphs. Intervals are split conformal: of n absolute errors, the one of rank
⌈(n + 1) · level⌉ is the half-width; a new graph drawn as the validation graphs were is inside with
a probability of at least the level. Logits of classes are divided by a temperature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.readers.tables import shortened
from ..errors import DataError
from ..validation import Int, check, read_as
from .setup import Parts
from .task import Scores, Task, Values, softmax
from .trained_on import FAR, Range, TrainingRange, joined, spread

if TYPE_CHECKING:
    from .evaluate import Outcome

INTERVAL = 0.9
"""The level of an interval, where none is asked for."""
KEPT_ERRORS = 1000
"""Order statistics of the validation errors that are kept: levels are exact to a thousandth."""
LEAST_FOR_TEMPERATURE = 10
"""Validation rows below which probabilities stay as the network gives them."""
COLDEST, HOTTEST = 0.05, 20.0
SMALLEST_PROBABILITY = 1e-12
BINS = 15
"""Of equal width, for the expected calibration error."""
SLACK = 0.01
"""Of the training range: a prediction that leaves it by less says nothing."""
FORMAT = 1

Reliability = Scores
Labels = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Calibration:
    """Errors of a run on validation graphs, and ranges of its training graphs."""

    columns: tuple[str, ...]  # names of the targets
    validation: tuple[int, ...]  # for each target its validation rows with a known value
    # regression: for each target at most `KEPT_ERRORS` of its absolute errors, in ascending order
    errors: tuple[tuple[float, ...], ...]
    temperatures: tuple[float, ...]  # classes: for each target the divisor of its logits
    predictions: tuple[Range, ...]  # regression: for each target its training values, predicted too
    training: TrainingRange

    @classmethod
    def fit(
        cls, parts: Parts, train: Outcome, validation: Outcome, *, distances: bool
    ) -> Calibration:
        """Fit on predictions of the best weights; `distances`: whether it reads distances."""
        task, known = parts.task, np.isfinite(validation.targets)
        graphs = parts.graphs.select(parts.splits["train"])
        errors, temperatures, predictions = [], [], []
        for index, rows in enumerate(known.T):
            truth = validation.targets[rows, index]
            if task.kind == "regression":
                residual = np.abs(validation.predicted[rows, index] - truth)
                errors.append(_order_statistics(np.nan_to_num(residual, nan=np.inf)))
                seen = np.concatenate([train.predicted[:, index], graphs.targets[:, index]])
                seen = np.nan_to_num(seen[~np.isnan(seen)])
                predictions.append((float(seen.min()), float(seen.max())))
            else:
                logits = _logits(task, validation.predicted[rows], index)
                temperatures.append(fit_temperature(logits, truth.astype(np.int64)))
        return cls(
            columns=tuple(column.name for column in task.columns),
            validation=tuple(known.sum(axis=0).tolist()),
            errors=tuple(errors),
            temperatures=tuple(temperatures),
            predictions=tuple(predictions),
            training=TrainingRange.of(graphs, distances),
        )

    def as_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], task: Task, source: object) -> Calibration:
        """From a file's content; a DataError if it is damaged, of another run or too new."""
        check(content, {"format": Int(1)}, "calibration", source)
        if content["format"] > FORMAT:
            raise DataError(f"{source} was written by a newer g2n2: upgrade")
        read: Calibration = read_as(cls, content, "calibration", source)
        read.training.checked(source)
        names, number = tuple(column.name for column in task.columns), len(task.columns)
        of_numbers = number if task.kind == "regression" else 0
        lengths = {"errors": of_numbers, "predictions": of_numbers, "validation": number}
        lengths["temperatures"] = number - of_numbers
        faults = {name: len(getattr(read, name)) != count for name, count in lengths.items()}
        faults["columns"] = read.columns != names
        faults["predictions"] |= any(low > high for low, high in read.predictions)
        faults["temperatures"] |= any(not COLDEST <= t <= HOTTEST for t in read.temperatures)
        faults["errors"] |= any(
            len(errors) != min(count, KEPT_ERRORS) or [0, *errors] != sorted([0, *errors])
            for count, errors in zip(read.validation, read.errors, strict=False)
        )
        if wrong := [name for name, fault in faults.items() if fault]:
            raise DataError(
                f"{source} is damaged: its {wrong[0]} do not fit the targets "
                f"{', '.join(names)}; restore it from a copy"
            )
        return read

    def half_widths(self, interval: float) -> Values:
        """`[T]` half-widths at a level in (0, 1); infinite with too few validation rows."""
        half = []
        for errors, count in zip(self.errors, self.validation, strict=True):
            rank = conformal_rank(count, interval)
            # Where not all errors are kept, the next larger one.
            kept = rank if count <= KEPT_ERRORS else -(-rank * KEPT_ERRORS // count)
            half.append(math.inf if rank > count else errors[max(1, kept) - 1])
        return np.array(half)

    def probabilities(self, task: Task, values: Values) -> Values:
        """Calibrated probabilities, the most probable class unchanged; values of regression."""
        if not self.temperatures:
            return values
        if task.kind == "multiclass":
            return task.decode(_log(values) / self.temperatures[0])
        odds = _log(values) - _log(1.0 - values)
        calibrated = task.decode(odds / np.array(self.temperatures))
        below = np.nextafter(0.5, 0.0)
        return np.where(values < 0.5, np.minimum(calibrated, below), np.maximum(calibrated, 0.5))

    def notes(self, outcome: Outcome) -> list[str]:
        """For each row how it is unlike the training graphs; empty if it is not."""
        of_graph = self.training.notes(outcome.graphs)
        phrases = [list(of_graph[graph]) for graph in outcome.owners]
        for index, (low, high) in enumerate(self.predictions):
            values, slack = outcome.predicted[:, index], SLACK * (high - low)
            column = outcome.task.columns[index]
            unit = f" {column.unit}" if column.unit else ""
            outside = ~((values >= low - slack) & (values <= high + slack))
            for row in np.flatnonzero(outside & ~outcome.unseen):  # those have no predicted value
                phrases[row].append(
                    f"{column.name} {values[row]:.4g}{unit} predicted, in training "
                    f"{spread((low, high))}"
                )
        notes = [joined(of_row) for of_row in phrases]
        if self.errors and outcome.interval:
            far = self.far(outcome)
            for row in np.flatnonzero(far.any(axis=1) & ~outcome.unseen):
                names = (self.columns[index] for index in np.flatnonzero(far[row]))
                of = "" if far[row].all() else f" of {shortened(names)}"
                notes[row] += f"; so far outside, there is no interval{of}"
        return notes

    def far(self, outcome: Outcome) -> NDArray[np.bool_]:
        """`[rows, T]` where no interval holds: far from the training graphs, or their values.

        So it is for an element that no training graph has.
        """
        low, high = np.array(self.predictions).reshape(-1, 2).T
        slack, values = FAR * (high - low), outcome.predicted
        far_graphs = self.training.far(outcome.graphs)[outcome.owners] | outcome.unseen
        outside: NDArray[np.bool_] = ~((values >= low - slack) & (values <= high + slack))
        return outside | far_graphs[:, None]

    def reliability(self, outcome: Outcome) -> Reliability:
        """How intervals or probabilities do on known targets, by target.

        `rows` counts the known targets of graphs without unseen elements, for regression those with
        an interval; `far` the others of a regression.
        For regression `level`, `coverage` (the share of rows inside their interval) and `width`; no
        entry without an interval. For classes `temperature`, and the mean negative log-likelihood
        (`nll`) and the expected calibration error of the most probable class (`ece`), each also
        `_before` the temperature.
        """
        table: Reliability = {}
        task, predicted, interval = outcome.task, outcome.predicted, outcome.interval
        regression = task.kind == "regression"
        if not self.columns or (regression and not interval):
            return table
        unseen = np.broadcast_to(outcome.unseen[:, None], outcome.targets.shape)
        far = self.far(outcome) if regression else unseen
        for index, column in enumerate(task.columns):
            known = np.isfinite(outcome.targets[:, index])
            rows = known & ~far[:, index]
            truth = outcome.targets[rows, index]
            if not len(truth):
                continue
            row: dict[str, float] = {"rows": len(truth)}
            table[column.name] = row
            if regression:
                half = float(self.half_widths(interval)[index])
                inside = np.abs(predicted[rows, index] - truth) <= half
                row["far"] = int(known.sum()) - len(truth)
                row |= {"level": interval, "coverage": float(inside.mean()), "width": 2 * half}
                continue
            logits, labels = _logits(task, predicted[rows], index), truth.astype(np.int64)
            temperature = row["temperature"] = self.temperatures[index]
            before, after = softmax(logits), softmax(logits / temperature)
            for name, score in (("nll", _nll), ("ece", _ece)):
                row |= {name: score(after, labels), f"{name}_before": score(before, labels)}
        return table

    def lacking(self, interval: float = INTERVAL) -> list[str]:
        """A sentence for each target with too few validation rows."""
        least = LEAST_FOR_TEMPERATURE
        if self.errors:
            share = Fraction(repr(interval))
            least = math.ceil(share / (1 - share)) if interval else 0
        what = f"an interval of {percent(interval)}" if self.errors else "a calibration"
        instead = "it is left empty" if self.errors else "probabilities are the network's own"
        return [
            f"{what} for {name} needs {least:,} validation rows with a known value, and the run "
            f"had {count:,}; {instead}"
            for name, count in zip(self.columns, self.validation, strict=True)
            if count < least
        ]


NO_CALIBRATION = Calibration((), (), (), (), (), TrainingRange(*[()] * 7))
"""Gives no intervals and no notes, and leaves probabilities as they are."""


def check_interval(interval: float) -> float:
    """The level itself, 0 for no interval; a DataError if it is not from 0 to below 1."""
    if not isinstance(interval, int | float) or not 0 <= interval < 1:
        raise DataError(
            f"the level of an interval is {interval!r}; expected a share below 1, such as 0.9, or "
            "0 for no interval"
        )
    return interval


def conformal_rank(count: int, interval: float) -> int:
    """⌈(n + 1) · level⌉, the level taken in decimal: 0.9 is nine tenths."""
    return math.ceil((count + 1) * Fraction(repr(interval)))


def fit_temperature(logits: Values, labels: Labels) -> float:
    """The temperature that makes the labels most likely, of `[n, classes]` logits and `[n]` labels.

    Bisects the slope of the likelihood, which is concave in the inverse temperature. A label counts
    (n + 1) / (n + 2), as in Platt scaling, so that a few rows, all right, do not give 0 and 1.
    """
    rows, classes = logits.shape
    if rows < LEAST_FOR_TEMPERATURE:
        return 1.0
    counted = np.full(logits.shape, 1.0 / ((rows + 2) * max(1, classes - 1)))
    counted[np.arange(rows), labels] = (rows + 1) / (rows + 2)
    wanted = float((counted * logits).sum())
    low, high = 1.0 / HOTTEST, 1.0 / COLDEST
    for _ in range(60):
        middle = math.sqrt(low * high)
        if float((softmax(logits * middle) * logits).sum()) < wanted:
            low = middle
        else:
            high = middle
    return float(np.clip(1.0 / math.sqrt(low * high), COLDEST, HOTTEST))


def percent(share: float) -> str:
    """`90 %`: four digits, and more for a share below 1 that would be shown as 100 %."""
    texts = (f"{100 * share:.{digits}g}" for digits in range(4, 18))
    return f"{next((text for text in texts if share >= 1 or text != '100'), '100')} %"


def _order_statistics(errors: Values) -> tuple[float, ...]:
    """All errors in ascending order; of many, those of ranks ⌈k·n / 1000⌉."""
    ordered = np.sort(np.minimum(errors, np.finfo(np.float64).max))
    if len(ordered) > KEPT_ERRORS:
        ranks = -(-np.arange(1, KEPT_ERRORS + 1) * len(ordered) // KEPT_ERRORS)
        ordered = ordered[ranks - 1]
    return tuple(ordered.tolist())


def _log(probabilities: Values) -> Values:
    logarithms: Values = np.log(np.maximum(probabilities, SMALLEST_PROBABILITY))
    return logarithms


def _logits(task: Task, values: Values, index: int) -> Values:
    """`[rows, classes]` logits, up to a constant a row, out of probabilities."""
    if task.kind == "multiclass":
        return _log(values)
    positive = values[:, index]
    return np.stack([_log(1.0 - positive), _log(positive)], axis=1)


def _nll(probabilities: Values, labels: Labels) -> float:
    return abs(float(_log(probabilities[np.arange(len(labels)), labels]).mean()))


def _ece(probabilities: Values, labels: Labels) -> float:
    """Mean over rows of the gap between probability and share of hits in the row's bin."""
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(labels))
