"""One writer at a time: a lock that names its holder and ends with its process."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from .errors import DataError
from .whole_files import replace_file

LOCK = ".lock"
HOLDER = ".lock.holder"
TRIES = 100
"""A folder may be removed between being made and being locked, by a run that failed in it."""


@contextmanager
def sole_writer(folder: Path, instead: str) -> Iterator[None]:
    """Make a folder and be its only writer.

    The operating system drops the lock of a process that ends, however it ends, so that a killed
    process leaves nothing to clean up. The lock file stays: removing it could let two in.

    Args:
        folder: Made where it is not there.
        instead: What to do where another process has it, as `name another --out`.

    Raises:
        DataError: Another process writes there, or nothing can be written there.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        for attempt in range(TRIES):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
                break
            except FileNotFoundError:
                if attempt == TRIES - 1:
                    raise
        replace_file(folder / HOLDER, _this_process())
    except Timeout:
        raise DataError(f"{folder} is being written by {holder(folder)}; {instead}") from None
    except OSError as error:
        lock.release()
        raise DataError(
            f"cannot write in {folder} ({error.strerror or error}): check that the folder can be "
            "written and the disk has space, or copy it to one that can"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink(missing_ok=True)
        lock.release()


def holder(folder: Path) -> str:
    """Who writes in a folder: `process 4711 on HOST (g2n2 train …) since 2026-01-31 12:00:00`."""
    try:
        said = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return (
            f"process {said['process']} on {said['host']} ({said['command']}) since {said['since']}"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _this_process() -> bytes:
    words = [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else []
    said = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "command": " ".join(words)[:200],
        "since": f"{datetime.now():%Y-%m-%d %H:%M:%S}",
    }
    return json.dumps(said, ensure_ascii=False).encode(errors="replace")
