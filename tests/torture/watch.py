"""Inputs tried in worker processes: each within 10 s of CPU time and 2 GB of memory.

CPU time, not the clock on the wall, so that a busy machine finds no hang that is none. What ends a
worker is counted and the rest of its inputs go to another one.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from g2n2.errors import G2N2Error

SECONDS = 10.0
"""CPU time one input may take."""
BLOCKED = 300.0
"""Seconds after which an input that takes no CPU time either is waiting for nothing."""
MEMORY = 2 * 10**9
"""Bytes a process may hold while it reads one input, the libraries included."""
BATCH = 50
PRELOADED = [
    *("g2n2.cli", "g2n2.training.session", "g2n2.training.display", "torch._dynamo", "optuna"),
    *("torch.utils.tensorboard", "torture.formats", "torture.strings", "torture.process"),
    "run_processes",
]
"""Imported once, in the process all others are forked from."""
FAULTS = ("traceback", "crash", "hang", "memory", "altered")
"""Outcomes that must not be; the others are `read` and `refused`."""

Try = Callable[[int], str]
"""Tries an input by its number: `read`, or `altered` where it was taken for what it is not."""
Kinds = Callable[[Path], dict[str, Try]]
"""Made once in each worker, in a folder of its own."""


@dataclass
class Tally:
    """What came of the inputs of one kind.

    Attributes:
        outcomes: How often each.
        slowest: CPU seconds of the slowest input.
        peak: Most bytes the process held.
        faults: Number of an input and what happened, for the first of those that must not be.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    peak: int = 0
    faults: list[tuple[int, str]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.outcomes.total()

    def add(self, number: int, outcome: str, detail: str, seconds: float, peak: int) -> None:
        self.outcomes[outcome] += 1
        self.slowest, self.peak = max(self.slowest, seconds), max(self.peak, peak)
        if outcome in FAULTS and len(self.faults) < 20:
            self.faults.append((number, f"{outcome}: {detail}"))


def try_all(
    kinds: Kinds, wanted: Iterable[tuple[str, Iterable[int]]], workers: int
) -> dict[str, Tally]:
    """Try the wanted numbers of each kind, several at a time.

    Args:
        kinds: What can be tried; imported by its name in the workers.
        wanted: Kind and numbers.
        workers: How many processes.
    """
    found: dict[str, Tally] = {}
    waiting = deque(_batches(wanted))
    for kind, _ in waiting:
        found.setdefault(kind, Tally())
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    hired = [_Worker(context, kinds) for _ in range(min(workers, len(waiting)))]
    while hired:
        for worker in hired:
            if not worker.left and waiting:
                worker.take(*waiting.popleft())
        for idle in [worker for worker in hired if not worker.left]:
            idle.dismiss()
            hired.remove(idle)
        ready = wait([worker.pipe for worker in hired]) if hired else []
        for worker in [worker for worker in hired if worker.pipe in ready]:
            try:
                outcome = worker.pipe.recv()
            except EOFError:
                number = worker.left.popleft()
                found[worker.kind].add(number, *worker.ended())
                if worker.left:
                    waiting.appendleft((worker.kind, list(worker.left)))
                hired[hired.index(worker)] = _Worker(context, kinds)
            else:
                found[worker.kind].add(worker.left.popleft(), *outcome)
    return found


class _Worker:
    def __init__(self, context: Any, kinds: Kinds) -> None:
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, kinds), daemon=True)
        self.process.start()
        other.close()
        self.kind = ""
        self.left: deque[int] = deque()

    def take(self, kind: str, numbers: Iterable[int]) -> None:
        self.kind, self.left = kind, deque(numbers)
        self.pipe.send((kind, list(self.left)))

    def dismiss(self) -> None:
        self.pipe.close()
        self.process.join()

    def ended(self) -> tuple[str, str, float, int]:
        self.process.join()
        code = self.process.exitcode
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            return "hang", f"more than {SECONDS:g} s", SECONDS, 0
        return "crash", f"the process ended with {code}", 0.0, 0


def _batches(wanted: Iterable[tuple[str, Iterable[int]]]) -> Iterator[tuple[str, list[int]]]:
    for kind, numbers in wanted:
        listed = list(numbers)
        yield from ((kind, listed[at : at + BATCH]) for at in range(0, len(listed), BATCH))


def _work(pipe: Connection, kinds: Kinds) -> None:
    """Try batches of inputs until the pipe closes."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        os.chdir(folder)
        tries = kinds(Path(folder))
        bound_memory()
        while True:
            try:
                kind, numbers = pipe.recv()
            except EOFError:
                return
            for number in numbers:
                pipe.send(tried(tries[kind], number))


def tried(one: Try, number: int) -> tuple[str, str, float, int]:
    """Outcome, detail, CPU seconds and bytes of one input."""
    _forget_peak()
    start = sum(os.times()[:4])
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # unless caught it ends the process
    signal.setitimer(signal.ITIMER_REAL, BLOCKED)
    detail = ""
    try:
        outcome = one(number)
    except G2N2Error as error:
        outcome = "refused"
        if not str(error).strip():
            outcome, detail = "traceback", f"{type(error).__name__} without a message"
    except MemoryError:
        outcome, detail = "memory", traceback.format_exc(limit=-3)
    except BaseException:
        outcome, detail = "traceback", traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    peak = _peak()
    if peak > MEMORY and outcome not in FAULTS:
        outcome, detail = "memory", f"{peak:,} bytes"
    return outcome, detail, sum(os.times()[:4]) - start, peak


def bound_memory() -> None:
    """Stop an input that would take the machine's memory; less is measured, not stopped."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + 2 * MEMORY, hard))


def _forget_peak() -> None:
    with suppress(OSError):  # else the peak is that of all inputs so far, which is no less
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
