"""Power, trained: what networks tell apart and count, beside what is exactly possible."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from ..demonstration.blocks import Block, Table, Text
from ..experiments.trained import brec_cells
from ..experiments.trained.brec_cells import ALL_PAIRS, BEYOND, TRAINED
from ..experiments.trained.class_cells import ACCURACY, DEVIATION
from ..experiments.trained.contenders import ALIKE, CONTENDERS, Contender
from ..experiments.trained.counting_cells import COUNTS, normalised_key
from ..experiments.trained.counting_exact import MERGED, other_key
from ..experiments.trained.exact import BOUND, PAIRS, SEPARATED
from ..experiments.trained.graph8c_cells import MERGED as MERGED_AT_RANDOM
from .cited import cited
from .figures.power import drawing
from .numbers import (
    EMPTY,
    OPTIONAL,
    PARTIAL,
    Entry,
    Notes,
    Row,
    best_of_columns,
    best_of_rows,
    entry,
    fixed,
    mark,
    mean_entry,
    plain,
)
from .section import Aim, Section, nothing_yet, optional_cells
from .standings import FULL, Measured, Results, Standing

Known = Mapping[str, Standing]

WANTED = 258
TRAINED_ALIKE = {
    one.name: one
    for contender in CONTENDERS.values()
    for one in ((contender, ALIKE) if contender.name == ALIKE.network else (contender,))
}
"""Those of the sets of classes and of counting, which have one recipe."""
CATEGORIES = {
    "basic (60)": ("Basic",),
    "regular (140)": ("Regular", "4-Vertex_Condition", "Distance_Regular"),
    "extension (100)": ("Extension",),
    "CFI (100)": ("CFI",),
}
"""Columns of the published table to categories of the suite."""
TEST = "3-WL, the test"


def section(results: Results) -> Section:
    """What there is of the trained power."""
    known = results.of("power")
    blocks: list[Block] = [] if known else [nothing_yet("power")]
    notes = Notes()
    blocks += [
        Text("**BREC**, pairs told apart after training, by its released test."),
        _brec(known, notes),
    ]
    shown = (
        "Ours are shown where every pair within the exact bound is judged; ◐ where some of the "
        "others, which no weights tell apart, are not yet, or settings have changed since."
    )
    blocks += [Text(f"Cited: {cited('brec').citation}. {notes} {shown}")]
    blocks += [Text("**BREC, realised beside exact.**"), _beside(known), Text(_WORDS)]
    blocks += [Text("**Sets of classes, and pairs of graph8c.**"), *_sets(known)]
    blocks += [
        Text(
            "**Counting**, test MAE over the deviation of each count; and exactly, of the pairs of "
            "connected graphs of eight nodes that the words tell alike at that depth, those in "
            "which the count differs: where there are none, the words determine the count there."
        ),
        _counting(known),
        optional_cells("power", known),
    ]
    judged = any(f"brec/{name}" in known for name in CONTENDERS)
    return Section(
        "power",
        "Power, trained",
        tuple(blocks),
        (_aim(known),),
        drawing(known, {c.name: said(c) for c in CONTENDERS.values()}) if judged else None,
        known.seen,
    )


_WORDS = (
    "Exact, by words: what the words of the grammar tell apart with as many layers and the "
    "network's read-out, without functions; functions between layers may add to it. Exact bound: "
    "what 3-WL (1-WL for GIN) tells apart, which no weights exceed; what a test calls separated "
    "beyond it is an error of the test, made by Hotelling's T² at its level of 5 % for each pair "
    "and hardly by the released threshold of 72.34. A value that is not finite counts as merged. "
    "GIN's words are those of GNNML1; GNNML3 reads supports made of eigenvectors, whose words are "
    "not decided exactly, so it has the bound alone. Clear of noise: on fresh relabelings, a "
    "difference of ten times their whole spread."
)


def said(contender: Contender) -> str:
    name = "G²N²" if contender.network == "G2N2" else contender.network
    if contender is ALIKE:
        name += ", blocks of G²N²"
    return f"{name}, {contender.layers} layers"


def _brec(known: Known, notes: Notes) -> Table:
    table = cited("brec")
    rows: list[Row] = []
    for name, cells in table.rows.items():
        compared = name != TEST
        entries = [notes.entry(c) if compared else Entry(c.text) for c in cells.values()]
        rows.append((f"{name}, cited", entries))
    for contender in CONTENDERS.values():
        standing = _whole(known, contender)
        entries = [_sum(standing, parts) for parts in CATEGORIES.values()]
        total = mean_entry(standing, TRAINED, _whole_number)
        rows.append((f"{said(contender)}, ours", [*entries, total]))
    return best_of_columns(("network", *table.columns), rows, "higher")


_whole_number = fixed(0)


def _whole(known: Known, contender: Contender) -> Standing | None:
    """A contender's standing where every pair of BREC that can be told apart has been judged."""
    standing = known.get(f"brec/{contender.name}")
    if standing is None or set(standing.values(PAIRS)) != {ALL_PAIRS}:
        return None
    within = set(standing.values(brec_cells.WITHIN))
    whole = within == set(standing.values(BOUND)) or not standing.stopped
    return standing if whole and standing.budget == FULL else None


