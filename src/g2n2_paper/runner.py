"""Run the cells of a question that have no complete record, in parallel processes.

A cell is one entry (or row) of a table, for one seed. Its unfinished work lies in a folder named
after the cell and its settings, so that a stopped or killed call is continued by the same command:
training runs resume from their checkpoints, folds and pairs that were finished are read back.
Where there are few cells for the processes, several share the parts of a cell.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import ceil, isfinite
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import Any, Literal, TypeVar

import torch

from g2n2.atomic_files import disk_errors, replace_file, sole_writer
from g2n2.errors import DataError, G2N2Error
from g2n2.training.config import RunConfig
from g2n2.training.processes import find_device
from g2n2.training.run_folder import provenance, source_digest

from .record import EARLIER, QUESTIONS, CellRecord, record_path

Content = TypeVar("Content")
State = Literal["done", "kept", "failed", "shared"]
ATTEMPTS = "attempts.json"
ORIGIN = ("commit", "source", "paper source", "device", "cpu")
"""Keys of the provenance by which attempts are told apart."""


@dataclass(frozen=True)
class Job:
    """Where and how a cell runs."""

    # folder of unfinished work. `run_cell` gives each cell its own
    work: Path = Path("build/experiments")
    results: Path = Path("results")  # folder of the records
    device: str = "auto"  # `auto`, `cpu` or `cuda`
    data: str | None = None  # folder of data files, if any
    cache: str | None = None  # cache file of QM9, if not the user's
    smoke: bool = False  # tiny settings that only check that everything runs
    # which of several processes this is: with (k, n) it computes every nth part of a cell from k
    share: tuple[int, int] = (0, 1)
    finished: bool = False  # compute nothing: take the parts that are there

    def torch_device(self) -> torch.device:
        return find_device(self.device)

    def kept(self, name: str, compute: Callable[..., Content], *arguments: Any) -> Content:
        """The content of a JSON file of this cell; computed and written if it does not exist."""
        path = self.part_file(name)
        if not path.exists():
            replace_file(path, json.dumps(compute(*arguments)).encode())
        content: Content = _read(path)
        return content

    def parts(self, planned: Mapping[str, Content]) -> dict[str, Content]:
        """Those of the planned parts of a cell that its record is made of: all, or the finished.

        Raises:
            DataError: None of them is finished.
        """
        if not self.finished:
            return dict(planned)
        there = {name: part for name, part in planned.items() if self.part_file(name).exists()}
        if not there:
            raise DataError(f"none of its {len(planned)} parts is finished")
        return there

    def part_file(self, name: str) -> Path:
        return self.work / f"{name}.json"

    def kept_parts(
        self, parts: Mapping[str, Sequence[Any]], compute: Callable[..., Content]
    ) -> list[Content]:
        """The contents of several such files, given the arguments of each.

        A process with a share of the parts computes its own and goes no further.

        Raises:
            DataError: Only finished parts are taken, and some of these are not.
        """
        if self.finished and not all(self.part_file(name).exists() for name in parts):
            raise DataError("some of its parts are not finished, and it needs them all")
        first, step = self.share
        mine = list(parts.items())[first::step]
        contents = [self.kept(name, compute, *arguments) for name, arguments in mine]
        if step > 1:
            raise ShareEndsError
        return contents


class ShareEndsError(Exception):
    """A process has computed its share of a cell."""


@dataclass(frozen=True)
class Measurement:
    """What a cell measured; the attributes are those of `CellRecord`."""

    done: int
    unit: str
    metrics: Mapping[str, float | None]
    data: Mapping[str, str]
    config: Mapping[str, Any] = field(default_factory=dict)  # beside the settings of the cell
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of a question's tables, for one seed."""

    question: str  # one of `QUESTIONS`
    name: str  # parts joined by `/`
    run: Callable[[Job], Measurement]  # computes the measurement
    # everything the numbers depend on: a cell whose record has other settings is run again
    settings: Mapping[str, Any]
    seed: int = 0
    # what settings were before records had them. A training run's have the defaults of `RunConfig`
    defaults: Mapping[str, Any] = field(default_factory=dict)
    timed: bool = False  # it measures time, so nothing may run beside it
    parts: int = 1  # how many parts its `run` gives to `kept_parts`, if it does
    # those of a record that has fewer, by name: they are not computed again
    parts_of: Callable[[CellRecord], Mapping[str, Any]] = lambda _: {}

    def matches(self, record: CellRecord) -> bool:
        """Whether a record has this cell's settings; one it does not have had its default."""
        settings, defaults = json.loads(json.dumps([dict(self.settings), dict(self.defaults)]))
        recorded = _with_defaults({k: _with_defaults(v) for k, v in record.config.items()})
        recorded = {**defaults, **recorded}
        return all(name in recorded and recorded[name] == settings[name] for name in settings)

    def record(self, results: Path) -> CellRecord | None:
        """The record of this cell with its present settings, if there is one; it may be partial."""
        path = record_path(results, self.question, self.name, self.seed)
        record = CellRecord.read(path) if path.exists() else None
        return record if record and self.matches(record) else None

    def is_whole(self, record: CellRecord | None) -> bool:
        return record is not None and record.done >= self.parts

    def folder(self, work: Path) -> Path:
        """Folder of unfinished work: another one for other settings."""
        settings = json.dumps(self.settings, sort_keys=True, default=str).encode()
        digest = hashlib.sha256(settings).hexdigest()[:8]
        name = f"{self.name.replace('/', '-')}.s{self.seed}.{digest}"
        return (work / self.question / name).resolve()


