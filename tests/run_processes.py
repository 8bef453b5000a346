"""What processes do that tests start at once: here, where a fresh process can import it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from g2n2.atomic_files import sole_writer
from g2n2.training import run_folder
from small_runs import command_line


def in_folder(folder: Path, words: list[str], log: Path) -> None:
    """Run `g2n2 WORDS` in a folder, once the file `go` is there.

    Between finding a free name for its run and taking it a process waits, so that others find it.
    """
    real, waits = run_folder.next_run_folder, iter([1.0])

    def found(*arguments: Any) -> Path:
        free = real(*arguments)
        time.sleep(next(waits, 0.0))
        return free

    run_folder.next_run_folder = found
    os.chdir(folder)
    while not Path("go").exists():
        time.sleep(0.001)
    command_line(words, log)


def hold(folder: Path) -> None:
    with sole_writer(folder, ""):
        (folder / "held").touch()
        time.sleep(600)
