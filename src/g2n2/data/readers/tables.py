"""CSV, Excel and `.smi` files as tables of text, checked row by row.

Other modules interpret the cells.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import DataError, guess
from ...graphs.text import DECIMAL_COMMA
from ...input_files import open_text, require_readable_at_once
from .workbooks import EXCEL_ERRORS, is_workbook, sheet_cells, sheet_notes

MISSING = EXCEL_ERRORS | {"", "na", "n/a", "nan", "<na>", "null", "none", "?", "-"}
SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "smi", "molecule", "mol")
GRAPH_NAMES = ("graph", "graph_id", "graph_index")
EDGE_LIST_NAMES = (GRAPH_NAMES, ("source", "src", "from"), ("target", "dst", "to"))
WITH_POINT = "write numbers with a decimal point, as in 0.5, and without commas between thousands"
ROWS_AT_ONCE = 4096
"""Rows in memory while a file is scanned."""
_SEPARATOR_ROWS = 20  # first rows by which it is found
_THOUSANDS = re.compile(r"[+\-\N{MINUS SIGN}]?[1-9]\d{0,2}(?:,\d{3})+")
# One of these makes a first line a header even if other columns are called 0, 1, 2.
_USUAL_NAMES = frozenset({"smiles", "mol", "molecule", "id", "index", "name", "graph"})


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of text with the place of each row."""

    name: str  # the file, as the user wrote it
    # column name to its cells; the names are distinct and not empty
    columns: Mapping[str, Sequence[str]]
    places: Sequence[str] = ()  # where each row is in the file, such as `line 3`
    # number of each row in the input, from 0; rows that were left out are counted
    rows: Sequence[int] = ()
    records: Sequence[Any] = ()  # what else each row holds, such as a molecule of an SDF; or None

    def __len__(self) -> int:
        return len(self.places)

    def find(self, name: str, use: str = "") -> str:
        """The column's own spelling of a name given in any case; `use` is for the error."""
        if name in self.columns:
            return name
        by_lower = {column.lower(): column for column in self.columns}
        if name.lower() in by_lower:
            return by_lower[name.lower()]
        hint = guess(name, self.columns) or f"; its columns are {shortened(self.columns)}"
        raise DataError(f"{self.name} has no column {name!r}{use}{hint}")

    def joined(self, names: Sequence[str]) -> list[str]:
        """The columns to be joined as graph features, each once."""
        positions = [self.find(name, ", to be joined as a number of each row") for name in names]
        if len(set(positions)) != len(positions):
            raise DataError(f"a column to be joined is named twice in {shortened(names)}")
        return positions

    def first_of(self, names: Iterable[str]) -> str | None:
        """The first of several usual names that is a column here, in the column's spelling."""
        by_lower = {column.lower().replace(" ", "_"): column for column in [*self.columns][::-1]}
        return next((by_lower[name] for name in names if name in by_lower), None)

    def is_edge_list(self) -> bool:
        """Whether it has the columns of an edge list."""
        return all(self.first_of(names) for names in EDGE_LIST_NAMES)

    def keep(self, rows: Sequence[int]) -> Table:
        """The table with only these rows."""
        if len(rows) == len(self):
            return self
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        places, numbers = [self.places[row] for row in rows], [self.rows[row] for row in rows]
        return Table(self.name, columns, places, numbers, [self.records[row] for row in rows])


class RecordFile(NamedTuple):
    """A file of records with cells of text, read from the beginning any number of times."""

    name: str  # the file, as the user wrote it
    columns: tuple[str, ...]  # names of the columns
    rows: Callable[[], Iterator[tuple[str, list[str], Any]]]  # place, cells and record of each
    notes: tuple[str, ...] = ()  # what the user should know of it

    def header(self) -> Table:
        """The columns alone."""
        return Table(self.name, dict.fromkeys(self.columns, ()))

    def blocks(self, size: int = ROWS_AT_ONCE, start: int = 0) -> Iterator[Table]:
        """The rows from number `start` on, `size` at a time."""
        rows = islice(self.rows(), start, None)
        while block := list(islice(rows, size)):
            places, cells, records = zip(*block, strict=True)
            columns = dict(zip(self.columns, zip(*cells, strict=True), strict=True))
            numbers = range(start, start + len(block))
            yield Table(self.name, columns, places, numbers, records)
            start += len(block)

    def read(self) -> Table:
        """All rows."""
        require_readable_at_once(self.name)
        if (table := next(self.blocks(sys.maxsize), None)) is None:
            raise DataError(f"{self.name} is empty; expected at least one row or molecule")
        return table