@dataclass(frozen=True)
class CellOutcome:
    """What happened to a cell, and how much work it is or why it failed."""

    label: str
    state: State
    reason: str

    def __str__(self) -> str:
        return f"{self.label}: {self.state}, {self.reason}"


def cells_of(question: str, smoke: bool = False) -> list[Cell]:
    """The cells of a question, in the order they should run."""
    if question not in QUESTIONS:
        raise DataError(f"no question {question!r}; expected one of {', '.join(QUESTIONS)}")
    cells: list[Cell] = import_module(f"g2n2_paper.{question}").cells(smoke)
    return cells


def choose(cells: Sequence[Cell], only: Sequence[str], seeds: Sequence[int] = ()) -> list[Cell]:
    """The cells whose name has one of the given parts, and whose seed is one of the given."""
    for part in only:
        if not any(_has_part(cell.name, part) for cell in cells):
            words = sorted({word for cell in cells for word in cell.name.split("/")})
            raise DataError(f"no cell has the part {part!r}; parts of names: {', '.join(words)}")
    chosen = [c for c in cells if not only or any(_has_part(c.name, part) for part in only)]
    if unknown := set(seeds) - {cell.seed for cell in chosen}:
        raise DataError(f"no chosen cell has the seed {min(unknown)}")
    return [cell for cell in chosen if not seeds or cell.seed in seeds]


def run_cells(
    cells: Sequence[Cell],
    job: Job,
    jobs: int = 1,
    tell: Callable[[CellOutcome], None] = lambda _: None,
) -> list[CellOutcome]:
    """Run all cells without a record: those that measure time first and alone, then the others.

    `jobs` processes run at a time. Ctrl-C raises KeyboardInterrupt; finished work is kept. A job
    that takes finished parts alone goes through the cells that have some.
    """
    outcomes: list[CellOutcome] = []

    def add(cell: Cell, state: State, reason: str) -> None:
        label = f"{cell.question} {cell.name}, seed {cell.seed}"
        outcomes.append(CellOutcome(label, state, reason))
        tell(outcomes[-1])

    missing = []
    for cell in cells:
        try:
            record = cell.record(job.results)
        except DataError as error:
            add(cell, "failed", str(error))
            continue
        if record and cell.is_whole(record):
            add(cell, "kept", f"{record.done} {record.unit}")
        elif not job.finished or (cell.parts > 1 and cell.folder(job.work).is_dir()):
            missing.append(cell)
    for folder in {job.results / cell.question for cell in missing}:
        with disk_errors(f"write records in {folder}"):  # said before hours of work, not after
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
    alone = [cell for cell in missing if cell.timed or jobs == 1 or job.finished]
    for cell in alone:
        add(cell, *run_cell(cell, job))
    if rest := [cell for cell in missing if cell not in alone]:
        _run_parallel(rest, job, jobs, add)
    return outcomes


