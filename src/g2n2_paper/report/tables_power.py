"""Tables of the trained power: BREC, sets of classes, counting; networks with marks and without."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ..beyond import BEYOND_COUNTS
from ..brec import BEYOND, TRAINED
from ..contenders import BOUND, CONTENDERS, MARKED, PAIRS, PPGN_ALIKE, SEPARATED, Contender
from ..graph8c import MERGED_AT_RANDOM
from ..power import ACCURACY, COUNTS, DEVIATION, EPOCHS, MERGED, NORMALISED, OTHER
from ..written_counts import AFTER, BEFORE, WRITTEN
from .cited import cited
from .frame import Results
from .numbers import EMPTY, Notes, TableEntry, Value, entry, fixed, table, whole

CATEGORIES = {
    "basic (60)": ("Basic",),
    "regular (140)": ("Regular", "4-Vertex_Condition", "Distance_Regular"),
    "extension (100)": ("Extension",),
    "CFI (100)": ("CFI",),
}
"""Columns of the published table to categories of the suite."""
BESIDE_MARKED = ("PPGN", "3-WL, the test", "I²-GNN", "N²-GNN")
COUNTED = CONTENDERS["G2N2-3"], MARKED["G2N2Σ-3"]
ON_ZINC = CONTENDERS["G2N2-3"], MARKED["G2N2Σ-2+1"]
ZINC_ERROR = "test MAE penalised_logP"
ROWS: list[Contender] = []
"""Networks of the sets of classes and of counting."""
for _contender in CONTENDERS.values():
    ROWS += [_contender, PPGN_ALIKE] if _contender.network == "PPGN" else [_contender]


def label(contender: Contender) -> str:
    """`G²N², 8 layers`; `2 + 1 layers` with two of them before the marks."""
    name = "G²N²" if contender.network == "G2N2" else contender.network
    name += ", blocks of G²N²" if contender is PPGN_ALIKE else ""
    before = f"{trunk} + " if (trunk := contender.options.get("trunk")) else ""
    return f"{name}, {before}{contender.layers} layers"


def brec(results: Results) -> pd.DataFrame:
    """Pairs of BREC told apart after training, beside published rows."""
    published, notes = cited("brec"), Notes()
    rows: list[list[object]] = []
    for name, numbers in published.rows.items():
        test = name == "3-WL, the test"  # no network, so it is not compared
        entries = [n.text if test else notes.entry(n) for n in numbers.values()]
        rows.append([f"{name}, cited", *entries])
    rows += [_brec_counts(results, contender) for contender in _on_brec(results)]
    return table(["network", *published.columns], rows, best_in_column=max)


def brec_marked(results: Results) -> pd.DataFrame:
    """The same for networks with marks, with the pairs that were judged."""
    published, notes = cited("brec"), Notes()
    rows: list[list[object]] = [
        [f"{name}, cited", *(notes.entry(n) for n in published.rows[name].values()), "", "", ""]
        for name in BESIDE_MARKED
    ]
    for contender in (CONTENDERS["G2N2-8"], *MARKED.values()):
        cell = f"brec/{contender.name}"
        if record := results.first("power", cell):
            rest = [results.entry("power", cell, metric, whole) for metric in (BEYOND, BOUND)]
            rows.append([*_brec_counts(results, contender), whole(record.done), *rest])
    return table(["network", *published.columns, "judged", "beyond its bound", "exact bound"], rows)


def _on_brec(results: Results) -> list[Contender]:
    """Networks with a record on BREC."""
    return [c for c in ROWS if results.first("power", f"brec/{c.name}")]


def _brec_counts(results: Results, contender: Contender) -> list[object]:
    """A row of pairs told apart after training, by category and in all."""
    cell = f"brec/{contender.name}"
    counts = [
        sum(v.mean for p in parts if (v := results.value("power", cell, f"{TRAINED}, {p}")))
        for parts in CATEGORIES.values()
    ]
    total = results.entry("power", cell, TRAINED, whole)
    return [f"{label(contender)}, ours", *(TableEntry(whole(n), n) for n in counts), total]


def brec_exact(results: Results, columns: Mapping[str, str], work: bool = True) -> pd.DataFrame:
    """BREC after training beside the exact power of the grammar: header to metric."""
    rows = []
    for contender in _on_brec(results):
        cell = f"brec/{contender.name}"
        texts = [results.entry("power", cell, metric, whole).text for metric in columns.values()]
        if not contender.grammar:  # no words to count
            texts = [text.replace(EMPTY, "") for text in texts]
        rows.append([label(contender), *texts, *([results.work("power", cell)] if work else [])])
    return table(["network", *columns, *(["seeds × work"] if work else [])], rows)


def classes(results: Results) -> pd.DataFrame:
    """Accuracy on sets of classes with exact pairs beside it, and pairs of graph8c merged."""
    rows: list[list[object]] = []
    for contender in ROWS:
        texts: list[object] = []
        for name in EPOCHS:
            cell = f"{name}/{contender.name}"
            texts += [entry(_accuracy(results, cell), fixed(1)), _exact_pairs(results, cell)]
        cell = f"graph8c/{contender.name}"
        random = results.entry("power", cell, MERGED_AT_RANDOM, whole).text
        words, pairs = (results.value("power", cell, metric) for metric in (SEPARATED, PAIRS))
        by_words = whole(pairs.mean - words.mean) if words and pairs else ""
        rows.append([label(contender), *texts, random, by_words if random != EMPTY else EMPTY])
    sets = [f"{n.upper()}, {what}" for n in EPOCHS for what in ("accuracy (%)", "exact pairs")]
    tail = ("graph8c, merged by random weights", "graph8c, merged by words")
    return table(["network", *sets, *tail], rows)


def _accuracy(results: Results, cell: str) -> Value | None:
    """The accuracy; its deviation is over folds, which one fold does not have."""
    mean, deviation = (results.value("power", cell, m) for m in (ACCURACY, DEVIATION))
    record = results.first("power", cell)
    if record is None or mean is None or deviation is None:
        return None
    return Value(mean.mean, deviation.mean if record.done > 1 else None, 1)


def _exact_pairs(results: Results, cell: str) -> str:
    """Pairs the words tell apart, or the bound if there is no grammar, of all."""
    words, bound, pairs = (results.value("power", cell, m) for m in (SEPARATED, BOUND, PAIRS))
    separated = words or bound
    if pairs is None or separated is None:
        return EMPTY
    return f"{'' if words else 'at most '}{separated.mean:,.0f} of {pairs.mean:,.0f}"


def counting(results: Results) -> pd.DataFrame:
    """Error of each count, and pairs the words merge though the count differs."""
    cells = [f"counting/joint/{contender.name}" for contender in ROWS]
    rows: list[list[object]] = []
    for count in COUNTS:
        name = count.replace("_", "-")
        errors = [results.entry("power", cell, NORMALISED.format(count)) for cell in cells]
        rows.append([f"{name}, all six at once", *errors])
        exact = [_exact_count(results, contender, count) for contender in ROWS]
        rows.append([f"{name}, exact: pairs it differs in", *exact])
    rows.append(["all six at once: parameters", *results.sizes("power", cells)])
    works = [results.work("power", cell) for cell in cells]
    rows.append(["all six at once: seeds × work", *works])
    return table(["count", *map(label, ROWS)], rows, best_in_row=min)


def _exact_count(results: Results, contender: Contender, count: str) -> str:
    cell = f"counting/exact/{contender.name}"
    differ, merged = (results.value("power", cell, m) for m in (OTHER.format(count), MERGED))
    if contender.grammar is None:
        return ""
    return f"{differ.mean:,.0f} of {merged.mean:,.0f}" if differ and merged else EMPTY


def counting_marked(results: Results) -> pd.DataFrame:
    """Test MAE of each count over its deviation, without marks and with one."""
    cells = {label(contender): f"counting/beyond/{contender.name}" for contender in COUNTED}
    rows = {count.replace("_", " "): NORMALISED.format(count) for count in BEYOND_COUNTS}
    return results.grid("power", "count", rows, cells, "{column}", "{row}", sizes="parameters")


def counting_written(results: Results) -> pd.DataFrame:
    """The same of counts that were written into the weights, before and after training."""
    rows = []
    for count, name in WRITTEN.items():
        cell = f"counting/written/{count}"
        errors = [results.entry("power", cell, m.format(count)) for m in (BEFORE, AFTER)]
        slope = results.entry("power", cell, "gradient")
        sizes = results.sizes("power", [cell])
        rows.append([name, *errors, slope, *sizes, results.work("power", cell)])
    headers = ["count", "written", "after training", "largest gradient", "parameters"]
    return table([*headers, "seeds × work"], rows)


def zinc_marked(results: Results) -> pd.DataFrame:
    """Test MAE on ZINC, without marks and with one."""
    rows: list[list[object]] = []
    for contender in ON_ZINC:
        cell = f"zinc/{contender.name}"
        error = results.entry("power", cell, ZINC_ERROR)
        rows.append([label(contender), error, *results.sizes("power", [cell])])
        rows[-1].append(results.work("power", cell))
    return table(["network", "test MAE", "parameters", "seeds × work"], rows, best_in_column=min)


def classes_marked(results: Results) -> pd.DataFrame:
    """Accuracy on sets of classes after training with one mark."""
    networks = {"csl": "G2N2Σ-3", "exp": "G2N2Σ-2+1", "sr25": "G2N2Σ-3"}
    rows: list[list[object]] = []
    for name, network in networks.items():
        cell = f"{name}/{network}"
        entries = results.entry("power", cell, ACCURACY, fixed(1)), results.work("power", cell)
        rows.append([name.upper(), label(MARKED[network]), *entries])
    return table(["set", "network", "accuracy (%)", "seeds × folds"], rows)
