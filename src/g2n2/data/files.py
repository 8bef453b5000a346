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

from ..atomic_files import replace_file
from ..errors import DataError
from ..input_files import read_file

DATA_VARIABLE = "G2N2_DATA"
LARGEST_DOWNLOAD = 2**28
_TIMEOUT_SECONDS = 15


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


def find_file(
    name: str, data: str | Path | None, subfolder: str, *, folder: bool = False
) -> Path | None:
    """The first file (or folder) of that name in the search folders, or None."""
    for base in search_folders(data):
        for path in (base / subfolder / name, base / name):
            if path.is_dir() if folder else path.is_file():
                return path
    return None


def missing_file(
    what: str, names: str, data: str | Path | None, subfolder: str, reason: str
) -> DataError:
    """The error for data found nowhere: where it was sought, why, and the next move."""
    folders = ", ".join(str(folder) for folder in search_folders(data))
    return DataError(
        f"{what} needs the file {names}, found in none of: {folders} (there or in the subfolder "
        f"{subfolder}). {reason} Put the file there, or set ${DATA_VARIABLE} to the folder with it."
    )


def find_checked(
    what: str, name: str, sha256: str, data: str | Path | None, subfolder: str, reason: str
) -> tuple[Path, bytes]:
    """Find a file that cannot be downloaded, for the reason given, and check its checksum."""
    path = find_file(name, data, subfolder)
    if path is None:
        raise missing_file(what, name, data, subfolder, reason)
    return path, read_checked(path, sha256)


def check_sha256(content: bytes, expected: str, what: str) -> None:
    """Raise a DataError unless the content has the expected checksum."""
    got = hashlib.sha256(content).hexdigest()
    if got != expected:
        raise DataError(
            f"{what} has sha256 {got}, expected {expected}: it is truncated, altered or another "
            "version; delete it and get it again"
        )


def sha256_of(path: Path) -> str:
    """The checksum of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_checked(path: Path, sha256: str) -> bytes:
    """Read a whole file and check its checksum."""
    content = read_file(path)
    check_sha256(content, sha256, str(path))
    return content


def download(
    url: str, what: str, names: str, data: str | Path | None, subfolder: str, hint: str = ""
) -> bytes:
    """Fetch an official file; the other arguments say what is missing where that fails."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
            content: bytes = response.read(LARGEST_DOWNLOAD + 1)
        if len(content) > LARGEST_DOWNLOAD:
            raise OSError(f"more than {LARGEST_DOWNLOAD:,} bytes came")
    except (OSError, http.client.HTTPException) as error:
        broken = isinstance(error, http.client.HTTPException)
        shown = f"broken answer: {error!r}" if broken else error
        reason = f"It could not be downloaded from {url} ({shown}).{hint}"
        raise missing_file(what, names, data, subfolder, reason) from error
    return content


def store_in_cache(name: str, content: bytes, subfolder: str) -> Path:
    """Write a file into the user cache, whole or not at all."""
    path = cache_folder() / subfolder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, shared=True)
    except OSError as error:
        raise DataError(
            f"cannot write {str(path)!r} into the cache ({error}): free space there, or set "
            "$XDG_CACHE_HOME to a folder that can be written"
        ) from error
    return path
