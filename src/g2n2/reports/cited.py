"""Published columns, read from `cited.toml`: the only results typed by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

MISSING = "N/A"
KERNELS = ("WL kernel", "GNTK")
"""Rows of the table of TU that are no GNN."""


@dataclass(frozen=True)
class Cited:
    """One published number.

    Attributes:
        text: As printed, such as `92.5 ± 4.3`.
        value: The number; None where the source has none.
        spread: What follows ±.
        note: What a reader must know of it.
        likely: What it should have been, where it is a misprint.
    """

    text: str
    value: float | None
    spread: float | None = None
    note: str = ""
    likely: float | None = None

    @property
    def bar(self) -> float | None:
        """What a number of ours is held against."""
        return self.value if self.likely is None else self.likely


@dataclass(frozen=True)
class CitedTable:
    """One published table.

    Attributes:
        title: What is measured, and in what.
        source: The publication.
        place: Its table there.
        via: Where it was read, when not there.
        better: `lower` or `higher`.
        columns: In the source's order.
        rows: Row to column to number.
    """

    title: str
    source: str
    place: str
    better: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Cited]]
    via: str = ""

    def at(self, row: str, column: str) -> Cited:
        return self.rows[row][column]

    def best(self, column: str, without: tuple[str, ...] = ()) -> tuple[str, float]:
        """The row that leads a column, and its value."""
        known = {row: cells[column].value for row, cells in self.rows.items() if row not in without}
        choose = min if self.better == "lower" else max
        return choose(
            ((row, value) for row, value in known.items() if value is not None),
            key=lambda pair: pair[1],
        )

    @property
    def citation(self) -> str:
        return ", ".join(filter(None, (self.source, self.place, self.via)))


@cache
def cited(name: str) -> CitedTable:
    """The published table of that name."""
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
    return CitedTable(
        title=table["title"],
        source=content["sources"][table["source"]],
        place=table["place"],
        better=table["better"],
        columns=tuple(table["columns"]),
        rows=rows,
        via=table.get("via", ""),
    )


def _number(text: str, note: str, likely: str | None) -> Cited:
    if text == MISSING:
        return Cited(text, None, note=note)
    value, _, spread = text.partition(" ± ")
    return Cited(
        text,
        float(value),
        float(spread) if spread else None,
        note,
        float(likely) if likely else None,
    )
