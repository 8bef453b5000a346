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
    places = Places(folder, shown.places)

    def told(sentence: str, done: int, planned: int) -> None:
        clock.tick()
        tell(cell, sentence, done, planned)

    def publish(record: Record) -> None:
        with suppress(OSError):  # the disk is told of when the slice ends
            shown.show(record, places.earlier)

    given = Slice(
        work=folder,
        results=settings.results,
        minutes=minutes,
        device=settings.device,
        data=settings.data,
        options=settings.options,
        tell=told,
        note=lambda: places.note(lambda: place(machine(settings.device))),
        publish=publish,
        known=shown.known if cell.goes_on else None,
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
        self.known = public if public and cell.owns(public) else None
        before = [one for one in (own, self.known if cell.goes_on else None) if one]
        self.seconds = max((one.seconds for one in before), default=0.0)
        self.places = [place for one in before for place in places_of(one)]
        self.earlier = max(before, key=lambda one: one.done, default=None)

    def show(self, record: Record, places: Sequence[Mapping[str, Any]]) -> Record:
        """Write what there is now; a slice that added nothing leaves no trace but its time."""
        if self.earlier and record.done <= self.earlier.done:
            record = replace(record, provenance=self.earlier.provenance)
        else:
            record = after(places, record)
        record.write(self.folder)
        try:
            public = _read(self.cell.path(self.results))
        except DataError:
            public = None
        # What came farther stays until this run has come as far or has ended.
        if public is None or not record.partial or record.done >= public.done:
            record.write(self.results)
        return record


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