def read_table(path: str | Path) -> Table:
    """Read a whole CSV, Excel or `.smi` file."""
    return open_table(path).read()


def open_table(path: str | Path) -> RecordFile:
    """Read the header of a table; a `.smi` file has the column `name` if every molecule has one."""
    name = str(path)
    if name.lower().removesuffix(".gz").endswith((".smi", ".smiles")):
        columns = ("smiles", "name")[: min(len(cells) for _, cells, _ in _smi_rows(name, 2))]
        return RecordFile(name, columns, partial(_smi_rows, name, len(columns)))
    if is_workbook(name):
        read, place, notes = partial(sheet_cells, name), "row", sheet_notes(name)
    else:
        separator = _separator(name)
        read, place, notes = partial(_csv_cells, name, separator), "line", ()
        if separator == ";" and (example := _decimal_comma_of(read())):
            read = partial(_with_decimal_points, read)
            notes = (f"The numbers of {name} are read with a decimal comma, as in {example!r}.",)
    header = next(read(), (0, []))[1]
    _check_header(name, header)
    rows = partial(_checked_rows, name, place, header, read)
    return RecordFile(name, tuple(header), rows, notes)


def _separator(name: str) -> str:
    """What separates the cells: it cuts the first rows into equally many, and into the most."""
    with open_text(name, newline="") as lines:
        head = [line for line in islice(lines, _SEPARATOR_ROWS) if line.strip()] or [","]
    present = [mark for mark in (",", ";", "\t") if mark in head[0]]
    # a bar comes last, as |x| may be part of a name
    present = present or (["|"] if "|" in head[0] else [","])
    return max(present, key=partial(_cells_of_each, head))


def _cells_of_each(head: Sequence[str], separator: str) -> tuple[int, int]:
    """Cells of each of some first rows, 0 if they have different numbers, and of the first one."""
    count = head[0].count(separator)
    with suppress(csv.Error):
        widths = {len(row) for row in csv.reader(head, delimiter=separator)}
        return widths.pop() if len(widths) == 1 else 0, count
    return 0, count


