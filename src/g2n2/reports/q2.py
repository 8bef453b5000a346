"""Q2: errors on QM9 beside every published column, in the units of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..demonstration.blocks import Block, Table, Text
from ..experiments.q2 import JOINT_32, JOINT_64, R2_ALONE, Settings
from .cited import cited
from .figures.q2 import drawing
from .numbers import EMPTY, OPTIONAL, Entry, Notes, best_of_rows, bold, fixed, mean_entry, plain
from .q2_aims import aims
from .q2_costs import change, collapse, precisions, speeds
from .q2_names import (
    EQUAL_TIME,
    LONG_EPOCHS,
    LONGER,
    OURS,
    TARGETS,
    joint_name,
    mae,
    single_name,
    symbol,
)
from .section import Section, nothing_yet, optional_cells, optional_names
from .standings import Results, Standing

Known = Mapping[str, Standing]

_SUMS = {"sums of elements": "sums/elements", "with the extent": "sums/extent"}


def section(results: Results) -> Section:
    """What there is of Q2."""
    known = results.of("q2")
    blocks: list[Block] = [] if known else [nothing_yet("q2")]
    blocks += [Text("**Each target alone**, width 64, with distances."), *_single(known)]
    blocks += [
        Text("**The same, with another network, track or recipe**; in brackets seeds × epochs."),
        _variants(known),
    ]
    blocks += [*_joint(known), *_cost_of_extent(known)]
    for settings, given_up in results.withdrawn("q2"):
        blocks += [Text(f"**Given up** ({settings})."), _given_up(given_up)]
    blocks += [Text("**All twelve targets at once**, bonds only."), _joint_bonds(known)]
    blocks += [
        Text("**No network at all**: fitted sums, of elements and of squared distances."),
        _sums(known),
    ]
    said, dead = collapse(known)
    blocks += [*speeds(known), *precisions(known), *said, optional_cells("q2", known)]
    return Section(
        "q2",
        "Q2: regression on QM9",
        tuple(blocks),
        (
            *aims(known),
            dead,
        ),
        drawing(known) if known else None,
        known.seen,
        {
            "q2-tracks": (_compared(known, "track"),),
            "q2-recipes": (_compared(known, "recipe"),),
            "q2-sums": (_beside_sums(known),),
        },
    )


def _absent(name: str) -> str:
    """What stands in the place of a cell that was not run."""
    return OPTIONAL if name in optional_names("q2") else EMPTY


def _work(known: Known, name: str) -> str:
    standing = known.get(name)
    return standing.work if standing else _absent(name)


def _single(known: Known) -> tuple[Table, Text]:
    table, notes = cited("qm9-single"), Notes()
    rows = []
    lines = [(target, single_name(target), "") for target in TARGETS]
    after_r2 = list(TARGETS).index("r2") + 1
    lines[after_r2:after_r2] = [
        ("r2", LONGER[single_name("r2")], f", {LONG_EPOCHS} epochs"),
        ("r2", R2_ALONE.name, ", less its extent"),
    ]
    for target, name, tail in lines:
        ours = known.get(name)
        entries = [notes.entry(table.at(target, column)) for column in table.columns]
        texts = bold([*entries, mean_entry(ours, mae(target))], "lower")
        rows.append((symbol(target) + tail, *texts, _work(known, name)))
    sizes = _parameters(known, [single_name(target) for target in TARGETS])
    rows.append(("parameters", *[""] * len(table.columns), next(filter(None, sizes), EMPTY), ""))
    headers = (
        "target",
        *(f"{column}, cited" for column in table.columns),
        "G²N², ours",
        "seeds × work",
    )
    seen = (
        "PPGN and G²N² see all distances, 1-2-3-GNN, NGNN and I²-GNN lengths of bonds only; what "
        "the other three see was not looked up "
        "(findings.md)."
    )
    return Table(headers, tuple(rows)), Text(f"Cited: {table.citation}. {notes} {seen}")


def _parameters(known: Known, names: Iterable[str]) -> list[str]:
    """How many each network has, which no training changes; empty where it was not run."""
    return [mean_entry(known.get(name), "parameters", fixed(0), "").printed for name in names]


_VARIANTS = {
    "PPGN, blocks of G²N²": ("distance", "PPGN-alike", "modern", ""),
    "PPGN": ("distance", "PPGN", "modern", ""),
    "PPGN, equal time": ("distance", "PPGN", "modern", EQUAL_TIME),
    "G²N², bonds": ("bonds", "G2N2", "modern", ""),
    "PPGN, bonds": ("bonds", "PPGN", "modern", ""),
    "PPGN, bonds, equal time": ("bonds", "PPGN", "modern", EQUAL_TIME),
    "G²N², paper recipe": ("distance", "G2N2", "paper", ""),
    "PPGN, paper recipe": ("distance", "PPGN", "paper", ""),
    "G²N², bonds, paper recipe": ("bonds", "G2N2", "paper", ""),
    "PPGN, bonds, paper recipe": ("bonds", "PPGN", "paper", ""),
}


def _variants(known: Known) -> Table:
    """Only targets and changes of which something is asked for or known."""
    rows: list[tuple[str, list[Entry]]] = []
    sizes: list[list[str]] = []
    for target in TARGETS:
        plain_name = single_name(target)
        entries, names = [mean_entry(known.get(plain_name), mae(target))], [plain_name]
        for track, network, recipe, tail in _VARIANTS.values():
            settings = Settings(target, 64, track, network, recipe)  # type: ignore[arg-type]
            absent = EMPTY if settings.required else OPTIONAL
            names.append(settings.name + tail)
            entries.append(_with_work(known.get(names[-1]), mae(target), absent))
        if any(one.text != OPTIONAL for one in entries[1:]):
            rows.append((symbol(target), entries))
            sizes.append(_parameters(known, names))
    largest = [Entry(next(filter(None, each), "")) for each in zip(*sizes, strict=True)]
    table = best_of_rows(("target", "G²N²", *_VARIANTS), [*rows, ("parameters", largest)], "lower")
    asked = [i for i, column in enumerate(zip(*table.rows, strict=True)) if _asked(column)]
    return Table(
        tuple(table.headers[i] for i in asked),
        tuple(tuple(row[i] for i in asked) for row in table.rows),
    )


def _asked(column: tuple[str, ...]) -> bool:
    return any(text not in (OPTIONAL, "") for text in column)


def _with_work(standing: Standing | None, metric: str, absent: str) -> Entry:
    """A number and, in brackets, what stands behind it."""
    found = mean_entry(standing, metric, absent=absent)
    return Entry(f"{found.text} ({standing.brief})", found.value) if standing else found


_JOINT = {
    32: {
        "G²N²": OURS.name,
        "G²N², less the extent": JOINT_32.name,
        f"G²N², less the extent, {LONG_EPOCHS} epochs": LONGER[JOINT_32.name],
        "PPGN, blocks of G²N²": joint_name(32, "distance", "PPGN-alike"),
        "PPGN": joint_name(32, "distance", "PPGN"),
        "PPGN, equal time": joint_name(32, "distance", "PPGN") + EQUAL_TIME,
    },
    64: {
        "G²N²": joint_name(64, "distance", "G2N2"),
        "G²N², less the extent": JOINT_64.name,
        "PPGN": joint_name(64, "distance", "PPGN"),
        "PPGN, equal time": joint_name(64, "distance", "PPGN") + EQUAL_TIME,
    },
}
"""Width to the columns of a table and their cells."""


def _joint(known: Known) -> Iterator[Block]:
    table, notes = cited("qm9-joint"), Notes()
    for width, columns in _JOINT.items():
        yield Text(f"**All twelve targets at once**, with distances, width {width}.")
        rows = []
        for target in TARGETS:
            entries = [notes.entry(table.at(target, column)) for column in table.columns]
            texts = bold([*entries, *_column(known, columns.values(), target)], "lower")
            rows.append((symbol(target), *texts))
        works = [_work(known, name) for name in columns.values()]
        nothing = [""] * len(table.columns)
        rows.append(("parameters", *nothing, *_parameters(known, columns.values())))
        rows.append(("seeds × work", *nothing, *works))
        headers = ("target", *(f"{column}, cited" for column in table.columns), *columns)
        yield Table(headers, tuple(rows))
    yield Text(f"Cited: {table.citation}; at width 32. {notes}")


def _cost_of_extent(known: Known) -> list[Block]:
    """By how much the errors of all targets change where R² is learned less its extent."""
    widths = {"width 32": (OURS, JOINT_32), "width 64": (replace(OURS, width=64), JOINT_64)}
    rows = []
    for target in TARGETS:
        changes = [
            change(known.get(whole.name), known.get(less.name), mae(target))
            for whole, less in widths.values()
        ]
        rows.append((TARGETS[target].symbol, *changes))
    return [
        Text(
            "**What the extent changes**: all twelve at once with distances, error less the extent "
            "against error without it, equal epochs, one seed each."
        ),
        Table(("target", *widths), tuple(rows)),
    ]


def _joint_bonds(known: Known) -> Table:
    columns = {
        "G²N², width 32": joint_name(32, "bonds", "G2N2"),
        "PPGN, width 32": joint_name(32, "bonds", "PPGN"),
        "PPGN, width 32, equal time": joint_name(32, "bonds", "PPGN") + EQUAL_TIME,
        "G²N², width 64": joint_name(64, "bonds", "G2N2"),
        "PPGN, width 64": joint_name(64, "bonds", "PPGN"),
        "PPGN, width 64, equal time": joint_name(64, "bonds", "PPGN") + EQUAL_TIME,
    }
    rows = [
        (symbol(target), *bold(_column(known, columns.values(), target), "lower"))
        for target in TARGETS
    ]
    rows.append(("parameters", *_parameters(known, columns.values())))
    rows.append(("seeds × work", *(_work(known, name) for name in columns.values())))
    return Table(("target", *columns), tuple(rows))


def _given_up(known: Known) -> Table:
    """The cells of the joint table at a rate that was changed after they had been seen."""
    columns = {said: name for said, name in _JOINT[32].items() if name in known}
    rows = [
        (symbol(target), *(one.text for one in _column(known, columns.values(), target)))
        for target in TARGETS
    ]
    rows.append(("seeds × work", *(_work(known, name) for name in columns.values())))
    return Table(("target", *columns), tuple(rows))


def _sums(known: Known) -> Table:
    """What a network is given to start from."""
    rows = [(symbol(t), *(e.text for e in _column(known, _SUMS.values(), t))) for t in TARGETS]
    fitted = [mean_entry(known.get(name), "parameters", fixed(0)) for name in _SUMS.values()]
    rows.append(("numbers fitted", *(one.text for one in fitted)))
    return Table(("test MAE", *_SUMS), tuple(rows))


def _beside_sums(known: Known) -> Table:
    """Published errors beside those of a fit without a network, where the two are near."""
    table, alone = cited("qm9-joint"), cited("qm9-single")
    headers = ("test MAE", *_SUMS, "PPGN, joint, cited", "G²N², joint, cited", "PPGN, alone, cited")
    rows = []
    for target in ("r2", "u0", "u", "h", "g"):
        published = [
            table.at(target, "PPGN").text,
            table.at(target, "G²N²").text,
            alone.at(target, "PPGN").text,
        ]
        fitted = [entry.text for entry in _column(known, _SUMS.values(), target)]
        rows.append((symbol(target), *fitted, *published))
    return Table(headers, tuple(rows))


def _column(known: Known, names: Iterable[str], target: str) -> list[Entry]:
    return [mean_entry(known.get(name), mae(target), absent=_absent(name)) for name in names]


def _compared(known: Known, what: str) -> Table:
    """R² and U₀ of G²N² under one change."""
    other = {
        "track": ("bonds", "modern", "bonds only"),
        "recipe": ("distance", "paper", "recipe paper"),
    }[what]
    first = {"track": "with distances", "recipe": "recipe modern"}[what]
    rows = []
    for target in ("r2", "u0"):
        changed = Settings(target, 64, other[0], "G2N2", other[1])  # type: ignore[arg-type]
        entries = [
            _with_work(known.get(name), mae(target), EMPTY)
            for name in (single_name(target), changed.name)
        ]
        rows.append((symbol(target), entries))
    return plain(("test MAE of G²N², ours", first, other[2]), rows)
