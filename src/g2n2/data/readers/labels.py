"""Ids, targets and splits: the columns of a table beside the graphs, and arrays of targets."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs.text import DECIMAL_COMMA
from ..graph_set import Ints, Target
from . import SHOWN, Options, Task
from .tables import (
    WITH_POINT,
    Table,
    decimal_comma,
    is_missing,
    is_number,
    is_text,
    number_of,
    shortened,
)

Values = NDArray[np.float64]
Column = tuple[Values, Target]
_ID_NAMES = ("id", "mol_id", "molecule_id", "compound_id", "graph_id", "name", "index", "idx")
# of an index that pandas wrote, read and wrote again, up to three times
_INDEX_NAMES = ("unnamed: 0", "unnamed: 0.1", "unnamed: 0.2")
_SPLIT_NAMES = ("split", "subset", "partition", "fold")
PART_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_MOST_CLASSES = 100
MOST_SLIPS = 0.1
"""Share of a target's values that may be no numbers, as slips; more of them are refused."""
# One of these is the class 1 of two; any other two words are in alphabetical order.
_POSITIVE = frozenset({"yes", "y", "true", "t", "positive", "pos", "active", "toxic", "+"})
_WITH_UNIT = re.compile(
    r"[<>≤≥~]?\s*[+\-\N{MINUS SIGN}]?\d*[.,]?\d+(?:[eE][+-]?\d+)?\s*(?P<unit>[^\W\d_].*|[%‰°].*)"
)
_MULTICLASS = "--task multiclass (task='multiclass')"
_CLASS_NAMES = frozenset({"class", "label", "category", "classes", "labels"})


def read_labels(
    table: Table,
    options: Options,
    used: Collection[str],
    joined: Collection[str],
    naming: str | None,
) -> dict[str, Any]:
    """Fields of `GraphSet` from a table of one row per graph: ids, targets, columns, splits, notes.

    `source` has the name of the split column; `used` are columns that hold the graphs themselves,
    `joined` are features, and `naming` is the `naming_column`, whose cells are ids if distinct.
    """
    wanted = None if options.target is None else [table.find(name) for name in options.target]
    if both := [column for column in wanted or () if column in used]:
        raise DataError(f"column {both[0]!r} of {table.name} holds the graphs, not a target")
    if both := [column for column in wanted or () if column in joined]:
        raise DataError(f"column {both[0]!r} is joined, so it cannot be the target too")
    used = {*used, *joined}
    if wanted and len(set(wanted)) != len(wanted):
        raise DataError(f"a target is named twice in {shortened(wanted)}; name each once")
    free = [column for column in table.columns if column not in {*used, *(wanted or ())}]
    notes: list[str] = []
    split_column, splits = stored_split(table, options, free, notes)
    free = [column for column in free if column != split_column]
    id_column = naming
    if naming is not None:
        cells = table.columns[naming]
        repeated = [cell for cell, count in Counter(cells).items() if count > 1]
        empty = any(map(is_missing, cells))
        if options.id is None and (empty or repeated):
            why = f"{repeated[0]!r} occurs more than once" if repeated else ""
            if empty:
                written = next((cell for cell in cells if cell and is_missing(cell)), "")
                why = f"{written!r} stands for an empty cell" if written else "a cell is empty"
            notes.append(f"Column {naming} gives no ids, as {why}: rows are numbered from 0.")
            id_column = None
        else:
            notes.append(f"Column {naming} gives the ids.")
    if split_column:
        notes.append(f"Column {split_column} gives the split.")
    if wanted is None:
        free = [column for column in free if column != id_column]
        no_targets = (*_ID_NAMES, *_INDEX_NAMES, *_SPLIT_NAMES)
        by_name = [column for column in free if column.lower() in no_targets]
        for column in _numeric(table, by_name, options, []):
            what = "folds" if column.lower() in _SPLIT_NAMES else "ids"
            notes.append(
                f"Column {column} has a name of {what}: it is learned only if it is a --target."
            )
        free = [column for column in free if column not in by_name]
        wanted = _numeric(table, free, options, notes)
        if not wanted:
            texts = [column for column in free if any(map(is_text, table.columns[column]))]
            listed = f" (of text: {shortened(texts)})" if texts else ""
            notes.append(f"No column of numbers is left to predict{listed}.")
    fields = targets_of_columns(table, wanted, options)
    ids = table.columns[id_column] if id_column else map(str, table.rows)
    fields |= {"ids": tuple(ids), "splits": splits, "source": {"split_column": split_column}}
    return {**fields, "notes": [*notes, *fields["notes"]]}


