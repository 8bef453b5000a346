"""manifest.json: checksums of every file predictions depend on, so that they belong together.

A file that changes during a run (best weights, checkpoint) is announced here before it is written,
so that a process killed in between leaves a file that is known: the new one or the one before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..atomic_files import replace_file
from ..errors import DataError

NAME = "manifest.json"
FORMAT = 1
KEPT = 8
"""Versions of a file that are known at a time: more than kills in a row can leave behind."""


@dataclass(frozen=True)
class Manifest:
    """Checksums of the files of a run.

    Attributes:
        files: Name of each file to the sha256 of its versions, the newest first.
        version: Of the g2n2 that wrote it.
    """

    files: Mapping[str, tuple[str, ...]]
    version: str = __version__

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of a run folder; None where an earlier g2n2 wrote none.

        Raises:
            DataError: It is damaged, or of a newer g2n2.
        """
        path = folder / NAME
        try:
            said = json.loads(path.read_bytes())
            if said["format"] != FORMAT:
                raise DataError(f"{path} was written by a newer g2n2 ({said['g2n2']}): upgrade")
            if said["digest"] != _digest_of(said):
                raise ValueError("its own checksum does not match")
            return cls({name: tuple(known) for name, known in said["files"].items()}, said["g2n2"])
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
        """Put it into a run folder, whole or not at all.

        Raises:
            OSError: The disk refuses.
        """
        said = {
            "format": FORMAT,
            "g2n2": self.version,
            "files": {name: list(known) for name, known in sorted(self.files.items())},
        }
        text = json.dumps({**said, "digest": _digest_of(said)}, indent=2)
        replace_file(folder / NAME, text.encode())

    def knows(self, name: str, content: bytes) -> bool:
        return sha256(content) in self.files.get(name, ())

    def followed_by(self, name: str, content: bytes) -> Manifest:
        """This one with a newer version of a file."""
        new = sha256(content)
        older = [known for known in self.files.get(name, ()) if known != new]
        return Manifest({**self.files, name: (new, *older[: KEPT - 1])})


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def announce(folder: Path, name: str, content: bytes) -> None:
    """Make known what a file is about to hold; nothing where the folder has no manifest.

    Raises:
        OSError: The disk refuses.
    """
    manifest = Manifest.read(folder)
    if manifest is not None and sha256(content) not in manifest.files.get(name, ())[:1]:
        manifest.followed_by(name, content).write(folder)


def refuse_altered(folder: Path, name: str, content: bytes) -> None:
    """Compare what a file holds with what the run has written.

    Raises:
        DataError: It is another file.
    """
    manifest = Manifest.read(folder)
    if manifest is not None and not manifest.knows(name, content):
        raise DataError(altered(folder / name))


def altered(path: Path) -> str:
    return (
        f"{path} is not the file this run wrote: it was altered, or is of another run (its "
        f"checksum is not in {NAME}); restore it from a copy, or train again"
    )


def _digest_of(said: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in said.items() if name != "digest"}
    return sha256(json.dumps(rest, sort_keys=True).encode())
