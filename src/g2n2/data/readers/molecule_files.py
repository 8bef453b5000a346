"""Files of molecules: SMILES in a table or a `.smi` file, SDF, XYZ, or a folder of SDF and XYZ.

Targets and ids are the other columns of a table, the data items of an SDF, and the `key=value`
pairs in the comment line of an XYZ; `name` is the title, the comment, or in a folder the file's
name. An XYZ file lists no bonds: they are found from the distances, with the total charge in
`charge=`. Hydrogens of SDF and XYZ are those of the file; those of SMILES stay implicit unless
`hydrogens` makes them nodes.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from ...errors import DataError
from ...input_files import require_readable_at_once
from ..assembly import assemble
from ..graph_set import GraphSet
from .labels import numbers, read_labels, row_names
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
    parse_smiles,
)
from .options import Options, settle_bad_records
from .tables import SMILES_NAMES, Table, shortened, text_lines

SAMPLE = 200
"""Cells of a column that are tried as SMILES."""
NOT_LABELS = ("charge",)
"""Properties of SDF and XYZ records that belong to the molecule."""

_DATA_ITEM = re.compile(r"^>.*?<([^>\n]+)>[^\n]*\n(.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_MOST_DIGITS = 30  # of a number of atoms: int() refuses more than 4,300
_MOST_ATOMS = 10**6
_LARGEST_RECORD = 2**26  # characters of an SDF between two $$$$
_NOT_TARGETS = frozenset({"properties", "lattice", "pbc", "origin"})  # of extended XYZ


@dataclass(frozen=True)
class MoleculeRecord:
    """One molecule of an SDF or XYZ file, as text.

    Attributes:
        place: Where it is in the file, such as `molecule 3`.
        properties: Its data items in the file; `name` is its title.
        block: The record of an SDF up to `M  END`; empty for XYZ.
        atoms: Element and coordinates in Å of each atom of an XYZ; empty for SDF.
        fault: Why it cannot be read; empty if it may be.
    """

    place: str
    properties: dict[str, str]
    block: str = ""
    atoms: tuple[tuple[str, float, float, float], ...] = ()
    fault: str = ""


@dataclass
class Parsed:
    """The molecules of some records.

    Attributes:
        molecules: Those that could be read.
        rows: The index of each among the records.
        bad: The index of each of the others, and why it cannot be read.
        without_orders: How many have no bond orders.
    """

    molecules: list[ReadMolecule] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    without_orders: int = 0

    @property
    def fragmented(self) -> int:
        """How many molecules are of several fragments, such as salts."""
        return sum(molecule.fragments > 1 for molecule in self.molecules)


def parse_records(records: Iterable[str | MoleculeRecord], options: Options) -> Parsed:
    """Read each record, a SMILES or a molecule of an SDF or XYZ file, by itself."""
    parsed = Parsed()
    with chemistry() as chem:
        for row, record in enumerate(records):
            molecule: Molecule | str
            has_orders, hydrogens = True, False
            if isinstance(record, str):
                molecule, hydrogens = parse_smiles(chem, record), options.hydrogens
            elif record.fault:
                molecule = record.fault
            elif record.atoms:
                charge = record.properties.get("charge", "0")
                molecule, has_orders = molecule_from_atoms(chem, record.atoms, charge)
            else:
                molecule = parse_mol_block(chem, record.block)
            if not isinstance(molecule, str):
                molecule = graph_and_smiles(chem, molecule, hydrogens, options.largest)
            if isinstance(molecule, str):
                parsed.bad.append((row, molecule))
                continue
            parsed.rows.append(row)
            parsed.molecules.append(molecule)
            parsed.without_orders += not has_orders
    return parsed


def read_smiles_table(table: Table, options: Options) -> GraphSet:
    """Read the molecules of a table with their ids, targets and split.

    The SMILES column is the one named, one with a usual name, or the one RDKit reads best. A row
    whose SMILES cannot be read is named and skipped, or refused.
    """
    column = smiles_column(table, options.smiles)
    intro = f"Column {column} gives the molecules."
    return _read(table, table.columns[column], options, "smiles", (column,), [intro])


def read_smiles_list(texts: Sequence[str], options: Options) -> GraphSet:
    """Read molecules given as a list of SMILES; their ids are their indices in it."""
    places = tuple(f"molecule {number}" for number in range(len(texts)))
    name = "the molecule" if len(texts) == 1 else "the list"
    table = Table(name, {"smiles": list(texts)}, tuple(range(len(texts))), places)
    return _read(table, texts, options, "smiles", ("smiles",), [])


def read_molecule_files(source: str | Path, options: Options) -> GraphSet:
    """Read SDF or XYZ files, with coordinates if they are three-dimensional.

    Args:
        source: One file (`.sdf`, `.mol` or `.xyz`, gzipped or not) or a folder of them.
        options: What the user said.
    """
    require_readable_at_once(source)
    records = list(molecule_records(Path(source)))
    keys = dict.fromkeys(key for record in records for key in record.properties)
    columns = {key: [record.properties.get(key, "") for record in records] for key in keys}
    places = tuple(record.place for record in records)
    table = Table(str(source), columns, tuple(range(len(records))), places)
    return _read(table, records, options, "molecules", NOT_LABELS, [])


def _read(
    table: Table,
    records: Sequence[str | MoleculeRecord],
    options: Options,
    form: str,
    used: Collection[str],
    notes: list[str],
) -> GraphSet:
    """The graphs of some records; `table` holds what else is said of each."""
    parsed = parse_records(records, options)
    names = row_names(table, options, used)
    numbered = names == tuple(map(str, table.rows))
    bad = [
        f"{table.places[row]}{'' if numbered else f' ({names[row]})'}: {why}"
        for row, why in parsed.bad
    ]
    notes += settle_bad_records(bad, len(table), table.name, options.on_bad)
    if any(isinstance(record, MoleculeRecord) and record.atoms for record in records):
        notes.append("Bonds are found from the distances between atoms.")
    if without := parsed.without_orders:
        notes.append(f"{without} molecules get no bond orders: each bond counts as single.")
    labels = read_labels(table.keep(parsed.rows), options, used)
    return assemble(
        [molecule.record for molecule in parsed.molecules],
        name=options.name or Path(table.name).name.partition(".")[0],
        ids=labels.ids,
        targets=labels.targets,
        columns=labels.columns,
        splits=labels.splits,
        node_names=ATOM_FEATURES,
        edge_names=BOND_FEATURES,
        notes=(*notes, *fragment_notes(parsed.fragmented, options.largest), *labels.notes),
        source={
            "format": form,
            "smiles": tuple(molecule.smiles for molecule in parsed.molecules),
            "split_column": labels.split_column,
            "rows": tuple(parsed.rows),
            "elements": tuple(molecule.elements for molecule in parsed.molecules),
            "records": len(table),
            "record_ids": names,
            "unread": dict(parsed.bad),
        },
    )


def smiles_column(table: Table, named: str | None) -> str:
    """The column that holds the molecules."""
    if named is not None:
        return table.find(named)
    if usual := table.first_of(SMILES_NAMES):
        return usual
    shares: dict[str, tuple[float, float]] = {}
    with chemistry() as chem:
        for column, cells in table.columns.items():
            sample = [cell for cell in cells if cell][:SAMPLE]
            if not sample or numbers(sample) is not None:
                continue
            read = sum(not isinstance(parse_smiles(chem, cell), str) for cell in sample)
            # Words such as C, F or IN are SMILES too; longer, more varied text is likelier one.
            shares[column] = (read / len(sample), len(set("".join(sample))))
    best = max(shares, key=lambda column: shares[column], default=None)
    if best is None or shares[best][0] < 0.5:
        raise DataError(
            f"no column of {table.name} holds SMILES (columns: {shortened(table.columns)}); "
            "name it with --smiles COLUMN (smiles=), or for an edge list use the columns graph, "
            "source, target"
        )
    return best


def is_molecule_file(path: Path) -> bool:
    """Whether the ending is that of an SDF or XYZ file."""
    return path.name.lower().removesuffix(".gz").endswith((".sdf", ".mol", ".xyz"))


def molecule_records(path: Path) -> Iterator[MoleculeRecord]:
    """Every molecule of a file, or of a folder with its files in the order of their names."""
    if not path.is_dir():
        yield from _file_records(path)
        return
    empty = True
    for file in sorted(file for file in path.iterdir() if is_molecule_file(file)):
        try:
            records = list(_file_records(file))
        except DataError as fault:  # one bad file of a folder is one bad record
            records = [MoleculeRecord("the file", {}, fault=str(fault))]
        for number, record in enumerate(records, start=1):
            name = file.name.partition(".")[0] + (f"-{number}" if len(records) > 1 else "")
            rest = {key: value for key, value in record.properties.items() if key != "name"}
            place = f"{file.name}, {record.place}"
            empty = False
            yield replace(record, place=place, properties={"name": name, **rest})
    if empty:
        raise DataError(f"the folder {str(path)!r} holds no .sdf, .mol or .xyz file")


def _file_records(file: Path) -> Iterator[MoleculeRecord]:
    is_xyz = ".xyz" in file.name.lower()
    with text_lines(file, None if is_xyz else "\n") as lines:
        yield from (_xyz_records if is_xyz else _sdf_records)(lines, str(file))


def _sdf_records(lines: Iterable[str], source: str) -> Iterator[MoleculeRecord]:
    """The molecules of an SDF or a mol file, with their data items."""
    number = 0
    for record in _sdf_texts(lines, source):
        if not record.strip():
            continue
        number += 1
        head, _, tail = record.partition("M  END")
        properties = {"name": record.partition("\n")[0].strip()}
        properties |= {key: value.strip() for key, value in _DATA_ITEM.findall(tail)}
        yield MoleculeRecord(f"molecule {number}", properties, f"{head}M  END\n")
    if not number:
        raise DataError(f"{source} is empty; expected SDF records that end with $$$$")


def _sdf_texts(lines: Iterable[str], source: str) -> Iterator[str]:
    record: list[str] = []
    size = 0
    for line in lines:
        if line.startswith("$$$$"):
            yield "".join(record)
            record, size = [], 0
            continue
        record.append(line.replace("\r\n", "\n"))
        size += len(line)
        if size > _LARGEST_RECORD:
            raise DataError(
                f"{source} has a record of more than {_LARGEST_RECORD:,} characters; expected SDF "
                "records that end with $$$$"
            )
    yield "".join(record)


def _xyz_records(lines: Iterable[str], source: str) -> Iterator[MoleculeRecord]:
    """The molecules of an XYZ file: a count, a comment, then an atom a line; any number of these.

    A molecule with a line that is no atom is given with its fault.
    """
    numbered = enumerate(lines, start=1)
    molecules = 0
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
        molecules += 1
        place, properties = f"molecule {molecules}", _comment(body[0][1].rstrip("\r\n"))
        try:
            atoms = tuple(_atom(text, f"line {number}") for number, text in body[1:])
            yield MoleculeRecord(place, properties, atoms=atoms)
        except DataError as fault:
            yield MoleculeRecord(place, properties, fault=str(fault))
    if not molecules:
        raise DataError(f"{source} is empty; expected the number of atoms on its first line")


def _atom(line: str, where: str) -> tuple[str, float, float, float]:
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
