"""One frame of all records, and the numbers of cells taken from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from g2n2.errors import DataError

from ..record import EARLIER, CellRecord, read_records


@dataclass(frozen=True)
class Value:
    """A number over seeds: mean, standard deviation (n − 1; None for one seed) and seeds."""

    mean: float
    spread: float | None
    seeds: int


@dataclass(frozen=True, eq=False)
class Results:
    """All records of a results folder."""

    records: tuple[CellRecord, ...]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read a results folder.

        Raises:
            DataError: A file is not a record, or there is no such folder.
        """
        return cls(tuple(read_records(folder)))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row for each record."""
        return pd.DataFrame(
            {
                "question": record.question,
                "cell": record.cell,
                "seed": record.seed,
                "done": record.done,
                "unit": record.unit,
                "seconds": record.seconds,
                "machine": _places(record, "device"),
                "commit": _places(record, "commit"),
            }
            for record in self.records
        )

    @cached_property
    def _means(self) -> dict[tuple[str, str, str], Value]:
        rows = [
            (record.question, record.cell, metric, value)
            for record in self.records
            for metric, value in record.metrics.items()
            if value is not None
        ]
        keys = ["question", "cell", "metric"]
        values = pd.DataFrame(rows, columns=[*keys, "value"]).groupby(keys)["value"]
        table = values.agg(["mean", "std", "count"])
        return {
            key: Value(float(mean), float(std) if count > 1 else None, int(count))
            for key, mean, std, count in table.itertuples(name=None)
        }

    def value(self, question: str, cell: str, metric: str) -> Value | None:
        """A metric of a cell over its seeds; None if it was not run or does not have it."""
        return self._means.get((question, cell, metric))

    def need(self, question: str, cell: str, metric: str) -> Value:
        """The same, for pages that cannot be written without it.

        Raises:
            DataError: The cell was not run.
        """
        if value := self.value(question, cell, metric):
            return value
        raise DataError(f"{question} {cell} has no record: g2n2-paper {question} --only {cell}")

    def of(self, question: str, cell: str) -> list[CellRecord]:
        """The records of a cell, one for each seed."""
        return [r for r in self.records if (r.question, r.cell) == (question, cell)]

    def first(self, question: str, cell: str) -> CellRecord | None:
        return next(iter(self.of(question, cell)), None)

    def work(self, question: str, cell: str, unit: bool = True) -> str:
        """Seeds and work of a cell: `3 × 12 epochs`; a dash if it was not run."""
        records = self.of(question, cell)
        if not records:
            return "–"
        return f"{len(records)} × {records[0].done}" + (f" {records[0].unit}" if unit else "")


def provenance_table(results: Results) -> pd.DataFrame:
    """Seeds, work, time, machine and commit of every cell."""
    rows = []
    for (question, cell), group in results.frame.groupby(["question", "cell"], sort=False):
        places = [", ".join(sorted(set(chain(*group[key])))) for key in ("machine", "commit")]
        time = duration(group["seconds"].mean())
        rows.append((question, cell, results.work(question, cell), time, *places))
    headers = ["question", "cell", "seeds × work", "time a seed", "machine", "commit"]
    return pd.DataFrame(rows, columns=headers)


def duration(seconds: float) -> str:
    """Wall time in a suitable unit."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _places(record: CellRecord, key: str) -> list[str]:
    """Devices or commits of all attempts; a commit has `+` if the files differed from it."""
    attempts: list[dict[str, Any]] = [
        dict(record.provenance),
        *record.provenance.get(EARLIER, ()),
    ]
    texts = [str(one.get(key) or "?") for one in attempts]
    if key == "commit":
        texts = [text[:9] + ("+" if "with changes" in text else "") for text in texts]
    return texts
