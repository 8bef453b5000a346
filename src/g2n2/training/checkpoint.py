"""Files that survive a crash: whole-file writes, checksums in manifest.json, checkpoints.

The checksum of a file that changes during a run goes into the manifest before the file is written:
a process killed in between leaves the new file or the one before, and both are known.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from ..atomic_files import make_folder, replace_file
from ..errors import DataError

MANIFEST = "manifest.json"
MANIFEST_FORMAT = 1
KEPT_VERSIONS = 8
"""Checksums kept for each file: more than kills in a row can leave behind."""
FORMAT = 1
CHECKPOINT = "checkpoint.pt"
PREVIOUS = "checkpoint.previous.pt"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Manifest:
    """Checksums of the files of a run: for each name the sha256 of its versions, newest first."""

    files: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of a run folder, None without one; a DataError if damaged or too new."""
        path = folder / MANIFEST
        try:
            content = json.loads(path.read_bytes())
            if content["format"] != MANIFEST_FORMAT:
                raise DataError(f"{path} was written by a newer g2n2 ({content['g2n2']}): upgrade")
            if content["digest"] != _digest_of(content):
                raise ValueError("its own checksum does not match")
            return cls({name: tuple(versions) for name, versions in content["files"].items()})
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{path} is damaged or was altered ({error}): restore it from a copy. Without it "
                "the files of the run are used unchecked"
            ) from None

    def write(self, folder: Path) -> None:
        """Write it into a run folder; a DataError if the disk refuses."""
        content = {
            "format": MANIFEST_FORMAT,
            "g2n2": __version__,
            "files": {name: list(versions) for name, versions in sorted(self.files.items())},
        }
        text = json.dumps({**content, "digest": _digest_of(content)}, indent=2)
        write_whole(folder / MANIFEST, text.encode())

    def knows(self, name: str, content: bytes) -> bool:
        return sha256(content) in self.files.get(name, ())

    def followed_by(self, name: str, content: bytes) -> Manifest:
        """This one with a newer version of a file."""
        newest = sha256(content)
        older = [digest for digest in self.files.get(name, ()) if digest != newest]
        return Manifest({**self.files, name: (newest, *older[: KEPT_VERSIONS - 1])})


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(content: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != "digest"}
    return sha256(json.dumps(rest, sort_keys=True).encode())


def refuse_altered(folder: Path, name: str, content: bytes) -> None:
    """Raise a DataError if the manifest says that the run did not write this content."""
    manifest = Manifest.read(folder)
    if manifest is not None and not manifest.knows(name, content):
        raise DataError(
            f"{folder / name} is not the file this run wrote: it was altered, or is of another run "
            f"(its checksum is not in {MANIFEST}); restore it from a copy, or train again"
        )


def write_whole(
    path: Path, content: bytes, before: Path | None = None, *, shared: bool = False
) -> None:
    """`replace_file` in a folder that is made; a DataError if the disk refuses."""
    try:
        make_folder(path.parent)
        replace_file(path, content, before, shared=shared)
    except OSError as error:
        full = error.errno in DISK_FULL
        advice = "free space" if full else "check that the folder can be written"
        raise DataError(
            f"cannot write {path} ({error.strerror or error}); what was there before is "
            f"untouched: {advice} and try again"
        ) from None


def write_announced(path: Path, content: bytes, before: Path | None = None) -> None:
    """`write_whole` after the checksum is in the manifest, if the folder has one."""
    manifest = Manifest.read(path.parent)
    if manifest is not None and sha256(content) not in manifest.files.get(path.name, ())[:1]:
        manifest.followed_by(path.name, content).write(path.parent)
    write_whole(path, content, before)


def save_checkpoint(folder: Path, content: dict[str, Any]) -> None:
    """Write the newest checkpoint, keeping the one before it; a DataError if the disk refuses."""
    buffer = io.BytesIO()  # torch.save itself does not survive a full disk
    torch.save({"format": FORMAT, "g2n2": __version__, **content}, buffer)
    try:
        write_announced(folder / CHECKPOINT, buffer.getvalue(), folder / PREVIOUS)
    except DataError as error:
        raise DataError(
            f"{error}. The last good checkpoint is kept; go on: g2n2 train --resume {folder}"
        ) from None


def load_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest readable checkpoint (None if there is none), and what is wrong with newer ones.

    Raises:
        DataError: There are checkpoints and none can be read, or it is of a newer format.
    """
    troubles: list[str] = []
    manifest = Manifest.read(folder)
    for name in (CHECKPOINT, PREVIOUS):
        path = folder / name
        if not path.is_file():
            continue
        try:
            content = _read(path)
        except pickle.UnpicklingError:
            troubles.append(f"{name} holds more than plain values, and g2n2 never unpickles")
            continue
        except Exception as error:  # a damaged archive can fail in any way
            reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            troubles.append(f"{name} is damaged ({reason})")
            continue
        if not isinstance(content, dict) or not isinstance(content.get("format"), int):
            troubles.append(f"{name} is no checkpoint of g2n2")
        elif content["format"] > FORMAT:
            raise DataError(f"{path} was written by a newer g2n2; upgrade to resume from it")
        elif manifest is None or manifest.knows(CHECKPOINT, path.read_bytes()):
            return content, troubles
        else:
            troubles.append(f"{name} was altered or is of another run")
    if troubles:
        raise DataError(
            f"no checkpoint in {folder} can be read: {'; '.join(troubles)}; "
            "start the run again in another folder"
        )
    return None, troubles


def _read(path: Path) -> Any:
    """A checkpoint after its zip checksums are verified, which torch does not do."""
    with zipfile.ZipFile(path) as archive:
        if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
            raise ValueError("it is compressed")  # the file's size must bound what it expands to
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


@dataclass
class Progress:
    """How far a run is; part of every checkpoint.

    Attributes:
        epoch: Counted from 0.
        step: Steps done in this epoch.
        steps: Steps done in all.
        loss: Sum of the losses of this epoch.
        known: Number of known targets in that sum.
        seconds: Time spent training.
        micro: Graphs in a micro-batch; fewer than in a batch if memory is short.
        history: One row of numbers for each finished epoch.
    """

    epoch: int = 0
    step: int = 0
    steps: int = 0
    loss: float = 0.0
    known: int = 0
    seconds: float = 0.0
    micro: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    def best(self, metric: str, higher: bool) -> int:
        """The first epoch with the best result; the last one if no validation target is known.

        -1 before there is one.
        """
        results = [row[metric] if higher else -row[metric] for row in self.history]
        finite = [epoch for epoch, result in enumerate(results) if math.isfinite(result)]
        return max(finite, key=results.__getitem__, default=len(results) - 1)
