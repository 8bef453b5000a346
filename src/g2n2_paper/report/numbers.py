"""How numbers look in tables: digits, deviations, the best one in bold, notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from .cited import Cited
from .frame import Value

EMPTY = "–"
"""A cell that was not run."""

Digits = Callable[[float], str]


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return minus(f"{value:.{places}f}")


def fixed(places: int) -> Digits:
    """Numbers with so many decimals, and commas between thousands."""
    return lambda value: minus(f"{value:,.{places}f}")


def minus(text: str) -> str:
    return text.replace("-", "−")


whole, r2 = fixed(0), fixed(4)


@dataclass(frozen=True)
class TableEntry:
    """Text of a table cell, and the number it is compared by, if it is one."""

    text: str
    value: float | None = None

    @property
    def printed(self) -> str:
        """The number alone, without deviation and remarks."""
        return self.text.partition(" ")[0]


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

    def __str__(self) -> str:
        return " ".join(f"{letter} {note}." for note, letter in self.letters.items())


def bold(entries: Sequence[TableEntry], best: Callable[[Iterable[float]], float]) -> list[str]:
    """Texts of some entries; the best number, and those that print the same, in bold."""
    values = [one.value for one in entries if one.value is not None]
    if len(values) < 2:
        return [one.text for one in entries]
    top = best(values)
    equal = {one.printed for one in entries if one.value == top}
    return [
        f"**{one.text}**" if one.value is not None and one.printed in equal else one.text
        for one in entries
    ]


def markdown(table: pd.DataFrame, words: bool = False) -> str:
    """A table in Markdown, columns after the first to the right unless they are `words`."""
    rest = ["left" if words else "right"] * (table.shape[1] - 1)
    text: str = table.to_markdown(index=False, disable_numparse=True, colalign=("left", *rest))
    return text
