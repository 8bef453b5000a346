"""The first sheet of an Excel workbook (.xlsx, .xlsm) as rows of text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...input_files import printable
from ..archives import check_zip

EXCEL_ERRORS = frozenset({"#n/a", "#null!", "#div/0!", "#value!", "#ref!", "#name?", "#num!"})
"""What a formula without a value shows, in lower case; read as a missing value."""


def is_workbook(name: str) -> bool:
    """Whether the ending is that of a workbook that can be read."""
    return name.lower().endswith((".xlsx", ".xlsm"))


def sheet_notes(name: str) -> tuple[str, ...]:
    """Which sheet is read, where there are several."""
    with _workbook(name) as book:
        sheet = _first_sheet(book, name)
        others = [other.title for other in book.worksheets if other is not sheet]
    if not others:
        return ()
    return (f"Sheet {sheet.title!r} is read; {', '.join(map(repr, others))} not.",)


def sheet_cells(name: str) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each row of the first visible sheet, the header first.

    A row has as many cells as the header, or more if there is something in them.
    """
    with _workbook(name) as book:
        sheet = _first_sheet(book, name)
        sheet.reset_dimensions()  # what a file says of its own size may be wrong
        width = 0
        for number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
            cells = list(map(_text, values))
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                width = width or len(cells)
                yield number, [*cells, *repeat("", width - len(cells))]


def _text(value: Any) -> str:
    """A cell as Excel writes it into a CSV file, but with all digits."""
    if value is None or str(value).lower() in EXCEL_ERRORS:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    return str(value).strip()


def _first_sheet(book: Any, name: str) -> Any:
    visible = (sheet for sheet in book.worksheets if sheet.sheet_state == "visible")
    sheet = next(chain(visible, book.worksheets), None)
    if sheet is None:
        raise DataError(f"{name} has no sheet with cells; expected a header and one row per record")
    return sheet


@contextmanager
def _workbook(name: str) -> Iterator[Any]:
    """A workbook with the values of its formulas; what is broken, now or later, is a DataError."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError(
            f"{name} is a workbook, which openpyxl reads: pip install 'g2n2[chem]', or save it as "
            "CSV"
        ) from None
    check_zip(Path(name))
    book = None
    try:
        book = load_workbook(name, read_only=True, data_only=True)
        yield book
    except DataError:
        raise
    except Exception as error:  # openpyxl lets the errors of each of its parts through
        raise DataError(
            f"{name} cannot be read as a workbook ({printable(str(error))}): open it and save it "
            "again, or as CSV"
        ) from error
    finally:
        if book is not None:
            book.close()
