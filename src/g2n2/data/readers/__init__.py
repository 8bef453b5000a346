"""One module per format of a user's own graphs; `g2n2.data.reading` chooses between them.

Bad input is refused with a `DataError` that names the file, the line or item, and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import DataError
from ..graph_set import Level

Task = Literal["regression", "binary", "multiclass", "multilabel"]
OnBad = Literal["skip", "refuse"]
SHOWN = 5
"""Bad records that a message names."""


@dataclass(frozen=True)
class Options:
    """How to read a source: the arguments of `g2n2.read_graphs`, where they are described."""

    target: tuple[str, ...] | None = None
    task: Task | None = None
    smiles: str | None = None
    id: str | None = None
    split_column: str | None = None
    on_bad: OnBad = "skip"
    hydrogens: bool | None = None
    largest: bool = False
    stereo: bool = True
    join: tuple[str, ...] = ()
    descriptors: bool = False
    directed: bool = False
    level: Level | None = None
    name: str | None = None

    def set_name(self, path: str | Path) -> str:
        """What the set of a file is called."""
        return self.name or Path(path).name.partition(".")[0]


def settle_bad_records(
    bad: Sequence[str], total: int, what: str, on_bad: OnBad, *, at_least: bool = False
) -> list[str]:
    """Turn unreadable records into a note, or refuse them; all of them are always refused.

    `bad` has the place, name and reason of each, of `total` records; there may be more of them
    (`at_least`) if not all records were looked at.
    """
    if not bad:
        return []
    more = f"; and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
    listed = "; ".join(bad[:SHOWN]) + more
    if total == 1:
        raise DataError(f"{what} cannot be read: {listed}")
    if len(bad) == total:
        raise DataError(f"none of the {total} records of {what} can be read: {listed}")
    if on_bad == "refuse":
        raise DataError(
            f"{'at least ' if at_least else ''}{len(bad)} of the {total} records of {what} cannot "
            f"be read: {listed}. Correct them, or leave them out with --on-bad skip (on_bad='skip')"
        )
    return [f"{len(bad)} of {total} records {'is' if len(bad) == 1 else 'are'} skipped: {listed}."]
