"""Several cells at once: worker processes that are given one cell after the other.

A small network does not fill a GPU, and data is read and figures are drawn on the CPU meanwhile. A
worker keeps its imports and its data between two cells. One that dies costs the cell it had.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from threading import Thread

from ..errors import DataError
from .cell import Cell
from .machines import device_called
from .questions import cells_of
from .running import Deadline, Outcome, Settings, Tell, absent, run_cell

ON_A_GPU = {"q1": 3, "q2": 3, "q3": 5, "q4": 1, "power": 5, "all": 3}
"""Cells at a time. Under MPS five cells of QM9 at once were done 1.2 times as fast as one after the
other, and small sets gain more; a grid of 900 nodes fills the GPU by itself."""


def jobs_for(question: str, device: str) -> int:
    """How many cells of a question to run at a time."""
    return ON_A_GPU[question] if device_called(device).type == "cuda" else 1


Key = tuple[str, str, str, int]
"""Question, budget, name and seed: what a worker finds a cell by."""


@dataclass(eq=False)
class Worker:
    """A process and what it is doing."""

    process: SpawnProcess
    pipe: Connection
    cell: Cell | None = None


def run_packed(
    cells: Sequence[Cell],
    settings: Settings,
    deadline: Deadline,
    tell: Tell,
    ended: Callable[[Outcome], None],
) -> list[Outcome]:
    """Run cells in workers, started in their order; one that must be alone waits for the rest."""
    _build_shared(cells, settings)
    waiting = list(cells)
    outcomes: list[Outcome] = []
    workers = [_start(settings) for _ in range(min(settings.jobs, len(cells)))]
    try:
        while True:
            busy = [worker for worker in workers if worker.cell]
            while waiting and deadline.left > 0 and _may_start(waiting[0], busy, len(workers)):
                idle = next(i for i, worker in enumerate(workers) if not worker.cell)
                order = _key(waiting[0]), deadline.slice_minutes()
                try:
                    workers[idle].pipe.send(order)
                except OSError:  # it died while it had nothing to do
                    workers[idle] = _start(settings)
                    workers[idle].pipe.send(order)
                workers[idle].cell = waiting.pop(0)
                busy.append(workers[idle])
            if not busy:
                return outcomes
            for pipe in wait([worker.pipe for worker in busy]):
                worker = next(worker for worker in busy if worker.pipe is pipe)
                outcome = _listen(worker, tell)
                if outcome is None:
                    continue
                outcomes.append(outcome)
                ended(outcome)
                worker.cell = None
                if not worker.process.is_alive():
                    workers[workers.index(worker)] = _start(settings)
    except KeyboardInterrupt:
        for worker in workers:
            with suppress(ProcessLookupError, TypeError):
                os.kill(worker.process.pid or 0, signal.SIGINT)
        raise
    finally:
        for worker in workers:
            worker.pipe.close()
        for worker in workers:
            worker.process.join()


def _build_shared(cells: Sequence[Cell], settings: Settings) -> None:
    """Build what every worker would build for itself: the cache of QM9, which takes minutes."""
    cache = settings.options.get("cache")
    if not any("qm9" in cell.needs for cell in cells) or absent("qm9", settings.data, cache):
        return
    from ..data.qm9 import qm9_cache

    with suppress(DataError):  # told of by each cell that needs it
        qm9_cache(cache, settings.data)


def _may_start(cell: Cell, busy: list[Worker], workers: int) -> bool:
    if cell.alone or any(worker.cell and worker.cell.alone for worker in busy):
        return not busy
    return len(busy) < workers


def _listen(worker: Worker, tell: Tell) -> Outcome | None:
    """Pass on what a worker says; the outcome where its cell has ended."""
    cell = worker.cell
    assert cell is not None
    try:
        said = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode
        return Outcome(cell.label, "failed", f"its process ended with code {code}")
    if isinstance(said, Outcome):
        return said
    tell(cell, *said)
    return None


def _start(settings: Settings) -> Worker:
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_work, args=(there, settings), daemon=True)
    # A Ctrl-C while it imports is kept for when it can end in order. (Python's own helper process
    # lifts the block when it is started, so it goes first.)
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    there.close()
    return Worker(process, here)


def _work(pipe: Connection, settings: Settings) -> None:
    """A worker: take a cell, run it, say what became of it; end when nobody listens any more."""
    os.setsid()  # Ctrl-C of the terminal goes to the parent, which passes it on once
    Thread(target=_end_with_parent, daemon=True).start()
    _share_cores(settings.jobs)
    with suppress(EOFError, OSError, KeyboardInterrupt):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        while True:
            key, minutes = pipe.recv()
            cell = find_cell(key)
            pipe.send(run_cell(cell, settings, minutes, lambda _, *said: pipe.send(said)))


def _end_with_parent() -> None:
    """A parent that was killed can tell nobody; what is kept is kept whole at every moment."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _share_cores(jobs: int) -> None:
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))


def find_cell(key: Key) -> Cell:
    question, budget, name, seed = key
    found = (cell for cell in cells_of(question, budget) if (cell.name, cell.seed) == (name, seed))
    return next(found)


def _key(cell: Cell) -> Key:
    return cell.question, cell.budget, cell.name, cell.seed
