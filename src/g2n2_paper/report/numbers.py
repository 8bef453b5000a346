"""How numbers look in tables: digits, deviations, the best one in bold, notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .cited import Cited

EMPTY = "–"
"""A cell that was not run."""
Best = Callable[[Iterable[float]], float]


class Value(NamedTuple):
    """A number over seeds: mean, standard deviation (n − 1; None for one seed) and seeds."""

    mean: float
    spread: float | None
    seeds: int


@dataclass(frozen=True)
class TableEntry:
    """Text of a table cell, and the number it is compared by, if it is one."""

    text: str
    value: float | None = None

    @property
    def printed(self) -> str:
        """The number alone, without deviation and remarks."""
        return self.text.partition(" ")[0]


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


class Notes:
    """Remarks on published numbers, lettered in the order they appear."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def entry(self, item: object) -> TableEntry:
        """An entry of anything; a published number has a letter if there is a remark on it."""
        if not isinstance(item, Cited):
            return item if isinstance(item, TableEntry) else TableEntry(str(item))
        if not item.note:
            return TableEntry(item.text, item.value)
        letter = self.letters.setdefault(item.note, f"({chr(ord('a') + len(self.letters))})")
        likely = item.value if item.likely is None else item.likely  # a misprint is not best
        return TableEntry(f"{item.text} {letter}", likely)


def bold(row: Iterable[TableEntry], best: Best | None) -> list[str]:
    """Texts of some entries; the best number, and those that print the same, in bold."""
    row = list(row)
    values = [item.value for item in row if item.value is not None]
    top = best(values) if best and len(values) > 1 else None
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
