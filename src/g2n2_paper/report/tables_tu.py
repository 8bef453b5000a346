"""Tables of Q3: TU."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from statistics import fmean, pstdev, stdev

import pandas as pd

from .. import errica
from ..q3 import ACCURACY, DEVIATION, EPOCHS, GIN, MODELS, RELEASED, SETS, STATISTICS, VARIANTS
from .cited import KERNELS, cited
from .frame import Results
from .numbers import EMPTY, Notes, TableEntry, Value, entry, fixed, minus, table

IMDB = ("IMDB-BINARY", "IMDB-MULTI")
OTHERS = tuple(model for model in MODELS if model != "G2N2")
NOT_OTHER_GNNS = (*KERNELS, "G²N²")
STUDENT_T = 2.262
"""Two-sided 5 % quantile of Student's t with nine degrees of freedom."""


def label(model: str) -> str:
    return "G²N²" if model == "G2N2" else model


def accuracy(results: Results, cell: str, statistic: str) -> Value | None:
    """A statistic of a cell; its deviation is over folds."""
    mean = results.value("q3", cell, ACCURACY.format(statistic))
    spread = results.value("q3", cell, DEVIATION.format(statistic))
    return Value(mean.mean, spread.mean, mean.seeds) if mean and spread else None


def last_epoch(results: Results, cell: str) -> Value | None:
    """The accuracy after the last epoch, which no test graph has chosen."""
    record = results.first("q3", cell)
    if record is None:
        return None
    last = [curve[-1] for curve in record.detail["test curves"]]
    return Value(fmean(last), pstdev(last), 1)


def _entry(results: Results, cell: str, statistic: str) -> TableEntry:
    return entry(accuracy(results, cell, statistic), fixed(1))


def q3_short(results: Results) -> pd.DataFrame:
    """G²N² beside the paper's number and its best other GNN, set by set."""
    published = cited("tu")
    rows = []
    for name in SETS:
        best, _ = published.best(name, NOT_OTHER_GNNS)
        theirs = f"{published.rows[best][name].text} ({best})", published.rows["G²N²"][name].text
        rows.append([name, *theirs, *(_entry(results, f"{name}/G2N2", s) for s in STATISTICS)])
    ours = [f"ours, {statistic}" for statistic in STATISTICS]
    return table(["%", "best other GNN, cited", "G²N², cited", *ours], rows)


def q3_all(results: Results) -> pd.DataFrame:
    """All published rows, and ours by GIN's protocol."""
    notes = Notes()
    rows: list[list[object]] = [
        [f"{name}, cited", *(notes.entry(cells[column]) for column in SETS)]
        for name, cells in cited("tu").rows.items()
    ]
    for model in MODELS:
        entries = [_entry(results, f"{name}/{model}", GIN) for name in SETS]
        rows.append([f"{label(model)}, ours", *entries])
    larger = cited("tu-larger-class").rows["the larger class"]
    rank, gnns = (cited("tu-rank").rows[name] for name in ("all methods", "GNNs"))
    ranks = [f"{rank[name].text} ({gnns[name].text})" for name in SETS]
    rows.append(["always the larger class", *(larger[name].text for name in SETS)])
    rows.append(["rank of G²N² among all (among GNNs), cited", *ranks])
    return table(["%", *SETS], rows, best_in_column=max)


def q3_statistics(results: Results, models: Iterable[str] = MODELS) -> pd.DataFrame:
    """Ours by each statistic."""
    rows = [
        [f"{label(model)}, {s}", *(_entry(results, f"{name}/{model}", s) for name in SETS)]
        for model in models
        for s in STATISTICS
    ]
    return table(["%", *SETS], rows)


def q3_g2n2(results: Results) -> pd.DataFrame:
    """G²N² by each statistic, above the paper's row."""
    frame = q3_statistics(results, ("G2N2",))
    row = cited("tu").rows["G²N²"]
    name = f"G²N², cited; {RELEASED}, if the released script made it"
    frame.loc[len(frame)] = [name, *(row[set_name].text for set_name in SETS)]
    return frame


def q3_ranks(results: Results) -> pd.DataFrame:
    """The rank of G²N² as printed and as counted from the printed rows."""
    published = cited("tu")
    rows = [
        [f"{name}, printed", *(number.text for number in numbers.values())]
        for name, numbers in cited("tu-rank").rows.items()
    ]
    for name, without in (("all methods", ()), ("GNNs", KERNELS)):
        ours = published.rows["G²N²"]
        ranks = [published.rank(ours[c].bar, c, without) for c in published.columns]
        rows.append([f"{name}, counted", *map(str, ranks)])
    return table(["rank among", *published.columns], rows)


