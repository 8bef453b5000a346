"""Zip and npz files from untrusted sources: checked before a byte is expanded.

Nothing is ever written to disk and no pickle is ever opened. A zip is refused as a whole if one
member leaves its folder, is a link, is encrypted or would expand beyond the limits.
"""

import io
import math
import re
import stat
import struct
import tokenize
import zipfile
import zlib
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
# numpy reads a header with tokenize and ast, which have errors of their own.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error, EOFError, OSError),
    *(ArithmeticError, LookupError, RuntimeError, SyntaxError, TypeError, ValueError),
)
_HEADER_READERS: dict[tuple[int, int], Callable[..., tuple[Any, ...]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_zip(
    source: Path | bytes,
    wanted: Callable[[str], bool] = lambda name: True,
    *,
    name: str = "",
    largest: int = LARGEST_EXPANDED,
) -> dict[str, bytes]:
    """Read the wanted members of a zip file into memory.

    Args:
        source: The file, or its content.
        wanted: Says of a member's name whether to read it; every member is checked all the same.
        name: What messages call the file; its path where empty.
        largest: Bytes all members together may expand to.
    """
    with _opened(source, name, largest) as (archive, members, _):
        return {
            info.filename: archive.read(info)
            for info in members
            if not info.is_dir() and wanted(info.filename)
        }


def read_npz(
    source: Path | bytes, *, name: str = "", largest: int = LARGEST_EXPANDED
) -> dict[str, NDArray[Any]]:
    """Read every array of an npz file, without pickle.

    Each array's header is read first: its type must be plain and its stated size the size stored.

    Args:
        source: The file, or its content.
        name: What messages call the file; its path where empty.
        largest: Bytes all arrays together may take.
    """
    arrays = {}
    with _opened(source, name, largest) as (archive, members, label):
        for info in members:
            key = info.filename.removesuffix(".npy")
            if key == info.filename:
                raise DataError(
                    f"{label} holds {key!r}, which is no .npy array: expected an npz file as "
                    "numpy.savez writes it"
                )
            _check_array_header(archive, info, f"array {key!r} of {label}")
            content = io.BytesIO(archive.read(info))
            arrays[key] = np.lib.format.read_array(content, allow_pickle=False)
    return arrays


def _checked_members(
    archive: zipfile.ZipFile, label: str, largest: int
) -> tuple[zipfile.ZipInfo, ...]:
    """The members, after every entry of the directory was checked; none is expanded."""
    members = tuple(archive.infolist())
    if len(members) > MOST_MEMBERS:
        raise DataError(f"{label} has {len(members):,} members, the limit is {MOST_MEMBERS:,}")
    seen: set[str] = set()
    for info in members:
        if reason := _why_refused(info, seen):
            raise DataError(
                f"{label} is refused: its member {info.orig_filename!r} {reason}; "
                "unpack it yourself if you trust it, and give the folder"
            )
        seen.add(info.filename)
    expanded = sum(info.file_size for info in members)
    stored = sum(info.compress_size for info in members)
    if expanded > largest or expanded > max(HARMLESS, LARGEST_RATIO * stored):
        raise DataError(
            f"{label} would expand from {stored:,} to {expanded:,} bytes, the limits are "
            f"{largest:,} bytes and {LARGEST_RATIO} times: it is no honest data file, or must be "
            "cut into parts"
        )
    return members


def _why_refused(info: zipfile.ZipInfo, seen: set[str]) -> str:
    """What is wrong with a member, or an empty text."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if _OUTSIDE.search(info.orig_filename):
        return "names a place outside the archive"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device, not a file"
    if info.flag_bits & 1:
        return "is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed by another method than deflate"
    if info.filename in seen:
        return "is there twice"
    return ""


def _check_array_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, what: str) -> None:
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        if version not in _HEADER_READERS:
            raise DataError(f"{what} has format version {version}, expected 1.0 or 2.0")
        try:
            shape, _, dtype = _HEADER_READERS[version](member)
        except (ValueError, TypeError, SyntaxError, tokenize.TokenError):
            raise DataError(
                f"{what} has a damaged header: save it again with numpy.savez"
            ) from None
        header = member.tell()
    if dtype.hasobject:
        raise DataError(
            f"{what} holds Python objects, which only pickle can read and pickle can run any code: "
            "save it as numbers or text"
        )
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != info.file_size - header:
        raise DataError(
            f"{what} says {printable(str(list(shape)))} of {dtype}, {size:,} bytes, but "
            f"{info.file_size - header:,} are stored: it is truncated or forged"
        )


@contextmanager
def _opened(
    source: Path | bytes, name: str, largest: int
) -> Iterator[tuple[zipfile.ZipFile, tuple[zipfile.ZipInfo, ...], str]]:
    """A zip file, its checked members and its label; what is broken, now or later, is an error."""
    label = name or ("the archive" if isinstance(source, bytes) else str(source))
    if isinstance(source, Path):
        require_regular(source)
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive, _checked_members(archive, label, largest), label
    except DataError:
        raise
    except _BROKEN as error:
        raise DataError(
            f"{label} cannot be read as a zip file ({printable(str(error))}): it is truncated, "
            "damaged or no such file; get it again"
        ) from error
