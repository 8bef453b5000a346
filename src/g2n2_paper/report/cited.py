"""Published numbers, read from `cited.toml`: the only results that are typed by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

KERNELS = ("WL kernel", "GNTK")
"""Rows of the table of TU that are not GNNs."""


@dataclass(frozen=True)
class Cited:
    """One published number.

    Attributes:
        text: As printed, such as `92.5 ± 4.3`.
        value: The number; None if the source has none.
        note: A remark on it.
        likely: What it should have been, if it is a misprint.
    """

    text: str
    value: float | None
    note: str = ""
    likely: float | None = None

    @property
    def bar(self) -> float:
        """The number to compare ours with."""
        value = self.value if self.likely is None else self.likely
        assert value is not None, f"{self.text} is not a number"
        return value


@dataclass(frozen=True)
class CitedTable:
    """One published table: its citation, columns and rows of numbers."""

    citation: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Cited]]

    def best(self, column: str, without: tuple[str, ...] = ()) -> tuple[str, float]:
        """The row with the highest number of a column, and that number."""
        values = {row: cells[column].value for row, cells in self.rows.items()}
        known = {r: v for r, v in values.items() if r not in without and v is not None}
        return max(known.items(), key=lambda item: item[1])

    def rank(self, value: float, column: str, without: tuple[str, ...] = ()) -> int:
        """The rank of a number among the rows of a column: 1 and the number of rows above it."""
        rows = (cells[column].value for name, cells in self.rows.items() if name not in without)
        return 1 + sum(other > value for other in rows if other is not None)


@cache
def cited(name: str) -> CitedTable:
    """The published table of that name in `cited.toml`."""
    content = tomllib.loads(files(__package__).joinpath("cited.toml").read_text(encoding="utf-8"))
    table = content[name]
    notes, likely = table.get("notes", {}), table.get("likely", {})
    rows = {
        row: {
            column: _number(text, notes.get(f"{row}/{column}", ""), likely.get(f"{row}/{column}"))
            for column, text in zip(table["columns"], cells, strict=True)
        }
        for row, cells in table["rows"].items()
    }
    parts = (content["sources"][table["source"]], table["place"], table.get("via", ""))
    return CitedTable(", ".join(filter(None, parts)), tuple(table["columns"]), rows)


def _number(text: str, note: str, likely: str | None) -> Cited:
    value = None if text == "N/A" else float(text.partition(" ± ")[0])
    return Cited(text, value, note, float(likely) if likely else None)
