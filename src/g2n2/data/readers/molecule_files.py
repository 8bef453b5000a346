"""SDF and XYZ files: molecules with coordinates, one file or a folder of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import DataError
from ...input_files import require_readable_at_once
from ..graph_set import GraphSet
from .labels import read_labels, row_names
from .molecule_parsing import parse_records
from .molecule_text import FoundMolecule, sdf_molecules, xyz_molecules
from .molecules import ATOM_FEATURES, BOND_FEATURES, fragment_notes
from .options import Options
from .records import assemble
from .smiles_tables import name_bad_rows
from .tables import Table, text_lines

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
    require_readable_at_once(path)
    found = list(found_molecules(path))
    table = _as_table(str(source), found)
    parsed = parse_records(found, options)
    molecules = parsed.molecules
    notes = name_bad_rows(table, parsed.bad, options)
    if any(item.atoms for item in found):
        notes.append("Bonds are found from the distances between atoms.")
    if parsed.without_orders:
        notes.append(
            f"{parsed.without_orders} molecules get no bond orders: each bond counts as single."
        )
    notes += fragment_notes(molecules, options.largest)
    labels = read_labels(table.keep(parsed.kept), options, {"charge"})
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
            "smiles": tuple(molecule.smiles for molecule in molecules),
            "split_column": labels.split_column,
            "rows": tuple(parsed.kept),
            "elements": tuple(molecule.elements for molecule in molecules),
            "records": len(table),
            "record_ids": row_names(table, options, {"charge"}),
            "unread": dict(parsed.bad),
        },
    )


def is_molecule_file(path: Path) -> bool:
    """Whether the ending is that of an SDF or XYZ file."""
    return path.name.lower().removesuffix(".gz").endswith(_ENDINGS)


def found_molecules(path: Path) -> Iterator[FoundMolecule]:
    """Every molecule of a file, or of a folder with its files in the order of their names."""
    if not path.is_dir():
        yield from _split(path)
        return
    empty = True
    for file in sorted(file for file in path.iterdir() if is_molecule_file(file)):
        try:
            inside = list(_split(file))
        except DataError as fault:  # one bad file of a folder is one bad record
            inside = [FoundMolecule("the file", {}, fault=str(fault))]
        for number, item in enumerate(inside, start=1):
            name = file.name.partition(".")[0] + (f"-{number}" if len(inside) > 1 else "")
            empty = False
            yield item.renamed(name, f"{file.name}, {item.place}")
    if empty:
        raise DataError(f"the folder {str(path)!r} holds no .sdf, .mol or .xyz file")


def _split(file: Path) -> Iterator[FoundMolecule]:
    is_xyz = ".xyz" in file.name.lower()
    with text_lines(file, None if is_xyz else "\n") as lines:
        yield from (xyz_molecules if is_xyz else sdf_molecules)(lines, str(file))


def _as_table(name: str, found: Sequence[FoundMolecule]) -> Table:
    keys = dict.fromkeys(key for item in found for key in item.properties)
    columns = {key: [item.properties.get(key, "") for item in found] for key in keys}
    return Table(name, columns, tuple(range(len(found))), tuple(item.place for item in found))
