"""Atomic file writes, and lock files that name the process holding them.

A file is written under another name and then renamed, so a reader sees the old content or the new
one, never half of it. An output path may be a link, which is followed, or a FIFO or character
device (`/dev/stdout`), which is written to; only a regular file is ever replaced. A lock ends with
the process that holds it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import socket
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO

from .errors import DataError, G2N2Warning

_OPEN_FILE = re.compile(r"(?:/dev/fd|/proc/(?P<process>self|\d+)/fd)/(?P<descriptor>\d+)")


def replace_file(
    path: Path, content: bytes, before: Path | None = None, *, shared: bool = False
) -> None:
    """Write a file under another name, bring it to the disk, then give it its own.

    If that raises an OSError, what was there before is untouched. `before` is where that is kept
    otherwise. Only where several processes may write at a time (`shared`) is the other name a new
    one each time: those of killed processes would pile up.
    """
    if is_stream(path):
        with open_stream_for_writing(path) as file:
            put(file, content)
        return
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    own = f".{secrets.token_hex(8)}" if shared else ""
    part = path.with_name(f".{path.name}{own}.part")
    try:
        with open(part, "wb") as file:
            put(file, content)
            file.flush()
            os.fsync(file.fileno())
        if before is not None and path.exists():
            os.replace(path, before)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    sync_folder(path.parent)


def check_output(path: Path) -> None:
    """Refuse a place where no file can be written, before the work for it is done.

    A folder that does not exist is made only below the working folder.
    """
    if str(path) == "-":
        raise DataError("an output called - is no file: name a file, or /dev/stdout for the screen")
    with disk_errors(f"write {path}"):
        if is_stream(path):
            return
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            _require_below_working_folder(folder)
        elif not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"the folder {folder} cannot be written")


def refuse_overwriting(out: Path, *sources: str | Path) -> None:
    """Refuse an output that is one of the files read; those that do not exist are left aside."""
    for source in map(Path, sources):
        if os.path.exists(out) and os.path.exists(source) and out.samefile(source):
            raise DataError(
                f"{out} would overwrite the graphs that are read or were trained on; name another "
                "file"
            )


def write_output(path: Path, content: bytes) -> None:
    """Write a file a user named, with its folder where that is below the working folder."""
    check_output(path)
    with disk_errors(f"write {path}"):
        if not is_stream(path):
            Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, shared=True)


def check_folder(path: Path) -> None:
    """Refuse a place where no folder can be made, before the work for it is done."""
    with disk_errors(f"make the folder {path}"):
        if os.path.lexists(path) and not path.is_dir():
            raise FileExistsError(errno.EEXIST, "it is there and is no folder; name a new one")
        if not path.parent.is_dir():
            _require_below_working_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder a user named; folders above it are made only below the working folder."""
    if not path.parent.is_dir():
        _require_below_working_folder(path.parent)
    path.mkdir(parents=True, exist_ok=True)


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Say what could not be done where the system refuses it."""
    try:
        yield
    except OSError as fault:
        raise DataError(f"cannot {doing}: {fault.strerror or fault}") from None


def put(file: IO[bytes], content: bytes) -> None:
    """Write all of it, where the system takes a part at a time too."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


