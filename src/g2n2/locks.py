"""One writer at a time: a lock that names its holder and ends with its process."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from .errors import DataError, G2N2Warning
from .whole_files import replace_file

LOCK = ".lock"
HOLDER = ".lock.holder"
TRIES = 100
"""A folder may be removed between being made and being locked, by a run that failed in it."""


class InUseError(DataError):
    """What another process is writing at this moment."""


@contextmanager
def sole_writer(folder: Path, instead: str) -> Iterator[None]:
    """Make a folder and be its only writer.

    The operating system drops the lock of a process that ends, however it ends, so that a killed
    process leaves nothing to clean up. The lock file stays: removing it could let two in.

    Args:
        folder: Made where it is not there.
        instead: What to do where another process has it, as `name another --out`.

    Raises:
        InUseError: Another process writes there.
        DataError: Nothing can be written there.
    """
    with _held(folder, folder, "", instead):
        yield


@contextmanager
def sole_writer_of_file(path: Path, instead: str) -> Iterator[None]:
    """Be the only writer of a file, whose folder is made; nothing is left beside it at the end.

    Args:
        path: It need not be there.
        instead: What to do where another process has it.

    Raises:
        InUseError: Another process writes it.
        DataError: Nothing can be written there.
    """
    with _held(path, path.parent, f".{path.name}", instead, leave=False):
        yield


@contextmanager
def _held(
    what: Path, folder: Path, prefix: str, instead: str, leave: bool = True
) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(folder / f"{prefix}{LOCK}", timeout=0, thread_local=False)
    held_by = folder / f"{prefix}{HOLDER}"
    try:
        for attempt in range(TRIES):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
                break
            except FileNotFoundError:
                if attempt == TRIES - 1:
                    raise
        replace_file(held_by, _this_process())
    except Timeout:
        raise InUseError(f"{what} is being written by {holder(held_by)}; {instead}") from None
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
            held_by.unlink(missing_ok=True)
            if not leave:  # who opened it meanwhile notices that it is gone
                Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


@contextmanager
def sole_builder(path: Path) -> Iterator[None]:
    """Be the only process that builds a file; wait, and say so, while another one does.

    Whoever had to wait looks whether the file is there before building it again.

    Args:
        path: The file; its folder is made.

    Raises:
        DataError: Nothing can be written beside it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}{LOCK}"), thread_local=False)
    held_by = path.with_name(f".{path.name}{HOLDER}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            said = f"{path} is being made by {holder(held_by)}; waiting for it"
            warnings.warn(said, G2N2Warning, stacklevel=3)
            lock.acquire()
        replace_file(held_by, _this_process())
    except OSError as error:
        lock.release()
        raise DataError(
            f"cannot write {str(path)!r} ({error.strerror or error}): free space there, or name "
            "a place that can be written"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):  # those who wait notice that the file they wait for is another one
            held_by.unlink(missing_ok=True)
            Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def holder(path: Path) -> str:
    """Who holds a lock: `process 4711 on HOST (g2n2 train …) since 2026-01-31 12:00:00`."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return (
            f"process {said['process']} on {said['host']} ({said['command']}) since {said['since']}"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def without_passwords(text: str) -> str:
    """A text with the passwords of the addresses in it replaced by `***`."""
    text = re.sub(r"(://[^\s:/?#]*):\S*@", r"\1:***@", text)
    return re.sub(r"(?i)(pass(?:word|wd)?=)[^\s&;]+", r"\1***", text)


def _this_process() -> bytes:
    words = [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else []
    said = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "command": without_passwords(" ".join(words))[:200],
        "since": f"{datetime.now():%Y-%m-%d %H:%M:%S}",
    }
    return json.dumps(said, ensure_ascii=False).encode(errors="replace")
