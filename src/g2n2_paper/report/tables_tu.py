"""Tables of Q3: TU."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from statistics import fmean, pstdev, stdev

import pandas as pd

from ..q3 import (
    DEGREE,
    EPOCHS,
    GIN,
    MODELS,
    RELEASED,
    SETS,
    STATISTICS,
    VARIANTS,
    accuracy_key,
    deviation_key,
)
from .cited import KERNELS, cited
from .frame import Results, Value
from .numbers import EMPTY, Notes, TableEntry, bold, entry, fixed, minus

IMDB = tuple(name for name, settings in SETS.items() if settings.options == DEGREE)
OTHERS = tuple(model for model in MODELS if model != "G2N2")
STUDENT_T = 2.262
"""Two-sided 5 % quantile of Student's t with nine degrees of freedom."""


def label(model: str) -> str:
    return "G²N²" if model == "G2N2" else model


def accuracy(results: Results, cell: str, statistic: str) -> Value | None:
    """A statistic of a cell; its deviation is over folds."""
    mean = results.value("q3", cell, accuracy_key(statistic))
    spread = results.value("q3", cell, deviation_key(statistic))
    return Value(mean.mean, spread.mean, mean.seeds) if mean and spread else None


def last_epoch(results: Results, cell: str) -> Value | None:
    """The accuracy after the last epoch, which no test graph has chosen."""
    record = results.first("q3", cell)
    if record is None:
        return None
    last = [curve[-1] for curve in record.detail["test curves"]]
    return Value(fmean(last), pstdev(last), 1)


def _row(results: Results, model: str, statistic: str) -> list[TableEntry]:
    return [entry(accuracy(results, f"{name}/{model}", statistic), fixed(1)) for name in SETS]


def q3_short(results: Results) -> pd.DataFrame:
    """G²N² beside the paper's number and its best other GNN, set by set."""
    table = cited("tu")
    rows = []
    for name in SETS:
        best, _ = table.best(name, without=(*KERNELS, "G²N²"))
        ours = [entry(accuracy(results, f"{name}/G2N2", s), fixed(1)).text for s in STATISTICS]
        other = f"{table.rows[best][name].text} ({best})"
        rows.append((name, other, table.rows["G²N²"][name].text, *ours))
    ours_by = [f"ours, {statistic}" for statistic in STATISTICS]
    return pd.DataFrame(rows, columns=["%", "best other GNN, cited", "G²N², cited", *ours_by])


def q3_all(results: Results) -> pd.DataFrame:
    """All published rows, and ours by GIN's protocol."""
    table, notes = cited("tu"), Notes()
    rows = [
        (f"{name}, cited", [notes.entry(cells[column]) for column in SETS])
        for name, cells in table.rows.items()
    ]
    rows += [(f"{label(model)}, ours", _row(results, model, GIN)) for model in MODELS]
    larger = cited("tu-larger-class").rows["the larger class"]
    rows.append(("always the larger class", [TableEntry(larger[name].text) for name in SETS]))
    columns = [bold(column, max) for column in zip(*(entries for _, entries in rows), strict=True)]
    frame = pd.DataFrame(dict(zip(SETS, columns, strict=True)))
    frame.insert(0, "%", [name for name, _ in rows])
    rank, gnns = (cited("tu-rank").rows[name] for name in ("all methods", "GNNs"))
    ranks = [f"{rank[name].text} ({gnns[name].text})" for name in SETS]
    frame.loc[len(frame)] = ["rank of G²N² among all (among GNNs), cited", *ranks]
    return frame


def q3_statistics(results: Results, models: Iterable[str] = MODELS) -> pd.DataFrame:
    """Ours by each statistic."""
    rows = [
        (f"{label(model)}, {statistic}", *(e.text for e in _row(results, model, statistic)))
        for model in models
        for statistic in STATISTICS
    ]
    return pd.DataFrame(rows, columns=["%", *SETS])


def q3_g2n2(results: Results) -> pd.DataFrame:
    """G²N² by each statistic, above the paper's row."""
    frame = q3_statistics(results, ("G2N2",))
    row = cited("tu").rows["G²N²"]
    said = f"G²N², cited; {RELEASED}, if the released script made it"
    frame.loc[len(frame)] = [said, *(row[name].text for name in SETS)]
    return frame


def q3_ranks() -> pd.DataFrame:
    """The rank of G²N² as printed and as counted from the printed rows."""
    table, printed = cited("tu"), cited("tu-rank")
    rows = [
        (f"{name}, printed", *(c.text for c in cells.values()))
        for name, cells in printed.rows.items()
    ]
    for name, without in (("all methods", ()), ("GNNs", KERNELS)):
        ranks = [table.rank(table.rows["G²N²"][c].bar, c, without) for c in table.columns]
        rows.append((f"{name}, counted", *map(str, ranks)))
    return pd.DataFrame(rows, columns=["rank among", *table.columns])