def _csv_cells(name: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row, the header first.

    Empty cells at the ends of rows, beyond those that have a name in the header, are dropped.
    """
    with open_text(name, newline="") as lines:
        rows = csv.reader(lines, delimiter=separator, strict=True)
        width = 0
        try:
            for row in rows:
                cells = [cell.strip() for cell in row]
                while len(cells) > width and not cells[-1]:
                    cells.pop()
                if width or cells not in ([], ["sep="]):  # Excel's line on the separator
                    width = width or len(cells)
                    yield rows.line_num, cells
        except csv.Error as error:
            raise DataError(
                f"{name}, line {rows.line_num}: {error}; expected plain CSV, "
                "so look for a quote that is never closed"
            ) from error


def _decimal_comma_of(rows: Iterator[tuple[int, list[str]]]) -> str:
    """A number written `0,5`, if all numbers with a fraction are; else nothing.

    `1,234` alone may as well be a thousand, and a number with a point shows that commas are none.
    """
    example, quantities = "", _quantities(next(rows, (0, []))[1])
    for _, cells in rows:
        for cell in (cells[column] for column in quantities if column < len(cells)):
            if "." in cell and is_number(cell):
                return ""
            if "," in cell and not _THOUSANDS.fullmatch(cell) and DECIMAL_COMMA.fullmatch(cell):
                example = example or cell
    return example


def _with_decimal_points(
    read: Callable[[], Iterator[tuple[int, list[str]]]],
) -> Iterator[tuple[int, list[str]]]:
    rows = read()
    header = next(rows)
    yield header
    quantities = _quantities(header[1])
    for number, cells in rows:
        for column in quantities:
            if column < len(cells) and DECIMAL_COMMA.fullmatch(cells[column]):
                cells[column] = cells[column].replace(",", ".")
        yield number, cells


def _quantities(header: Sequence[str]) -> list[int]:
    """The columns that may hold quantities: those that are not called as ids or names are."""
    return [column for column, name in enumerate(header) if name.lower() not in _USUAL_NAMES]


def _checked_rows(
    name: str, place: str, header: list[str], read: Callable[[], Iterator[tuple[int, list[str]]]]
) -> Iterator[tuple[str, list[str], None]]:
    empty, rows, width = True, read(), len(header)
    next(rows)
    for number, cells in rows:
        if not any(cells):
            continue
        if len(cells) != width:
            hint = "; put text that holds a separator in quotes" if place == "line" else ""
            if len(cells) < width:
                hint = "; end it with separators where its last values are missing"
            elif width == 1:
                hint = f" {header[0]!r}; the first line should be the names of the columns"
            raise DataError(
                f"{name}, {place} {number}: got {len(cells)} cells, expected {width} as in the "
                f"header{hint}"
            )
        empty = False
        yield f"{place} {number}", cells, None
    if empty:
        raise DataError(f"{name} has a header and no row; expected one row per record")


def _smi_rows(name: str, width: int) -> Iterator[tuple[str, list[str], None]]:
    """Each line is a SMILES and, after white space, an optional name; `#` starts a comment."""
    first = empty = True
    with open_text(name) as lines:
        for number, line in enumerate(lines, start=1):
            cells = line.split(None, 1)
            if not cells or line.startswith("#"):
                continue
            is_header, first = first and cells[0].lower() in SMILES_NAMES, False
            if not is_header:
                empty = False
                yield f"line {number}", [cell.strip() for cell in cells[:width]], None
    if empty:
        raise DataError(f"{name} is empty; expected one SMILES per line")


def _check_header(name: str, header: list[str]) -> None:
    """Refuse a header no column can be named by; name the index column pandas leaves unnamed."""
    if not any(header):
        raise DataError(f"{name} is empty; expected a header and one row per record")
    if not header[0]:
        header[0] = "index"
    if "" in header:
        raise DataError(f"{name}: column {header.index('') + 1} has no name; name it in the header")
    if repeated := [cell for number, cell in enumerate(header) if cell in header[:number]]:
        raise DataError(f"{name} has two columns {repeated[0]!r}; expected distinct names")
    named = any(cell.lower() in _USUAL_NAMES for cell in header)
    if not named and any(map(is_number, header)):
        raise DataError(
            f"{name} begins with {shortened(header)}: numbers where column names are expected; "
            "add a header such as id,smiles,y as its first line"
        )


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.lower() in MISSING


def is_number(cell: str) -> bool:
    """Whether a cell is a number, and not a missing value."""
    try:
        number_of(cell)
    except ValueError:
        return False
    return not is_missing(cell)


def number_of(cell: str) -> float:
    """The number of a cell, as `2.5`, `−2.5` or `1e-3`; a ValueError if it holds none.

    Codes such as `12_3`, which Python would read as 123, are text.
    """
    if "_" in cell:
        raise ValueError(cell)
    return float(cell.replace("\N{MINUS SIGN}", "-"))


def is_text(cell: str) -> bool:
    """Whether a cell is neither a number nor missing."""
    return not is_missing(cell) and not is_number(cell)


def finite_number(cell: str, column: str) -> float:
    """The number of a cell; a DataError names the column if it holds none."""
    if is_number(cell) and math.isfinite(value := number_of(cell)):
        return value
    got = repr(cell) if cell else "empty"
    hint = f": {WITH_POINT}" if DECIMAL_COMMA.fullmatch(cell) else ""
    raise DataError(f"{column} is {got}, expected a finite number{hint}")


def decimal_comma(cells: Sequence[str]) -> int | None:
    """The first row written `0,5` in a column that is otherwise of numbers; None without one."""
    first = None
    for row, cell in enumerate(cells):
        if DECIMAL_COMMA.fullmatch(cell):
            first = row if first is None else first
        elif is_text(cell):
            return None
    return first


def shortened(names: Iterable[str]) -> str:
    """Names joined by commas, the first dozen of them."""
    listed = list(names)
    return ", ".join(listed[:12]) + (f" and {len(listed) - 12} more" if len(listed) > 12 else "")