class ColumnFacts:
    """Counts over the cells of a column, with a hash of each cell."""

    def __init__(self) -> None:
        self.rows = self.missing = self.texts = self.commas = 0
        self._hashes = array("q")

    def seen(self, cells: Sequence[str]) -> None:
        """Count further cells."""
        self.rows += len(cells)
        self._hashes.extend(map(hash, cells))
        for cell in cells:
            if is_text(cell):
                self.texts += 1
                self.commas += DECIMAL_COMMA.fullmatch(cell) is not None
            else:
                self.missing += is_missing(cell)

    @property
    def of_text(self) -> bool:
        """Whether most cells are text that is no number written with a comma."""
        return 2 * self.texts > self.rows and self.commas < self.texts

    @cached_property
    def repeated_hashes(self) -> frozenset[int]:
        """`hash` of the cells that occur more than once."""
        ranked = np.sort(np.frombuffer(self._hashes, dtype=np.int64))
        return frozenset(np.unique(ranked[1:][ranked[1:] == ranked[:-1]]).tolist())


def naming_column(
    header: Table,
    options: Options,
    used: Collection[str],
    blocks: Callable[[], Iterable[Table]],
    molecules: Collection[str] = (),
) -> tuple[str | None, ColumnFacts]:
    """The column whose cells name the rows, with its facts: even if they are repeated or empty.

    It is the column named, one with a usual name, or the first of text, distinct cells first. Text
    is no name if another column has the usual name of an id, even one with repeated cells; but
    one that is empty, as titles in SDF files are, does not count. `blocks` has all rows;
    `molecules` are columns of SMILES, whose text would name other molecules.
    """
    if options.id is not None:
        column = header.find(options.id)
        return column, _facts(blocks(), [column])[column]
    no_ids = {*used, options.split_column, *(header.find(name) for name in options.target or ())}
    free = [column for column in header.columns if column not in no_ids]
    named = [column for name in _ID_NAMES for column in free if column.lower() == name]
    facts = {c: f for c, f in _facts(blocks(), named).items() if f.missing < f.rows}
    usual = [*facts]
    if not usual:
        texts = [c for c in free if c.lower() not in _SPLIT_NAMES and c not in molecules]
        facts = {c: f for c, f in _facts(blocks(), texts).items() if f.of_text}
    distinct = (c for c, f in facts.items() if not f.missing and not f.repeated_hashes)
    chosen = next(distinct, usual[0] if usual else None)
    return chosen, ColumnFacts() if chosen is None else facts[chosen]


def _facts(blocks: Iterable[Table], columns: Collection[str]) -> dict[str, ColumnFacts]:
    """Facts about some columns of all rows."""
    facts = {name: ColumnFacts() for name in columns}
    for table in blocks if facts else ():
        for name in facts:
            facts[name].seen(table.columns[name])
    return facts


def stored_split(
    table: Table, options: Options, free: Sequence[str], notes: list[str]
) -> tuple[str | None, dict[str, Ints]]:
    """The column with the split, named or among the free ones, and its parts."""
    if options.split_column is not None:
        column = table.find(options.split_column)
        where = f"column {column} of {table.name}"
        return column, rows_by_part(table.columns[column], where, table.places)
    for column in free:
        if column.lower() in _SPLIT_NAMES:
            cells = {cell.lower() for cell in table.columns[column] if not is_missing(cell)}
            if cells <= PART_NAMES.keys() and len(cells) > 1:
                return column, rows_by_part(table.columns[column], column)
            if (odd := sorted(cells - PART_NAMES.keys())) and len(odd) < len(cells):
                notes.append(
                    f"Column {column} gives no split, as {odd[0]!r} is none of train, validation "
                    "and test."
                )
    return None, {}


