"""Checkpoints that survive: whole or not at all, plain types only, the last good one kept."""

from __future__ import annotations

import errno
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from ..errors import DataError
from ..whole_files import make_folder, replace_file
from .manifest import NAME as MANIFEST
from .manifest import Manifest, announce

FORMAT = 1
NAME = "checkpoint.pt"
PREVIOUS = "checkpoint.previous.pt"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(
    path: Path, content: bytes, before: Path | None = None, *, shared: bool = False
) -> None:
    """Write a file so that no reader ever sees half of it.

    Args:
        path: The file; its folder is made.
        content: All of it.
        before: Where to keep what `path` held so far; it is dropped where None.
        shared: Whether several processes may write it at a time.

    Raises:
        DataError: The disk refuses; what was there before is untouched.
    """
    try:
        make_folder(path.parent)
        replace_file(path, content, before, shared=shared)
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: Path, error: OSError) -> DataError:
    """What the disk says, and what to do about it."""
    advice = "free space" if error.errno in FULL else "check that the folder can be written"
    return DataError(
        f"cannot write {path} ({error.strerror or error}); what was there before is "
        f"untouched: {advice} and try again"
    )


def write_announced(path: Path, content: bytes, before: Path | None = None) -> None:
    """Write a file that changes during a run, its checksum first.

    Raises:
        DataError: The disk refuses; what was there before is untouched.
    """
    try:
        announce(path.parent, path.name, content)
    except OSError as error:
        raise cannot_write(path.parent / MANIFEST, error) from None
    write_whole(path, content, before)


def save_checkpoint(folder: Path, content: dict[str, Any]) -> None:
    """Write the newest checkpoint, keeping the one before it.

    Raises:
        DataError: The disk refuses; the last good checkpoint is untouched.
    """
    made = io.BytesIO()  # torch.save itself cannot be relied on to survive a full disk
    torch.save({"format": FORMAT, "g2n2": __version__, **content}, made)
    try:
        write_announced(folder / NAME, made.getvalue(), folder / PREVIOUS)
    except DataError as error:
        raise DataError(
            f"{error}. The last good checkpoint is kept; go on: g2n2 train --resume {folder}"
        ) from None


def load_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest checkpoint that can be read, and what was wrong with newer ones.

    Returns None where there is none at all: the run starts anew.

    Raises:
        DataError: There are checkpoints and none can be read, or it is of a newer format.
    """
    troubles: list[str] = []
    manifest = Manifest.read(folder)
    for name in (NAME, PREVIOUS):
        path = folder / name
        if not path.is_file():
            continue
        try:
            content = _read(path)
        except pickle.UnpicklingError:
            troubles.append(f"{name} holds more than plain values, and g2n2 never unpickles")
        except Exception as error:  # a damaged archive can fail in any way
            reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            troubles.append(f"{name} is damaged ({reason})")
        else:
            if isinstance(content, dict) and isinstance(content.get("format"), int):
                if content["format"] > FORMAT:
                    raise DataError(
                        f"{path} was written by a newer g2n2; upgrade to resume from it"
                    )
                if manifest is None or manifest.knows(NAME, path.read_bytes()):
                    return content, troubles
                troubles.append(f"{name} was altered or is of another run")
                continue
            troubles.append(f"{name} is no checkpoint of g2n2")
    if troubles:
        raise DataError(
            f"no checkpoint in {folder} can be read: {'; '.join(troubles)}; "
            "start the run again in another folder"
        )
    return None, troubles


def _read(path: Path) -> Any:
    """The content of a checkpoint whose every part has its checksum, which torch does not look at.

    Nothing is compressed in a checkpoint, so its size bounds what it can unfold to.
    """
    with zipfile.ZipFile(path) as archive:
        if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
            raise ValueError("it is compressed")
        if bad := archive.testzip():
            raise ValueError(f"the checksum of {bad} does not match")
    return torch.load(path, map_location="cpu", weights_only=True)


def random_states(device: torch.device) -> dict[str, torch.Tensor]:
    """States of the random generators a step may draw from."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def restore_random_states(states: dict[str, torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
