"""Several grammars on several suites, as one table: what `g2n2.power(...)` gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, overload

from .table import HEADERS, PowerRow, cells, to_markdown


@dataclass(frozen=True)
class PowerTable(Sequence[PowerRow]):
    """Rows of a power table, suite by suite.

    Attributes:
        rows: One for each grammar and suite.
    """

    rows: tuple[PowerRow, ...]

    @overload
    def __getitem__(self, index: int) -> PowerRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PowerRow, ...]: ...
    def __getitem__(self, index: int | slice) -> PowerRow | tuple[PowerRow, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[PowerRow]:
        return iter(self.rows)

    def __str__(self) -> str:
        shown = [HEADERS, *map(cells, self.rows)]
        widths = [max(len(row[place]) for row in shown) for place in range(len(HEADERS))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in shown]
        return "\n".join(line.rstrip() for line in lines)

    def __repr__(self) -> str:
        return f"PowerTable({len(self)} rows)"

    def _repr_html_(self) -> str:
        def line(tag: str, row: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"

        rows = "".join(line("td", cells(row)) for row in self.rows)
        return f"<table>{line('th', HEADERS)}{rows}</table>"

    def to_markdown(self) -> str:
        return to_markdown(self.rows)

    def to_json(self) -> list[dict[str, Any]]:
        """What `g2n2 power --json` prints."""
        return [row.to_json() for row in self.rows]
