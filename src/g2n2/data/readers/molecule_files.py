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
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ...errors import DataError
from ...input_files import require_readable_at_once
from ..graph_set import GraphSet, assemble
from . import Options, settle_bad_records
from .labels import numbers, read_labels, row_names
from .molecules import (
    ATOM_FEATURES,
    BOND_FEATURES,
    MoleculeRecord,
    chemistry,
    fragment_notes,
    is_smiles,
    parse_records,
)
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


def read_smiles_table(table: Table, options: Options) -> GraphSet:
    """Read the molecules of a table with their ids, targets and split.

    The SMILES column is the one named, one with a usual name, or the one RDKit reads best. A row
    whose SMILES cannot be read is named and skipped, or refused.
    """
    column = smiles_column(table, options.smiles)
    note = f"Column {column} gives the molecules."
    return _read(table, table.columns[column], options, "smiles", (column,), [note])


def read_smiles_list(texts: Sequence[str], options: Options) -> GraphSet:
    """Read molecules given as a list of SMILES; their ids are their indices in it."""
    places = tuple(f"molecule {number}" for number in range(len(texts)))
    name = "the molecule" if len(texts) == 1 else "the list"
    table = Table(name, {"smiles": list(texts)}, tuple(range(len(texts))), places)
    return _read(table, texts, options, "smiles", ("smiles",), [])


def read_molecule_files(source: str | Path, options: Options) -> GraphSet:
    """Read one SDF, mol or XYZ file, gzipped or not, or a folder of them."""
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
        parsed.records,
        name=options.set_name(table.name),
        ids=labels.ids,
        targets=labels.targets,
        columns=labels.columns,
        splits=labels.splits,
        node_names=ATOM_FEATURES,
        edge_names=BOND_FEATURES,
        notes=(*notes, *fragment_notes(parsed.fragmented, options.largest), *labels.notes),
        source={
            "format": form,
            "smiles": tuple(parsed.smiles),
            "split_column": labels.split_column,
            "rows": tuple(parsed.rows),
            "elements": tuple(parsed.elements),
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
    scores: dict[str, tuple[float, float]] = {}
    with chemistry() as chem:
        for column, cells in table.columns.items():
            sample = [cell for cell in cells if cell][:SAMPLE]
            if sample and numbers(sample) is None:
                share = sum(is_smiles(chem, cell) for cell in sample) / len(sample)
                # Words such as C, F or IN are SMILES too; more varied text is likelier one.
                scores[column] = (share, len(set("".join(sample))))
    best = max(scores, key=lambda column: scores[column], default=None)
    if best is None or scores[best][0] < 0.5:
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
    for text in _sdf_texts(lines, source):
        if not text.strip():
            continue
        number += 1
        head, _, tail = text.partition("M  END")
        properties = {"name": text.partition("\n")[0].strip()}
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
        announced = f"{source}, line {at}: {count} atoms are announced"
        if len(body) > _MOST_ATOMS:
            raise DataError(f"{announced}, expected fewer than {_MOST_ATOMS:,}")
        if len(body) < int(count) + 1:
            raise DataError(
                f"{announced} and {max(0, len(body) - 1)} follow; the file is cut short"
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
