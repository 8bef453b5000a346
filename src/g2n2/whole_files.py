"""Files that are there whole or not at all: no reader ever sees half of one.

What a user names as output is a file, or something that leads to one: a link is followed, a FIFO
or a character device (`/dev/stdout`) is written to. Only a regular file is ever replaced.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

from .errors import DataError

_OPEN_FILES = ("/dev/", "/proc/")  # names there lead to files other programs hold open


def replace_file(
    path: Path, content: bytes, before: Path | None = None, *, shared: bool = False
) -> None:
    """Write a file under another name, bring it to the disk, then give it its own.

    Args:
        path: The file. A link is followed; a FIFO or a character device gets the content as it is.
        content: All of it.
        before: Where to keep what `path` held so far; it is dropped where None.
        shared: Whether several processes may write it at a time. Else the other name is always the
            same, so that those of killed processes do not pile up.

    Raises:
        OSError: The disk refuses, or a folder, a block device or a socket stands there; what was
            there before is untouched.
    """
    if is_stream(path):
        _write_through(path, content)
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

    Raises:
        DataError: A folder, a block device or a socket stands there, or its folder does not exist
            and is not below the working folder, where it would be made.
    """
    try:
        if is_stream(path):
            return
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            _require_below_working_folder(folder)
        elif not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"the folder {folder} cannot be written")
    except OSError as fault:
        raise DataError(f"cannot write {path}: {fault.strerror or fault}") from None


def write_output(path: Path, content: bytes) -> None:
    """Write a file a user named, with its folder where that is below the working folder.

    Raises:
        DataError: It cannot be written; what was there before is untouched.
    """
    check_output(path)
    try:
        if not is_stream(path):
            Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, shared=True)
    except OSError as fault:
        raise DataError(f"cannot write {path}: {fault.strerror or fault}") from None


def check_folder(path: Path) -> None:
    """Refuse a place where no folder can be made, before the work for it is done.

    Raises:
        DataError: Something else stands there, or the folder above it does not exist and is not
            below the working folder, where it would be made.
    """
    try:
        if os.path.lexists(path) and not path.is_dir():
            raise FileExistsError(errno.EEXIST, "it is there and is no folder; name a new one")
        if not path.parent.is_dir():
            _require_below_working_folder(path.parent)
    except OSError as fault:
        raise DataError(f"cannot make the folder {path}: {fault.strerror or fault}") from None


def make_folder(path: Path) -> None:
    """Make a folder a user named; folders above it are made only below the working folder.

    Raises:
        OSError: The folder above it does not exist, or the disk refuses.
    """
    if not path.parent.is_dir():
        _require_below_working_folder(path.parent)
    path.mkdir(parents=True, exist_ok=True)


def put(file: IO[bytes], content: bytes) -> None:
    """Write all of it, where the system takes a part at a time too."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


def is_stream(path: Path) -> bool:
    """Whether bytes are written to what stands there as it is.

    Raises:
        OSError: It is nothing a file can be written to.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file in it")
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        what = "a block device" if stat.S_ISBLK(mode) else "a socket"
        raise OSError(errno.EINVAL, f"it is {what}; name a file")
    return not stat.S_ISREG(mode) or os.path.abspath(path).startswith(_OPEN_FILES)


def _write_through(path: Path, content: bytes) -> None:
    with open_stream_for_writing(path) as file:
        put(file, content)


def open_stream_for_writing(path: Path) -> IO[bytes]:
    """Open a FIFO, a character device or a file another program holds open, as it is.

    Raises:
        OSError: It is a FIFO that nobody reads, or the system refuses it.
    """
    try:
        # Without O_NONBLOCK a FIFO that nobody reads would be waited for without end.
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as fault:
        if fault.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a FIFO and nobody reads it; name a file") from None
        raise
    os.set_blocking(descriptor, True)
    file = os.fdopen(descriptor, "wb", buffering=0)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.truncate()
    return file


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
