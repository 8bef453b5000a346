"""Q3: accuracies on TU by three statistics, each named, beside all published rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from statistics import fmean, pstdev

from ..demonstration.blocks import Block, Table, Text
from ..experiments.q3.cells import CURVES, NESTED_ACCURACIES
from ..experiments.q3.settings import LONGER, MODELS, PLANS, SETS, Variant
from ..experiments.q3.statistics import GIN, NESTED, RELEASED, accuracy_key, deviation_key
from .cited import KERNELS, cited
from .figures.q3 import drawing
from .numbers import EMPTY, Entry, Notes, Row, best_of_columns, entry, fixed, mark, plain
from .q3_paired import fold_by_fold
from .section import Aim, Section, nothing_yet, optional_cells
from .standings import FULL, Measured, Results, Standing

STATISTICS = (GIN, RELEASED, NESTED)
NONE = Entry("")
IMDB = ("IMDB-BINARY", "IMDB-MULTI")
"""Sets whose nodes have nothing but their degree."""
WANTED_SETS = 4

Known = Mapping[str, Standing]


def section(results: Results) -> Section:
    """What there is of Q3."""
    known = results.of("q3")
    blocks: list[Block] = [] if known else [nothing_yet("q3")]
    blocks += [
        Text(
            "**All published rows, and ours by GIN's protocol** (%, ± over folds), where all ten "
            "folds are there."
        ),
        *_all(known),
        *_would_rank(known),
    ]
    blocks += [
        Text(
            "**Ours by each statistic**, the same runs of folds but for the nested ones. A mean "
            "over fewer than ten folds compares with no other: folds differ by more than networks "
            "do, and one epoch fits few folds better than many."
        )
    ]
    blocks += [_statistics(known, MODELS), Text(f"{_gap(known)} {_reproduced(known)}".strip())]
    blocks += [*fold_by_fold(known), *_as_gin_has_it(known), optional_cells("q3", known)]
    for settings, withdrawn in results.withdrawn("q3"):
        blocks += [
            Text(f"**Given up** ({settings}): by GIN's protocol and nested."),
            _withdrawn(withdrawn),
        ]
    return Section(
        "q3",
        "Q3: classification on TU",
        tuple(blocks),
        (_aim(known),),
        drawing(_found(known)) if known else None,
        known.seen,
        {
            "q3-statistics": _beside_the_paper(known),
            "q3-ranks": (_ranks(),),
            "q3-input": (_variants(known, IMDB),),
        },
    )


def accuracy(known: Known, name: str, model: str, statistic: str) -> Measured | None:
    """A statistic of a cell; ± is the deviation over folds, partial means folds are missing.

    One fold has no deviation.
    """
    standing = known.get(f"{name}/{model}")
    mean = standing.mean(accuracy_key(statistic)) if standing else None
    if standing is None or mean is None:
        return None
    counts = _folds(standing, statistic)
    deviations = standing.values(deviation_key(statistic))
    spread = fmean(deviations) if deviations and min(counts) > 1 else None
    missing = _missing(standing, statistic)
    partial = missing or standing.budget != FULL or standing.outdated
    return Measured(mean.value, spread, mean.seeds, partial)


def _folds(standing: Standing, statistic: str) -> list[int]:
    """How many stand behind a statistic, record by record."""
    kind = NESTED_ACCURACIES if statistic == NESTED else CURVES
    return [len(record.detail.get(kind, ())) for record in standing.records]


def _missing(standing: Standing, statistic: str) -> bool:
    asked = (record.config.get("folds", 0) for record in standing.records)
    return any(n < of for n, of in zip(_folds(standing, statistic), asked, strict=True))


def _entry(known: Known, name: str, model: str, statistic: str, absent: str = EMPTY) -> Entry:
    """A statistic of a cell; where folds are missing, how many there are."""
    found = entry(accuracy(known, name, model, statistic), fixed(1), absent)
    standing = known.get(f"{name}/{model}")
    if found.value is None or standing is None or not _missing(standing, statistic):
        return found
    folds = min(_folds(standing, statistic))
    return Entry(f"{found.text} ({folds} fold{'s' if folds > 1 else ''})", found.value)


def _of_all_folds(known: Known, name: str, model: str, statistic: str) -> Measured | None:
    """A statistic of a cell that may stand beside others."""
    standing = known.get(f"{name}/{model}")
    if standing is None or _missing(standing, statistic):
        return None
    return accuracy(known, name, model, statistic)


def _found(known: Known) -> dict[tuple[str, str, str], Measured]:
    """Everything there is of all folds, by set, model and statistic."""
    places = product(SETS, MODELS, STATISTICS)
    found = {place: _of_all_folds(known, *place) for place in places}
    return {place: one for place, one in found.items() if one is not None}


def shown(model: str) -> str:
    return "G²N²" if model == "G2N2" else model


def _all(known: Known) -> tuple[Table, Text]:
    table, notes = cited("tu"), Notes()
    rows: list[Row] = [
        (f"{name}, cited", [notes.entry(cells[column]) for column in table.columns])
        for name, cells in table.rows.items()
    ]
    for model in MODELS:
        entries = [entry(_of_all_folds(known, name, model, GIN), fixed(1)) for name in SETS]
        rows.append((f"{shown(model)}, ours", entries))
    larger = cited("tu-larger-class").rows["the larger class"]
    rows.append(("always the larger class", [Entry(larger[name].text) for name in SETS]))
    made = best_of_columns(("%", *table.columns), rows, "higher")
    rank, gnns = cited("tu-rank").rows["all methods"], cited("tu-rank").rows["GNNs"]
    ranks = (f"{rank[c].text} ({gnns[c].text})" for c in table.columns)
    tail = ("rank of G²N² among all (among GNNs), cited", *ranks)
    return Table(made.headers, (*made.rows, tail)), Text(
        f"Cited: {table.citation}; the row G²N², if the released script made it, is the best "
        f"epoch of each fold, which is another statistic. {notes} Ours: {_works(known)}."
    )


def _would_rank(known: Known) -> list[Block]:
    """Where ours would stand among the published rows, by two statistics."""
    places = {
        (model, statistic): [_place(known, name, model, statistic) for name in SETS]
        for model in MODELS
        for statistic in (GIN, RELEASED)
    }
    if any(place is None for own in places.values() for place in own):
        return []
    others = [model for model in MODELS if model != "G2N2"]
    also = "; ".join(
        f"{model} on {' and '.join(first)}"
        for model in others
        if (first := [n for n, p in zip(SETS, places[model, RELEASED], strict=True) if p == 1])
    )
    ranks = {one: ", ".join(map(str, places["G2N2", one])) for one in (GIN, RELEASED)}
    return [
        Text(
            f"Among the other published rows, set by set, G²N² of ours would be number "
            f"{ranks[GIN]} by {GIN} and number {ranks[RELEASED]} by {RELEASED} (by printed "
            "digits; equal numbers share a place). "
            + (f"By the latter others of ours would be first too: {also}." if also else "")
        )
    ]


def _place(known: Known, name: str, model: str, statistic: str) -> int | None:
    """The place of one of ours among the published rows but that of G²N², as printed."""
    own = _of_all_folds(known, name, model, statistic)
    return None if own is None else _counted(round(own.value, 1), name, ("G²N²",))


def _works(known: Known) -> str:
    """What stands behind our numbers, each kind of work once."""
    works: dict[str, list[str]] = {}
    for cell in (f"{name}/{model}" for name, model in product(SETS, MODELS)):
        one = known.get(cell)
        if one is None:
            continue
        epochs = one.records[0].config.get("epochs", "?")
        works.setdefault(f"{one.work} with {epochs} epochs each", []).append(cell)
    if len(works) == 1:
        return f"{next(iter(works))}, all cells"
    said = (f"{work}, {', '.join(cells)}" for work, cells in works.items())
    return "; ".join(said) or "nothing yet"


def _withdrawn(known: Known) -> Table:
    models = [model for model in MODELS if any(f"{name}/{model}" in known for name in SETS)]
    rows: list[Row] = [
        (
            f"{shown(model)}, {statistic}",
            [_entry(known, name, model, statistic, "") for name in SETS],
        )
        for model in models
        for statistic in (GIN, NESTED)
    ]
    return plain(("%", *SETS), rows)


def _statistics(known: Known, models: tuple[str, ...]) -> Table:
    rows: list[Row] = [
        (
            f"{shown(model)}, {statistic}",
            [_entry(known, name, model, statistic) for name in SETS],
        )
        for model in models
        for statistic in STATISTICS
    ]
    return plain(("%", *SETS), rows)


def _as_gin_has_it(known: Known) -> list[Block]:
    """What epochs and input of the GIN code give, where they were run."""
    if not any(f"{one.set_name}/{one.name}" in known for one in PLANS["full"].variants):
        return []
    return [
        Text(
            "**As the GIN code has it**: 350 epochs, more of them to choose from by test graphs; "
            "and degrees as classes on the IMDB sets, where the paper's table has one number."
        ),
        _variants(known, SETS),
    ]


def _variants(known: Known, sets: Iterable[str]) -> Table:
    """Variants on some sets, each below what the plan gives and above what was published."""
    rows: dict[str, list[Entry]] = {}
    for one in PLANS["full"].variants:
        if one.set_name not in sets or f"{one.set_name}/{one.name}" not in known:
            continue
        for model in (one.model, one.name):
            said = f"{shown(one.model)} on {one.set_name}, {_epochs(known, one, model)} epochs"
            if one.set_name in IMDB:
                said += ", degrees as " + ("classes" if "one-hot" in model else "a number")
            last = entry(_at_last(known, one.set_name, model), fixed(1))
            rows[said] = [last, *(_entry(known, one.set_name, model, kind) for kind in STATISTICS)]
        if published := cited("tu").rows.get(one.model):  # that of G²N² is another statistic
            cited_row = f"{one.model} on {one.set_name}, cited"
            rows.pop(cited_row, None)  # below all of ours
            rows[cited_row] = [NONE, Entry(published[one.set_name].text), NONE, NONE]
    return plain(("%", "last epoch", *STATISTICS), list(rows.items()))


def _epochs(known: Known, one: Variant, model: str) -> int:
    """What a run had, or would have."""
    standing = known.get(f"{one.set_name}/{model}")
    planned = LONGER if one.longer and model == one.name else PLANS["full"].epochs
    return standing.records[0].config.get("epochs", planned) if standing else planned


def _at_last(known: Known, name: str, model: str) -> Measured | None:
    """The mean of all folds after the last epoch, which nobody has chosen."""
    standing = known.get(f"{name}/{model}")
    if standing is None or _missing(standing, GIN):
        return None
    last = [curve[-1] for record in standing.records for curve in record.detail[CURVES]]
    less = standing.outdated or standing.budget != FULL
    return Measured(fmean(last), pstdev(last), len(standing.records), less)


def _gap(known: Known) -> str:
    """How much the optimistic statistic gives away, by cells run whole, in a sentence."""
    gaps, chosen = [], []
    for name in SETS:
        for model in MODELS:
            high, low = (_of_all_folds(known, name, model, one) for one in (RELEASED, GIN))
            last = _at_last(known, name, model)
            if not (high and low and last) or high.partial or low.partial:
                continue
            gaps.append(high.value - low.value)
            chosen.append(low.value - last.value)
    if not gaps:
        return "How far the statistics differ cannot be said before a cell was run whole."
    return (
        f"The best epoch of each fold lies {fmean(gaps):.1f} points above GIN's protocol on "
        f"average, at most {max(gaps):.1f}, and GIN's protocol {fmean(chosen):.1f} above the last "
        f"epoch, at most {max(chosen):.1f}, for the same {len(gaps)} cells; partial ones are left "
        "out."
    )


def _reproduced(known: Known) -> str:
    """How ours compares with the paper's row by the statistic of that row, in a sentence."""
    row = cited("tu").rows["G²N²"]
    measured = {name: _of_all_folds(known, name, "G2N2", RELEASED) for name in SETS}
    found = {name: one for name, one in measured.items() if one is not None}
    if not found:
        return ""
    apart = {name: round(one.value, 1) - (row[name].value or 0.0) for name, one in found.items()}
    reached = [name + mark(found[name]) for name, value in apart.items() if value >= 0]
    said = f"at least the paper's on {' and '.join(reached)}" if reached else "below the paper's"
    least, last = min((value, name) for name, value in apart.items())
    rest = f", {-least:.1f}{mark(found[last])} points below it at most" if least < 0 else ""
    where = "" if len(found) == len(SETS) else f", of the {len(found)} sets with all folds"
    return f"By {RELEASED}, as the released script has it, G²N² of ours is {said}{rest}{where}."