def rows_by_part(names: Sequence[str], where: str, places: Sequence[str] = ()) -> dict[str, Ints]:
    """Rows by part of the split: `train`, `validation` and `test`, or `fold-0`, `fold-1`, …."""
    folds = numbers(names)
    if folds is not None and not np.isnan(folds).any() and len(np.unique(folds)) > 1:
        return {
            f"fold-{class_name(fold)}": np.flatnonzero(folds == fold) for fold in np.unique(folds)
        }
    parts: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if is_missing(name):
            continue
        if name.lower() not in PART_NAMES:
            raise DataError(
                f"{where}{f', {places[row]}' if places else ''}: {name!r} is no part of a split; "
                "expected train, validation or test, a fold number, or nothing for a graph to "
                "leave out"
            )
        parts.setdefault(PART_NAMES[name.lower()], []).append(row)
    return {part: np.array(rows, dtype=np.int64) for part, rows in parts.items()}


def _numeric(table: Table, columns: Sequence[str], options: Options, notes: list[str]) -> list[str]:
    """The columns that hold numbers, up to a few slips, with a note on each that nearly does."""
    chosen = []
    for column in columns:
        cells = table.columns[column]
        emptied, _ = _without_slips(column, cells, table.places, options)
        if (values := numbers(emptied)) is not None:
            chosen += [column] * (not np.isnan(values).all())
            continue
        texts = [row for row, cell in enumerate(cells) if is_text(cell)]
        if (row := decimal_comma(cells)) is not None:
            why = f"{cells[row]!r} ({table.places[row]}) has a comma; {WITH_POINT}"
        elif len(texts) < len(cells) / 2:
            why = (
                f"{len(texts)} of its {len(cells)} values are no numbers "
                f"({table.places[texts[0]]}: {cells[texts[0]]!r})"
            )
        else:
            continue
        notes.append(f"Column {column} is left out: {why}.")
    return chosen


def numbers(cells: Sequence[str]) -> Values | None:
    """The cells as numbers with NaN where one is missing; None where a cell is something else."""
    try:
        return np.array([math.nan if is_missing(cell) else number_of(cell) for cell in cells])
    except ValueError:
        return None


def targets_of_columns(table: Table, names: Sequence[str], options: Options) -> dict[str, Any]:
    """Targets, columns and notes from some columns of a table."""
    columns, notes = [], []
    for name in names:
        cells, note = _without_slips(name, table.columns[name], table.places, options)
        columns.append(_from_cells(name, cells, table.places, options.task))
        notes += note
    fields = _side_by_side(columns, len(table), options.task)
    return {**fields, "notes": [*notes, *fields["notes"]]}


def _without_slips(
    name: str, cells: Sequence[str], places: Sequence[str], options: Options
) -> tuple[Sequence[str], list[str]]:
    """The cells of a target, a few that are no finite numbers among many emptied, with a note."""
    if options.on_bad == "refuse" or options.task == "multiclass":
        return cells, []
    odd = [
        row
        for row, cell in enumerate(cells)
        if not is_missing(cell) and not (is_number(cell) and math.isfinite(number_of(cell)))
    ]
    present = sum(not is_missing(cell) for cell in cells)
    if not odd or len(odd) > MOST_SLIPS * present:
        return cells, []
    listed = ", ".join(f"{cells[row]!r} ({places[row]})" for row in odd[:SHOWN])
    more = f" and {len(odd) - SHOWN} more" if len(odd) > SHOWN else ""
    one = len(odd) == 1
    what = "is no number and counts" if one else "are no numbers and count"
    slips = {*odd}
    emptied = ["" if row in slips else cell for row, cell in enumerate(cells)]
    return emptied, [
        f"Target {name}: {len(odd)} of {present} values {what} as missing: {listed}{more}."
    ]


