"""Questions: which there are, and which of their cells are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ..errors import DataError
from .cell import Cell
from .record import BUDGETS

QUESTIONS: dict[str, str] = {
    "q1": "g2n2.experiments.q1",
    "q2": "g2n2.experiments.q2",
    "q3": "g2n2.experiments.q3",
    "q4": "g2n2.experiments.q4",
    "power": "g2n2.experiments.trained",
}
"""Each question's module, whose `cells(budget)` lists its cells in the order they should run."""


def cells_of(question: str, budget: str) -> list[Cell]:
    """The cells of one question, or of all of them.

    Raises:
        DataError: There is no such question or budget.
    """
    if budget not in BUDGETS:
        raise DataError(f"no budget is called {budget!r}; known: {', '.join(BUDGETS)}")
    if question == "all":
        return [cell for name in QUESTIONS for cell in cells_of(name, budget)]
    if question not in QUESTIONS:
        raise DataError(f"no question {question!r}; known: {', '.join(QUESTIONS)}, all")
    found: list[Cell] = import_module(QUESTIONS[question]).cells(budget)
    return found


def choose(
    cells: Sequence[Cell],
    only: Sequence[str] = (),
    seeds: Sequence[int] = (),
    optional: bool = False,
) -> list[Cell]:
    """The cells asked for, in their order.

    Args:
        cells: Of a question.
        only: Whole names, or some successive parts of a name; one of these must fit. A whole name
            means that cell alone, optional or not.
        seeds: One of these, or any where empty.
        optional: Whether optional cells are wanted too.

    Raises:
        DataError: A text fits no cell, or nothing is left.
    """
    wholes = {cell.name for cell in cells} & set(only)
    parts = [text for text in only if text not in wholes]
    for text in parts:
        if not any(_fits(cell.name, text) for cell in cells):
            words = sorted({part for cell in cells for part in cell.name.split("/")})
            raise DataError(f"no cell fits --only {text!r}; parts of names: {', '.join(words)}")
    chosen = [
        cell
        for cell in cells
        if cell.name in wholes
        or (
            (optional or not cell.optional)
            and (not only or any(_fits(cell.name, text) for text in parts))
        )
    ]
    if not chosen:
        raise DataError("every cell that fits is optional: add --optional")
    if missing := set(seeds) - {cell.seed for cell in chosen}:
        known = ", ".join(map(str, sorted({cell.seed for cell in chosen})))
        raise DataError(f"no cell has the seed {min(missing)}; seeds of these cells: {known}")
    return [cell for cell in chosen if not seeds or cell.seed in seeds]


def _fits(name: str, text: str) -> bool:
    return f"/{text}/" in f"/{name}/"
