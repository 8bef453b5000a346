"""What a column of targets is: numbers, two classes or several; text becomes class numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..graph_set import Target
from .options import Task
from .tables import WITH_POINT, decimal_comma, is_missing

Values = NDArray[np.float64]
_MOST_CLASSES = 100
# The second word of each pair is the class 1; any other two words go by the alphabet.
_POSITIVE = frozenset({"yes", "y", "true", "t", "positive", "pos", "active", "toxic", "+"})
_CLASS_NAMES = frozenset({"class", "label", "category", "classes", "labels"})


def numbers(cells: Sequence[str]) -> Values | None:
    """The cells as numbers with NaN where one is missing; None where a cell is something else."""
    values = np.full(len(cells), np.nan)
    for place, cell in enumerate(cells):
        if is_missing(cell):
            continue
        try:
            values[place] = float(cell)
        except ValueError:
            return None
    return values


def from_cells(
    name: str, cells: Sequence[str], places: Sequence[str], task: Task | None
) -> tuple[Values, Target]:
    """One target column from text.

    Numbers are regression targets unless they are 0 and 1 only, or the column is called `class` or
    `label`; text is a class where few texts occur.

    Raises:
        DataError: Naming the column, and the row where one is at fault.
    """
    if (values := numbers(cells)) is not None:
        whole = name.lower() in _CLASS_NAMES
        return from_numbers(name, values, whole, task, places)
    if (row := decimal_comma(cells)) is not None:
        raise DataError(f"target {name!r}, {places[row]}: {cells[row]!r} has a comma; {WITH_POINT}")
    texts = ["" if is_missing(cell) else cell for cell in cells]
    found = sorted({text for text in texts if text})
    present = sum(bool(text) for text in texts)
    odd = [place for place, text in enumerate(texts) if text and numbers([text]) is None]
    if task == "regression" or len(odd) < present / 2:
        raise DataError(
            f"target {name!r}, {places[odd[0]]}: {texts[odd[0]]!r} is not a number "
            f"({len(odd)} of {present} values are none); correct it or leave the cell empty"
        )
    if len(found) > min(_MOST_CLASSES, max(2, present / 2)):
        raise DataError(
            f"target {name!r} holds {len(found)} different texts in {present} rows, such as "
            f"{found[0]!r}; expected numbers with a decimal point, or the names of a few classes"
        )
    if len(found) == 2 and found[0].lower() in _POSITIVE:
        found.reverse()
    numbered = {text: float(number) for number, text in enumerate(found)}
    coded = np.array([numbered.get(text, math.nan) for text in texts])
    return _as_classes(name, coded, tuple(found), task)


def from_numbers(
    name: str, values: Values, whole: bool, task: Task | None, places: Sequence[str] | None = None
) -> tuple[Values, Target]:
    """One target column from numbers; `whole` says that whole numbers stand for classes.

    Raises:
        DataError: If a value is infinite, or the task does not fit the values.
    """
    if (bad := np.flatnonzero(np.isinf(values))).size:
        where = places[bad[0]] if places else f"entry {bad[0]}"
        raise DataError(
            f"target {name!r}, {where} is infinite; expected a finite number, or nothing"
        )
    found = np.unique(values[~np.isnan(values)])
    two = set(found.tolist()) in ({0.0, 1.0}, {-1.0, 1.0})
    classes = whole and len(found) > 1 and bool((found == np.round(found)).all())
    if task == "regression" or (task is None and not two and not classes):
        return values, Target(name)
    if task == "multilabel" or (task == "binary" and len(found) < 2):
        # One label may be all 0 in a small set; its classes are known all the same.
        if not set(found.tolist()) <= {0.0, 1.0}:
            raise DataError(
                f"target {name!r} holds {_listed(found)}; a {task} target holds 0, 1 or nothing"
            )
        return values, Target(name, kind="binary", classes=("0", "1"))
    if len(found) > _MOST_CLASSES and task is None:
        return values, Target(name)
    coded = np.where(np.isnan(values), math.nan, np.searchsorted(found, values).astype(float))
    return _as_classes(name, coded, tuple(f"{value:g}" for value in found), task)


def from_block(
    block: Values,
    whole: bool,
    task: Task | None,
    wanted: Sequence[str] | None,
    names: Sequence[str] = (),
) -> tuple[Values, tuple[Target, ...], list[str]]:
    """Targets from an array `[rows, T]`: `y`, or `y0`, `y1`, … where it has several columns.

    Args:
        block: The numbers.
        whole: Whether they were stored as whole numbers, which then stand for classes.
        task: What the user says they are.
        wanted: Names of the columns to keep; None keeps all.
        names: The columns' own names, where the source has any.

    Raises:
        DataError: If a wanted column does not exist, or the numbers do not fit the task.
    """
    width = block.shape[1]
    called = list(names) or (["y"] if width == 1 else [f"y{number}" for number in range(width)])
    if len(called) != width:
        raise DataError(f"there are {len(called)} names for {width} target columns")
    if unknown := [name for name in wanted or () if name not in called]:
        known = f"they are {', '.join(called[:12])}" if called else "there is none"
        raise DataError(f"there is no target {unknown[0]!r}; {known}")
    chosen = [called.index(name) for name in (called if wanted is None else wanted)]
    found = [from_numbers(called[place], block[:, place], whole, task) for place in chosen]
    values, columns, notes = infer_together(found)
    return (values if columns else np.zeros((len(block), 0))), columns, notes


def infer_together(
    columns: Sequence[tuple[Values, Target]],
) -> tuple[Values, tuple[Target, ...], list[str]]:
    """Put columns side by side as `[rows, T]`, with notes on what was inferred.

    Among several binary columns, one that holds only 0 or only 1 is a label too.
    """
    if not columns:
        return np.zeros((0, 0)), (), []
    settled: list[tuple[Values, Target]] = []
    binary = sum(target.kind == "binary" for _, target in columns)
    notes: list[str] = []
    for values, target in columns:
        found = np.unique(values[~np.isnan(values)])
        if binary and target.kind == "regression" and set(found.tolist()) in ({0.0}, {1.0}):
            target = Target(target.name, kind="binary", classes=("0", "1"))
        if target.kind == "regression" and len(found) and (found == np.round(found)).all():
            few = 2 < len(found) <= 10 and len(found) * 5 <= len(values)
            if few:
                notes.append(
                    f"Target {target.name} holds {len(found)} whole numbers, read as quantities; "
                    "if they are classes, say so with task='multiclass'."
                )
        if len(found) <= 1:
            shown = f"the value {found[0]:g} only" if len(found) else "no value"
            notes.append(f"Target {target.name} holds {shown}: there is nothing to learn from it.")
        settled.append((values, target))
    return np.stack([v for v, _ in settled], axis=1), tuple(t for _, t in settled), notes


def _as_classes(
    name: str, coded: Values, classes: tuple[str, ...], task: Task | None
) -> tuple[Values, Target]:
    if task in ("binary", "multilabel") and len(classes) > 2:
        raise DataError(
            f"target {name!r} holds {len(classes)} classes, such as {', '.join(classes[:3])}; "
            f"a {task} target holds two: leave out task, or say task='multiclass'"
        )
    two = len(classes) == 2 and task != "multiclass"
    return coded, Target(name, kind="binary" if two else "multiclass", classes=classes)


def _listed(found: Values) -> str:
    shown = ", ".join(f"{value:g}" for value in found[:4])
    return shown + (" …" if len(found) > 4 else "")