def _sum(standing: Standing | None, categories: tuple[str, ...]) -> Entry:
    if standing is None:
        return Entry(EMPTY)
    found = [standing.mean(f"{TRAINED}, {name}") for name in categories]
    total = sum(one.value for one in found if one is not None)
    return Entry(_whole_number(total) + mark(standing), total)


_MEASURED = {
    "released test": TRAINED,
    "Hotelling's T²": brec_cells.HOTELLING,
    "clear of noise": brec_cells.CLEAR,
    "beyond the bound, released test": BEYOND,
    "beyond it, Hotelling's T²": brec_cells.BEYOND_HOTELLING,
    "judged within it": brec_cells.WITHIN,
    "unreliable": brec_cells.UNRELIABLE,
    "unreliable, Hotelling's T²": brec_cells.UNRELIABLE_HOTELLING,
    "not finite": brec_cells.NOT_FINITE,
}
_EXACT = {"exact, by words": SEPARATED, "exact bound": BOUND}


def _beside(known: Known) -> Table:
    rows: list[Row] = []
    for contender in CONTENDERS.values():
        standing = known.get(f"brec/{contender.name}")
        measured = [mean_entry(standing, metric, _whole_number) for metric in _MEASURED.values()]
        exact = [_exact(standing, metric) for metric in _EXACT.values()]
        work = Entry(standing.work if standing else EMPTY)
        rows.append((said(contender), [*measured, *exact, work]))
    return plain(("network", *_MEASURED, *_EXACT, "seeds × work"), rows)


def _exact(standing: Standing | None, metric: str) -> Entry:
    """A number no training changes, and of how many pairs where not of all.

    A run that was stopped has it whole; one of a smaller budget or earlier settings has not.
    """
    found = standing.mean(metric) if standing else None
    pairs = standing.mean(PAIRS) if standing else None
    if standing is None or pairs is None:
        return Entry(EMPTY)
    if found is None:  # no grammar, so no words
        return Entry("")
    of = "" if pairs.value == ALL_PAIRS else f" of {pairs.value:.0f}"
    other = PARTIAL if standing.outdated or standing.budget != FULL else ""
    return Entry(f"{found.value:.0f}{of}{other}")


def _sets(known: Known) -> tuple[Table, Text]:
    headers = ["network"]
    for name in ("CSL", "EXP", "SR25"):
        headers += [f"{name}, accuracy (%)", f"{name}, exact pairs"]
    headers += ["graph8c, merged by random weights", "graph8c, merged by words", "work"]
    rows: list[Row] = []
    for contender in TRAINED_ALIKE.values():
        entries: list[Entry] = []
        works: dict[str, None] = {}
        for name in ("csl", "exp", "sr25"):
            standing = known.get(f"{name}/{contender.name}")
            entries += [entry(_accuracy(standing), fixed(1)), _pairs(standing)]
            if standing:
                epochs = max(record.config.get("epochs", 0) for record in standing.records)
                works[f"{name} {standing.work} of {epochs} epochs"] = None
        graph8c = known.get(f"graph8c/{contender.name}")
        random = mean_entry(graph8c, MERGED_AT_RANDOM, _whole_number)
        nothing = [Entry(OPTIONAL), Entry(OPTIONAL)]
        entries += nothing if contender is ALIKE else [random, _merged(graph8c)]
        rows.append((said(contender), [*entries, Entry("; ".join(works) or EMPTY)]))
    exp, merged = cited("exp").at("GNNML3", "EXP"), cited("merged").rows["GNNML3"]
    published = (
        f"Cited for GNNML3: accuracy on EXP {exp.text} %; {merged['EXP'].text} pairs of EXP and "
        f"{merged['graph8c'].text} of graph8c merged ({cited('exp').citation}). ± is over folds. "
        "A network that 1-WL bounds cannot pass 10 % on CSL, nor 50 % on EXP but by chance (its "
        "graphs that look alike stand in other folds); none that 3-WL bounds can pass 1 in 15 on "
        "SR25."
    )
    return plain(headers, rows), Text(published)


