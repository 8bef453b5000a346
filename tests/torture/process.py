"""What runs in the processes that are killed, starved and set against each other."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from g2n2 import atomic_files
from g2n2.cli import main
from g2n2.data.files import store_in_cache
from g2n2.training import sweep
from g2n2.training.loop import Loop
from g2n2_paper.record import CellRecord
from small_runs import no_pictures

from .watch import bound_memory


@dataclass(frozen=True)
class Blow:
    """What happens at one of the calls that write, fsync or rename a file.

    Attributes:
        at: Which call, counted from 1; 0 for none.
        action: `kill` ends the process in the middle of it, `full` makes the disk full from then on.
        slow: Whether steps and writes take long enough to be hit by chance.
        counted: Where to leave the number of calls, for a process that ends.
    """

    at: int = 0
    action: Literal["kill", "full"] = "kill"
    slow: bool = False
    counted: Path | None = None


def command(words: list[str], folder: Path, log: Path, blow: Blow) -> None:
    """Run `g2n2 WORDS` in a folder, its output in a file."""
    os.chdir(folder)
    bound_memory()
    sweep.run_sweep = partial(sweep.run_sweep, heartbeat=2)  # type: ignore[assignment]
    calls = _install(blow)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = ["g2n2", *words]
    try:
        with no_pictures():
            main()
    finally:
        if blow.counted is not None:
            blow.counted.write_text(str(calls[0]))


def _install(blow: Blow) -> list[int]:
    """Strike at the chosen call of this process; the list holds the number of calls so far."""
    calls = [0]
    put, fsync, replace = atomic_files.put, os.fsync, os.replace

    def struck(again: bool) -> bool:
        calls[0] += 1
        return calls[0] == blow.at or (again and blow.action == "full" and 0 < blow.at < calls[0])

    def strike() -> None:
        if blow.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def half(file: Any, content: bytes) -> None:
        if struck(again=True):
            put(file, content[: len(content) // 2])
            file.flush()
            strike()
        put(file, content)

    def around(call: Callable[..., None], again: bool) -> Callable[..., None]:
        def hit(*arguments: Any, **named: Any) -> None:
            if struck(again):
                strike()
            call(*arguments, **named)

        return hit

    if blow.slow:
        Loop.step = _paused(Loop.step)  # type: ignore[method-assign]
        atomic_files.put = _in_pieces
    if blow.at or blow.counted:
        atomic_files.put = half
        os.fsync, os.replace = around(fsync, True), around(replace, False)
    return calls


def _paused(step: Callable[..., None]) -> Callable[..., None]:
    def paused(*arguments: Any) -> None:
        time.sleep(0.025)
        step(*arguments)

    return paused


def _in_pieces(file: Any, content: bytes) -> None:
    half = len(content) // 2
    file.write(content[:half])
    file.flush()
    time.sleep(0.02)
    file.write(content[half:])


def fill_cache(folder: Path, content: bytes) -> None:
    """Write one file of a cache as often as others do."""
    os.environ["XDG_CACHE_HOME"] = str(folder)
    _when_told(folder)
    for _ in range(20):
        store_in_cache("a.zip", content, "tu")


def write_record(folder: Path, number: int) -> None:
    """Write one experiment record as often as others do."""
    _when_told(folder)
    for _ in range(20):
        config = {"number": number, "more": [number] * 1000}
        CellRecord("q1", "a", 0, 1, "epochs", {}, config, {}, {}, 1.0).write(folder)


def _when_told(folder: Path) -> None:
    while not (folder / "go").exists():
        time.sleep(0.001)
