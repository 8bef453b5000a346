"""Cell: one number (or row) of a table, as something that can be run in slices."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..training.config import RunConfig
from .record import Record, record_path


class NothingYetError(DataError):
    """A slice ended before there was a number to record; what it did is kept.

    Attributes:
        planned: Units of work there are to do.
        unit: What is counted.
    """

    def __init__(self, planned: int, unit: str) -> None:
        self.planned, self.unit = planned, unit
        super().__init__(planned, unit)

    def __str__(self) -> str:
        return f"none of {self.planned} {self.unit} is finished yet; what was done is kept"


@dataclass(frozen=True, eq=False)
class Slice:
    """What a cell may use this time.

    Attributes:
        work: Its own folder for checkpoints; the same at every slice on the same data.
        results: Where the records of other cells lie, for one that builds on them.
        minutes: Wall time it may take; 0 for no limit. It stops soon after, its work kept.
        device: `auto`, `cpu` or `cuda`.
        data: Folder with data files, where there is one.
        options: Options for the data set's loader, such as a cache file.
        tell: Told sentences and `(done, planned)` while it works.
        note: Told whenever something was kept that a later slice goes on from.
        publish: Given the record of what there is so far, whenever a whole part of the work is
            done: one that is killed later has that much to show.
        known: Records of the same settings, on whatever data.
        spent: Seconds that earlier slices took.
    """

    work: Path
    results: Path = Path("results")
    minutes: float = 0.0
    device: str = "auto"
    data: str | None = None
    options: Mapping[str, Any] | None = None
    tell: Callable[[str, int, int], None] = lambda *_: None
    note: Callable[[], None] = lambda: None
    publish: Callable[[Record], None] = lambda _: None
    known: tuple[Record, ...] = ()
    spent: float = 0.0

    def on(self, data: Mapping[str, str]) -> Slice:
        """The slice on these data: what is known or kept of others is left where it is."""
        work = self.work / f"data-{_digest(data)}"
        work.mkdir(exist_ok=True)
        return replace(self, work=work, known=tuple(one for one in self.known if one.data == data))

    @property
    def known_detail(self) -> Mapping[str, Any]:
        """The detail of the known record that came farthest, or nothing."""
        farthest = max(self.known, key=lambda one: one.done, default=None)
        return farthest.detail if farthest else {}

    def ends(self, begun: float) -> float:
        """What `time.monotonic()` is when a slice that began at `begun` should end."""
        return begun + 60.0 * self.minutes if self.minutes else math.inf

    def seconds(self, begun: float) -> float:
        """Wall time of all slices, this one since `time.monotonic()` was `begun`."""
        return round(self.spent + time.monotonic() - begun, 3)


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of a question's table, for one seed.

    Attributes:
        question: `q1` … `q4` or `power`.
        name: Parts joined by `/`; `--only` matches any part or the whole.
        seed: Of the run.
        budget: Whose settings it has.
        run: Does the next slice of the work and returns what there is then, partial or not.
        needs: Data sets it reads, by name; it is left out with a plain reason where one is absent.
        optional: Run only where optional cells are asked for; a table leaves its place empty.
        alone: Nothing else may run beside it, since it measures time.
        needs_gpu: On a CPU it would be another measurement.
        planned: Units of work, where a record may have been planned with fewer.
        settings: What decides its numbers, as its record's config says it. A record that says
            otherwise is not this cell's, and work begun with other settings is not gone on with.
        goes_on: Whether its record holds all there is to know, so that it goes on from there where
            its folder for checkpoints is gone; others start again.
    """

    question: str
    name: str
    seed: int
    budget: str
    run: Callable[[Slice], Record]
    needs: tuple[str, ...] = ()
    optional: bool = False
    alone: bool = False
    needs_gpu: bool = False
    planned: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    goes_on: bool = False

    @property
    def label(self) -> str:
        """`q2 single/r2/distance/G2N2/modern, seed 0`."""
        return f"{self.question} {self.name}, seed {self.seed}"

    def folder(self, work: Path) -> Path:
        """Where its checkpoints lie: another folder for other settings."""
        return self.path(work).with_suffix(f".{_digest(self.settings)}")

    def owns(self, record: Record) -> bool:
        """Whether a record is of this cell's settings.

        A setting of a run that did not exist yet had the value it has by default; any other one
        that did not, the value it has now.
        """
        settings = json.loads(json.dumps(self.settings))
        said = _completed({name: _completed(value) for name, value in record.config.items()})
        return all(said.get(name, value) == value for name, value in settings.items())

    def asks_no_more_than(self, record: Record) -> bool:
        """Whether a record is of its settings and was planned with at least its work."""
        return self.owns(record) and record.planned >= self.planned

    def path(self, results: Path) -> Path:
        """Where its record lies."""
        return record_path(results, self.question, self.name, self.seed, self.budget)


def _digest(said: Mapping[str, Any]) -> str:
    """Eight digits that tell settings, or data, apart in the name of a folder."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:8]


def _completed(said: Any) -> Any:
    """The settings of a run with those that did not exist yet; anything else as it is."""
    of_a_run = isinstance(said, Mapping) and "dataset" in said
    return RunConfig.completed(said) if of_a_run else said
