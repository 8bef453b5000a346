"""The columns beside the graphs: ids, targets and splits of a table with one row per graph."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs.text import DECIMAL_COMMA
from ..graph_set import Ints, Target
from .options import Options
from .tables import WITH_POINT, Table, decimal_comma, is_missing, is_number, shortened
from .targets import from_cells, infer_together, numbers

ID_NAMES = ("id", "mol_id", "molecule_id", "compound_id", "graph_id", "name", "index", "idx")
SPLIT_NAMES = ("split", "subset", "partition", "fold")
PARTS = {
    "train": "train",
    "training": "train",
    "valid": "validation",
    "validation": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}


@dataclass(frozen=True, eq=False)
class Labels:
    """What a table says of each graph; the fields are those of `GraphSet`."""

    ids: tuple[str, ...]
    targets: NDArray[np.float64]
    columns: tuple[Target, ...]
    splits: Mapping[str, Ints]
    notes: tuple[str, ...]
    split_column: str | None


def read_labels(table: Table, options: Options, used: Collection[str]) -> Labels:
    """Read ids, targets and splits from the columns of a table that hold no graphs.

    Args:
        table: One row per graph.
        options: What the user said: `target`, `task`, `id`, `split_column`.
        used: Columns that hold the graphs themselves.

    Raises:
        DataError: If a column the user named does not exist or does not fit its use.
    """
    free = [column for column in table.columns if column not in used]
    wanted = None if options.target is None else [table.find(name) for name in options.target]
    split_column, splits = _splits(table, options, [c for c in free if c not in (wanted or ())])
    open_for_id = [c for c in free if c != split_column and c not in (wanted or ())]
    id_column, usual = _id_column(table, options, open_for_id, _facts_in(table))
    ids = tuple(table.columns[id_column]) if id_column else tuple(map(str, table.rows))
    notes = [f"Column {id_column} gives the ids."] if id_column else []
    if id_column is None and usual:
        why = _why_no_ids(table.columns[usual[0]])
        notes.append(f"Column {usual[0]} gives no ids, as {why}: rows are numbered from 0.")
    if split_column:
        notes.append(f"Column {split_column} gives the split.")
    if wanted is None:
        rest = [column for column in free if column not in (id_column, split_column)]
        wanted, left_out = _numeric(table, rest)
        notes += left_out
        if not wanted:
            texts = f" (of text: {shortened(rest)})" if rest else ""
            notes.append(f"No column of numbers is left to predict{texts}.")
    else:
        _check_wanted(table, wanted, used)
    values, columns, more = infer_together(
        [from_cells(name, table.columns[name], table.places, options.task) for name in wanted]
    )
    targets = values if columns else np.zeros((len(table), 0))
    return Labels(ids, targets, columns, splits, (*notes, *more), split_column)


def row_names(table: Table, options: Options, used: Collection[str]) -> tuple[str, ...]:
    """What the user calls each row: the cells of the id column, repeated or empty as they stand."""
    column = naming_column(table, options, used, _facts_in(table))
    return tuple(table.columns[column]) if column else tuple(map(str, table.rows))


def naming_column(
    table: Table, options: Options, used: Collection[str], facts_of: FactsOf
) -> str | None:
    """The column by which the user knows the rows of a table; None where they have numbers only.

    Args:
        table: Its columns; the rows may be elsewhere.
        options: What the user said: `id`, `target`.
        used: Columns that hold the graphs themselves.
        facts_of: Looks through all rows of some columns.

    Raises:
        DataError: If a column the user named does not exist.
    """
    targets = {table.find(name) for name in options.target or ()}
    free = [column for column in table.columns if column not in {*used, *targets}]
    chosen, usual = _id_column(table, options, free, facts_of)
    return chosen or next(iter(usual), None)


class ColumnFacts:
    """What can be said of a column once all its cells were seen; eight bytes are kept of each."""

    def __init__(self) -> None:
        self.rows = self.missing = self.odd = self.commas = 0
        self._hashes = array("q")

    def seen(self, cells: Sequence[str]) -> ColumnFacts:
        """Take note of further cells."""
        self.rows += len(cells)
        self._hashes.extend(map(hash, cells))
        for cell in cells:
            if is_missing(cell):
                self.missing += 1
                continue
            self.odd += not is_number(cell)
            self.commas += DECIMAL_COMMA.fullmatch(cell) is not None
        return self

    @property
    def all_missing(self) -> bool:
        return self.missing == self.rows

    @property
    def of_text(self) -> bool:
        """Whether most cells are text that is no number written with a comma."""
        return 2 * self.odd > self.rows and self.commas < self.odd

    @cached_property
    def repeated_hashes(self) -> frozenset[int]:
        """`hash` of the cells that occur more than once."""
        ranked = np.sort(np.frombuffer(self._hashes, dtype=np.int64))
        return frozenset(np.unique(ranked[1:][ranked[1:] == ranked[:-1]]).tolist())

    @property
    def distinct(self) -> bool:
        """Whether the cells tell rows apart."""
        return not self.missing and not self.repeated_hashes


FactsOf = Callable[[Collection[str]], Mapping[str, ColumnFacts]]


def _facts_in(table: Table) -> FactsOf:
    return lambda columns: {name: ColumnFacts().seen(table.columns[name]) for name in columns}


def part_of(names: Sequence[str], where: str) -> dict[str, Ints]:
    """Rows by part of the split: `train`, `validation` and `test`, or `fold-1`, `fold-2`, ….

    Raises:
        DataError: If a cell names no part.
    """
    folds = numbers(names)
    if folds is not None and not np.isnan(folds).any() and len(np.unique(folds)) > 1:
        return {
            f"fold-{number}": np.flatnonzero(folds == fold)
            for number, fold in enumerate(np.unique(folds), start=1)
        }
    parts: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if is_missing(name):
            continue
        if name.lower() not in PARTS:
            raise DataError(
                f"{where}: {name!r} is no part of a split; expected train, validation or test, "
                "a fold number, or nothing for a graph to leave out"
            )
        parts.setdefault(PARTS[name.lower()], []).append(row)
    return {part: np.array(rows, dtype=np.int64) for part, rows in parts.items()}


def _splits(
    table: Table, options: Options, free: Sequence[str]
) -> tuple[str | None, dict[str, Ints]]:
    if options.split_column is not None:
        column = table.find(options.split_column)
        return column, part_of(table.columns[column], f"column {column} of {table.name}")
    for column in free:
        cells = {cell.lower() for cell in table.columns[column]}
        if column.lower() in SPLIT_NAMES and cells <= PARTS.keys() and len(cells) > 1:
            return column, part_of(table.columns[column], column)
    return None, {}


def _id_column(
    table: Table, options: Options, free: Sequence[str], facts_of: FactsOf
) -> tuple[str | None, list[str]]:
    """The column named, one with a usual name, or the first of text; all distinct unless named.

    Text is no id where a column is called one, even if that one cannot tell rows apart. Columns
    called as ids are, but for empty ones such as the titles of most SDF files, come with it.
    """
    if options.id is not None:
        return table.find(options.id), []
    facts = facts_of([column for name in ID_NAMES for column in free if column.lower() == name])
    usual = [column for column, found in facts.items() if not found.all_missing]
    if not usual:
        facts = facts_of(free)
    candidates = usual or [column for column, found in facts.items() if found.of_text]
    return next((column for column in candidates if facts[column].distinct), None), usual


def _why_no_ids(cells: Sequence[str]) -> str:
    """Why cells cannot tell rows apart; empty where they can."""
    if any(map(is_missing, cells)):
        return "a cell is empty"
    repeated = next((cell for cell, count in Counter(cells).items() if count > 1), None)
    return "" if repeated is None else f"{repeated!r} occurs more than once"


def _numeric(table: Table, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns that hold numbers, and a note on each that nearly does."""
    chosen, notes = [], []
    for column in columns:
        cells = table.columns[column]
        if (values := numbers(cells)) is not None:
            if not np.isnan(values).all():
                chosen.append(column)
            continue
        if (row := decimal_comma(cells)) is not None:
            notes.append(
                f"Column {column} is left out: {cells[row]!r} ({table.places[row]}) has a comma; "
                f"{WITH_POINT}."
            )
            continue
        odd = _odd(cells)
        if len(odd) < len(cells) / 2:
            notes.append(
                f"Column {column} is left out: {len(odd)} of its {len(cells)} values are no "
                f"numbers ({table.places[odd[0]]}: {cells[odd[0]]!r})."
            )
    return chosen, notes


def _odd(cells: Sequence[str]) -> list[int]:
    """Rows whose cell is no number and not empty."""
    return [row for row, cell in enumerate(cells) if numbers([cell]) is None]


def _check_wanted(table: Table, wanted: Sequence[str], used: Collection[str]) -> None:
    if both := [column for column in wanted if column in used]:
        raise DataError(f"column {both[0]!r} of {table.name} holds the graphs, not a target")
    if len(set(wanted)) != len(wanted):
        raise DataError(f"a target is named twice in {shortened(wanted)}; name each once")
