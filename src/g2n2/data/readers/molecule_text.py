"""SDF and XYZ text cut into molecules; no chemistry yet."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, replace

from ...errors import DataError

Atom = tuple[str, float, float, float]
_DATA_ITEM = re.compile(r"^>.*?<([^>\n]+)>[^\n]*\n(.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_MOST_DIGITS = 30  # of a number of atoms: int() refuses more than 4,300
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


def split_sdf(text: str, source: str) -> list[FoundMolecule]:
    """The molecules of an SDF or a mol file, with their data items.

    Raises:
        DataError: If there is none.
    """
    found: list[FoundMolecule] = []
    for record in re.split(r"^\$\$\$\$.*\n?", text.replace("\r\n", "\n"), flags=re.MULTILINE):
        if not record.strip():
            continue
        head, _, tail = record.partition("M  END")
        properties = {"name": record.partition("\n")[0].strip()}
        properties |= {key: value.strip() for key, value in _DATA_ITEM.findall(tail)}
        found.append(FoundMolecule(f"molecule {len(found) + 1}", properties, f"{head}M  END\n"))
    if not found:
        raise DataError(f"{source} is empty; expected SDF records that end with $$$$")
    return found


def split_xyz(text: str, source: str) -> list[FoundMolecule]:
    """The molecules of an XYZ file: a count, a comment, then an atom a line; any number of these.

    A molecule with a line that is no atom is given with its fault.

    Raises:
        DataError: Naming the line where no molecule begins, or the file ends too early.
    """
    lines = text.splitlines()
    found: list[FoundMolecule] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        count = lines[at].strip()
        if not count.isdecimal() or len(count) > _MOST_DIGITS or int(count) == 0:
            raise DataError(
                f"{source}, line {at + 1}: got {count[:40]!r}, expected the number of atoms"
            )
        stop = at + 2 + int(count)
        if stop > len(lines):
            raise DataError(
                f"{source}, line {at + 1}: {count} atoms are announced and "
                f"{max(0, len(lines) - at - 2)} follow; the file is cut short"
            )
        place, comment = f"molecule {len(found) + 1}", _comment(lines[at + 1])
        try:
            atoms = tuple(_atom(lines[line], f"line {line + 1}") for line in range(at + 2, stop))
            found.append(FoundMolecule(place, comment, atoms=atoms))
        except DataError as fault:
            found.append(FoundMolecule(place, comment, fault=str(fault)))
        at = stop
    if not found:
        raise DataError(f"{source} is empty; expected the number of atoms on its first line")
    return found


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
