"""Q3, fold by fold: how far G²N² is from the other networks on the same test graphs.

The ± of a mean over folds says how folds differ, which is far more than networks do. All networks
are tested on the same folds, so a difference is taken on each fold and has an error of its own.
Training folds overlap, so differences are not independent: the variance of their mean is s²(1/n +
1/(k − 1)) for n differences of k folds (Nadeau and Bengio 2003), not s²/n.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from statistics import fmean, stdev

from ..demonstration.blocks import Block, Text
from ..experiments.q3.cells import NESTED_ACCURACIES
from ..experiments.q3.settings import MODELS, SETS
from .numbers import EMPTY, PARTIAL, Entry, Row, plain
from .standings import Standing

OWN = "G2N2"
CLEAR = 2.3
"""Standard errors a difference must have to be called one: 95 % of Student's t for ten folds."""


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


Difference = tuple[float, float, bool]
"""Mean, standard error, and whether settings have changed since."""


def _difference(known: Mapping[str, Standing], name: str, model: str) -> Difference | None:
    pair = [known.get(f"{name}/{one}") for one in (OWN, model)]
    own, other = (_nested(one) for one in pair)
    if not own or own.keys() != other.keys():
        return None
    apart = [own[place] - other[place] for place in own]
    folds = len({fold for _, fold in own})
    error = stdev(apart) * sqrt(1 / len(apart) + 1 / (folds - 1))
    outdated = any(one is not None and one.outdated for one in pair)
    return fmean(apart), error, outdated


def _nested(standing: Standing | None) -> dict[tuple[int, int], float]:
    """Accuracies by seed and fold; nothing where some are missing."""
    found = {
        (record.seed, fold): accuracy
        for record in (standing.records if standing else ())
        for fold, accuracy in enumerate(record.detail.get(NESTED_ACCURACIES, ()))
    }
    asked = sum(record.config.get("folds", 0) for record in (standing.records if standing else ()))
    return found if len(found) == asked > 1 else {}


def _entry(found: Difference | None) -> Entry:
    if found is None:
        return Entry(EMPTY)
    mean, error, outdated = found
    text = f"{mean:+.1f} ± {error:.1f}".replace("-", "−")
    return Entry(text + PARTIAL * outdated)


def _clear(found: Mapping[tuple[str, str], Difference]) -> str:
    """Which differences are more than their errors, in a sentence."""
    sides: dict[str, list[str]] = {}
    for (name, model), (mean, error, _) in found.items():
        if abs(mean) > CLEAR * error:
            side = "above" if mean > 0 else "below"
            sides.setdefault(f"on {name} {side}", []).append(model)
    if not sides:
        return f"No difference, of {len(found)}, is more than {CLEAR} standard errors."
    said = "; ".join(f"{side} {' and '.join(models)}" for side, models in sides.items())
    rest = len(found) - sum(map(len, sides.values()))
    return (
        f"By more than {CLEAR} standard errors, as one difference in twenty is by chance, G²N² is "
        f"{said}. The other {rest} of {len(found)} differences cannot be told from zero; their "
        "errors say how large they might be."
    )
