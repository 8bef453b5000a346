"""Where a data file is found: a folder given, `$G2N2_DATA`, the user cache, or its official source.

A folder has the layout `SUBFOLDER/NAME` (`expressivity/sr251256.g6`, `tu/MUTAG.zip`), or holds NAME
itself.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from pathlib import Path
from typing import NamedTuple

from ..atomic_files import replace_file
from ..errors import DataError
from ..input_files import read_file

DATA_VARIABLE = "G2N2_DATA"
LARGEST_DOWNLOAD = 2**28
_TIMEOUT_SECONDS = 15


class DataFile(NamedTuple):
    """A file of a dataset."""

    dataset: str  # the dataset that needs it
    name: str  # its name; alternatives are joined by `or`
    subfolder: str  # where a data folder has it
    sha256: str = ""  # its checksum; empty if it is checked otherwise
    url: str = ""  # its official source; empty if there is nothing to download
    hint: str = ""  # what a user without it should know

    def find(self, data: str | Path | None, *, folder: bool = False) -> Path | None:
        """The first file (or folder) of that name in the search folders, or None."""
        for base in search_folders(data):
            for path in (base / self.subfolder / self.name, base / self.name):
                if path.is_dir() if folder else path.is_file():
                    return path
        return None

    def read(self, data: str | Path | None) -> tuple[Path, bytes]:
        """Its path and its checked content; it is downloaded into the cache if it is nowhere."""
        path = self.find(data)
        if path is None:
            content = self.download(data)
            check_sha256(content, self.sha256, self.url)
            path = store_in_cache(self.name, content, self.subfolder)
        content = read_file(path)
        check_sha256(content, self.sha256, str(path))
        return path, content

    def download(self, data: str | Path | None) -> bytes:
        """Fetch it from its source; where that fails, the error says where it was sought."""
        if not self.url:
            raise self.missing(data, self.hint)
        try:
            with urllib.request.urlopen(self.url, timeout=_TIMEOUT_SECONDS) as response:
                content: bytes = response.read(LARGEST_DOWNLOAD + 1)
            if len(content) > LARGEST_DOWNLOAD:
                raise OSError(f"more than {LARGEST_DOWNLOAD:,} bytes came")
        except (OSError, http.client.HTTPException) as error:
            broken = isinstance(error, http.client.HTTPException)
            shown = f"broken answer: {error!r}" if broken else error
            reason = f"It could not be downloaded from {self.url} ({shown}){self.hint or '.'}"
            raise self.missing(data, reason) from error
        return content

    def missing(self, data: str | Path | None, reason: str) -> DataError:
        """The error for a file found nowhere: where it was sought, why, and the next move."""
        folders = ", ".join(map(str, search_folders(data)))
        return DataError(
            f"{self.dataset} needs the file {self.name}, found in none of: {folders} (there or in "
            f"the subfolder {self.subfolder}). {reason} Put the file there, or set "
            f"${DATA_VARIABLE} to the folder with it."
        )


def search_folders(data: str | Path | None) -> list[Path]:
    """The folders in which a data file is sought, first to last."""
    if data is not None and not os.path.isdir(data):
        raise DataError(f"the data folder {str(data)!r} is no folder: correct it or leave it out")
    named = (data, os.environ.get(DATA_VARIABLE))
    return [*(Path(folder) for folder in named if folder), cache_folder()]


def cache_folder() -> Path:
    """The user cache of this package; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "g2n2"


def check_sha256(content: bytes, expected: str, what: str) -> None:
    """Raise a DataError unless the content has the expected checksum."""
    got = hashlib.sha256(content).hexdigest()
    if got != expected:
        raise DataError(
            f"{what} has sha256 {got}, expected {expected}: it is truncated, altered or another "
            "version; delete it and get it again"
        )


def store_in_cache(name: str, content: bytes, subfolder: str) -> Path:
    """Write a file into the user cache."""
    path = cache_folder() / subfolder / name
    write_cache_file(path, content, "set $XDG_CACHE_HOME to a folder that can be written")
    return path


def write_cache_file(path: Path, content: bytes, instead: str) -> None:
    """Write a file of a cache, whole or not at all; `instead` is what to do where that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, shared=True)
    except OSError as error:
        raise DataError(
            f"cannot write {str(path)!r} into the cache ({error}): free space there, or {instead}"
        ) from error
