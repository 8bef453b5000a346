"""Q3: statistics of the runs on TU, beside each other and beside published rows."""

from __future__ import annotations

from math import sqrt
from statistics import fmean, pstdev, stdev

from ..q3 import ACCURACY, DEVIATION, GIN, MODELS, RELEASED, SETS
from .tables import KERNELS, Results, Value, cited

OTHERS = tuple(model for model in MODELS if model != "G2N2")
NOT_OTHER_GNNS = (*KERNELS, "G²N²")
STUDENT_T = 2.262
"""Two-sided 5 % quantile of Student's t with nine degrees of freedom."""


def label(model: str) -> str:
    return "G²N²" if model == "G2N2" else model


def accuracy(results: Results, cell: str, statistic: str) -> Value | None:
    """A statistic of a cell; its deviation is over folds."""
    return results.value("q3", cell, ACCURACY.format(statistic), DEVIATION.format(statistic))


def last_epoch(results: Results, cell: str) -> Value | None:
    """The accuracy after the last epoch, which no test graph has chosen."""
    record = results.first("q3", cell)
    if record is None:
        return None
    last = [curve[-1] for curve in record.detail["test curves"]]
    return Value(fmean(last), pstdev(last), 1)


def differences(results: Results) -> dict[tuple[str, str], tuple[float, float]]:
    """G²N² less another network on the same test folds, nested: mean and standard error.

    Networks are tested on the same folds, so a difference is taken on each fold. Training folds
    overlap, so the variance of the mean over n folds is s²(1/n + 1/(n − 1)), not s²/n (Nadeau and
    Bengio 2003).
    """
    by_pair = {}
    for name, model in ((name, model) for name in SETS for model in OTHERS):
        ours, other = (results.first("q3", f"{name}/{m}") for m in ("G2N2", model))
        if ours and other and ours.data == other.data:
            pairs = zip(ours.detail["nested"], other.detail["nested"], strict=True)
            each = [left - right for left, right in pairs]
            error = stdev(each) * sqrt(1 / len(each) + 1 / (len(each) - 1))
            by_pair[name, model] = (fmean(each), error)
    return by_pair


def clear_differences(results: Results) -> dict[str, list[str]]:
    """Sets on which G²N² is clearly above or below others: `NCI1 above` to networks."""
    sides: dict[str, list[str]] = {}
    for (name, model), (mean, error) in differences(results).items():
        if abs(mean) > STUDENT_T * error:
            sides.setdefault(f"{name} {'above' if mean > 0 else 'below'}", []).append(model)
    return sides


def rank_of_ours(results: Results, model: str, statistic: str) -> list[int]:
    """The rank one of ours would have among the other published rows, set by set, as printed."""
    values = {name: accuracy(results, f"{name}/{model}", statistic) for name in SETS}
    return [
        cited("tu").rank(round(value.mean, 1), name, ("G²N²",)) if value else 0
        for name, value in values.items()
    ]


def statistic_gaps(results: Results) -> dict[str, list[float]]:
    """Points by which choosing an epoch raises the accuracy, for all cells.

    `released`: from GIN's protocol to the best epoch of each fold; `chosen`: from the last epoch to
    GIN's protocol.
    """
    gaps: dict[str, list[float]] = {"released": [], "chosen": []}
    for cell in (f"{name}/{model}" for name in SETS for model in MODELS):
        high, low = (accuracy(results, cell, statistic) for statistic in (RELEASED, GIN))
        if high and low and (last := last_epoch(results, cell)):
            gaps["released"].append(high.mean - low.mean)
            gaps["chosen"].append(low.mean - last.mean)
    return gaps


def shortfalls(results: Results, statistic: str, against_best: bool) -> dict[str, float]:
    """How many points G²N² is below the best other GNN, or below the paper's G²N²."""
    published, points = cited("tu"), {}
    for name in SETS:
        _, best = published.best(name, NOT_OTHER_GNNS)
        bar = best if against_best else published.rows["G²N²"][name].number
        if value := accuracy(results, f"{name}/G2N2", statistic):
            points[name] = bar - round(value.mean, 1)
    return points