def q3_variants(results: Results, sets: Iterable[str] = SETS) -> pd.DataFrame:
    """Epochs and input of the GIN code: what the plan gives, the variant, the published row."""
    rows: dict[str, list[object]] = {}
    for variant in VARIANTS:
        name, model = variant.set_name, variant.model
        if name not in sets or not results.of("q3", variant.name):
            continue
        for cell, epochs, classes in (
            (f"{name}/{model}", EPOCHS, False),
            (variant.name, variant.epochs, variant.one_hot),
        ):
            row = f"{label(model)} on {name}, {epochs} epochs"
            row += f", degrees as {'classes' if classes else 'a number'}" if name in IMDB else ""
            values = [last_epoch(results, cell), *(accuracy(results, cell, s) for s in STATISTICS)]
            rows[row] = [entry(value, fixed(1)) for value in values]
        rows[f"{model} on {name}, cited"] = ["", cited("tu").rows[model][name].text, "", ""]
    return table(["%", "last epoch", *STATISTICS], [[name, *row] for name, row in rows.items()])


def q3_errica(results: Results) -> pd.DataFrame:
    """Errica's splits: mean of ten folds and all seeds beside what is published."""
    published = cited("tu-errica")
    rows = []
    for name in errica_sets(results):
        cell = f"errica/{name}/G2N2"
        mean = results.need("q3", cell, errica.ACCURACY)
        spread = results.need("q3", cell, errica.DEVIATION)
        ours = entry(Value(mean.mean, spread.mean, mean.seeds), fixed(1))
        others = (published.rows[row][name].text for row in published.rows)
        rows.append([name, ours, str(mean.seeds), *others])
    header = ["%", "g2n2 defaults", "runs a fold", *(f"{row}, cited" for row in published.rows)]
    return table(header, rows)


def errica_sets(results: Results) -> list[str]:
    """The sets that were run by Errica's splits."""
    return [name for name in errica.SETS if results.of("q3", f"errica/{name}/G2N2")]


def differences(results: Results) -> dict[tuple[str, str], tuple[float, float]]:
    """G²N² less another network on the same test folds, nested: mean and standard error.

    Networks are tested on the same folds, so a difference is taken on each fold. Training folds
    overlap, so the variance of the mean over n folds is s²(1/n + 1/(n − 1)), not s²/n (Nadeau and
    Bengio 2003).
    """
    by_pair = {}
    for name in SETS:
        for model in OTHERS:
            ours, other = (results.first("q3", f"{name}/{m}") for m in ("G2N2", model))
            if ours is None or other is None or ours.data != other.data:
                continue
            pairs = zip(ours.detail["nested"], other.detail["nested"], strict=True)
            each = [left - right for left, right in pairs]
            error = stdev(each) * sqrt(1 / len(each) + 1 / (len(each) - 1))
            by_pair[name, model] = (fmean(each), error)
    return by_pair


def q3_paired(results: Results) -> pd.DataFrame:
    """The differences, fold by fold."""
    texts = {
        pair: minus(f"{mean:+.1f} ± {error:.1f}")
        for pair, (mean, error) in differences(results).items()
    }
    rows = [[f"G²N² less {m}", *(texts.get((name, m), EMPTY) for name in SETS)] for m in OTHERS]
    return table(["points", *SETS], rows)


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
        high, low = accuracy(results, cell, RELEASED), accuracy(results, cell, GIN)
        last = last_epoch(results, cell)
        if high and low and last:
            gaps["released"].append(high.mean - low.mean)
            gaps["chosen"].append(low.mean - last.mean)
    return gaps


def shortfalls(results: Results, statistic: str, against_best: bool) -> dict[str, float]:
    """How many points G²N² is below the best other GNN, or below the paper's G²N²."""
    published, points = cited("tu"), {}
    for name in SETS:
        value = accuracy(results, f"{name}/G2N2", statistic)
        _, best = published.best(name, NOT_OTHER_GNNS)
        bar = best if against_best else published.rows["G²N²"][name].bar
        if value:
            points[name] = bar - round(value.mean, 1)
    return points
