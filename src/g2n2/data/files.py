"""Where a data file is found: a folder given, `$G2N2_DATA`, the user cache, or its official source.

A folder is laid out as `expressivity/NAME`, or holds NAME itself. What is downloaded goes into the
cache under a temporary name first, so that nothing half-written is ever found there.
"""

import hashlib
import http.client
import os
import tempfile
import urllib.request
from pathlib import Path

from g2n2.errors import DataError

DATA_VARIABLE = "G2N2_DATA"
SUBFOLDER = "expressivity"
_TIMEOUT_SECONDS = 15


def search_folders(data: str | Path | None) -> list[Path]:
    """List the folders a data file is sought in, first to last.

    Args:
        data: The folder a user named, or None.

    Raises:
        DataError: If the folder the user named does not exist.
    """
    if data is not None and not Path(data).is_dir():
        raise DataError(f"the data folder {str(data)!r} is no folder: correct it or leave it out")
    named = (data, os.environ.get(DATA_VARIABLE))
    return [*(Path(folder) for folder in named if folder), cache_folder()]


def cache_folder() -> Path:
    """Return the user cache of this package; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "g2n2"


def find_file(name: str, data: str | Path | None) -> Path | None:
    """Return the first file of that name in the search folders, or None."""
    for folder in search_folders(data):
        for path in (folder / SUBFOLDER / name, folder / name):
            if path.is_file():
                return path
    return None


def missing_file(what: str, names: str, data: str | Path | None, reason: str) -> DataError:
    """Return the error for data found nowhere: where it was sought, why not, the next move."""
    folders = ", ".join(str(folder) for folder in search_folders(data))
    return DataError(
        f"{what} needs the file {names}, found in none of: {folders} (there or in the subfolder "
        f"{SUBFOLDER}). {reason} Put the file there, or set ${DATA_VARIABLE} to the folder with it."
    )


def check_sha256(content: bytes, expected: str, what: str) -> None:
    """Raise a DataError unless the content has the expected checksum."""
    got = hashlib.sha256(content).hexdigest()
    if got != expected:
        raise DataError(
            f"{what} has sha256 {got}, expected {expected}: it is truncated, altered or another "
            "version; delete it and get it again"
        )


def read_checked(path: Path, sha256: str) -> bytes:
    """Read a whole file and check its sum."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {str(path)!r}: {error}") from error
    check_sha256(content, sha256, str(path))
    return content


def download(url: str) -> bytes:
    """Fetch an official file.

    Raises:
        OSError: If it cannot be had; the caller knows what to tell the user.
    """
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
            content: bytes = response.read()
    except http.client.HTTPException as error:
        raise OSError(f"broken answer: {error!r}") from error
    return content


def store_in_cache(name: str, content: bytes) -> Path:
    """Write a file into the user cache, whole or not at all."""
    path = cache_folder() / SUBFOLDER / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DataError(
            f"cannot write {str(path)!r} into the cache ({error}): free space there, or set "
            "$XDG_CACHE_HOME to a folder that can be written"
        ) from error
    return path
