"""Files that are there whole or not at all: no reader ever sees half of one."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import IO


def replace_file(
    path: Path, content: bytes, before: Path | None = None, *, shared: bool = False
) -> None:
    """Write a file under another name, bring it to the disk, then give it its own.

    Args:
        path: The file.
        content: All of it.
        before: Where to keep what `path` held so far; it is dropped where None.
        shared: Whether several processes may write it at a time. Else the other name is always the
            same, so that those of killed processes do not pile up.

    Raises:
        OSError: The disk refuses; what was there before is untouched.
    """
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
    _sync_folder(path.parent)


def put(file: IO[bytes], content: bytes) -> None:
    file.write(content)


def _sync_folder(folder: Path) -> None:
    """Bring the new name itself to the disk, which file systems do in their own time."""
    with suppress(OSError):  # some file systems cannot; the rename is whole all the same
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
