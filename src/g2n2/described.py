"""`Described`: gives containers a one-line `repr` and a small HTML table in notebooks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from typing import Any

from .notebook_html import facts as facts_html

MOST_NAMES = 4


class Described:
    """A container with a short `repr` and an HTML table, both made of its `facts`.

    A dataclass that inherits it says `repr=False`, or its own `repr` would print every array.
    """

    def facts(self) -> dict[str, str]:
        """What a reader wants to know first: a word and its value, a few of them."""
        raise NotImplementedError

    def drawing(self) -> str:
        """HTML below the table: nothing, unless a container draws what it holds."""
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in self.facts().items())})"

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, self.facts(), self.drawing())


def some(names: Iterable[str]) -> str:
    """The first few names, each cut to a readable length, and how many more there are."""
    listed = [name if len(name) <= 40 else name[:37] + "..." for name in names]
    rest = len(listed) - MOST_NAMES
    return " ".join(listed[:MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "") or "none"


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows of text in columns two spaces apart; those whose numbers are in `right` end together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        padded = (
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(padded).rstrip())
    return lines


def counted(number: int, what: str) -> str:
    """`1 graph`, `2,000 graphs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def shown_number(text: str) -> str:
    """A number as people read it: a minus sign, none before zero; files keep the hyphen."""
    digits = text.removeprefix("-")
    return digits if digits == text or not digits.strip("0.") else f"\N{MINUS SIGN}{digits}"


def number_text(x: Any) -> str:
    """An integer as one, anything else with enough digits to tell it apart."""
    if isinstance(x, int | Fraction):
        return shown_number(str(x))
    value = float(x)
    whole = value.is_integer() and abs(value) < 2**53
    return shown_number(str(int(value)) if whole else repr(value))


def signed(value: float, digits: int) -> str:
    """A contribution, `+0.40` with two digits: all of them, and a sign."""
    return f"{value:+#.{digits}g}".removesuffix(".")


def shape(values: Any) -> str:
    """The shape of an array or a tensor, `none` where there is no such thing."""
    return "none" if values is None else str(list(values.shape))


def span(least: int, most: int) -> str:
    """`3…29`, or one number where both are the same."""
    return f"{least:,}" if least == most else f"{least:,}…{most:,}"


def flops_text(number: float) -> str:
    """Operations with a unit: `1.23 GFLOPs`."""
    return _scaled(number, 1000, ("", "K", "M", "G", "T", "P")) + "FLOPs"


def bytes_text(number: float) -> str:
    """Bytes with a unit: `1.23 GiB`."""
    return _scaled(number, 1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi")) + "B"


def _scaled(number: float, base: int, units: tuple[str, ...]) -> str:
    value, unit = float(number), 0
    while value >= base - 0.5 and unit < len(units) - 1:
        value, unit = value / base, unit + 1
    digits = 0 if unit == 0 or value >= 99.5 else 1 if value >= 9.95 else 2
    return f"{value:.{digits}f} {units[unit]}"
