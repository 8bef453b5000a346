"""What a cell keeps between its slices, in small files; a damaged one is as good as none."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from .record import write_whole

Kept = TypeVar("Kept")
NOT_UNDERSTOOD = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading something else than expected raises."""
EVERY = 10.0
"""Seconds between two looks at the clock that are written down."""


def keep(path: Path, content: Any) -> None:
    write_whole(path, json.dumps(content))


def read_kept(path: Path, understood: Callable[[Any], Kept]) -> Kept | None:
    """What a file holds, by a function that raises where it cannot be that; else None."""
    try:
        return understood(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, *NOT_UNDERSTOOD):
        return None


def percentages(found: list[float], count: int) -> list[float]:
    """So many accuracies, as they were kept.

    Raises:
        ValueError: They are something else.
    """
    if len(found) != count or not all(0.0 <= value <= 100.0 for value in found):
        raise ValueError
    return [float(value) for value in found]


def _seconds(found: Any) -> float:
    if not 0.0 <= found < math.inf:
        raise ValueError
    return float(found)


class Clock:
    """The wall time a cell has taken, kept so that slices which were killed count too.

    Args:
        folder: Of the cell.
        known: What its record says; the folder may know of more, but only every ten seconds.
    """

    def __init__(self, folder: Path, known: float) -> None:
        self.path = folder / "wall_seconds"
        self.spent = max(known, read_kept(self.path, _seconds) or 0.0)
        self.begun = self.kept_at = time.monotonic()

    def tick(self) -> None:
        """Write it down, unless that was a moment ago."""
        if time.monotonic() - self.kept_at >= EVERY:
            self.stop()

    def stop(self) -> None:
        self.kept_at = time.monotonic()
        with suppress(OSError):  # a disk that is full is told of by what matters more
            keep(self.path, self.spent + self.kept_at - self.begun)


def _places(found: Any) -> list[dict[str, Any]]:
    told = [one for one in found if all(isinstance(said, str | None) for said in one.values())]
    if len(told) < len(found):
        raise ValueError
    return told


class Places:
    """Where a cell was at work, kept so that slices which were killed are told of too.

    Args:
        folder: Of the cell.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "places.json"
        self.earlier = read_kept(self.path, _places) or []
        self.noted = False

    def note(self, here: Callable[[], dict[str, Any]]) -> None:
        """Write down that it is at work here; the first time only."""
        if not self.noted:
            self.noted = True
            with suppress(OSError):
                keep(self.path, [*self.earlier, here()])


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold a file while at work: False where another process holds it, which ends when that does.

    Where a file system or a machine has no locks, one is as if alone.
    """
    try:
        import fcntl
    except ImportError:
        yield True
        return
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = True
        except BlockingIOError:
            mine = False
        except OSError:
            mine = True
        yield mine
