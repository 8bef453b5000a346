"""How results look in a terminal: plain text lines and a few rich tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from ..described import number_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..grammars.grammar import Grammar

UNLIMITED = 10_000
"""Columns of what is no terminal."""


def say(text: str = "") -> None:
    typer.echo(text)


def as_json(content: Any) -> None:
    say(json.dumps(content, ensure_ascii=False, indent=2))


def title(text: str) -> None:
    say(f"\n{text}\n{'─' * len(text)}")


def grammar(shown: Grammar, indent: int = 2) -> None:
    for line in shown.lines():
        say(" " * indent + line)


def table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]], narrow: int = 0) -> None:
    """A table as wide as the terminal allows; `narrow` columns from the left never wrap.

    In a file or a pipe every row is one line, unless COLUMNS says otherwise.
    """
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for place, header in enumerate(headers):
        grid.add_column(header, no_wrap=place < narrow, overflow="fold")
    for row in rows:
        grid.add_row(*row)
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = UNLIMITED
    console.print(grid)


def matrix_text(value: npt.NDArray[Any]) -> str:
    """A value, row by row, its numbers in full."""
    cells = [[number_text(x) for x in row] for row in value]
    width = max(len(cell) for row in cells for cell in row)
    return "\n".join(" ".join(cell.rjust(width) for cell in row) for row in cells)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A spinner on standard error where there is a terminal."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(escape(text)):
        yield
