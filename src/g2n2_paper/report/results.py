"""All records by cell, and the numbers of cells taken from them."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev

from g2n2.errors import DataError

from ..record import CellRecord, read_records
from .numbers import EMPTY, TableEntry, Value, entry


class Results:
    """All records of a results folder."""

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

    def value(self, question: str, cell: str, metric: str) -> Value | None:
        """A metric of a cell over its seeds; None if it was not run or does not have it."""
        found = [record.metrics.get(metric) for record in self.of(question, cell)]
        numbers = [float(number) for number in found if number is not None]
        if not numbers:
            return None
        return Value(fmean(numbers), stdev(numbers) if len(numbers) > 1 else None, len(numbers))

    def need(self, question: str, cell: str, metric: str) -> Value:
        """The same, for pages that cannot be written without it: DataError if it was not run."""
        if value := self.value(question, cell, metric):
            return value
        raise DataError(f"{question} {cell} has no record: g2n2-paper {question} --only {cell}")

    def over_folds(self, question: str, cell: str, mean: str, deviation: str) -> Value | None:
        """A mean whose deviation is another metric; one fold has none."""
        value, spread = (self.value(question, cell, metric) for metric in (mean, deviation))
        record = self.first(question, cell)
        if record is None or value is None or spread is None:
            return None
        return value._replace(spread=spread.mean if record.done > 1 else None)

    def entry(
        self, question: str, cell: str, metric: str, decimals: int | None = None
    ) -> TableEntry:
        """A metric as an entry of a table."""
        return entry(self.value(question, cell, metric), decimals)

    def size(self, question: str, cell: str) -> str:
        """Parameters of the network of a cell."""
        return self.entry(question, cell, "parameters", 0).printed

    def work(self, question: str, cell: str, unit: bool = True) -> str:
        """Seeds and work of a cell: `3 × 12 epochs`; a dash if it was not run."""
        records = self.of(question, cell)
        if not records:
            return EMPTY
        return f"{len(records)} × {records[0].done}" + (f" {records[0].unit}" if unit else "")


def duration(seconds: float) -> str:
    """Wall time in a suitable unit."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
