"""SDF and XYZ files of molecules, or a folder of them.

Targets and ids are the data items of an SDF, and the `key=value` pairs in the comment line of an
XYZ; `name` is the title, the comment, or in a folder the file's name. An XYZ file lists no bonds:
they are found from the distances, with the total charge in `charge=`. Hydrogens are those of the
file.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from ...errors import DataError
from ...input_files import open_text
from .molecules import MoleculeRecord
from .tables import RecordFile

_DATA_ITEM = re.compile(r"^>.*?<([^>\n]+)>[^\n]*\n(.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_MOST_DIGITS = 30  # of a number of atoms: int() refuses more than 4,300
_MOST_ATOMS = 10**6
_LARGEST_RECORD = 2**26  # characters of an SDF between two $$$$
_NOT_TARGETS = frozenset({"properties", "lattice", "pbc", "origin"})  # of extended XYZ


def is_molecule_file(path: Path) -> bool:
    """Whether the ending is that of an SDF or XYZ file."""
    return path.name.lower().removesuffix(".gz").endswith((".sdf", ".mol", ".xyz"))


def holds_molecule_files(path: Path) -> bool:
    """Whether it is an SDF or XYZ file, or a folder with one."""
    return any(map(is_molecule_file, path.iterdir())) if path.is_dir() else is_molecule_file(path)


def open_molecule_files(path: Path) -> RecordFile:
    """The molecules of an SDF, mol or XYZ file, gzipped or not, or of a folder of them.

    Each property is a column.
    """
    columns = dict.fromkeys(key for record in _records(path) for key in record.properties)

    def rows() -> Iterator[tuple[str, list[str], MoleculeRecord]]:
        for record in _records(path):
            yield record.place, [record.properties.get(key, "") for key in columns], record

    return RecordFile(str(path), tuple(columns), rows)


def _records(path: Path) -> Iterator[MoleculeRecord]:
    """Every molecule of a file, or of a folder with its files in the order of their names."""
    if not path.is_dir():
        is_xyz = ".xyz" in path.name.lower()
        with open_text(path, newline=None if is_xyz else "\n") as lines:
            yield from (_xyz_records if is_xyz else _sdf_records)(lines, str(path))
        return
    files = sorted(file for file in path.iterdir() if is_molecule_file(file))
    if not files:
        raise DataError(
            f"the folder {str(path)!r} holds no .sdf, .mol or .xyz file, no edges.csv and no TU "
            "dataset; name a file in it"
        )
    for file in files:
        try:
            records = list(_records(file))
        except DataError as fault:  # one bad file of a folder is one bad record
            records = [MoleculeRecord("the file", {}, fault=str(fault))]
        for number, record in enumerate(records, start=1):
            name = file.name.partition(".")[0] + (f"-{number}" if len(records) > 1 else "")
            properties = {**record.properties, "name": name}
            yield replace(record, place=f"{file.name}, {record.place}", properties=properties)


def _sdf_records(lines: Iterable[str], source: str) -> Iterator[MoleculeRecord]:
    """The molecules of an SDF or a mol file, with their data items."""
    number = 0
    for number, (text, ended) in enumerate(_sdf_texts(lines, source), start=1):
        head, _, tail = text.partition("M  END")
        properties = {"name": text.partition("\n")[0].strip()}
        properties |= {key: value.strip() for key, value in _DATA_ITEM.findall(tail)}
        # In the middle of a line, or below the name of a data item: there may be half of its value.
        last = "".join(tail.splitlines(keepends=True)[-1:])
        cut = not ended and tail.strip() and (last.startswith(">") or not last.endswith("\n"))
        fault = "its last data item has no end: the file is cut short" if cut else ""
        if not ended and "M  END" not in text:  # its charges and isotopes stand below its bonds
            fault = "it has no line M  END: the file is cut short"
        yield MoleculeRecord(f"molecule {number}", properties, f"{head}M  END\n", fault=fault)
    if not number:
        raise DataError(f"{source} is empty; expected SDF records that end with $$$$")


def _sdf_texts(lines: Iterable[str], source: str) -> Iterator[tuple[str, bool]]:
    """The records of an SDF that are not empty, and whether each ends with a line `$$$$`."""
    record: list[str] = []
    size, end = 0, "end of file"
    for line in chain(lines, [end]):
        if line is end or line.startswith("$$$$"):
            if any(map(str.strip, record)):
                yield "".join(record), line is not end
            record, size = [], 0
            continue
        record.append(line.replace("\r\n", "\n"))
        size += len(line)
        if size > _LARGEST_RECORD:
            raise DataError(
                f"{source} has a record of more than {_LARGEST_RECORD:,} characters; expected SDF "
                "records that end with $$$$"
            )


def _xyz_records(lines: Iterable[str], source: str) -> Iterator[MoleculeRecord]:
    """The molecules of an XYZ file, each a count, a comment, then an atom a line."""
    numbered = enumerate(lines, start=1)
    molecules = 0
    for at, line in numbered:
        count = line.strip()
        if not count:
            continue
        if not count.isdecimal() or len(count) > _MOST_DIGITS or int(count) == 0:
            raise DataError(f"{source}, line {at}: got {count[:40]!r}, expected a number of atoms")
        body = list(islice(numbered, min(int(count), _MOST_ATOMS) + 1))
        announced = f"{source}, line {at}: {count} atoms are announced"
        if len(body) > _MOST_ATOMS:
            raise DataError(f"{announced}, expected fewer than {_MOST_ATOMS:,}")
        molecules += 1
        if len(body) < int(count) + 1:
            cut = f"{announced} and {len(body[1:])} follow; the file is cut short"
            if molecules == 1:
                raise DataError(cut)
            properties = _comment(body[0][1].rstrip("\r\n")) if body else {}
            yield MoleculeRecord(f"molecule {molecules}", properties, fault=cut)
            return
        place, properties = f"molecule {molecules}", _comment(body[0][1].rstrip("\r\n"))
        try:
            atoms = tuple(_atom(text, f"line {number}") for number, text in body[1:])
            if _may_be_cut([text for _, text in body[1:]]):
                raise DataError(
                    f"line {body[-1][0]}: the file ends within {body[-1][1].strip()[:60]!r}, whose "
                    "last coordinate has fewer digits than others: it may be cut short; if it is "
                    "whole, end the line"
                )
            yield MoleculeRecord(place, properties, atoms=atoms)
        except DataError as fault:
            yield MoleculeRecord(place, properties, fault=str(fault))
    if not molecules:
        raise DataError(f"{source} is empty; expected the number of atoms on its first line")


def _may_be_cut(lines: Sequence[str]) -> bool:
    """Whether the last atom's line has no end and its z fewer decimals than another coordinate."""
    cells = lines[-1].split()
    if lines[-1].endswith("\n") or len(cells) != 4:
        return False
    decimals = [len(cell.partition(".")[2]) for line in lines for cell in line.split()[1:4]]
    return decimals[-1] < max(decimals)


def _atom(line: str, where: str) -> tuple[str, float, float, float]:
    cells = line.split()
    try:
        x, y, z = (float(cell) for cell in cells[1:4])
        if all(map(math.isfinite, (x, y, z))):
            return cells[0], x, y, z
    except ValueError:
        pass
    raise DataError(f"{where}: got {line.strip()[:60]!r}, expected an element and x y z")


def _comment(line: str) -> dict[str, str]:
    """`key=value` pairs, or else the whole comment as the name."""
    try:
        cells = shlex.split(line)
    except ValueError:  # a lone quote
        cells = line.split()
    pairs = dict(cell.split("=", 1) for cell in cells if "=" in cell)
    if not pairs:
        return {"name": line.strip()}
    return {key: value for key, value in pairs.items() if key.lower() not in _NOT_TARGETS}