def targets_of_array(
    block: NDArray[Any], options: Options, names: Sequence[str] = (), whole: bool | None = None
) -> dict[str, Any]:
    """Targets, columns and notes from an array `[rows, T]`; without names, `y`, or `y0`, `y1`, ….

    Whole numbers are classes: `whole` says whether they were stored so, if the array does not.
    """
    width, whole = block.shape[1], block.dtype.kind in "biu" if whole is None else whole
    names = list(names) or (["y"] if width == 1 else [f"y{number}" for number in range(width)])
    if len(names) != width:
        raise DataError(f"there are {len(names)} names for {width} target columns")
    if len(set(names)) != width:
        raise DataError(f"two target columns have one name among {shortened(names)}; rename one")
    wanted = names if options.target is None else options.target
    if unknown := [name for name in wanted if name not in names]:
        existing = f"they are {shortened(names)}" if names else "there is none"
        raise DataError(f"there is no target {unknown[0]!r}; {existing}")
    values = block.astype(np.float64)
    columns = [
        _from_numbers(name, values[:, names.index(name)], whole, options.task) for name in wanted
    ]
    return _side_by_side(columns, len(block), options.task)


def _from_cells(
    name: str, cells: Sequence[str], places: Sequence[str], task: Task | None
) -> Column:
    """One target column from text.

    Numbers are regression targets unless they are 0 and 1 only, or the column is called `class` or
    `label`; text is a class where few texts occur.
    """
    if (values := numbers(cells)) is not None:
        return _from_numbers(name, values, name.lower() in _CLASS_NAMES, task, places)
    if (row := decimal_comma(cells)) is not None:
        raise DataError(f"target {name!r}, {places[row]}: {cells[row]!r} has a comma; {WITH_POINT}")
    signs = "+" in cells  # beside it, - is the other class and no missing value
    is_class = [not is_missing(cell) or (signs and cell == "-") for cell in cells]
    present = [cell for cell, is_so in zip(cells, is_class, strict=True) if is_so]
    classes = sorted(set(present))
    texts = [row for row, cell in enumerate(cells) if is_class[row] and not is_number(cell)]
    if task == "regression" or (task != "multiclass" and len(texts) < len(present) / 2):
        raise DataError(
            f"target {name!r}, {places[texts[0]]}: {cells[texts[0]]!r} is not a number "
            f"({len(texts)} of {len(present)} values are none); correct it or leave the cell empty"
        )
    if task != "multiclass" and len(classes) > min(_MOST_CLASSES, max(2, len(present) / 2)):
        raise DataError(
            f"target {name!r} holds {len(classes)} different texts in {len(present)} rows, such as "
            f"{classes[0]!r}; expected numbers with a decimal point, or the names of a few "
            f"classes; so many classes are learned with {_MULTICLASS}"
        )
    if task is None and len(classes) > 2 and (unit := _one_unit(classes)):
        raise DataError(
            f"target {name!r} holds {classes[0]!r} and other numbers with {unit!r}; write the "
            f"numbers alone, or learn them as classes with {_MULTICLASS}"
        )
    if len(classes) == 2 and classes[0].lower() in _POSITIVE:
        classes.reverse()
    numbered = {text: float(number) for number, text in enumerate(classes)}
    coded = np.array([numbered.get(cell, math.nan) for cell in cells])
    return _as_classes(name, coded, tuple(classes), task)


def _one_unit(texts: Sequence[str]) -> str:
    """What stands after the number in all of them, as `%` in 5% and 10%; or nothing."""
    found = [_WITH_UNIT.fullmatch(text) for text in texts]
    units = {match["unit"] if match else "" for match in found}
    return units.pop() if len(units) == 1 else ""


