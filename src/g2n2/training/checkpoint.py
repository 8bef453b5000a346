"""Files that survive a crash: whole-file writes, checksums in manifest.json, checkpoints.

The checksum of a file that changes during a run goes into the manifest before the file is written:
a process killed in between leaves the new file or the one before, and both are known.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from ..atomic_files import make_folder, replace_file
from ..errors import DataError

MANIFEST = "manifest.json"
KEPT_VERSIONS = 8
"""Checksums kept for each file: more than kills in a row can leave behind."""
FORMAT = 1
"""Of the manifest and of checkpoints."""
CHECKPOINT = "checkpoint.pt"
PREVIOUS = "checkpoint.previous.pt"

Manifest = Mapping[str, Sequence[str]]
"""For each file of a run the sha256 of its versions, newest first."""


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a run folder, None without one; a DataError if damaged or too new."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise DataError(f"{path} was written by a newer g2n2 ({content['g2n2']}): upgrade")
        if content.pop("digest") != _digest_of(content):
            raise ValueError("its own checksum does not match")
        return {name: list(versions) for name, versions in content["files"].items()}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DataError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path} is damaged or was altered ({error}): restore it from a copy. Without it "
            "the files of the run are used unchecked"
        ) from None


def write_manifest(folder: Path, files: Manifest) -> None:
    content = {
        "format": FORMAT,
        "g2n2": __version__,
        "files": {name: list(versions) for name, versions in sorted(files.items())},
    }
    text = json.dumps({**content, "digest": _digest_of(content)}, indent=2)
    write_whole(folder / MANIFEST, text.encode())


def with_version(manifest: Manifest, name: str, content: bytes) -> Manifest:
    """The manifest with a newer version of a file."""
    newest = sha256(content)
    older = [digest for digest in manifest.get(name, ()) if digest != newest]
    return {**manifest, name: [newest, *older[: KEPT_VERSIONS - 1]]}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode())


def refuse_altered(folder: Path, name: str, content: bytes) -> None:
    """Raise a DataError if the manifest says that the run did not write this content."""
    manifest = read_manifest(folder)
    if manifest is not None and sha256(content) not in manifest.get(name, ()):
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
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "free space" if full else "check that the folder can be written"
        raise DataError(
            f"cannot write {path} ({error.strerror or error}); what was there before is "
            f"untouched: {advice} and try again"
        ) from None


def write_announced(path: Path, content: bytes, before: Path | None = None) -> None:
    """`write_whole` after the checksum is in the manifest, if the folder has one."""
    manifest = read_manifest(path.parent)
    if manifest is not None and [sha256(content)] != list(manifest.get(path.name, ()))[:1]:
        write_manifest(path.parent, with_version(manifest, path.name, content))
    write_whole(path, content, before)


def save_checkpoint(folder: Path, content: dict[str, Any]) -> None:
    """Write the newest checkpoint, keeping the one before it; a DataError if the disk refuses."""
    buffer = io.BytesIO()  # torch.save itself does not survive a full disk
    torch.save({"format": FORMAT, "g2n2": __version__, **content}, buffer)
    try:
        write_announced(folder / CHECKPOINT, buffer.getvalue(), folder / PREVIOUS)
    except DataError as error:
        raise DataError(f"{error}; go on: g2n2 train --resume {folder}") from None


def load_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest readable checkpoint (None if there is none), and what is wrong with newer ones."""
    troubles: list[str] = []
    manifest = read_manifest(folder)
    for path in (folder / CHECKPOINT, folder / PREVIOUS):
        if not path.is_file():
            continue
        try:
            content = _read(path)
            if not isinstance(content, dict) or not isinstance(content.get("format"), int):
                trouble = "is no checkpoint of g2n2"
            elif content["format"] > FORMAT:
                raise DataError(f"{path} was written by a newer g2n2; upgrade to resume from it")
            elif manifest is None or sha256(path.read_bytes()) in manifest.get(CHECKPOINT, ()):
                return content, troubles
            else:
                trouble = "was altered or is of another run"
        except DataError:
            raise
        except pickle.UnpicklingError:
            trouble = "holds more than plain values, and g2n2 never unpickles"
        except Exception as error:  # a damaged archive can fail in any way
            trouble = f"is damaged ({(str(error) or type(error).__name__).splitlines()[0][:120]})"
        troubles.append(f"{path.name} {trouble}")
    if troubles:
        raise DataError(
            f"no checkpoint in {folder} can be read: {'; '.join(troubles)}; "
            "start the run again in another folder"
        )
    return None, []


def _read(path: Path) -> Any:
    """A checkpoint after its zip checksums are verified, which torch does not do."""
    with zipfile.ZipFile(path) as archive:
        if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
            raise ValueError("it is compressed")  # the file's size must bound what it expands to
        if bad := archive.testzip():
            raise ValueError(f"the checksum of {bad} does not match")
    return torch.load(path, map_location="cpu", weights_only=True)
