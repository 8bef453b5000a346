"""SDF and XYZ files: molecules with coordinates, one file or a folder of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError
from ..graph_set import GraphSet
from .labels import read_labels, row_names
from .molecule_text import FoundMolecule, split_sdf, split_xyz
from .molecules import (
    ATOM_FEATURES,
    BOND_FEATURES,
    Molecule,
    ReadMolecule,
    chemistry,
    fragment_notes,
    graph_and_smiles,
    molecule_from_atoms,
    parse_mol_block,
)
from .options import Options
from .records import assemble
from .smiles_tables import name_bad_rows, smiles_by_id
from .tables import Table, read_utf8

_ENDINGS = (".sdf", ".mol", ".xyz")


def read_molecule_files(source: str | Path, options: Options) -> GraphSet:
    """Read SDF or XYZ files, with coordinates where they are three-dimensional.

    Hydrogens are those of the file. Targets and ids are the data items of an SDF, and the
    `key=value` pairs in the comment line of an XYZ; `name` is the title, the comment, or in a
    folder the file's name. An XYZ file lists no bonds: they are found from the distances, with
    the total charge in `charge=`.

    Args:
        source: One file (`.sdf`, `.mol` or `.xyz`, gzipped or not) or a folder of them.
        options: What the user said.

    Raises:
        DataError: If no molecule can be read.
    """
    path = Path(source)
    found = _find(path)
    table = _as_table(str(source), found)
    kept: list[int] = []
    bad: list[tuple[int, str]] = []
    molecules: list[ReadMolecule] = []
    without_orders = 0
    with chemistry() as chem:
        for row, item in enumerate(found):
            molecule, has_orders = _molecule(chem, item)
            read = (
                molecule
                if isinstance(molecule, str)
                else graph_and_smiles(chem, molecule, largest=options.largest)
            )
            if isinstance(read, str):
                bad.append((row, read))
                continue
            kept.append(row)
            without_orders += not has_orders
            molecules.append(read)
    notes = name_bad_rows(table, bad, options)
    if any(item.atoms for item in found):
        notes.append("Bonds are found from the distances between atoms.")
    if without_orders:
        notes.append(f"{without_orders} molecules get no bond orders: each bond counts as single.")
    notes += fragment_notes(molecules, options.largest)
    labels = read_labels(table.keep(kept), options, {"charge"})
    canonical = [molecule.smiles for molecule in molecules]
    return assemble(
        [molecule.record for molecule in molecules],
        name=options.name or path.name.partition(".")[0],
        ids=labels.ids,
        targets=labels.targets,
        columns=labels.columns,
        splits=labels.splits,
        node_names=ATOM_FEATURES,
        edge_names=BOND_FEATURES,
        notes=(*notes, *labels.notes),
        source={
            "format": "molecules",
            "smiles": smiles_by_id(labels.ids, canonical, str(source)),
            "split_column": labels.split_column,
            "rows": tuple(kept),
            "elements": tuple(molecule.elements for molecule in molecules),
            "records": len(table),
            "record_ids": row_names(table, options, {"charge"}),
            "unread": dict(bad),
        },
    )


def _molecule(chem: Any, item: FoundMolecule) -> tuple[Molecule | str, bool]:
    """The molecule, or why there is none, and whether its bond orders are known."""
    if item.fault:
        return item.fault, True
    if item.atoms:
        return molecule_from_atoms(chem, item.atoms, item.properties.get("charge", "0"))
    return parse_mol_block(chem, item.block), True


def is_molecule_file(path: Path) -> bool:
    """Whether the ending is that of an SDF or XYZ file."""
    return path.name.lower().removesuffix(".gz").endswith(_ENDINGS)


def _find(path: Path) -> list[FoundMolecule]:
    """Every molecule of a file, or of a folder with its files in the order of their names."""
    if not path.is_dir():
        return _split(path)
    found: list[FoundMolecule] = []
    for file in sorted(file for file in path.iterdir() if is_molecule_file(file)):
        try:
            inside = _split(file)
        except DataError as fault:  # one bad file of a folder is one bad record
            inside = [FoundMolecule("the file", {}, fault=str(fault))]
        for number, item in enumerate(inside, start=1):
            name = file.name.partition(".")[0] + (f"-{number}" if len(inside) > 1 else "")
            found.append(item.renamed(name, f"{file.name}, {item.place}"))
    if not found:
        raise DataError(f"the folder {str(path)!r} holds no .sdf, .mol or .xyz file")
    return found


def _split(file: Path) -> list[FoundMolecule]:
    is_xyz = ".xyz" in file.name.lower()
    return (split_xyz if is_xyz else split_sdf)(read_utf8(file), str(file))


def _as_table(name: str, found: Sequence[FoundMolecule]) -> Table:
    keys = dict.fromkeys(key for item in found for key in item.properties)
    columns = {key: [item.properties.get(key, "") for item in found] for key in keys}
    return Table(name, columns, tuple(range(len(found))), tuple(item.place for item in found))