def is_stream(path: Path) -> bool:
    """Whether what is there is written to as it is; an OSError if no file can be written there."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file in it")
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        what = "a block device" if stat.S_ISBLK(mode) else "a socket"
        raise OSError(errno.EINVAL, f"it is {what}; name a file")
    return not stat.S_ISREG(mode) or _open_file(path) is not None


def _open_file(path: Path) -> re.Match[str] | None:
    """What a name such as `/dev/stdout` says of an open file, links followed one by one."""
    name = os.path.abspath(path)
    while (found := _OPEN_FILE.fullmatch(name)) is None and os.path.islink(name):
        name = os.path.abspath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return found


def open_stream_for_writing(path: Path) -> IO[bytes]:
    """Open a FIFO, a character device or an open file of this process, as `/dev/stdout` is.

    What is written to an open file follows what is there.
    """
    if found := _open_file(path):
        if found["process"] not in (None, "self", str(os.getpid())):
            raise OSError(errno.EINVAL, "another process has it open; name a file")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return os.fdopen(os.dup(int(found["descriptor"])), "wb", buffering=0)
    try:
        # Without O_NONBLOCK a FIFO that nobody reads would be waited for without end.
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as fault:
        if fault.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a FIFO and nobody reads it; name a file") from None
        raise
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb", buffering=0)


def _require_below_working_folder(folder: Path) -> None:
    if not Path(os.path.realpath(folder)).is_relative_to(Path.cwd().resolve()):
        raise FileNotFoundError(
            errno.ENOENT, f"the folder {folder} does not exist; make it first, or correct the name"
        )


def sync_folder(folder: Path) -> None:
    """Bring the new name itself to the disk, which file systems do in their own time."""
    with suppress(OSError):  # some file systems cannot; the rename is whole all the same
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


LOCK = ".lock"
HOLDER = ".lock.holder"
TRIES = 100
"""A folder may be removed between being made and being locked, by a run that failed in it; and a
lock is taken a moment before its holder is named."""


class InUseError(DataError):
    """What another process is writing at this moment."""


@contextmanager
def sole_writer(folder: Path, instead: str) -> Iterator[None]:
    """Make a folder and be its only writer; `instead` is what to do where another process is.

    The operating system drops the lock of a process that ends, however it ends. The lock file
    stays: removing it could let two in.
    """
    with _locked(folder, folder, "", f"written by {{}}; {instead}", stays=True):
        yield


@contextmanager
def sole_writer_of_file(path: Path, instead: str) -> Iterator[None]:
    """As `sole_writer`, of a file in a folder that is made; nothing is left beside it."""
    with _locked(path, path.parent, f".{path.name}", f"written by {{}}; {instead}"):
        yield


@contextmanager
def sole_builder(path: Path) -> Iterator[None]:
    """Be the only process that builds a file; wait, and say so, while another one does.

    Whoever had to wait looks whether the file is there before building it again.
    """
    with _locked(path, path.parent, f".{path.name}", "made by {}; waiting for it", wait=True):
        yield


@contextmanager
def _locked(
    what: Path, folder: Path, prefix: str, doing: str, *, wait: bool = False, stays: bool = False
) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(folder / f"{prefix}{LOCK}", thread_local=False)
    held_by = folder / f"{prefix}{HOLDER}"
    try:
        for remaining in reversed(range(TRIES)):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                os.close(os.open(lock.lock_file, os.O_RDWR | os.O_CREAT))  # or filelock waits
                lock.acquire(timeout=0)
                break
            except FileNotFoundError:
                if not remaining:
                    raise
            except Timeout:
                message = f"{what} is being {doing.format(holder(held_by))}"
                if not wait:
                    raise InUseError(message) from None
                warnings.warn(message, G2N2Warning, stacklevel=5)
                lock.acquire()
                break
        replace_file(held_by, _this_process())
    except OSError as error:
        lock.release()
        raise DataError(
            f"cannot write in {folder} ({error.strerror or error}): check that the folder can be "
            "written and the disk has space; else copy it, or name a place that can be written"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            held_by.unlink(missing_ok=True)
            if not stays:  # who opened it meanwhile notices that it is gone
                Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def holder(path: Path) -> str:
    """Who holds a lock: `process 4711 on HOST (g2n2 train …) since 2026-01-31 12:00:00`.

    Whoever has just taken it may not have written that yet, so it is read several times.
    """
    for _ in range(TRIES):
        try:
            holder = json.loads(path.read_text(encoding="utf-8"))
            process, host = holder["process"], holder["host"]
            if host != socket.gethostname() or _is_running(process):
                return f"process {process} on {host} ({holder['command']}) since {holder['since']}"
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            pass
        time.sleep(0.01)
    return "another process"


def _is_running(process: int) -> bool:
    with suppress(PermissionError):
        try:
            if os.name == "posix":  # elsewhere os.kill ends a process
                os.kill(process, 0)
        except ProcessLookupError:
            return False
    return True


def without_passwords(text: str) -> str:
    """A text with the passwords of the addresses in it replaced by `***`."""
    text = re.sub(r"(://[^\s:/?#]*):\S*@", r"\1:***@", text)
    return re.sub(r"(?i)(pass(?:word|wd)?=)[^\s&;]+", r"\1***", text)


def _this_process() -> bytes:
    words = [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else []
    holder = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "command": without_passwords(" ".join(words))[:200],
        "since": f"{datetime.now():%Y-%m-%d %H:%M:%S}",
    }
    return json.dumps(holder, ensure_ascii=False).encode(errors="replace")
