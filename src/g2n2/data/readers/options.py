"""What a user may say about a source, the same for every reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import DataError
from ..graph_set import Level

Task = Literal["regression", "binary", "multiclass", "multilabel"]
OnBad = Literal["skip", "refuse"]
SHOWN = 5


@dataclass(frozen=True)
class Options:
    """How to read a source; every field has a value that means "find out".

    Attributes:
        target: Columns to predict. None takes every column that can be one, () none.
        task: What every target is; None infers it column by column.
        smiles: Column of a table that holds the molecules.
        id: Column with the graphs' ids.
        split_column: Column that says which part of a split a graph belongs to.
        on_bad: Whether a record that cannot be read is skipped and named, or ends the reading.
        hydrogens: Make the hydrogens of SMILES atoms of their own.
        largest: Keep only the largest fragment of a molecule, as of a salt.
        directed: Keep the direction of the edges in an edge list.
        level: What a target belongs to, where its shape leaves that open.
        name: What the set is called; None takes it from the file.
    """

    target: Sequence[str] | None = None
    task: Task | None = None
    smiles: str | None = None
    id: str | None = None
    split_column: str | None = None
    on_bad: OnBad = "skip"
    hydrogens: bool = False
    largest: bool = False
    directed: bool = False
    level: Level | None = None
    name: str | None = None


def settle_bad_records(bad: Sequence[str], total: int, what: str, on_bad: OnBad) -> list[str]:
    """Turn what could not be read into notes, or refuse it.

    Args:
        bad: One text per record: where, which and why.
        total: How many records there were.
        what: What they come from, as the user names it.
        on_bad: What the user asked for.

    Raises:
        DataError: If records are bad and the user refuses them, or if all are bad.
    """
    if not bad:
        return []
    listed = "; ".join(bad[:SHOWN])
    if len(bad) > SHOWN:
        listed += f"; and {len(bad) - SHOWN} more"
    if len(bad) == total:
        raise DataError(f"none of the {total} records of {what} can be read: {listed}")
    if on_bad == "refuse":
        raise DataError(
            f"{len(bad)} of the {total} records of {what} cannot be read: {listed}. "
            "Correct them, or read with on_bad='skip' to leave them out"
        )
    return [f"{len(bad)} of {total} records are skipped: {listed}."]
