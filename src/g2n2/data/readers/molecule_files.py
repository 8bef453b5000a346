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
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...input_files import open_text
from ..graph_set import GraphSet
from . import Options, settle_bad_records
from .labels import facts_in, naming_column, numbers, read_labels
from .molecules import MoleculeRecord, fragment_notes, parse_records
from .tables import SMILES_NAMES, RecordFile, Table, shortened

SAMPLE = 200
"""Cells of a column that are tried as SMILES."""
NOT_LABELS = ("charge",)
"""Properties of SDF and XYZ records that belong to the molecule."""

_DATA_ITEM = re.compile(r"^>.*?<([^>\n]+)>[^\n]*\n(.*?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_MOST_DIGITS = 30  # of a number of atoms: int() refuses more than 4,300
_MOST_ATOMS = 10**6
_LARGEST_RECORD = 2**26  # characters of an SDF between two $$$$
_NOT_TARGETS = frozenset({"properties", "lattice", "pbc", "origin"})  # of extended XYZ


def read_smiles_table(file: RecordFile, options: Options) -> GraphSet:
    """Read the molecules of a table with their ids, targets and split.

    The SMILES column is the one named, one with a usual name, or the one RDKit reads best. A row
    whose SMILES cannot be read is named and skipped, or refused.
    """
    table, _ = file.read()
    column = smiles_column(table, options.smiles)
    note = f"Column {column} gives the molecules."
    return _read(table, table.columns[column], options, "smiles", (column,), [note])


def read_smiles_list(texts: Sequence[str], options: Options) -> GraphSet:
    """Read molecules given as a list of SMILES; their ids are their indices in it."""
    places = [f"molecule {number}" for number in range(len(texts))]
    name = "the molecule" if len(texts) == 1 else "the list"
    table = Table(name, {"smiles": texts}, places, range(len(texts)))
    return _read(table, texts, options, "smiles", ("smiles",), [])


def read_molecule_files(source: str | Path, options: Options) -> GraphSet:
    """Read one SDF, mol or XYZ file, gzipped or not, or a folder of them."""
    table, records = open_molecule_files(Path(source)).read()
    return _read(table, records, options, "molecules", NOT_LABELS, [])


def _read(
    table: Table,
    records: Sequence[Any],
    options: Options,
    form: str,
    used: Collection[str],
    notes: list[str],
) -> GraphSet:
    """The graphs of some records; `table` holds what else is said of each."""
    parsed = parse_records(records, options)
    column = naming_column(table, options, used, facts_in(table))
    names = tuple(table.columns[column] if column else map(str, table.rows))
    bad = [
        f"{table.places[row]}{f' ({names[row]})' if column else ''}: {why}"
        for row, why in parsed.unread.items()
    ]
    notes += settle_bad_records(bad, len(table), table.name, options.on_bad)
    if any(isinstance(record, MoleculeRecord) and record.atoms for record in records):
        notes.append("Bonds are found from the distances between atoms.")
    if without := parsed.without_orders:
        notes.append(f"{without} molecules get no bond orders: each bond counts as single.")
    labels = read_labels(table.keep(parsed.rows), options, used)
    notes += [*fragment_notes(parsed.fragmented, options.largest), *labels.pop("notes")]
    source = {
        "format": form,
        "smiles": tuple(parsed.smiles),
        "records": len(table),
        "record_ids": names,
        **labels.pop("source"),
    }
    return parsed.graph_set(source, name=options.set_name(table.name), notes=notes, **labels)


def smiles_column(table: Table, named: str | None) -> str:
    """The column that holds the molecules."""
    if named is not None:
        return table.find(named)
    if usual := table.first_of(SMILES_NAMES):
        return usual
    scores: dict[str, tuple[float, float]] = {}
    for column, cells in table.columns.items():
        sample = [cell for cell in cells if cell][:SAMPLE]
        if sample and numbers(sample) is None:
            share = len(parse_records(sample, Options()).rows) / len(sample)
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


def open_molecule_files(path: Path) -> RecordFile:
    """The molecules of a file or folder; each property is a column."""
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
        raise DataError(f"the folder {str(path)!r} holds no .sdf, .mol or .xyz file")
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
    for number, text in enumerate(sdf_texts(lines, source), start=1):
        head, _, tail = text.partition("M  END")
        properties = {"name": text.partition("\n")[0].strip()}
        properties |= {key: value.strip() for key, value in _DATA_ITEM.findall(tail)}
        yield MoleculeRecord(f"molecule {number}", properties, f"{head}M  END\n")
    if not number:
        raise DataError(f"{source} is empty; expected SDF records that end with $$$$")


def sdf_texts(lines: Iterable[str], source: str) -> Iterator[str]:
    """The records of an SDF that are not empty; each ends with a line `$$$$`."""
    record: list[str] = []
    size = 0
    for line in chain(lines, ["$$$$"]):
        if line.startswith("$$$$"):
            if any(map(str.strip, record)):
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


def _xyz_records(lines: Iterable[str], source: str) -> Iterator[MoleculeRecord]:
    """The molecules of an XYZ file, each a count, a comment, then an atom a line."""
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
