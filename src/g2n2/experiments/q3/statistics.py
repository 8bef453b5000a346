"""The three ways accuracies of ten folds become one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GIN = "GIN's protocol"
RELEASED = "best epoch of each fold"
NESTED = "nested validation"
BEST_EPOCH = f"best epoch, {GIN}"
KEPT_DIGITS = 3
"""Decimals of an accuracy in percent, of a test graph or two in a hundred thousand."""


def accuracy_key(statistic: str) -> str:
    """The metric of a statistic."""
    return f"accuracy, {statistic} (%)"


def deviation_key(statistic: str) -> str:
    """The metric of a statistic's deviation over folds."""
    return f"deviation over folds, {statistic} (%)"


@dataclass(frozen=True)
class Summary:
    """A mean over folds, the deviation between them, and the epoch, where one is chosen for all."""

    mean: float
    deviation: float
    epoch: int | None = None


def gin_protocol(curves: Sequence[Sequence[float]]) -> Summary:
    """The epoch at which the mean of the test curves is best, counted from 1, and the mean there.

    One epoch is chosen for all folds, by their test graphs (Xu et al. 2019); of several the first,
    where their means differ by less than the digits that are kept of a curve.
    """
    table = np.asarray(curves, dtype=np.float64)
    epoch = int(table.mean(axis=0).round(KEPT_DIGITS).argmax())
    chosen = table[:, epoch]
    return Summary(float(chosen.mean()), float(chosen.std()), epoch + 1)


def best_of_each_fold(curves: Sequence[Sequence[float]]) -> Summary:
    """The mean of each fold's best epoch, by its test graphs: as the released code reports."""
    best = np.asarray(curves, dtype=np.float64).max(axis=1)
    return Summary(float(best.mean()), float(best.std()))


def nested_validation(accuracies: Sequence[float]) -> Summary:
    """The mean of accuracies of weights no test graph has chosen."""
    return Summary(float(np.mean(accuracies)), float(np.std(accuracies)))


def metrics(curves: Sequence[Sequence[float]], nested: Sequence[float]) -> dict[str, float | None]:
    """All statistics of the folds there are; None where there is none yet."""
    found: dict[str, Summary | None] = {
        GIN: gin_protocol(curves) if curves else None,
        RELEASED: best_of_each_fold(curves) if curves else None,
        NESTED: nested_validation(nested) if nested else None,
    }
    table: dict[str, float | None] = {}
    for name, summary in found.items():
        table[accuracy_key(name)] = None if summary is None else round(summary.mean, 4)
        table[deviation_key(name)] = None if summary is None else round(summary.deviation, 4)
    chosen = found[GIN]
    table[BEST_EPOCH] = None if chosen is None else chosen.epoch
    return table