def _from_numbers(
    name: str, values: Values, whole: bool, task: Task | None, places: Sequence[str] = ()
) -> Column:
    """One target column from numbers; if `whole`, whole numbers are classes."""
    if (bad := np.flatnonzero(np.isinf(values))).size:
        where = places[bad[0]] if places else f"entry {bad[0]}"
        raise DataError(f"target {name!r}, {where} is infinite; expected a number or nothing")
    distinct = np.unique(values[~np.isnan(values)])
    two = set(distinct.tolist()) in ({0.0, 1.0}, {-1.0, 1.0})
    are_classes = whole and len(distinct) > 1 and bool((distinct == np.round(distinct)).all())
    if task == "multilabel" or (task == "binary" and len(distinct) < 2):
        # One label may be all 0 in a small set; its classes are known all the same.
        if not set(distinct.tolist()) <= {0.0, 1.0}:
            shown = ", ".join(f"{value:g}" for value in distinct[:4])
            raise DataError(
                f"target {name!r} holds {shown}{' …' if len(distinct) > 4 else ''}; "
                f"a {task} target holds 0, 1 or nothing"
            )
        return values, Target(name, kind="binary", classes=("0", "1"))
    inferred = two or (are_classes and len(distinct) <= _MOST_CLASSES)
    if task == "regression" or (task is None and not inferred):
        return values, Target(name)
    coded = np.where(np.isnan(values), math.nan, np.searchsorted(distinct, values).astype(float))
    return _as_classes(name, coded, tuple(map(class_name, distinct)), task)


def class_name(value: float) -> str:
    """A number as the name of a class: two numbers have two names."""
    short = f"{value:g}"
    return short if float(short) == value else f"{value:.17g}"


def _as_classes(name: str, coded: Values, classes: tuple[str, ...], task: Task | None) -> Column:
    if task in ("binary", "multilabel") and len(classes) > 2:
        raise DataError(
            f"target {name!r} holds {len(classes)} classes, such as {', '.join(classes[:3])}; "
            f"a {task} target holds two: leave out task, or say {_MULTICLASS}"
        )
    two = len(classes) == 2 and task != "multiclass"
    return coded, Target(name, kind="binary" if two else "multiclass", classes=classes)


def _side_by_side(columns: Sequence[Column], rows: int, task: Task | None) -> dict[str, Any]:
    """Columns as `[rows, T]`; beside binary ones, a column of one of their classes is a label too.

    So is a column of only 0 or only 1.
    """
    targets: list[Target] = []
    blocks: list[Values] = []
    notes: list[str] = []
    binary = [target.classes for _, target in columns if target.kind == "binary"]
    for values, target in columns:
        distinct = np.unique(values[~np.isnan(values)])
        if binary and target.kind == "regression" and distinct.tolist() in ([0.0], [1.0]):
            target = Target(target.name, kind="binary", classes=("0", "1"))
        two = next((classes for classes in binary if set(target.classes) < set(classes)), ())
        if two and len(target.classes) == 1:
            number = two.index(target.classes[0])
            values, distinct = values + number, distinct + number
            target = Target(target.name, kind="binary", classes=two)
        few = 2 <= len(distinct) <= 10 and len(distinct) * 5 <= len(values) and task is None
        if target.kind == "regression" and few and (distinct == np.round(distinct)).all():
            notes.append(
                f"Target {target.name} holds {len(distinct)} whole numbers, read as "
                f"quantities; if they are classes, say so with {_MULTICLASS}."
            )
        by_lower = {name.lower(): name for name in target.classes}
        if alike := [name for name in target.classes if by_lower[name.lower()] != name]:
            notes.append(
                f"Target {target.name} has the classes {alike[0]!r} and "
                f"{by_lower[alike[0].lower()]!r}, which count as two: write them alike if they "
                "are one."
            )
        if len(distinct) <= 1:
            named = [target.classes[int(v)] if target.classes else class_name(v) for v in distinct]
            shown = f"the value {named[0]} only" if named else "no value"
            notes.append(f"Target {target.name} holds {shown}: there is nothing to learn from it.")
        targets.append(target)
        blocks.append(values)
    block = np.stack(blocks, axis=1) if blocks else np.zeros((rows, 0))
    return {"targets": block, "columns": tuple(targets), "notes": notes}