def q3_variants(results: Results, sets: Iterable[str] = SETS) -> pd.DataFrame:
    """Epochs and input of the GIN code: what the plan gives, the variant, the published row."""
    rows: dict[str, list[str]] = {}
    for variant in VARIANTS:
        name, model = variant.set_name, variant.model
        if name not in sets or not results.of("q3", variant.name):
            continue
        for cell, epochs, classes in (
            (f"{name}/{model}", EPOCHS, False),
            (variant.name, variant.epochs, variant.one_hot),
        ):
            said = f"{label(model)} on {name}, {epochs} epochs"
            said += f", degrees as {'classes' if classes else 'a number'}" if name in IMDB else ""
            values = [last_epoch(results, cell), *(accuracy(results, cell, s) for s in STATISTICS)]
            rows[said] = [entry(value, fixed(1)).text for value in values]
        rows[f"{model} on {name}, cited"] = ["", cited("tu").rows[model][name].text, "", ""]
    frame = pd.DataFrame(list(rows.values()), columns=["last epoch", *STATISTICS])
    frame.insert(0, "%", list(rows))
    return frame


def differences(results: Results) -> dict[tuple[str, str], tuple[float, float]]:
    """G²N² less another network on the same test folds, nested: mean and standard error.

    The ± of a mean over folds is far larger than differences of networks, which are tested on the
    same folds; so a difference is taken on each fold. Training folds overlap, so the variance of
    the mean over n folds is s²(1/n + 1/(n − 1)), not s²/n (Nadeau and Bengio 2003).
    """
    table = {}
    for name in SETS:
        for model in OTHERS:
            ours, other = (results.first("q3", f"{name}/{m}") for m in ("G2N2", model))
            if ours is None or other is None or ours.data != other.data:
                continue
            pairs = zip(ours.detail["nested"], other.detail["nested"], strict=True)
            each = [left - right for left, right in pairs]
            error = stdev(each) * sqrt(1 / len(each) + 1 / (len(each) - 1))
            table[name, model] = (fmean(each), error)
    return table


def q3_paired(results: Results) -> pd.DataFrame:
    """The differences, fold by fold."""
    found = differences(results)

    def text(name: str, model: str) -> str:
        if (name, model) not in found:
            return EMPTY
        mean, error = found[name, model]
        return minus(f"{mean:+.1f} ± {error:.1f}")

    rows = [(f"G²N² less {m}", *(text(name, m) for name in SETS)) for m in OTHERS]
    return pd.DataFrame(rows, columns=["points", *SETS])


def clear_differences(results: Results) -> dict[str, list[str]]:
    """Sets on which G²N² is clearly above or below others: `NCI1 above` to networks."""
    sides: dict[str, list[str]] = {}
    for (name, model), (mean, error) in differences(results).items():
        if abs(mean) > STUDENT_T * error:
            sides.setdefault(f"{name} {'above' if mean > 0 else 'below'}", []).append(model)
    return sides


def rank_of_ours(results: Results, model: str, statistic: str) -> list[int]:
    """The rank one of ours would have among the other published rows, set by set, as printed."""
    ranks = []
    for name in SETS:
        value = accuracy(results, f"{name}/{model}", statistic)
        ranks.append(cited("tu").rank(round(value.mean, 1), name, ("G²N²",)) if value else 0)
    return ranks


def statistic_gaps(results: Results) -> dict[str, list[float]]:
    """For all cells, points from GIN's protocol up to the best epoch of each fold, and to GIN's
    protocol from the last epoch."""
    gaps: dict[str, list[float]] = {"released": [], "chosen": []}
    for cell in (f"{name}/{model}" for name in SETS for model in MODELS):
        high, low = accuracy(results, cell, RELEASED), accuracy(results, cell, GIN)
        last = last_epoch(results, cell)
        if high and low and last:
            gaps["released"].append(high.mean - low.mean)
            gaps["chosen"].append(low.mean - last.mean)
    return gaps


def shortfalls(results: Results, statistic: str, against_best: bool) -> dict[str, float]:
    """How many points G²N² is below the best other GNN (GIN's protocol) or the paper's G²N²."""
    table, points = cited("tu"), {}
    for name in SETS:
        value = accuracy(results, f"{name}/G2N2", statistic)
        bar = table.best(name, without=(*KERNELS, "G²N²"))[1]
        if not against_best:
            bar = table.rows["G²N²"][name].bar
        if value:
            points[name] = bar - round(value.mean, 1)
    return points
