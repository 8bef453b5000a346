"""The raw text files of a TU dataset: found in a folder or zip, parsed with file and line."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..archives import read_zip
from ..files import read_bytes
from ..graph_set import Ints

_PARTS = "graph_indicator|graph_labels|graph_attributes|node_labels|node_attributes"
_WANTED = re.compile(
    rf"_(A|{_PARTS}|edge_labels|edge_attributes)\.txt$|(^|/)10fold_idx/test_idx-\d{{1,9}}\.txt$"
)
_DEEPEST = 4
_LARGEST_WHOLE = 2.0**53  # beyond it a float no longer holds every whole number


@dataclass(frozen=True, eq=False)
class Table:
    """One text file of numbers.

    Attributes:
        file: Its name, for messages.
        values: `[rows, columns]`; blank lines are not among the rows.
        lines: `[rows]` the line each row stands on, counted from 1.
    """

    file: str
    values: NDArray[np.float64]
    lines: Ints

    @property
    def blank_lines(self) -> int:
        """Blank lines between rows; those at the end do not count."""
        return int(self.lines[-1]) - len(self.lines) if len(self.lines) else 0

    def at(self, row: int) -> str:
        """Say where a row stands: `MUTAG_A.txt, line 3`."""
        return f"{self.file}, line {self.lines[row]}"

    def integers(self, allow_missing: bool = False) -> NDArray[np.float64]:
        """The values, refused unless whole numbers, or NaN where that may stand for missing."""
        whole = (abs(self.values) <= _LARGEST_WHOLE) & (self.values == np.floor(self.values))
        if allow_missing:
            whole |= np.isnan(self.values)
        self._refuse(~whole, "a whole number")
        return self.values

    def numbers(self) -> NDArray[np.float64]:
        """The values, refused unless finite."""
        self._refuse(~np.isfinite(self.values), "a finite number")
        return self.values

    def _refuse(self, bad: NDArray[np.bool_], expected: str) -> None:
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise DataError(f"{self.at(row)}: got {self.values[row, column]}, expected {expected}")


@dataclass(frozen=True, eq=False)
class RawFiles:
    """The text files of one dataset.

    Attributes:
        name: NAME of `NAME_A.txt`.
        tables: By part: `A`, `graph_indicator`, `node_labels`, ...
        folds: Test indices by fold number, from `10fold_idx/test_idx-K.txt`.
    """

    name: str
    tables: Mapping[str, Table]
    folds: Mapping[int, Table]


def read_raw_files(source: Path | bytes, label: str, name: str | None = None) -> RawFiles:
    """Read `NAME_*.txt`, at any depth of a folder or zip down to `NAME/raw/`.

    Args:
        source: A folder, a zip file, or the content of one.
        label: What messages call it.
        name: NAME, needed where there is more than one dataset.

    Raises:
        DataError: If there is no dataset, more than one, or a line that is not numbers.
    """
    if isinstance(source, Path) and source.is_dir():
        members = dict(_folder_members(source))
    else:
        members = read_zip(source, lambda member: bool(_WANTED.search(member)), name=label)
    adjacency = {path: PurePosixPath(path) for path in members if path.endswith("_A.txt")}
    found = {path.name.removesuffix("_A.txt"): path.parent for path in adjacency.values()}
    if name is None and len(found) == 1:
        (name,) = found
    if name not in found:
        names = ", ".join(sorted(found)) or "none"
        raise DataError(
            f"{label} holds {names}, expected {name or 'one dataset'}: the files are NAME_A.txt, "
            "NAME_graph_indicator.txt and NAME_graph_labels.txt, in it or in NAME/raw/"
        )
    folder = found[name]
    tables = {
        PurePosixPath(path).name.removeprefix(f"{name}_").removesuffix(".txt"): parse_table(
            PurePosixPath(path).name, content
        )
        for path, content in members.items()
        if PurePosixPath(path).parent == folder and PurePosixPath(path).name.startswith(f"{name}_")
    }
    root = folder.parent if folder.name == "raw" else folder
    folds = {
        int(path.stem.rpartition("-")[2]): parse_table(path.name, members[str(path)])
        for path in map(PurePosixPath, members)
        if path.parent == root / "10fold_idx"
    }
    return RawFiles(name, tables, dict(sorted(folds.items())))


def parse_table(file: str, content: bytes) -> Table:
    """Parse lines of numbers, separated by commas or else by spaces.

    Raises:
        DataError: Naming the first line that has other text or another number of columns.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not text ({error})") from error
    rows = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = np.array([number for number, _ in rows], dtype=np.int64)
    if not rows:
        return Table(file, np.zeros((0, 1)), lines)
    delimiter = "," if "," in rows[0][1] else None
    try:
        values = np.loadtxt([line for _, line in rows], delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        raise _first_bad_line(file, rows, delimiter) from error
    return Table(file, values, lines)


def _first_bad_line(file: str, rows: list[tuple[int, str]], delimiter: str | None) -> DataError:
    """Find the line the parser fell over, by giving it one at a time."""
    columns = len(rows[0][1].split(delimiter))
    number, line = next(row for row in rows if not _is_row(row[1], delimiter, columns))
    return DataError(
        f"{file}, line {number}: got {line.strip()[:60]!r}, expected {columns} "
        f"number{'s' * (columns > 1)}{' with commas between' * (delimiter is not None)}"
    )


def _is_row(line: str, delimiter: str | None, columns: int) -> bool:
    try:
        return bool(np.loadtxt([line], delimiter=delimiter, comments=None).size == columns)
    except ValueError:
        return False


def _folder_members(folder: Path) -> Iterator[tuple[str, bytes]]:
    for depth in range(1, _DEEPEST):
        for path in sorted(folder.glob("/".join("*" * depth))):
            member = path.relative_to(folder).as_posix()
            if path.is_file() and _WANTED.search(member):
                yield member, read_bytes(path)
