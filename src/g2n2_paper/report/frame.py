"""All records as one pandas frame, and the numbers of cells taken from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from g2n2.errors import DataError

from ..record import EARLIER, CellRecord, read_records
from .numbers import EMPTY, Best, Digits, TableEntry, Value, entry, fixed, significant, table, whole


class Results:
    """All records of a results folder, and a frame with one row for each of them."""

    def __init__(self, folder: Path) -> None:
        self.records = read_records(folder)
        self.frame = pd.DataFrame(map(vars, self.records))

    @cached_property
    def _values(self) -> dict[tuple[str, str, str], Value]:
        keys = ["question", "cell"]
        cells = pd.MultiIndex.from_frame(self.frame[keys])
        metrics = pd.DataFrame(self.frame["metrics"].tolist(), index=cells, dtype=float)
        long = metrics.melt(var_name="metric", ignore_index=False).dropna()
        stats = long.groupby([*keys, "metric"])["value"].agg(["mean", "std", "count"])
        return {
            key: Value(float(mean), float(std) if count > 1 else None, int(count))
            for key, mean, std, count in stats.itertuples(name=None)
        }

    def value(self, question: str, cell: str, metric: str) -> Value | None:
        """A metric of a cell over its seeds; None if it was not run or does not have it."""
        return self._values.get((question, cell, metric))

    def entry(
        self, question: str, cell: str, metric: str, digits: Digits = significant
    ) -> TableEntry:
        """The same as an entry of a table."""
        return entry(self.value(question, cell, metric), digits)

    def need(self, question: str, cell: str, metric: str) -> Value:
        """The same, for pages that cannot be written without it: DataError if it was not run."""
        if value := self.value(question, cell, metric):
            return value
        raise DataError(f"{question} {cell} has no record: g2n2-paper {question} --only {cell}")

    def of(self, question: str, cell: str) -> list[CellRecord]:
        """The records of a cell, one for each seed."""
        return [r for r in self.records if (r.question, r.cell) == (question, cell)]

    def first(self, question: str, cell: str) -> CellRecord | None:
        return next(iter(self.of(question, cell)), None)

    def sizes(self, question: str, cells: Iterable[str]) -> list[str]:
        """Parameters of the networks of some cells."""
        return [self.entry(question, cell, "parameters", whole).printed for cell in cells]

    def grid(
        self,
        question: str,
        head: str,
        rows: Mapping[str, str],
        columns: Mapping[str, str],
        cell: str,
        metric: str,
        decimals: int | None = None,
        best: Best | None = min,
        sizes: str = "",
    ) -> pd.DataFrame:
        """A table whose rows and columns, by name, fill the patterns of a cell and of a metric.

        If columns are cells, `sizes` names a last row with their parameters.
        """
        digits = significant if decimals is None else fixed(decimals)
        lines: list[list[object]] = []
        for name, row in rows.items():
            keys = [{"row": row, "column": column} for column in columns.values()]
            pairs = [(cell.format(**key), metric.format(**key)) for key in keys]
            lines.append([name, *(self.entry(question, *pair, digits) for pair in pairs)])
        if sizes:
            lines.append([sizes, *self.sizes(question, columns.values())])
        return table([head, *columns], lines, best_in_row=best)

    def work(self, question: str, cell: str, unit: bool = True) -> str:
        """Seeds and work of a cell: `3 × 12 epochs`; a dash if it was not run."""
        records = self.of(question, cell)
        if not records:
            return EMPTY
        return f"{len(records)} × {records[0].done}" + (f" {records[0].unit}" if unit else "")


def provenance_table(results: Results) -> pd.DataFrame:
    """Seeds, work, time, machine and commit of every cell."""
    rows = []
    for (question, cell), group in results.frame.groupby(["question", "cell"], sort=False):
        origins = [
            ", ".join(sorted(set(chain(*(_origins(p, key) for p in group["provenance"])))))
            for key in ("device", "commit")
        ]
        time = duration(group["seconds"].mean())
        rows.append((question, cell, results.work(question, cell), time, *origins))
    headers = ["question", "cell", "seeds × work", "time a seed", "machine", "commit"]
    return pd.DataFrame(rows, columns=headers)


def duration(seconds: float) -> str:
    """Wall time in a suitable unit."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _origins(provenance: dict[str, Any], key: str) -> list[str]:
    """Devices or commits of all attempts; a commit has `+` if the files differed from it."""
    texts = [str(a.get(key) or "?") for a in (provenance, *provenance.get(EARLIER, ()))]
    if key == "commit":
        texts = [text[:9] + ("+" if "with changes" in text else "") for text in texts]
    return texts
