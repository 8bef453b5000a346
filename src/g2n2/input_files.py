"""Files that may come from anywhere, read within bounds: plain or gzipped bytes, UTF-8 text, JSON.

Only a regular file is opened, so that a FIFO cannot hang a command and a device cannot fill the
memory. A gzip file is expanded only if its whole content stays within a size and a ratio.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

from .errors import DataError

LARGEST_TEXT = 2**31
"""Bytes of a plain file: a table beyond this is no table of small graphs."""
LARGEST_EXPANDED = 2**30
"""Bytes any compressed file may expand to."""
LARGEST_RATIO = 200
LONGEST_LINE = 2**26
"""Bytes of a line of a text that is read line by line."""
HARMLESS = 2**26
"""Under this size no ratio is dangerous, and honest text of equal lines compresses a thousandfold.
"""
_EXPECTED = "save it as UTF-8, or give it the ending of its format if it is no text at all"
_DEFLATE_RATIO = 1100  # no deflated byte expands to more (1032 by its format)
_CHUNK = 2**20
_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_KINDS = (
    (stat.S_ISFIFO, "a FIFO (named pipe)"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a folder"),
)


def special_kind(path: str | Path) -> str:
    """What is at a path that is no regular file, such as `a FIFO`; empty otherwise."""
    with suppress(OSError, ValueError):
        return _kind(os.stat(path).st_mode)
    return ""


def require_regular(path: str | Path) -> None:
    """Refuse a FIFO, a device, a socket or a folder where a file is read."""
    if kind := special_kind(path):
        raise _not_a_file(path, kind)


def require_readable_at_once(path: str | Path) -> None:
    """Refuse a file too large to be kept in memory."""
    if os.path.isfile(path) and os.path.getsize(path) > LARGEST_TEXT:
        raise _too_large(path, LARGEST_TEXT)


def read_file(path: str | Path, largest: int = LARGEST_TEXT) -> bytes:
    """Read a regular file of at most `largest` bytes as it is stored."""
    with _opened(path) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise _too_large(path, largest)
    return content


def sha256_of(path: Path) -> str:
    """The checksum of a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_text_file(path: str | Path, expected: str = _EXPECTED) -> str:
    """Read a whole UTF-8 file as `open_text` does."""
    require_readable_at_once(path)
    with open_text(path, expected) as text:
        return text.read()


@contextmanager
def open_text(
    path: str | Path, expected: str = _EXPECTED, newline: str | None = None
) -> Iterator[TextIO]:
    """A UTF-8 file, plain or gzipped, as text to read line by line; a byte order mark is dropped.

    Memory does not grow with the file, so that only gzipped ones are bounded in size. `expected` is
    what should have been there, for the message.
    """
    with _opened(path) as file:
        content: IO[bytes] | gzip.GzipFile = file
        if str(path).lower().endswith(".gz"):
            _refuse_bomb(file, str(path))
            content = gzip.GzipFile(fileobj=file, mode="rb")
        checked = _CheckedText(content, str(path), expected)
        with io.TextIOWrapper(
            io.BufferedReader(checked, _CHUNK), encoding="utf-8-sig", newline=newline
        ) as text:
            yield text


class _CheckedText(io.RawIOBase):
    """The bytes of a text, looked through on their way; what is wrong with them is a DataError."""

    def __init__(self, content: IO[bytes] | gzip.GzipFile, label: str, expected: str) -> None:
        self._content, self._label, self._expected = content, label, expected
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._total = self._line = self._lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._content.read(len(buffer))
        self._check(chunk)
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def _check(self, chunk: bytes) -> None:
        before, self._total = self._total, self._total + len(chunk)
        try:
            self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            start = error.start - (len(error.object) - len(chunk))
            line = self._lines + chunk[: max(start, 0)].count(b"\n") + 1
            raise DataError(
                f"{self._label} is not UTF-8 text (line {line}, byte {before + start}); "
                f"{self._expected}"
            ) from error
        self._lines += chunk.count(b"\n")
        if b"\0" in chunk:
            raise DataError(f"{self._label} is not text: it holds zero bytes; {self._expected}")
        ended = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        self._line = len(chunk) - ended - 1 if ended >= 0 else self._line + len(chunk)
        if self._line > LONGEST_LINE:
            raise DataError(
                f"{self._label} has a line of more than {LONGEST_LINE:,} bytes; {self._expected}"
            )


def parse_json(text: str) -> Any:
    """Parse JSON strictly; the reason of a ValueError quotes nothing of the text."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        by_key = dict(pairs)
        if len(by_key) != len(pairs):
            raise KeyError
        return by_key

    try:
        return json.loads(text, object_pairs_hook=distinct)
    except json.JSONDecodeError as fault:
        raise ValueError(f"{fault.msg} at line {fault.lineno}, column {fault.colno}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except KeyError:
        raise ValueError("an object has the same key twice") from None
    except ValueError:  # more than sys.get_int_max_str_digits() digits
        raise ValueError("a number has too many digits") from None


def printable(text: str, most: int = 160) -> str:
    """Foreign text as one short line without control characters, for a message."""
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * most])
    line = " ".join(line.split())
    return line if len(line) <= most and len(text) <= 4 * most else line[: most - 3] + "..."


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a regular file; whatever is wrong with it, then or later, ends as a DataError."""
    try:
        # A FIFO opened without O_NONBLOCK waits for its writer; the file opened is examined.
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            if kind := _kind(os.fstat(descriptor).st_mode):
                raise _not_a_file(path, kind)
            yield file
    except DataError:
        raise
    except IsADirectoryError as error:
        raise _not_a_file(path, "a folder") from error
    except FileNotFoundError as error:
        raise DataError(f"no file {str(path)!r}: check the path") from error
    except EOFError as error:
        name = Path(path).name
        raise DataError(
            f"{path} is no whole gzip file: it is cut short, and nobody knows how much is missing; "
            f"get it again, or keep what is left of it with gzip -dc {name} > part-of-{name[:-3]}"
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is no whole gzip file ({error}): it is damaged; get it again"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {str(path)!r}: {reason}") from error


def _kind(mode: int) -> str:
    return next((name for holds, name in _KINDS if holds(mode)), "")


def _not_a_file(path: str | Path, kind: str) -> DataError:
    if kind == "a folder":
        return DataError(f"{str(path)!r} is a folder, expected a file; name a file in it")
    return DataError(
        f"{str(path)!r} is {kind}, expected a file: save what it gives to a file, and name that"
    )


def _refuse_bomb(file: IO[bytes], label: str) -> None:
    """Measure what a gzip file expands to, where it may be too much."""
    stored = os.fstat(file.fileno()).st_size
    most = min(LARGEST_EXPANDED, max(HARMLESS, LARGEST_RATIO * stored))
    if stored * _DEFLATE_RATIO <= most:
        return
    with gzip.GzipFile(fileobj=file, mode="rb") as measured:
        total = 0
        while chunk := measured.read(_CHUNK):
            total += len(chunk)
            if total > most:
                raise DataError(
                    f"{label} would expand from {stored:,} to more than {most:,} bytes, the "
                    f"limits are {LARGEST_EXPANDED:,} bytes and {LARGEST_RATIO} times: it is "
                    "no honest data file, or must be cut into parts"
                )
    file.seek(0)


def _too_large(path: str | Path, largest: int) -> DataError:
    return DataError(f"{path} holds more than {largest:,} bytes: split it")
