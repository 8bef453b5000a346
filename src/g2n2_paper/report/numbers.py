"""Numbers of our records and published numbers, and how they look in tables."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from g2n2.errors import DataError

from ..record import CellRecord, read_records

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
        """A metric as an entry of a table."""
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
