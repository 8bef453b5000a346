"""The next slice of a cell: what it knows from before, and what is shown of it as it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from .cell import Cell, Slice
from .kept import Clock, Places
from .machines import machine
from .record import EARLIER, Record

if TYPE_CHECKING:
    from .running import Settings, Tell

PLACE = ("commit", "source", "device", "cpu")
"""What slices that were run elsewhere are told apart by."""


def next_slice(cell: Cell, settings: Settings, minutes: float, tell: Tell) -> Record:
    """Do it, and show what there is then.

    Raises:
        DataError: A record of the cell is damaged.
    """
    folder = cell.folder(settings.work)
    folder.mkdir(exist_ok=True)
    shown = Shown(cell, folder, settings.results)
    clock = Clock(folder, shown.seconds)
    places = Places(folder)

    def told(sentence: str, done: int, planned: int) -> None:
        clock.tick()
        tell(cell, sentence, done, planned)

    def noted() -> None:
        clock.tick()
        places.note(lambda: place(machine(settings.device)))

    def publish(record: Record) -> None:
        with suppress(OSError, ValueError):  # whatever is wrong is told of when the slice ends
            shown.show(record, places.earlier)

    tell(cell, "reading what there is", 0, cell.planned or 1)
    given = Slice(
        work=folder,
        results=settings.results,
        minutes=minutes,
        device=settings.device,
        data=settings.data,
        options=settings.options,
        tell=told,
        note=noted,
        publish=publish,
        known=tuple(shown.before),
        spent=clock.spent,
    )
    try:
        return shown.show(cell.run(given), places.earlier)
    finally:
        clock.stop()


class Shown:
    """The records of a cell: the one for all to see, and the one in its own folder.

    Args:
        cell: Whose.
        folder: Its own.
        results: Where all see it.

    Raises:
        DataError: One of them is damaged.
    """

    def __init__(self, cell: Cell, folder: Path, results: Path) -> None:
        self.cell, self.folder, self.results = cell, folder, results
        public, own = (_read(cell.path(place)) for place in (results, folder))
        owned = public if public and cell.goes_on and cell.owns(public) else None
        self.before = [one for one in (owned, own) if one]
        self.seconds = max((one.seconds for one in self.before), default=0.0)

    def show(self, record: Record, places: Sequence[Mapping[str, Any]]) -> Record:
        """Write what there is now; a slice that added nothing leaves no trace but its time.

        Nor does a record on other data: nothing was gone on from there.
        """
        before = [one for one in self.before if one.data == record.data]
        if self.before and not before:
            record = replace(record, seconds=round(record.seconds - self.seconds, 3))
        earlier = max(before, key=lambda one: one.done, default=None)
        if earlier and record.done <= earlier.done:
            record = replace(record, provenance=earlier.provenance)
        elsewhere = [place for one in before for place in places_of(one)]
        record = after([*elsewhere, *places], record)
        for folder in (self.folder, self.results):
            if _comes_farther(record, self.cell.path(folder)):
                record.write(folder)
        return record


def _comes_farther(record: Record, path: Path) -> bool:
    """What came farther stays until this run has come as far or has ended."""
    try:
        there = _read(path)
    except DataError:
        return True
    return there is None or not record.partial or record.done >= there.done


def _read(path: Path) -> Record | None:
    return Record.read(path) if path.is_file() else None


def place(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Hardware and code, as far as slices are told apart by them."""
    return {name: provenance.get(name) for name in PLACE}


def places_of(record: Record) -> list[dict[str, Any]]:
    """Where all slices of a record were run."""
    return [*record.provenance.get(EARLIER, []), place(record.provenance)]


def after(earlier: Sequence[Mapping[str, Any]], record: Record) -> Record:
    """A record that says where its earlier slices were run, if elsewhere or with other code."""
    here = place(record.provenance)
    others = [one for i, one in enumerate(earlier) if one != here and one not in earlier[:i]]
    if not others:
        return record
    return replace(record, provenance={**record.provenance, EARLIER: others})