def _accuracy(standing: Standing | None) -> Measured | None:
    """The accuracy; ± is the deviation over folds, which one fold has not."""
    found = standing.mean(ACCURACY) if standing else None
    if standing is None or found is None:
        return None
    deviations = standing.values(DEVIATION)
    folds = min(record.done for record in standing.records)
    spread = fmean(deviations) if deviations and folds > 1 else None
    return Measured(found.value, spread, found.seeds, found.partial)


def _pairs(standing: Standing | None) -> Entry:
    """Pairs the words tell apart, or the bound where there is no grammar, of all."""
    if standing is None:
        return Entry(EMPTY)
    words, bound = standing.mean(SEPARATED), standing.mean(BOUND)
    pairs, known = standing.mean(PAIRS), words or bound
    if pairs is None or known is None:
        return Entry(EMPTY)
    upto = "" if words else "at most "
    return Entry(f"{upto}{known.value:,.0f} of {pairs.value:,.0f}{mark(standing)}")


def _merged(standing: Standing | None) -> Entry:
    words = standing.mean(SEPARATED) if standing else None
    pairs = standing.mean(PAIRS) if standing else None
    if words is None or pairs is None:
        return Entry(EMPTY if standing is None else "")
    return Entry(f"{pairs.value - words.value:,.0f}{mark(words)}")


def _counting(known: Known) -> Table:
    rows: list[Row] = []
    for count in COUNTS:
        said_count, metric = count.replace("_", "-"), normalised_key(count)
        for how, cell, absent in (("all six at once", "joint", EMPTY), ("alone", count, OPTIONAL)):
            standings = [known.get(f"counting/{cell}/{name}") for name in TRAINED_ALIKE]
            if cell == "joint" or any(standings):
                entries = [mean_entry(one, metric, absent=absent) for one in standings]
                rows.append((f"{said_count}, {how}", entries))
        undecided = [
            _exact_count(known.get(f"counting/exact/{one.name}"), count)
            if one.grammar
            else Entry("")
            for one in TRAINED_ALIKE.values()
        ]
        rows.append((f"{said_count}, exact: pairs it differs in", undecided))
    works = (known.get(f"counting/joint/{name}") for name in TRAINED_ALIKE)
    sizes = [
        mean_entry(known.get(f"counting/joint/{n}"), "parameters", _whole_number)
        for n in TRAINED_ALIKE
    ]
    rows.append(("all six at once: parameters", [Entry(size.text) for size in sizes]))
    rows.append(("all six at once: seeds × work", [Entry(w.work if w else EMPTY) for w in works]))
    return best_of_rows(("count", *map(said, TRAINED_ALIKE.values())), rows, "lower")


def _exact_count(standing: Standing | None, count: str) -> Entry:
    """Pairs told alike that differ in a count, of all told alike; no number to be bold."""
    differ = standing.mean(other_key(count)) if standing else None
    alike = standing.mean(MERGED) if standing else None
    if differ is None or alike is None:
        return Entry(EMPTY)
    return Entry(f"{differ.value:,.0f} of {alike.value:,.0f}{mark(differ)}")


def _aim(known: Known) -> Aim:
    published = cited("brec").at("PPGN", "total (400)").text
    text = (
        f"at least {WANTED} of BREC's {ALL_PAIRS} pairs trained (PPGN as published: {published}), "
        "none beyond 3-WL counted"
    )
    found = []
    for contender in CONTENDERS.values():
        standing = known.get(f"brec/{contender.name}")
        if contender.network != "G2N2" or standing is None:
            continue
        apart, beyond, pairs = (standing.mean(m) for m in (TRAINED, BEYOND, PAIRS))
        if apart and pairs and pairs.value == ALL_PAIRS:
            count = apart.value - (beyond.value if beyond else 0.0)
            found.append((count, contender, standing))
    if not found:
        return Aim(text, EMPTY, None)
    # A whole run that suffices says more than a partial one with a larger count.
    count, contender, standing = max(
        found, key=lambda row: (row[0] >= WANTED and not row[2].partial, row[0])
    )
    met = True if count >= WANTED else (None if standing.partial else False)
    return Aim(text, f"{said(contender)}: {count:.0f}{mark(standing)}", met, standing.partial)
