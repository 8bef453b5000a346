"""Records of a file made molecules: the same for a whole file and for a chunk of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .molecule_text import FoundMolecule
from .molecules import (
    Molecule,
    ReadMolecule,
    chemistry,
    graph_and_smiles,
    molecule_from_atoms,
    parse_mol_block,
    parse_smiles,
)
from .options import Options


@dataclass
class Parsed:
    """What records gave.

    Attributes:
        molecules: Those that could be read.
        kept: The place of each among the records.
        bad: The place of each of the others, and why it cannot be read.
        without_orders: How many got no bond orders.
    """

    molecules: list[ReadMolecule] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    without_orders: int = 0


def parse_records(records: Iterable[str | FoundMolecule], options: Options) -> Parsed:
    """Read each record, a SMILES or a molecule of an SDF or XYZ file, by itself."""
    parsed = Parsed()
    with chemistry() as chem:
        for place, record in enumerate(records):
            molecule, has_orders = _molecule(chem, record)
            hydrogens = isinstance(record, str) and options.hydrogens
            read = (
                molecule
                if isinstance(molecule, str)
                else graph_and_smiles(chem, molecule, hydrogens, options.largest)
            )
            if isinstance(read, str):
                parsed.bad.append((place, read))
                continue
            parsed.kept.append(place)
            parsed.molecules.append(read)
            parsed.without_orders += not has_orders
    return parsed


def _molecule(chem: Any, record: str | FoundMolecule) -> tuple[Molecule | str, bool]:
    """The molecule, or why there is none, and whether its bond orders are known."""
    if isinstance(record, str):
        return parse_smiles(chem, record), True
    if record.fault:
        return record.fault, True
    if record.atoms:
        return molecule_from_atoms(chem, record.atoms, record.properties.get("charge", "0"))
    return parse_mol_block(chem, record.block), True
