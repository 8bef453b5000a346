"""Numbers of our records, published numbers, and tables of them as templates declare them.

Either the rows or the columns of a table are sources, functions that give the entry for a key. The
others are keys: strings, or tuples of strings, that fill the braces in the names of a source.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import compress
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from g2n2.data.qm9 import QM9_TARGETS
from g2n2.errors import DataError

from ..record import CellRecord, read_records
from ..runs import mae_key

Key = str | tuple[str, ...]
Source = Callable[..., object]
Best = Callable[[Iterable[float]], float]
TARGETS = {target.name: target for target in QM9_TARGETS}
BEST: dict[str, Best] = {"lowest": min, "highest": max}
EMPTY = "–"
"""A cell that was not run."""
KERNELS = ("WL kernel", "GNTK")
"""Rows of the published table of TU that are not GNNs."""


class Value(NamedTuple):
    """A number over seeds: mean, standard deviation (n − 1; None for one seed) and seeds."""

    mean: float
    spread: float | None
    seeds: int


@dataclass(frozen=True)
class TableEntry:
    """Text of a table cell, and the number it is compared by, if it is one."""

    text: str
    value: float | None = None  # of a published misprint, what was likely meant
    note: str = ""  # a remark on a published number

    def __str__(self) -> str:
        return self.text

    @property
    def printed(self) -> str:
        """The number alone, without deviation and remarks."""
        return self.text.partition(" ")[0]

    @property
    def number(self) -> float:
        assert self.value is not None, f"{self.text} is not a number"
        return self.value


def written(value: float, decimals: int | None = None) -> str:
    """A number with so many decimals, and commas between thousands; or three significant digits."""
    if decimals is not None:
        return minus(f"{value:,.{decimals}f}")
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return minus(f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}")


def minus(text: str) -> str:
    return text.replace("-", "−")


def entry(value: Value | None, decimals: int | None = None) -> TableEntry:
    """A number of ours, `mean ± deviation` if it has several seeds."""
    if value is None:
        return TableEntry(EMPTY)
    text = written(value.mean, decimals)
    if value.spread is not None:
        text += f" ± {value.spread:.{len(text.partition('.')[2])}f}"
    return TableEntry(text, value.mean)


def duration(seconds: float) -> str:
    """Wall time in a suitable unit."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Results:
    """All records of a results folder, by cell."""

    def __init__(self, folder: Path) -> None:
        self.records = read_records(folder)
        self.by_cell: dict[tuple[str, str], list[CellRecord]] = {}
        for record in self.records:
            self.by_cell.setdefault((record.question, record.cell), []).append(record)

    def of(self, question: str, cell: str) -> list[CellRecord]:
        """The records of a cell, one for each seed."""
        return self.by_cell.get((question, cell), [])

    def first(self, question: str, cell: str) -> CellRecord | None:
        return next(iter(self.of(question, cell)), None)

    def value(self, question: str, cell: str, metric: str, deviation: str = "") -> Value | None:
        """A metric of a cell over its seeds; None if it was not run or does not have it.

        `deviation` is the metric that is its deviation over folds; one fold has none.
        """
        records = self.of(question, cell)
        numbers = [float(n) for r in records if (n := r.metrics.get(metric)) is not None]
        if not numbers:
            return None
        spread = stdev(numbers) if len(numbers) > 1 else None
        if deviation:
            over_folds = self.value(question, cell, deviation)
            spread = over_folds.mean if over_folds and records[0].done > 1 else None
        return Value(fmean(numbers), spread, len(numbers))

    def need(self, question: str, cell: str, metric: str) -> Value:
        """The same, for pages that cannot be written without it: DataError if it was not run."""
        if value := self.value(question, cell, metric):
            return value
        raise DataError(f"{question} {cell} has no record: g2n2-paper {question} --only {cell}")

    def entry(
        self, question: str, cell: str, metric: str, decimals: int | None = None
    ) -> TableEntry:
        return entry(self.value(question, cell, metric), decimals)

    def work(self, question: str, cell: str, unit: bool = True) -> str:
        """Seeds and work of a cell: `3 × 12 epochs`; a dash if it was not run."""
        records = self.of(question, cell)
        if not records:
            return EMPTY
        return f"{len(records)} × {records[0].done}" + (f" {records[0].unit}" if unit else "")


@dataclass(frozen=True)
class CitedTable:
    """One published table: its citation, columns and rows of numbers."""

    citation: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, TableEntry]]

    def _numbers(self, column: str, without: tuple[str, ...]) -> dict[str, float]:
        values = {row: cells[column].value for row, cells in self.rows.items()}
        return {row: v for row, v in values.items() if row not in without and v is not None}

    def best(self, column: str, without: tuple[str, ...] = ()) -> tuple[str, float]:
        """The row with the highest number of a column, and that number."""
        return max(self._numbers(column, without).items(), key=lambda item: item[1])

    def rank(self, value: float, column: str, without: tuple[str, ...] = ()) -> int:
        """The rank of a number among the rows of a column: 1 and the number of rows above it."""
        return 1 + sum(other > value for other in self._numbers(column, without).values())


