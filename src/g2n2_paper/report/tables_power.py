"""Tables of the trained power: BREC, sets of classes, counting."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from ..brec import TRAINED
from ..contenders import BOUND, CONTENDERS, PAIRS, PPGN_ALIKE, SEPARATED, Contender
from ..graph8c import MERGED_AT_RANDOM
from ..power import ACCURACY, COUNTS, DEVIATION, EPOCHS, MERGED, NORMALISED, OTHER
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
ROWS: list[Contender] = []
"""Networks of the sets of classes and of counting."""
for _contender in CONTENDERS.values():
    ROWS += [_contender, PPGN_ALIKE] if _contender.network == "PPGN" else [_contender]


def label(contender: Contender) -> str:
    name = "G²N²" if contender.network == "G2N2" else contender.network
    name += ", blocks of G²N²" if contender is PPGN_ALIKE else ""
    return f"{name}, {contender.layers} layers"


def brec(results: Results) -> pd.DataFrame:
    """Pairs of BREC told apart after training, beside published rows."""
    published, notes = cited("brec"), Notes()
    rows: list[list[object]] = []
    for name, numbers in published.rows.items():
        test = name == "3-WL, the test"  # no network, so it is not compared
        entries = [n.text if test else notes.entry(n) for n in numbers.values()]
        rows.append([f"{name}, cited", *entries])
    for contender in CONTENDERS.values():
        cell = f"brec/{contender.name}"
        counts = [
            sum(v.mean for p in parts if (v := results.value("power", cell, f"{TRAINED}, {p}")))
            for parts in CATEGORIES.values()
        ]
        total = results.entry("power", cell, TRAINED, whole)
        entries = [*(TableEntry(whole(count), count) for count in counts), total]
        rows.append([f"{label(contender)}, ours", *entries])
    return table(["network", *published.columns], rows, best_in_column=max)


def brec_exact(results: Results, columns: Mapping[str, str], work: bool = True) -> pd.DataFrame:
    """BREC after training beside the exact power of the grammar: header to metric."""
    rows = []
    for contender in CONTENDERS.values():
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
        by_words = by_words if random != EMPTY else EMPTY
        rows.append([label(contender), *texts, random, by_words])
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
    sizes = [results.entry("power", cell, "parameters", whole).text for cell in cells]
    rows.append(["all six at once: parameters", *sizes])
    works = [results.work("power", cell) for cell in cells]
    rows.append(["all six at once: seeds × work", *works])
    return table(["count", *map(label, ROWS)], rows, best_in_row=min)


def _exact_count(results: Results, contender: Contender, count: str) -> str:
    cell = f"counting/exact/{contender.name}"
    differ, merged = (results.value("power", cell, m) for m in (OTHER.format(count), MERGED))
    if contender.grammar is None:
        return ""
    return f"{differ.mean:,.0f} of {merged.mean:,.0f}" if differ and merged else EMPTY
