"""Tables of the trained power: BREC, sets of classes, counting."""

from __future__ import annotations

import pandas as pd

from ..brec import (
    BEYOND,
    BEYOND_HOTELLING,
    CLEAR,
    HOTELLING,
    NOT_FINITE,
    TRAINED,
    UNRELIABLE,
    UNRELIABLE_HOTELLING,
    WITHIN,
)
from ..graph8c import MERGED_AT_RANDOM
from ..power import ACCURACY, COUNTS, DEVIATION, EPOCHS, MERGED, normalised_key, other_key
from ..suites import BOUND, CONTENDERS, PAIRS, PPGN_ALIKE, SEPARATED, Contender
from .cited import cited
from .frame import Results, Value
from .numbers import EMPTY, Notes, TableEntry, bold, entry, fixed, whole

CATEGORIES = {
    "basic (60)": ("Basic",),
    "regular (140)": ("Regular", "4-Vertex_Condition", "Distance_Regular"),
    "extension (100)": ("Extension",),
    "CFI (100)": ("CFI",),
}
"""Columns of the published table to categories of the suite."""
MEASURED = {
    "released test": TRAINED,
    "Hotelling's T²": HOTELLING,
    "clear of noise": CLEAR,
    "beyond the bound, released test": BEYOND,
    "beyond it, Hotelling's T²": BEYOND_HOTELLING,
    "judged within it": WITHIN,
    "unreliable": UNRELIABLE,
    "unreliable, Hotelling's T²": UNRELIABLE_HOTELLING,
    "not finite": NOT_FINITE,
    "exact, by words": SEPARATED,
    "exact bound": BOUND,
}
ROWS: tuple[Contender, ...] = tuple(
    one
    for contender in CONTENDERS.values()
    for one in ((contender, PPGN_ALIKE) if contender.network == "PPGN" else (contender,))
)
"""Networks of the sets of classes and of counting."""


def label(contender: Contender) -> str:
    name = "G²N²" if contender.network == "G2N2" else contender.network
    name += ", blocks of G²N²" if contender is PPGN_ALIKE else ""
    return f"{name}, {contender.layers} layers"


def brec(results: Results) -> pd.DataFrame:
    """Pairs of BREC told apart after training, beside published rows."""
    table, notes = cited("brec"), Notes()
    rows = []
    for name, cells in table.rows.items():
        test = name == "3-WL, the test"  # no network, so it is not compared
        entries = [TableEntry(c.text) if test else notes.entry(c) for c in cells.values()]
        rows.append((f"{name}, cited", entries))
    for contender in CONTENDERS.values():
        cell = f"brec/{contender.name}"
        counts = [
            sum(v.mean for p in parts if (v := results.value("power", cell, f"{TRAINED}, {p}")))
            for parts in CATEGORIES.values()
        ]
        total = entry(results.value("power", cell, TRAINED), whole)
        rows.append(
            (f"{label(contender)}, ours", [*(TableEntry(whole(n), n) for n in counts), total])
        )
    columns = [bold(column, max) for column in zip(*(entries for _, entries in rows), strict=True)]
    frame = pd.DataFrame(dict(zip(table.columns, columns, strict=True)))
    frame.insert(0, "network", [name for name, _ in rows])
    return frame


def brec_exact(results: Results, columns: tuple[str, ...] = tuple(MEASURED)) -> pd.DataFrame:
    """BREC after training, beside the exact power of the grammar."""
    rows = []
    for contender in CONTENDERS.values():
        cell = f"brec/{contender.name}"
        values = [results.value("power", cell, MEASURED[column]) for column in columns]
        # Without a grammar there are no words to count.
        texts = [entry(v, whole).text if v or contender.grammar else "" for v in values]
        rows.append((label(contender), *texts, results.work("power", cell)))
    return pd.DataFrame(rows, columns=["network", *columns, "seeds × work"])


def brec_short(results: Results) -> pd.DataFrame:
    """Pairs of BREC told apart by training, by words, and at most."""
    columns = ("released test", "exact, by words", "exact bound")
    frame = brec_exact(results, columns).drop(columns="seeds × work")
    names = ("after training", "by the grammar's words", "by any weights, at most")
    frame.columns = pd.Index(["network", *names])
    return frame


def classes(results: Results) -> pd.DataFrame:
    """Accuracy on sets of classes with exact pairs beside it, and pairs of graph8c merged."""
    rows = []
    for contender in ROWS:
        texts = []
        for name in EPOCHS:
            cell = f"{name}/{contender.name}"
            texts += [entry(_accuracy(results, cell), fixed(1)).text, _exact_pairs(results, cell)]
        cell = f"graph8c/{contender.name}"
        random = entry(results.value("power", cell, MERGED_AT_RANDOM), whole).text
        words, pairs = (results.value("power", cell, metric) for metric in (SEPARATED, PAIRS))
        by_words = whole(pairs.mean - words.mean) if words and pairs else ""
        rows.append((label(contender), *texts, random, by_words if random != EMPTY else EMPTY))
    sets = [f"{n.upper()}, {what}" for n in EPOCHS for what in ("accuracy (%)", "exact pairs")]
    tail = ("graph8c, merged by random weights", "graph8c, merged by words")
    return pd.DataFrame(rows, columns=["network", *sets, *tail])


def _accuracy(results: Results, cell: str) -> Value | None:
    """The accuracy; its deviation is over folds, which one fold does not have."""
    record = results.first("power", cell)
    if record is None:
        return None
    mean, deviation = record.metrics[ACCURACY], record.metrics[DEVIATION]
    assert mean is not None
    return Value(mean, deviation if record.done > 1 else None, 1)


def _exact_pairs(results: Results, cell: str) -> str:
    """Pairs the words tell apart, or the bound if there is no grammar, of all."""
    words, bound, pairs = (results.value("power", cell, m) for m in (SEPARATED, BOUND, PAIRS))
    known = words or bound
    if pairs is None or known is None:
        return EMPTY
    return f"{'' if words else 'at most '}{known.mean:,.0f} of {pairs.mean:,.0f}"


def counting(results: Results) -> pd.DataFrame:
    """Error of each count, and pairs the words merge though the count differs."""
    cells = [f"counting/joint/{one.name}" for one in ROWS]
    rows = []
    for count in COUNTS:
        name = count.replace("_", "-")
        errors = [entry(results.value("power", cell, normalised_key(count))) for cell in cells]
        rows.append((f"{name}, all six at once", *bold(errors, min)))
        exact = [_exact_count(results, one, count) for one in ROWS]
        rows.append((f"{name}, exact: pairs it differs in", *exact))
    sizes = [entry(results.value("power", cell, "parameters"), whole).text for cell in cells]
    rows.append(("all six at once: parameters", *sizes))
    works = [results.work("power", cell) for cell in cells]
    rows.append(("all six at once: seeds × work", *works))
    return pd.DataFrame(rows, columns=["count", *map(label, ROWS)])


def _exact_count(results: Results, contender: Contender, count: str) -> str:
    cell = f"counting/exact/{contender.name}"
    differ, merged = (results.value("power", cell, m) for m in (other_key(count), MERGED))
    if contender.grammar is None:
        return ""
    return f"{differ.mean:,.0f} of {merged.mean:,.0f}" if differ and merged else EMPTY
