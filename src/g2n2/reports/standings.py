"""Standings: what the records of a cell say together, over all its seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from ..errors import DataError
from ..experiments.cell import Cell
from ..experiments.questions import QUESTIONS, cells_of
from ..experiments.record import BUDGETS, Record, read_records

FULL = BUDGETS[-1]
WITHDRAWN = {
    "withdrawn/q2-rate": "all targets at once, width 32, at the recipe's rate of 0.001",
    "withdrawn/q3": "first settings",
    "withdrawn/q3-by-size": "30 epochs, batches of graphs alike in size",
}
"""Folders of records whose settings were given up after they had been seen, and these settings."""
HARNESS = "smoke"
"""The budget that checks the harness: its numbers answer no question."""


@dataclass(frozen=True)
class Measured:
    """A number over seeds.

    Attributes:
        value: Mean, or median where asked.
        spread: Standard deviation over seeds; None for one seed.
        seeds: How many stand behind it.
        partial: Less than the full protocol stands behind it.
    """

    value: float
    spread: float | None
    seeds: int
    partial: bool


@dataclass(frozen=True, eq=False)
class Standing:
    """The seeds of a cell whose numbers can stand side by side.

    Those of the largest budget at which some ended; before them those of a larger one that were
    stopped, where a run of them has done half of its work. Ended and stopped runs, or runs of
    other lengths or settings, are never mixed.
    """

    cell: str
    budget: str
    records: tuple[Record, ...]
    outdated: bool = False
    """The cell has other settings or seeds by now, and has not been run with them."""
    seeds: int = 0
    """How many its budget asks for, where that is known."""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.cell.split("/"))

    @property
    def stopped(self) -> bool:
        """Some run has not reached what its budget asks for."""
        return any(record.partial for record in self.records)

    @property
    def partial(self) -> bool:
        """Less than the full protocol: stopped, fewer seeds, a smaller budget, other settings."""
        less = self.stopped or self.budget != FULL or len(self.records) < self.seeds
        return less or self.outdated

    @property
    def seconds(self) -> float:
        return sum(record.seconds for record in self.records)

    @property
    def work(self) -> str:
        """What stands behind its numbers: `3 × 300 epochs`, or `1 × 43 of 300 epochs, partial`."""
        return f"{self.brief} {self.records[0].unit}{self.caveats}"

    @property
    def caveats(self) -> str:
        """What is less than the full protocol: `, partial, short budget, earlier settings`."""
        words = ["partial"] * self.stopped + [f"{self.budget} budget"] * (self.budget != FULL)
        words += ["earlier settings"] * self.outdated
        return "".join(f", {word}" for word in words)

    @property
    def brief(self) -> str:
        """The same without words: `3 × 300`, or `1 of 3 × 300` where seeds are missing."""
        done = sorted({record.done for record in self.records})
        planned = max(record.planned for record in self.records)
        reached = str(done[0]) if len(done) == 1 else f"{done[0]}–{done[-1]}"
        of = f" of {planned}" if self.stopped else ""
        seeds = f" of {self.seeds}" if len(self.records) < self.seeds else ""
        return f"{len(self.records)}{seeds} × {reached}{of}"

    def values(self, metric: str) -> list[float]:
        """One number for each seed that has it; the unit in brackets is part of the name."""
        found = (record.metrics.get(metric) for record in self.records)
        return [value for value in found if value is not None]

    def mean(self, metric: str) -> Measured | None:
        """Over seeds."""
        values = self.values(metric)
        if not values:
            return None
        spread = stdev(values) if len(values) > 1 else None
        return Measured(fmean(values), spread, len(values), self.partial)


class Cells(Mapping[str, Standing]):
    """The standings of a question by cell; remembers which were asked for and found."""

    def __init__(self, standings: Mapping[str, Standing]) -> None:
        self._standings = standings
        self._seen: set[str] = set()

    def __getitem__(self, cell: str) -> Standing:
        found = self._standings[cell]
        self._seen.add(cell)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._standings)

    def __len__(self) -> int:
        return len(self._standings)

    @property
    def seen(self) -> frozenset[str]:
        return frozenset(self._seen)


@dataclass(frozen=True, eq=False)
class Results:
    """Everything a results folder holds.

    Attributes:
        folder: Where it was read.
        standings: Question to cell to standing.
        left_aside: Records of the harness check, which no table shows.
        outdone: Records that stand aside, since their cell has better ones.
    """

    folder: Path
    standings: Mapping[str, Mapping[str, Standing]]
    left_aside: int = 0
    outdone: int = 0

    def of(self, question: str) -> Cells:
        return Cells(self.standings.get(question, {}))

    def withdrawn(self, question: str) -> list[tuple[str, Cells]]:
        """What was given up of a question, each with its settings."""
        folders = {folder: said for folder, said in WITHDRAWN.items() if question in folder}
        return [(said, self.of(folder)) for folder, said in folders.items() if self.of(folder)]

    @property
    def empty(self) -> bool:
        return not any(self.standings.values())


def read_results(folder: Path, harness: bool = False) -> Results:
    """Read a results folder, which may be absent.

    Args:
        folder: With one folder for each question.
        harness: Show records of the harness check too, where nothing better is known.

    Raises:
        DataError: A file there is no record.
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; records lie in a folder: g2n2 experiment makes one")
    standings = {}
    left = outdone = 0
    for question in (*QUESTIONS, *WITHDRAWN):
        records = read_records(folder, question)
        kept = [record for record in records if harness or record.budget != HARNESS]
        left += len(records) - len(kept)
        standings[question] = _by_cell(kept, _settled(question, kept))
        outdone += len(kept) - sum(len(one.records) for one in standings[question].values())
    return Results(folder, standings, left, outdone)


