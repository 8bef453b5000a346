"""Run cells: what is complete is skipped, what is partial goes on, what fails stops nothing else.

A record is written after every slice, and a cell keeps its own checkpoints, so that a run may be
stopped at any time and taken up by the same command.
"""

from __future__ import annotations

import errno
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ..atomic_files import make_folder
from ..errors import DataError, G2N2Error
from .cell import Cell, NothingYetError
from .kept import held
from .machines import device_called
from .record import Record
from .slices import next_slice

DISK = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
)
"""What a disk says that takes nothing: no fault of ours."""
WHERE = ("cache", "progress", "rebuild")
"""Options of data sets that change no graph."""
State = Literal["complete", "partial", "kept", "left out", "failed"]
Tell = Callable[[Cell, str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """How cells are run.

    Attributes:
        results: Folder of the records.
        work: Folder of checkpoints.
        minutes: For all cells together; 0 for no limit.
        cell_minutes: For each cell in this call; 0 for no limit.
        device: `auto`, `cpu` or `cuda`.
        data: Folder with data files, where there is one.
        options: Options for the loaders of data sets, such as a cache file.
        jobs: Cells at a time.
    """

    results: Path = Path("results")
    work: Path = Path("build/experiments")
    minutes: float = 0.0
    cell_minutes: float = 0.0
    device: str = "auto"
    data: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    jobs: int = 1


@dataclass(frozen=True)
class Outcome:
    """What became of a cell in this call.

    Attributes:
        label: Of the cell.
        state: `kept` was complete before; `left out` has no data; the others speak for themselves.
        why: Where it failed or was left out.
        done: Units of work done.
        planned: Units its budget asks for.
        unit: What is counted.
    """

    label: str
    state: State
    why: str = ""
    done: int = 0
    planned: int = 0
    unit: str = ""

    def __str__(self) -> str:
        counted = f"{self.done} of {self.planned} {self.unit}"
        said = {"complete": counted, "partial": counted, "kept": f"{counted}, from before"}
        return f"{self.label}: {self.state}, {said.get(self.state, self.why)}"


class Deadline:
    """The time all cells have together, and how much of it the next one may take."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.started = time.monotonic()

    @property
    def left(self) -> float:
        """Minutes left; infinite without a limit."""
        if not self.settings.minutes:
            return float("inf")
        return self.settings.minutes - (time.monotonic() - self.started) / 60.0

    def slice_minutes(self) -> float:
        """Minutes for the next cell; 0 for no limit."""
        shortest = min(self.left, self.settings.cell_minutes or float("inf"))
        return 0.0 if shortest == float("inf") else max(shortest, 1e-3)


def run_cells(
    cells: Iterable[Cell],
    settings: Settings,
    tell: Tell = lambda *_: None,
    ended: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Run cells in their order, `settings.jobs` at a time.

    Args:
        cells: What to run.
        settings: Where and how long.
        tell: Told of a cell at work: a sentence, units done and planned.
        ended: Told what became of each cell.

    Raises:
        KeyboardInterrupt: Ctrl-C; records and checkpoints are kept.
        DataError: An option would change what cells are, or no record can be written.
    """
    cells = list(cells)
    refuse_options(settings.options)
    refuse_unwritable({cell.path(settings.results).parent for cell in cells}, "--results")
    refuse_unwritable({cell.path(settings.work).parent for cell in cells}, "--work")
    deadline = Deadline(settings)
    outcomes, left = [], []
    for cell in cells:
        kept = finished(cell, settings)
        if kept is None:
            left.append(cell)
            continue
        outcomes.append(kept)
        ended(kept)
    if settings.jobs > 1 and len(left) > 1:
        from .packing import run_packed

        return outcomes + run_packed(left, settings, deadline, tell, ended)
    for cell in left:
        if deadline.left <= 0:
            break
        outcome = run_cell(cell, settings, deadline.slice_minutes(), tell)
        outcomes.append(outcome)
        ended(outcome)
    return outcomes


def refuse_options(options: Mapping[str, Any]) -> None:
    """Options may say where data is; what is read of it is a cell's own setting."""
    if others := [name for name in options if name not in WHERE]:
        raise DataError(
            f"--option {others[0]}: what is read is fixed by each cell, so that its record tells "
            f"the truth; known here: {', '.join(WHERE)}"
        )


def refuse_unwritable(folders: Iterable[Path], option: str) -> None:
    """Found now, and not when the first cell has been computed."""
    for folder in folders:
        why = ""
        try:
            if not folder.parent.exists():  # results/q4: the folder named is the one above
                make_folder(folder.parent)
            folder.mkdir(exist_ok=True)
        except OSError as error:
            why = f": {error.strerror}"
        if why or not os.access(folder, os.W_OK):
            raise DataError(f"nothing can be written to {folder}{why}; choose another {option}")


def finished(cell: Cell, settings: Settings) -> Outcome | None:
    """The outcome of a cell with a complete record of its settings, or what is none of its own."""
    path = cell.path(settings.results)
    try:
        record = Record.read(path) if path.exists() else None
    except DataError as error:
        return Outcome(cell.label, "failed", str(error))
    if record is None:
        return None
    if record.path(settings.results) != path:
        why = f"{path} holds the record of {record.question} {record.cell}; move it elsewhere"
        return Outcome(cell.label, "failed", why)
    if record.partial or not cell.asks_no_more_than(record):
        return None
    return Outcome(cell.label, "kept", "", record.done, record.planned, record.unit)


def run_cell(cell: Cell, settings: Settings, minutes: float, tell: Tell) -> Outcome:
    """Do the next slice of a cell and write its record."""
    for name in cell.needs:
        if why := absent(name, settings.data, settings.options.get("cache")):
            return Outcome(cell.label, "left out", why)
    if cell.needs_gpu and device_called(settings.device).type != "cuda":
        return Outcome(cell.label, "left out", "it measures a GPU, and none is used here")
    folder = cell.folder(settings.work)
    log = folder.with_name(f"{folder.name}.error.txt")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with held(folder.with_name(f"{folder.name}.lock")) as mine:
            if not mine:
                why = f"another process is at work in {folder}; wait for it, or end it"
                return Outcome(cell.label, "left out", why)
            record = next_slice(cell, settings, minutes, tell)
            log.unlink(missing_ok=True)
    except NothingYetError as none:
        log.unlink(missing_ok=True)
        return Outcome(cell.label, "partial", "", 0, none.planned, none.unit)
    except G2N2Error as error:
        own = str(folder) in str(error) and "move it elsewhere" not in str(error)
        anew = f"; delete {folder} to begin the cell anew" if own else ""
        return Outcome(cell.label, "failed", f"{error}{anew}")
    except Exception as error:  # a fault of ours in one cell must not cost the others
        if isinstance(error, OSError) and error.errno in DISK:
            place = error.filename or settings.work
            why = f"cannot write {place}: {error.strerror}; what was done before is kept"
            return Outcome(cell.label, "failed", why)
        with suppress(OSError):
            log.write_text(traceback.format_exc(), encoding="utf-8")
        return Outcome(cell.label, "failed", f"{type(error).__name__}: {error}; see {log}")
    state: State = "partial" if record.partial else "complete"
    return Outcome(cell.label, state, "", record.done, record.planned, record.unit)


@lru_cache(maxsize=64)
def absent(name: str, data: str | None, cache: str | None) -> str:
    """Why a data set cannot be read here; empty where it can."""
    if name == "qm9":
        return _absent_qm9(data, cache)
    from ..data.catalogue import load_dataset

    try:
        load_dataset(name, data)
    except DataError as error:
        return str(error)
    return ""


def _absent_qm9(data: str | None, cache: str | None) -> str:
    """QM9 is not loaded to find out: that takes seconds, or minutes where a cache is built."""
    from importlib.util import find_spec

    from ..data.files import cache_folder
    from ..data.qm9.sources import has_raw_files

    if Path(cache).is_file() if cache else (cache_folder() / "qm9.cache").is_file():
        return ""
    if find_spec("qm9pack") is not None or has_raw_files(data):
        return ""
    return (
        "QM9 is not here: pip install 'g2n2[chem]' brings it, or name a cache file with "
        "--option cache=FILE"
    )


def failures(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.state == "failed"]
