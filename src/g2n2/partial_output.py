"""An output file that is written in pieces and can be resumed after an interruption.

While `OUT` is being written, its pieces are in `OUT.partial`, and `OUT.partial.jsonl` has a line
for each: the records and bytes so far and their checksum. The first line says what the output is
made from. At the end `OUT.partial` is renamed to `OUT` and the other file is removed, so a file
called `OUT` is always complete. A FIFO or a character device gets the pieces as they come.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from .atomic_files import (
    check_output,
    disk_errors,
    is_stream,
    open_stream_for_writing,
    put,
    replace_file,
    sole_writer_of_file,
    sync_folder,
)
from .errors import DataError

FORMAT = 1
_BLOCK = 2**20
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Piece:
    """How far an output has come: records of the input, bytes that hold them, CRC-32 of those."""

    records: int = 0
    bytes: int = 0
    checksum: int = 0
    counts: Mapping[str, Any] = field(default_factory=dict)


class PartialOutput:
    """An output that grows; made by `partial_output`.

    `done` is how far it has come. Where `dropped` is set, nothing is kept if the context ends with
    an error.
    """

    def __init__(self, path: Path, file: IO[bytes], journal: IO[bytes] | None, done: Piece) -> None:
        self._path, self._file, self._journal = path, file, journal
        self.done, self.dropped = done, False

    def add(self, content: bytes, records: int, counts: Mapping[str, Any]) -> None:
        """Append the rows of further records; once it returns, they are not lost.

        `counts` is whatever else is counted, up to here.
        """
        done = Piece(
            self.done.records + records,
            self.done.bytes + len(content),
            zlib.crc32(content, self.done.checksum),
            counts,
        )
        try:
            put(self._file, content)
            if self._journal is not None:
                os.fsync(self._file.fileno())
                put(self._journal, _line(vars(done)))
                os.fsync(self._journal.fileno())
        except OSError as error:
            raise self._refused(error) from None
        self.done = done

    def _refused(self, error: OSError) -> DataError:
        why = error.strerror or str(error)
        if self._journal is None:
            return DataError(f"cannot write {self._path}: {why}")
        advice = "free space" if error.errno in _FULL else "check that the folder can be written"
        return DataError(
            f"cannot write {partial_path(self._path)} ({why}): {self.done.records:,} records are "
            f"in it; {advice}, and go on with --resume"
        )


def partial_path(path: Path) -> Path:
    """Where an output is while it is made."""
    return path.with_name(f"{path.name}.partial")


@contextmanager
def partial_output(
    path: Path, made_of: Mapping[str, str], head: bytes, *, resume: bool
) -> Iterator[PartialOutput]:
    """Open an output to be written piece by piece; it gets its name at the end of the context.

    It begins with `head`. `resume` goes on with one that was cut off, if it was `made_of` the same
    things, and begins anew where there is none.
    """
    check_output(path)
    if is_stream(path):
        if resume:
            raise DataError(f"{path} is no regular file, so nothing of it is kept: drop --resume")
        with disk_errors(f"write {path}"):
            file = open_stream_for_writing(path)
        with file:
            output = PartialOutput(path, file, None, Piece())
            output.add(head, 0, {})
            yield output
        return
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    with sole_writer_of_file(path, "wait for it to end, or name another file: --out FILE"):
        done = _last_whole_piece(path, made_of, head) if resume else None
        if not resume:
            _refuse_to_lose(path, head)
        with disk_errors(f"write {path}"):
            first = [{"format": FORMAT, **made_of}, *([vars(done)] if done else ())]
            replace_file(_journal_path(path), b"".join(map(_line, first)))
            # Unbuffered: nothing is kept back that a full disk would refuse once more at closing.
            file = open(partial_path(path), "r+b" if done else "wb", buffering=0)  # noqa: SIM115
            journal = open(_journal_path(path), "ab", buffering=0)  # noqa: SIM115
            output = PartialOutput(path, file, journal, done or Piece())
            file.seek(file.truncate(output.done.bytes))
        try:
            with file, journal:
                if done is None:
                    output.add(head, 0, {})
                yield output
        except BaseException:
            if output.dropped or not output.done.records:
                _remove(partial_path(path), _journal_path(path))
            raise
        with disk_errors(f"write {path}"):
            os.replace(partial_path(path), path)
            _remove(_journal_path(path))
            sync_folder(path.parent)


def _remove(*files: Path) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _journal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial.jsonl")


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode(errors="replace") + b"\n"


def _journal(path: Path) -> tuple[Mapping[str, Any], list[Piece]]:
    """What an output is made of, and how far it had come time after time; a torn line is none."""
    entries: list[Any] = []
    with suppress(OSError, ValueError), open(_journal_path(path), encoding="utf-8") as lines:
        for line in lines:
            entries.append(json.loads(line))
    try:
        return dict(entries[0]), [Piece(**row) for row in entries[1:]]
    except (IndexError, TypeError, ValueError):
        return {}, []


def _refuse_to_lose(path: Path, head: bytes) -> None:
    partial, (made_of, pieces) = partial_path(path), _journal(path)
    if partial.is_file() and partial.stat().st_size > len(head):
        count = f"{pieces[-1].records:,} records" if pieces else "records"
        raise DataError(
            f"{partial} holds {count} of an interrupted prediction of "
            f"{made_of.get('input', 'another file')}: go on with --resume, or remove it to begin "
            "anew"
        )


def _last_whole_piece(path: Path, made_of: Mapping[str, str], head: bytes) -> Piece | None:
    """The last piece that is whole; None where there is nothing to go on with."""
    partial, (before, pieces) = partial_path(path), _journal(path)
    if not partial.is_file():
        if path.exists():
            raise DataError(
                f"there is no {partial} to go on with, and {path} is whole: leave out --resume to "
                "make it anew"
            )
        return None
    anew = f"remove {partial} and leave out --resume to begin anew"
    wanted = {"format": FORMAT, **made_of}
    for name in [name for name in wanted if before and before.get(name) != wanted[name]]:
        raise DataError(
            f"{partial} was begun with something else ({name}: {before.get(name, 'not known')}; "
            f"now {wanted[name]}): {anew}"
        )
    with open(partial, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        whole = [piece for piece in pieces if len(head) <= piece.bytes <= size]
        if not whole and size <= len(head):
            return None
        if not whole:
            raise DataError(f"{_journal_path(path)} is lost or damaged: {anew}")
        checksum, left = 0, whole[-1].bytes
        while left and (block := file.read(min(_BLOCK, left))):
            checksum, left = zlib.crc32(block, checksum), left - len(block)
    if checksum != whole[-1].checksum:
        raise DataError(f"{partial} was altered since it was written: {anew}")
    return whole[-1]
