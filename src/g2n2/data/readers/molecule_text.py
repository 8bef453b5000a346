"""SDF and XYZ text cut into molecules; no chemistry yet."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from ...errors import DataError

Atom = tuple[str, float, float, float]
_DATA_ITEM = re.compile(r"^>.*?<([^>\n]+)>[^\n]*\n(.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_MOST_DIGITS = 30  # of a number of atoms: int() refuses more than 4,300
_MOST_ATOMS = 10**6
_LARGEST_RECORD = 2**26  # characters of an SDF between two $$$$
_NOT_TARGETS = frozenset({"properties", "lattice", "pbc", "origin"})  # of extended XYZ


@dataclass(frozen=True)
class FoundMolecule:
    """One molecule of a file.

    Attributes:
        place: Where it stands, such as `molecule 3`.
        properties: What the file says of it, as text; `name` is its title.
        block: The record of an SDF up to `M  END`; empty for XYZ.
        atoms: Element and coordinates in Å of each atom of an XYZ; empty for SDF.
        fault: Why it cannot be read; empty where it may be.
    """

    place: str
    properties: dict[str, str]
    block: str = ""
    atoms: tuple[Atom, ...] = ()
    fault: str = ""

    def renamed(self, name: str, place: str) -> FoundMolecule:
        """The same molecule under the name of its file."""
        return replace(self, place=place, properties={"name": name, **_without_name(self)})


def sdf_molecules(lines: Iterable[str], source: str) -> Iterator[FoundMolecule]:
    """The molecules of an SDF or a mol file, with their data items.

    Args:
        lines: Of the file, each with its end.
        source: What it is called.

    Raises:
        DataError: If there is none, or one is endless.
    """
    number = 0
    for record in _sdf_records(lines, source):
        if not record.strip():
            continue
        number += 1
        head, _, tail = record.partition("M  END")
        properties = {"name": record.partition("\n")[0].strip()}
        properties |= {key: value.strip() for key, value in _DATA_ITEM.findall(tail)}
        yield FoundMolecule(f"molecule {number}", properties, f"{head}M  END\n")
    if not number:
        raise DataError(f"{source} is empty; expected SDF records that end with $$$$")


def _sdf_records(lines: Iterable[str], source: str) -> Iterator[str]:
    kept: list[str] = []
    size = 0
    for line in lines:
        if line.startswith("$$$$"):
            yield "".join(kept)
            kept, size = [], 0
            continue
        kept.append(line.replace("\r\n", "\n"))
        size += len(line)
        if size > _LARGEST_RECORD:
            raise DataError(
                f"{source} has a record of more than {_LARGEST_RECORD:,} characters; expected SDF "
                "records that end with $$$$"
            )
    yield "".join(kept)


def xyz_molecules(lines: Iterable[str], source: str) -> Iterator[FoundMolecule]:
    """The molecules of an XYZ file: a count, a comment, then an atom a line; any number of these.

    A molecule with a line that is no atom is given with its fault.

    Args:
        lines: Of the file.
        source: What it is called.

    Raises:
        DataError: Naming the line where no molecule begins, or the file ends too early.
    """
    numbered = enumerate(lines, start=1)
    found = 0
    for at, line in numbered:
        count = line.strip()
        if not count:
            continue
        if not count.isdecimal() or len(count) > _MOST_DIGITS or int(count) == 0:
            raise DataError(
                f"{source}, line {at}: got {count[:40]!r}, expected the number of atoms"
            )
        body = list(islice(numbered, min(int(count), _MOST_ATOMS) + 1))
        if len(body) > _MOST_ATOMS:
            raise DataError(
                f"{source}, line {at}: {count} atoms are announced, expected fewer than "
                f"{_MOST_ATOMS:,}"
            )
        if len(body) < int(count) + 1:
            raise DataError(
                f"{source}, line {at}: {count} atoms are announced and {max(0, len(body) - 1)} "
                "follow; the file is cut short"
            )
        found += 1
        place, comment = f"molecule {found}", _comment(body[0][1].rstrip("\r\n"))
        try:
            atoms = tuple(_atom(text, f"line {number}") for number, text in body[1:])
            yield FoundMolecule(place, comment, atoms=atoms)
        except DataError as fault:
            yield FoundMolecule(place, comment, fault=str(fault))
    if not found:
        raise DataError(f"{source} is empty; expected the number of atoms on its first line")


def _atom(line: str, where: str) -> Atom:
    cells = line.split()
    try:
        x, y, z = (float(cell) for cell in cells[1:4])
        if all(map(math.isfinite, (x, y, z))):
            return cells[0], x, y, z
    except ValueError:
        pass
    raise DataError(
        f"{where}: got {line.strip()[:60]!r}, expected an element and x y z, as C 0 0 0"
    )


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


def _without_name(item: FoundMolecule) -> dict[str, str]:
    return {key: value for key, value in item.properties.items() if key != "name"}