def _run_parallel(
    cells: Sequence[Cell], job: Job, jobs: int, add: Callable[[Cell, State, str], None]
) -> None:
    """Run cells in worker processes; one that dies takes with it what runs beside it, no more."""
    threads = max(1, (os.cpu_count() or 1) // jobs)
    counts = {cell: shares_of(cell.parts, len(cells), jobs) for cell in cells}
    waiting = deque((cell, (i, count)) for cell, count in counts.items() for i in range(count))
    futures: dict[Future[tuple[State, str]], Cell] = {}

    def new_pool() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(jobs, get_context("spawn"), _start_worker, (threads,))

    pool = new_pool()
    try:
        while waiting or futures:
            try:
                while waiting and len(futures) < jobs:
                    cell, share = waiting[0]
                    words = (cell.question, cell.name, cell.seed, replace(job, share=share))
                    futures[pool.submit(run_by_name, *words)] = cell
                    waiting.popleft()
                for future in wait(futures, return_when=FIRST_COMPLETED).done:
                    state, detail = future.result()
                    cell = futures.pop(future)
                    if state != "shared":
                        add(cell, state, detail)
                    elif cell not in (*futures.values(), *(cell for cell, _ in waiting)):
                        waiting.appendleft((cell, (0, 1)))  # put the parts together
            except BrokenProcessPool:
                lost = dict.fromkeys(futures.values()) or {waiting[0][0]: None}
                for cell in lost:
                    add(cell, "failed", "a worker process died; run it again, with fewer --jobs")
                waiting = deque(entry for entry in waiting if entry[0] not in lost)
                futures.clear()
                pool.shutdown()
                pool = new_pool()
    except KeyboardInterrupt:
        for process in active_children():
            if process.pid:
                os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def shares_of(parts: int, cells: int, jobs: int) -> int:
    """Into how many shares a cell is cut: about two for each process, of all cells together."""
    return max(1, min(parts, jobs, ceil(2 * jobs / cells)))


def _start_worker(threads: int) -> None:
    os.setsid()  # Ctrl-C of a terminal goes to the parent alone, which passes it on once
    torch.set_num_threads(threads)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed cannot tell its workers, and the next call would run beside them."""
    if parent := parent_process():
        parent.join()
        os._exit(1)


def run_by_name(question: str, name: str, seed: int, job: Job) -> tuple[State, str]:
    """Run a cell in a worker process, which cannot be sent the cell itself."""
    cells = {(cell.name, cell.seed): cell for cell in cells_of(question, job.smoke)}
    run = run_cell if job.share == (0, 1) else run_share
    return run(cells[name, seed], job)


def run_share(cell: Cell, job: Job) -> tuple[State, str]:
    """Compute some parts of a cell; what fails is told by `run_cell`, at the end."""
    folder, name = cell.folder(job.work), ATTEMPTS.replace(".", f"-{job.share[0]}.")
    with suppress(Exception), _attempt(folder, job, name), suppress(ShareEndsError):
        record = cell.record(job.results)
        if not cell.is_whole(record):
            _unpack(cell, record, folder)
            cell.run(replace(job, work=folder))
    return "shared", ""


def run_cell(cell: Cell, job: Job) -> tuple[State, str]:
    """Run one cell and write its record; a failure is a state with a reason, not an exception."""
    folder = cell.folder(job.work)
    try:
        with sole_writer(folder, "wait for it or choose another --work"):
            record = cell.record(job.results)
            if record and cell.is_whole(record):  # by another call, since this one began
                return "kept", f"{record.done} {record.unit}"
            earlier = _unpack(cell, record, folder)
            with _attempt(folder, job) as attempts:
                measured = cell.run(replace(job, work=folder))
            pattern = ATTEMPTS.replace(".", "*." if job.finished else "-*.")
            others = sorted(folder.glob(pattern))
            for path in others:
                earlier += _read(path)
            _record(cell, measured, earlier + attempts).write(job.results)
            for path in others if job.finished else ():
                path.unlink()  # a later call goes on from the record, which has their time
    except G2N2Error as error:
        return "failed", str(error)
    except Exception as error:  # one faulty cell must not stop the others
        reason = f"{type(error).__name__}: {error}"
        log = folder.with_name(f"{folder.name}.error.txt")
        with suppress(OSError):  # a full disk
            log.write_text(traceback.format_exc(), encoding="utf-8")
            reason += f"; see {log}"
        return "failed", reason
    return "done", f"{measured.done} {measured.unit}"


def _unpack(cell: Cell, record: CellRecord | None, folder: Path) -> list[dict[str, Any]]:
    """Put the parts of a partial record among those of the folder; returns its attempts."""
    if record is None:
        return []
    for name, content in cell.parts_of(record).items():
        path = folder / f"{name}.json"
        if not path.exists():
            replace_file(path, json.dumps(content).encode())
    before = record.provenance.get(EARLIER, ())
    return [{**where, "seconds": 0.0} for where in before] + [
        {**record.provenance, "seconds": record.seconds}
    ]


@contextmanager
def _attempt(folder: Path, job: Job, name: str = ATTEMPTS) -> Iterator[list[dict[str, Any]]]:
    """Keep provenance and wall time of every attempt, those that were stopped included.

    To take finished parts is none.
    """
    if job.finished:
        yield []
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    attempts: list[dict[str, Any]] = _read(path) if path.exists() else []
    sources = {"paper source": source_digest(Path(__file__).parent), "seconds": 0.0}
    attempts.append(provenance(job.torch_device()) | sources)
    start = time.monotonic()
    replace_file(path, json.dumps(attempts).encode())
    try:
        yield attempts
    finally:
        attempts[-1]["seconds"] = round(time.monotonic() - start, 3)
        with suppress(OSError):  # a full disk; what else is raised is what counts
            replace_file(path, json.dumps(attempts).encode())


def _read(path: Path) -> Any:
    """The content of a file of unfinished work."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}); delete it to compute it again") from None


def _record(cell: Cell, measured: Measurement, attempts: list[dict[str, Any]]) -> CellRecord:
    for name, value in measured.metrics.items():
        if value is not None and not isfinite(value):
            raise DataError(f"its {name} is {value}, so there is no record of it")
    seconds = round(sum(attempt.pop("seconds") for attempt in attempts), 3)
    *before, last = ({name: a.get(name) for name in ORIGIN} for a in attempts)
    others = [origin for i, origin in enumerate(before) if origin not in (last, *before[:i])]
    return CellRecord(
        question=cell.question,
        cell=cell.name,
        seed=cell.seed,
        provenance=attempts[-1] | ({EARLIER: others} if others else {}),
        seconds=seconds,
        **vars(replace(measured, config={**measured.config, **cell.settings})),
    )


def _has_part(name: str, part: str) -> bool:
    return f"/{part}/" in f"/{name}/"


def _with_defaults(content: Any) -> Any:
    """Settings of a training run, completed by defaults; anything else unchanged."""
    is_run = isinstance(content, Mapping) and "dataset" in content
    return RunConfig.completed(content) if is_run else content
