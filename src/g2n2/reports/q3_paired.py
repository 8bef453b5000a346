"""Q3, fold by fold: how far G²N² is from the other networks on the same test graphs.

The ± of a mean over folds says how folds differ, which is far more than networks do. All networks
are tested on the same folds, so a difference is taken on each fold and has an error of its own.
Training folds overlap, so differences are not independent: the variance of the mean over n folds is
s²(1/n + 1/(n − 1)), not s²/n (Nadeau and Bengio 2003).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from ..demonstration.blocks import Block, Text
from ..experiments.kept import NOT_UNDERSTOOD, percentages
from ..experiments.q3.cells import NESTED_ACCURACIES
from ..experiments.q3.settings import MODELS, SETS
from .numbers import EMPTY, PARTIAL, Entry, Row, plain
from .standings import FULL, Standing

OWN = "G2N2"
TEN, CLEAR = 10, 2.262
"""Folds, and the standard errors 95 % of Student's t with nine degrees of freedom are within."""


def fold_by_fold(known: Mapping[str, Standing]) -> list[Block]:
    """The differences, where two networks have all folds."""
    others = [model for model in MODELS if model != OWN]
    found = {(name, model): _difference(known, name, model) for name in SETS for model in others}
    if not any(found.values()):
        return []
    rows: list[Row] = [
        (f"G²N² less {model}", [_entry(found[name, model]) for name in SETS]) for model in others
    ]
    return [
        Text(
            "**Fold by fold**: G²N² less each of our other networks on the same test graphs, "
            "nested validation, one seed, ± the standard error of the mean, with the usual "
            "allowance for training folds that overlap (Nadeau and Bengio 2003)."
        ),
        plain(("points", *SETS), rows),
        Text(_clear({place: one for place, one in found.items() if one})),
    ]


@dataclass(frozen=True)
class Difference:
    """Of two networks on the same folds.

    Attributes:
        mean: In points.
        error: Standard error of the mean.
        folds: How many.
        partial: Other settings or budgets than the tables have.
    """

    mean: float
    error: float
    folds: int
    partial: bool

    @property
    def clear(self) -> bool:
        """Whether chance alone gives it in less than one of twenty cases; few folds do not say."""
        return self.folds >= TEN and abs(self.mean) > CLEAR * self.error


def _difference(known: Mapping[str, Standing], name: str, model: str) -> Difference | None:
    own, other = (known.get(f"{name}/{one}") for one in (OWN, model))
    if own is None or other is None or own.records[0].data != other.records[0].data:
        return None
    mine, others = _nested(own), _nested(other)
    if len(mine) != len(others) or len(mine) < 2:
        return None
    apart = [left - right for left, right in zip(mine, others, strict=True)]
    folds = len(apart)
    error = stdev(apart) * sqrt(1 / folds + 1 / (folds - 1))
    partial = any(one.outdated or one.budget != FULL for one in (own, other))
    return Difference(fmean(apart), error, folds, partial)


def _nested(standing: Standing) -> list[float]:
    """Accuracies by fold, each the mean over seeds; none where some are missing or damaged."""
    with suppress(*NOT_UNDERSTOOD):
        seeds = [
            percentages(record.detail[NESTED_ACCURACIES], record.config["folds"])
            for record in standing.records
        ]
        return [fmean(fold) for fold in zip(*seeds, strict=True)]
    return []


def _entry(found: Difference | None) -> Entry:
    if found is None:
        return Entry(EMPTY)
    text = f"{found.mean:+.1f} ± {found.error:.1f}".replace("-", "−")
    return Entry(text + PARTIAL * found.partial)


def _clear(found: Mapping[tuple[str, str], Difference]) -> str:
    """Which differences are more than their errors, in a sentence."""
    sides: dict[str, list[str]] = {}
    for (name, model), one in found.items():
        if one.clear:
            side = "above" if one.mean > 0 else "below"
            sides.setdefault(f"on {name} {side}", []).append(model + PARTIAL * one.partial)
    by_chance = "(Student's t, 5 %, which one difference in twenty passes by chance)"
    if not sides:
        return f"No difference, of {len(found)}, can be told from zero {by_chance}."
    said = "; ".join(f"{side} {' and '.join(models)}" for side, models in sides.items())
    rest = len(found) - sum(map(len, sides.values()))
    return (
        f"Clearly {by_chance} G²N² is {said}. The other {rest} of {len(found)} differences cannot "
        "be told from zero; their errors say how large they might be."
    )
