"""What processes do that tests start at once: here, where a fresh process can import it."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from g2n2.atomic_files import sole_writer
from g2n2.training import config
from small_runs import command_line


def in_folder(folder: Path, words: list[str], log: Path) -> None:
    """Run `g2n2 WORDS` in a folder, once the file `go` is there.

    Between finding a free name for its run and taking it a process waits, so that others find it.
    """
    real, waits = config.next_run_folder, iter([1.0])

    def found(*arguments: Any) -> Path:
        free = real(*arguments)
        time.sleep(next(waits, 0.0))
        return free

    config.next_run_folder = found
    os.chdir(folder)
    while not Path("go").exists():
        time.sleep(0.001)
    command_line(words, log)


def hold(folder: Path) -> None:
    with sole_writer(folder, ""):
        (folder / "held").touch()
        time.sleep(600)


def need_cache(kind: str, folder: Path) -> None:
    """Get what is cached, from a builder that notes each call and stays until it may end."""

    def build() -> None:
        with open(folder / "built", "a") as file:
            file.write(f"{os.getpid()}\n")
        while not (folder / "go").exists():
            time.sleep(0.001)

    def build_qm9(path: Path, *_: Any, **__: Any) -> None:
        build()
        path.write_text("130,831 molecules")

    def download(_url: str) -> bytes:
        build()
        return (folder / "TINY.zip").read_bytes()

    from g2n2.data import qm9, tu

    qm9.build_qm9, tu.download = build_qm9, download
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    os.environ.pop("G2N2_DATA", None)
    with open(folder / f"{os.getpid()}.log", "w", buffering=1) as said:
        with contextlib.redirect_stderr(said):
            found = qm9.qm9_cache().read_text() if kind == "qm9" else len(tu.load_tu("TINY"))
        print(found, file=said)
