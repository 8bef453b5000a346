"""Checkpoints that survive: whole or not at all, plain types only, the last good one kept."""

from __future__ import annotations

import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch

from ..errors import DataError

FORMAT = 1
NAME = "checkpoint.pt"
PREVIOUS = "checkpoint.previous.pt"


def write_whole(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file through a temporary one, so that no reader ever sees half of it.

    Raises:
        DataError: The disk refuses; what was there before is untouched.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        temporary = ""
    except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
        raise DataError(
            f"cannot write {path.name} into {path.parent} ({error}); the last good one is "
            "untouched: free space there and resume"
        ) from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def put(file: IO[bytes], content: bytes) -> None:
    file.write(content)


def save_checkpoint(folder: Path, content: dict[str, Any]) -> None:
    """Write the newest checkpoint, keeping the one before it."""
    path, fresh = folder / NAME, folder / f".fresh.{NAME}"
    write_whole(fresh, lambda file: torch.save({"format": FORMAT, **content}, file))
    if path.exists():
        os.replace(path, folder / PREVIOUS)
    os.replace(fresh, path)


def load_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest checkpoint that can be read, and what was wrong with newer ones.

    Returns None where there is none at all: the run starts anew.

    Raises:
        DataError: There are checkpoints and none can be read, or it is of a newer format.
    """
    troubles = []
    found = False
    for name in (NAME, PREVIOUS):
        path = folder / name
        if not path.is_file():
            continue
        found = True
        try:
            content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, OSError, pickle.UnpicklingError, zipfile.BadZipFile) as e:
            reason = str(e).splitlines()[0][:120] if str(e) else type(e).__name__
            troubles.append(f"{name} cannot be read ({reason})")
            continue
        if not isinstance(content, dict) or not isinstance(content.get("format"), int):
            troubles.append(f"{name} is no checkpoint of g2n2")
            continue
        if content["format"] > FORMAT:
            raise DataError(f"{path} was written by a newer g2n2; upgrade to resume from it")
        return content, troubles
    if found:
        raise DataError(
            f"no checkpoint in {folder} can be read: {'; '.join(troubles)}; "
            "start the run again in another folder"
        )
    return None, troubles