def _beside_the_paper(known: Known) -> tuple[Table, Text]:
    ours, row = _statistics(known, ("G2N2",)), cited("tu").rows["G²N²"]
    published = (
        f"G²N², cited; {RELEASED}, if the released script made it",
        *(row[name].text for name in SETS),
    )
    return Table(ours.headers, (*ours.rows, published)), Text(_reproduced(known))


def _aim(known: Known) -> Aim:
    text = f"by GIN's protocol, no worse than the paper's best other GNN on {WANTED_SETS} of 6 sets"
    table = cited("tu")
    reached: list[str] = []
    short: dict[str, float] = {}
    partial = False
    for name in SETS:
        found = _of_all_folds(known, name, "G2N2", GIN)
        if found is None:
            continue
        _, bar = table.best(name, without=(*KERNELS, "G²N²"))
        if round(found.value, 1) >= bar:
            reached.append(name)
        else:
            short[name] = bar - round(found.value, 1)
        partial = partial or found.partial
    run = len(reached) + len(short)
    if not run:
        return Aim(text, EMPTY, None)
    left = len(SETS) - run
    met = len(reached) >= WANTED_SETS
    open_yet = not met and len(reached) + left >= WANTED_SETS
    said = f"on {len(reached)} of {run} run"
    if short:
        said += f"; short on {', '.join(f'{name} by {by:.1f}' for name, by in short.items())}"
    return Aim(text, said, None if open_yet else met, partial)


def _ranks() -> Table:
    """The rank of G²N² as printed and as counted from the printed rows."""
    table, printed = cited("tu"), cited("tu-rank")
    rows: list[Row] = [
        (f"{name}, printed", [Entry(cell.text) for cell in cells.values()])
        for name, cells in printed.rows.items()
    ]
    for name, without in (("all methods", ()), ("GNNs", KERNELS)):
        counted = [Entry(str(rank("G²N²", column, without))) for column in table.columns]
        rows.append((f"{name}, counted", counted))
    return plain(("rank among", *table.columns), rows)


def rank(row: str, column: str, without: tuple[str, ...]) -> int:
    """The place of a published row in a column: 1 and the number of rows above it."""
    own = cited("tu").at(row, column).value
    assert own is not None
    return _counted(own, column, without)


def _counted(own: float, column: str, without: tuple[str, ...]) -> int:
    rows = cited("tu").rows.items()
    others = (cells[column].value for name, cells in rows if name not in without)
    return 1 + sum(value > own for value in others if value is not None)