@cache
def cited(name: str) -> CitedTable:
    """The published table of that name in `cited.toml`."""
    content = tomllib.loads(files(__package__).joinpath("cited.toml").read_text(encoding="utf-8"))
    table = content[name]
    notes, likely = table.get("notes", {}), table.get("likely", {})

    def number(key: str, text: str) -> TableEntry:
        meant = likely.get(key, text)
        value = None if meant == "N/A" else float(meant.partition(" ± ")[0])
        return TableEntry(text, value, notes.get(key, ""))

    rows = {
        row: {c: number(f"{row}/{c}", t) for c, t in zip(table["columns"], texts, strict=True)}
        for row, texts in table["rows"].items()
    }
    parts = (content["sources"][table["source"]], table["place"], table.get("via", ""))
    return CitedTable(", ".join(filter(None, parts)), tuple(table["columns"]), rows)


def _is_number(entry: TableEntry) -> bool:
    return entry.value is not None


def table(
    head: str,
    rows: Mapping[str, Key | Source] | Sequence[tuple[str, Key | Source]],
    columns: Mapping[str, Key | Source],
    best: str = "",
    foot: Mapping[str, Source] | None = None,
    run_only: bool = False,
) -> str:
    """A table in Markdown, with the remarks on its published numbers below it.

    Args:
        head: Header of the first column.
        rows: Label to source or key; pairs where labels repeat.
        columns: Header to key or source.
        best: What is bold: `lowest` or `highest`, `in row`, `in column` or `in pairs` (of columns).
            Entries without a number, and published ones marked plain, do not compete.
        foot: Label to a function of the columns that are metrics: last rows.
        run_only: Leave out rows and columns without any number.
    """
    letters: dict[str, str] = {}

    def entry_of(item: object) -> TableEntry:
        """Remarks on published numbers are lettered in the order they appear."""
        if not isinstance(item, TableEntry):
            return TableEntry(str(item))
        if not item.note:
            return item
        letter = letters.setdefault(item.note, f"({chr(ord('a') + len(letters))})")
        return replace(item, text=f"{item.text} {letter}")

    pairs = list(rows.items() if isinstance(rows, Mapping) else rows)
    lines = [[entry_of(_apply(row, c)) for c in columns.values()] for _, row in pairs]
    if run_only:
        kept = [any(map(_is_number, column)) for column in zip(*lines, strict=True)]
        columns = dict(compress(columns.items(), kept))
        rows_kept = [any(map(_is_number, line)) for line in lines]
        pairs = list(compress(pairs, rows_kept))
        lines = [list(compress(line, kept)) for line in compress(lines, rows_kept)]
    texts = [[item.text for item in line] for line in lines]
    pick, where = BEST.get(best.partition(" ")[0]), best.rpartition(" ")[2]
    if pick and where == "column":
        by_column = [bold(column, pick) for column in zip(*lines, strict=True)]
        texts = [list(line) for line in zip(*by_column, strict=True)]
    elif pick:
        size = 2 if where == "pairs" else len(columns)
        groups = range(0, len(columns), size)
        texts = [[t for i in groups for t in bold(x[i : i + size], pick)] for x in lines]
    framed = [[label, *line] for (label, _), line in zip(pairs, texts, strict=True)]
    for label, what in (foot or {}).items():
        cells = [what(c) if isinstance(c, Metric) else "" for c in columns.values()]
        framed.append([label, *map(str, cells)])
    notes = "; ".join(f"{letter} {note}" for note, letter in letters.items())
    return markdown([head, *columns], framed) + (f"\n\n{notes}." if notes else "")


def _apply(row: Key | Source, column: Key | Source) -> object:
    source, key = (row, column) if callable(row) else (column, row)
    assert callable(source), "either rows or columns are sources"
    assert not callable(key), "either rows or columns are keys"
    return source(*((key,) if isinstance(key, str) else key))


def bold(row: Sequence[TableEntry], best: Best) -> list[str]:
    """Texts of some entries; the best number, and those that print the same, in bold."""
    values = [item.value for item in row if item.value is not None]
    top = best(values) if len(values) > 1 else None
    printed = {item.printed for item in row if item.value is not None and item.value == top}
    return [
        f"**{item.text}**" if item.value is not None and item.printed in printed else item.text
        for item in row
    ]


