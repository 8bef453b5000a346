"""How numbers look in a table: digits, deviations, the best one, what is not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..demonstration.blocks import Table
from .cited import Cited
from .standings import Measured, Standing

EMPTY = "–"
"""A cell the tables have a place for and nobody has run."""
OPTIONAL = "·"
"""A cell that is not asked for."""
PARTIAL = " ◐"
"""Behind a number that less than the full protocol stands behind."""
LEGEND = (
    f"`{EMPTY}` not run yet; `{OPTIONAL}` optional and not run; `◐` partial: stopped before the "
    "end, with fewer seeds, a smaller budget or earlier settings than the full one; ± is the "
    "standard deviation over seeds, or over folds where a table says so."
)

Digits = Callable[[float], str]


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, never with an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}".replace("-", "−")


def fixed(places: int) -> Digits:
    """Numbers with so many decimals, and commas between thousands."""
    return lambda value: f"{value:,.{places}f}".replace("-", "−")


@dataclass(frozen=True)
class Entry:
    """A table cell and, where it is a number, the number it is compared by."""

    text: str
    value: float | None = None

    @property
    def printed(self) -> str:
        """The number alone, as it is read: no deviation, no mark, no remark."""
        return self.text.partition(" ")[0]


def entry(measured: Measured | None, digits: Digits = significant, absent: str = EMPTY) -> Entry:
    """A number of ours: centre ± deviation, marked where partial."""
    if measured is None:
        return Entry(absent)
    text = digits(measured.value)
    if measured.spread is not None:
        places = len(text.partition(".")[2])
        text += f" ± {measured.spread:.{places}f}"
    return Entry(text + mark(measured), measured.value)


def mark(found: Measured | Standing) -> str:
    """What follows a number that less than the full protocol stands behind."""
    return PARTIAL if found.partial else ""


def mean_entry(
    standing: Standing | None, metric: str, digits: Digits = significant, absent: str = EMPTY
) -> Entry:
    """The mean of a cell's metric; `absent` where there is no such cell or metric."""
    return entry(standing.mean(metric) if standing else None, digits, absent)


@dataclass
class Notes:
    """Remarks on published numbers, lettered in the order they are met."""

    marks: dict[str, str] = field(default_factory=dict)

    def entry(self, number: Cited) -> Entry:
        """A published number, with a letter where there is something to say of it."""
        if not number.note:
            return Entry(number.text, number.value)
        mark = self.marks.setdefault(number.note, f"({chr(ord('a') + len(self.marks))})")
        return Entry(f"{number.text} {mark}", number.bar)  # a misprint is no best number

    def __str__(self) -> str:
        return " ".join(f"{mark} {note}." for note, mark in self.marks.items())


Row = tuple[str, Sequence[Entry]]


def best_of_rows(headers: Sequence[str], rows: Sequence[Row], better: str) -> Table:
    """A table with the best number of each row in bold."""
    lines = tuple((name, *bold(entries, better)) for name, entries in rows)
    return Table(tuple(headers), lines)


def best_of_columns(headers: Sequence[str], rows: Sequence[Row], better: str) -> Table:
    """A table with the best number of each column in bold."""
    columns = [bold(column, better) for column in zip(*(e for _, e in rows), strict=True)]
    lines = zip((name for name, _ in rows), *columns, strict=True)
    return Table(tuple(headers), tuple(lines))


def plain(headers: Sequence[str], rows: Sequence[Row]) -> Table:
    """A table in which nothing is compared."""
    return Table(tuple(headers), tuple((name, *(e.text for e in row)) for name, row in rows))


def bold(entries: Sequence[Entry], better: str) -> list[str]:
    """The texts of some entries, in bold the best number among them and what is printed alike."""
    values = [one.value for one in entries if one.value is not None]
    if len(values) < 2:
        return [one.text for one in entries]
    best = min(values) if better == "lower" else max(values)
    alike = {one.printed for one in entries if one.value == best}
    return [
        f"**{one.text}**" if one.value is not None and one.printed in alike else one.text
        for one in entries
    ]