Key = tuple[str, int, str]
"""Cell, seed and budget."""


def _settled(question: str, records: list[Record]) -> dict[Key, Cell]:
    """The cells a question has now; none of those given up."""
    if question not in QUESTIONS:
        return {}
    budgets = {record.budget for record in records}
    cells = [cell for budget in budgets for cell in cells_of(question, budget)]
    return {(cell.name, cell.seed, cell.budget): cell for cell in cells}


def _by_cell(records: list[Record], settled: Mapping[Key, Cell]) -> dict[str, Standing]:
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    found = {}
    for cell, own in cells.items():
        most = max(own, key=lambda record: _rank(record, settled))
        alike = [r for r in own if _kind(r, settled) == _kind(most, settled)]
        by_seed = sorted(alike, key=lambda record: record.seed)
        outdated = not _owned(most, settled)
        seeds = _seeds(cell, most.budget, settled)
        found[cell] = Standing(cell, most.budget, tuple(by_seed), outdated, seeds)
    return found


def _seeds(cell: str, budget: str, settled: Mapping[Key, Cell]) -> int:
    """How many a budget asks for."""
    return sum((name, of) == (cell, budget) for name, _, of in settled)


def _owned(record: Record, settled: Mapping[Key, Cell]) -> bool:
    """Whether a record is of its cell as it is now; none is of a seed the cell no longer has."""
    now = settled.get((record.cell, record.seed, record.budget))
    if now is None:
        return _seeds(record.cell, record.budget, settled) == 0
    return now.asks_no_more_than(record)


def _rank(record: Record, settled: Mapping[Key, Cell]) -> tuple[bool, int, bool, bool, int]:
    """Half done or more, then the larger budget, then ended, then settings, then the longer run."""
    worth, now = 2 * record.done >= record.planned, _owned(record, settled)
    return worth, BUDGETS.index(record.budget), not record.partial, now, record.done


def _kind(record: Record, settled: Mapping[Key, Cell]) -> tuple[str, bool, int, bool]:
    return record.budget, record.partial, record.planned, _owned(record, settled)