def markdown(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, columns after the first to the right."""
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(column[0]) + 2, *map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines]
    rule = [":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])]
    head, *body = (f"| {' | '.join(line)} |" for line in padded)
    return "\n".join([head, f"|{'|'.join(rule)}|", *body])


@dataclass(frozen=True)
class Metric:
    """A source: a metric of a cell, over its seeds."""

    results: Results
    question: str
    cell: str
    metric: str | Callable[[str], str]  # a function of the first part of the key, or a pattern
    decimals: int | None = None  # three significant digits if None
    deviation: str = ""  # the metric that is the deviation, over folds
    work: bool = False  # with seeds × work in brackets

    def value(self, *key: str) -> Value | None:
        metric = self.metric.format(*key) if isinstance(self.metric, str) else self.metric(key[0])
        return self.results.value(self.question, self.cell.format(*key), metric, self.deviation)

    def __call__(self, *key: str) -> TableEntry:
        value, cell = self.value(*key), self.cell.format(*key)
        if value is None and self.results.first(self.question, cell):
            return TableEntry("")  # a network that has no such number
        shown = entry(value, self.decimals)
        if not self.work:
            return shown
        work = self.results.work(self.question, cell, unit=False)
        return replace(shown, text=f"{shown.text} ({work})")


def mae_of(target: str) -> str:
    return mae_key(target, TARGETS[target].unit)


class Sources:
    """Sources that several questions use, by the names that templates call them."""

    def __init__(self, results: Results) -> None:
        self.results = results

    @staticmethod
    def merged(*parts: Mapping[str, object]) -> dict[str, object]:
        """Rows or columns of several kinds, in their order."""
        return {name: item for part in parts for name, item in part.items()}

    def ours(
        self,
        question: str,
        cell: str,
        metric: str,
        decimals: int | None = None,
        deviation: str = "",
    ) -> Metric:
        """A metric of our cells; `deviation` is the metric of its deviation over folds."""
        return Metric(self.results, question, cell, metric, decimals, deviation)

    def mae(self, cell: str, work: bool = False) -> Metric:
        """The test error of a cell of Q2 on the target that the key begins with."""
        return Metric(self.results, "q2", cell, mae_of, work=work)

    def size(self, question: str, cell: str) -> Source:
        """Parameters of the network of a cell."""
        return lambda *key: self.results.entry(question, cell.format(*key), "parameters", 0).printed

    def work(self, question: str, cell: str) -> Source:
        return lambda *key: self.results.work(question, cell.format(*key))

    def sizes(self, *key: str) -> Source:
        """A last row of a table: parameters of the networks of its columns, for this key."""
        return lambda metric: self.size(metric.question, metric.cell)(*key)

    def works(self, metric: Metric) -> str:
        """A last row of a table: seeds and work of its columns."""
        return self.results.work(metric.question, metric.cell)

    def machine(self, question: str, cell: str) -> Source:
        def device(*key: str) -> str:
            record = self.results.first(question, cell.format(*key))
            return record.provenance["device"] if record else EMPTY

        return device

    @staticmethod
    def text(pattern: str) -> Source:
        return pattern.format

    def published(self, name: str, row: str, column: str, plain: bool = False) -> Source:
        """A published number; plain ones have no note and are not compared.

        It is empty where the row is, and in columns that the published table does not have.
        """

        def number(*key: str) -> TableEntry | str:
            of_row = row.format(*key)
            cell = cited(name).rows[of_row].get(column.format(*key)) if of_row else None
            return cell.text if cell and plain else cell or ""

        return number

    def published_rows(
        self, name: str, tail: str = ", cited", only: Sequence[str] = (), plain: Sequence[str] = ()
    ) -> dict[str, Source]:
        """The rows of a published table, by column; all rows or some."""
        rows = only or cited(name).rows
        return {row + tail: self.published(name, row, "{}", row in plain) for row in rows}

    def published_columns(self, name: str) -> dict[str, Source]:
        """The columns of a published table, by row."""
        return {f"{c}, cited": self.published(name, "{}", c) for c in cited(name).columns}

    def change(self, before: str, after: str) -> Source:
        """By how many percent the error of one cell of Q2 is larger than that of another."""

        def percent(target: str) -> str:
            old, new = (self.mae(cell).value(target) for cell in (before, after))
            if old is None or new is None:
                return EMPTY
            return minus(f"{100.0 * (new.mean / old.mean - 1.0):+.1f} %")

        return percent

    def targets(self, *names: str, unit: bool = True) -> dict[str, str]:
        """Symbols and units of some targets of QM9, or all, as in the paper."""
        chosen = [TARGETS[name] for name in names or TARGETS]
        return {f"{t.symbol} ({t.unit})" if unit else t.symbol: t.name for t in chosen}
