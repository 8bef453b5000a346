"""Zip and npz files from untrusted sources: checked before a byte is expanded.

Nothing is written to disk and no pickle is opened. A zip is refused as a whole if one member leaves
its folder, is a link, is encrypted or would expand beyond the limits.
"""

import io
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..input_files import HARMLESS, LARGEST_EXPANDED, LARGEST_RATIO, printable, require_regular

MOST_MEMBERS = 100_000
_OUTSIDE = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|\0")
_FILES = (0, stat.S_IFREG, stat.S_IFDIR)
_REFUSED: tuple[tuple[Callable[[zipfile.ZipInfo], Any], str], ...] = (
    (lambda info: _OUTSIDE.search(info.orig_filename), "names a place outside the archive"),
    (lambda info: stat.S_IFMT(info.external_attr >> 16) not in _FILES, "is a link or a device"),
    (lambda info: info.flag_bits & 1, "is encrypted"),
    (
        lambda info: info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
        "is packed by another method than deflate",
    ),
)


def read_zip(
    source: Path | bytes, wanted: Callable[[str], Any] = lambda name: True, *, name: str = ""
) -> dict[str, bytes]:
    """Read the members of a zip file whose names are wanted; every member is checked all the same.

    Messages call it by its `name`, or else by its path.
    """
    with _opened(source, name) as (archive, members, _):
        chosen = (info for info in members if not info.is_dir() and wanted(info.filename))
        return {info.filename: archive.read(info) for info in chosen}


def check_zip(path: Path) -> None:
    """Refuse a zip file that another library is to read, where `read_zip` would refuse it."""
    with _opened(path, ""):
        pass


def read_npz(source: Path | bytes, *, name: str = "") -> dict[str, NDArray[Any]]:
    """Read every array of an npz file, or of its content, without pickle."""
    arrays = {}
    with _opened(source, name) as (archive, members, label):
        for info in members:
            key, content = info.filename.removesuffix(".npy"), io.BytesIO(archive.read(info))
            if key == info.filename:
                raise DataError(
                    f"{label} holds {key!r}, which is no .npy array: save it with numpy.savez"
                )
            try:
                # A shape that lies makes numpy reserve memory, never use it: the data end first.
                arrays[key] = np.lib.format.read_array(content, allow_pickle=False)
            except Exception as error:
                reason = "is truncated or has a damaged header: save it again with numpy.savez"
                if "allow_pickle" in str(error):
                    reason = (
                        "holds Python objects, which only pickle can read and pickle can run any "
                        "code: save it as numbers or text"
                    )
                raise DataError(f"array {key!r} of {label} {reason}") from None
    return arrays


@contextmanager
def _opened(
    source: Path | bytes, name: str
) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo], str]]:
    """A zip file, its checked members and its label; what is broken, now or later, is an error."""
    label = name or ("the archive" if isinstance(source, bytes) else str(source))
    if isinstance(source, Path):
        require_regular(source)
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as zipped:
            _check_members(members := zipped.infolist(), label)
            yield zipped, members, label
    except DataError:
        raise
    except Exception as error:  # zipfile, zlib and struct each have errors of their own
        raise DataError(
            f"{label} cannot be read as a zip file ({printable(str(error))}): it is truncated, "
            "damaged or no such file; get it again"
        ) from error


def _check_members(members: list[zipfile.ZipInfo], label: str) -> None:
    """Check every entry of the directory; none is expanded."""
    if len(members) > MOST_MEMBERS:
        raise DataError(f"{label} has {len(members):,} members, the limit is {MOST_MEMBERS:,}")
    seen: set[str] = set()
    for info in members:
        reason = next((why for refused, why in _REFUSED if refused(info)), "")
        if reason or info.filename in seen:
            raise DataError(
                f"{label} is refused: its member {info.orig_filename!r} "
                f"{reason or 'is there twice'}; unpack it yourself if you trust it, and give the "
                "folder"
            )
        seen.add(info.filename)
    expanded = sum(info.file_size for info in members)
    stored = sum(info.compress_size for info in members)
    if expanded > LARGEST_EXPANDED or expanded > max(HARMLESS, LARGEST_RATIO * stored):
        raise DataError(
            f"{label} would expand from {stored:,} to {expanded:,} bytes, the limits are "
            f"{LARGEST_EXPANDED:,} bytes and {LARGEST_RATIO} times: it is no honest data file, or "
            "must be cut into parts"
        )
