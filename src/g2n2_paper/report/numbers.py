"""How numbers look in tables: digits, deviations, the best one in bold, notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from .cited import Cited

EMPTY = "–"
"""A cell that was not run."""

Digits = Callable[[float], str]
Best = Callable[[Iterable[float]], float]


@dataclass(frozen=True)
class Value:
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


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return minus(f"{value:.{decimals}f}")


def fixed(decimals: int) -> Digits:
    """Numbers with so many decimals, and commas between thousands."""
    return lambda value: minus(f"{value:,.{decimals}f}")


def minus(text: str) -> str:
    return text.replace("-", "−")


whole, r2 = fixed(0), fixed(4)


def entry(value: Value | None, digits: Digits = significant) -> TableEntry:
    """A number of ours, `mean ± deviation` if it has several seeds."""
    if value is None:
        return TableEntry(EMPTY)
    text = digits(value.mean)
    if value.spread is not None:
        text += f" ± {value.spread:.{len(text.partition('.')[2])}f}"
    return TableEntry(text, value.mean)


class Notes:
    """Remarks on published numbers, lettered in the order they appear."""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def entry(self, number: Cited) -> TableEntry:
        """A published number, with a letter if there is a remark on it."""
        if not number.note:
            return TableEntry(number.text, number.value)
        letter = self.letters.setdefault(number.note, f"({chr(ord('a') + len(self.letters))})")
        likely = number.value if number.likely is None else number.likely  # a misprint is not best
        return TableEntry(f"{number.text} {letter}", likely)


def bold(entries: Iterable[object], best: Best | None) -> list[str]:
    """Texts of some entries; the best number, and those that print the same, in bold."""
    row = [item if isinstance(item, TableEntry) else TableEntry(str(item)) for item in entries]
    values = [item.value for item in row if item.value is not None]
    top = best(values) if best and len(values) > 1 else None
    printed = {item.printed for item in row if item.value is not None and item.value == top}
    return [
        f"**{item.text}**" if item.value is not None and item.printed in printed else item.text
        for item in row
    ]


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    best_in_row: Best | None = None,
    best_in_column: Best | None = None,
) -> pd.DataFrame:
    """A table of texts with the best number of each row or column in bold."""
    lines = [list(row) for row in rows]
    if best_in_column:
        columns = [bold(column, best_in_column) for column in zip(*lines, strict=True)]
        return pd.DataFrame(dict(zip(headers, columns, strict=True)))
    return pd.DataFrame([bold(line, best_in_row) for line in lines], columns=list(headers))


def markdown(frame: pd.DataFrame) -> str:
    """A table in Markdown, columns after the first to the right."""
    align = ("left", *["right"] * (frame.shape[1] - 1))
    text: str = frame.to_markdown(index=False, disable_numparse=True, colalign=align)
    return text
