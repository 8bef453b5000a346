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
    """One published number."""

    text: str  # as printed, such as `92.5 ± 4.3`
    value: float | None  # the number; None if the source has none
    note: str = ""  # a remark on it
    likely: float | None = None  # what it should have been, if it is a misprint

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

    def number(key: str, text: str) -> Cited:
        value = None if text == "N/A" else float(text.partition(" ± ")[0])
        return Cited(text, value, notes.get(key, ""), float(likely[key]) if key in likely else None)

    rows = {
        row: {c: number(f"{row}/{c}", t) for c, t in zip(table["columns"], texts, strict=True)}
        for row, texts in table["rows"].items()
    }
    parts = (content["sources"][table["source"]], table["place"], table.get("via", ""))
    return CitedTable(", ".join(filter(None, parts)), tuple(table["columns"]), rows)
