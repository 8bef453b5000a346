"""A CSV with a SMILES column, or a `.smi` file: one molecule per row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError
from ..graph_set import GraphSet
from .labels import read_labels, row_names
from .molecules import (
    ATOM_FEATURES,
    BOND_FEATURES,
    ReadMolecule,
    chemistry,
    fragment_notes,
    graph_and_smiles,
    parse_smiles,
)
from .options import Options, settle_bad_records
from .records import assemble
from .tables import Table, read_utf8, shortened
from .targets import numbers

SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "smi", "molecule", "mol")
_SAMPLE = 200


def read_smiles_table(table: Table, options: Options) -> GraphSet:
    """Read the molecules of a table with their ids, targets and split.

    The SMILES column is the one named, one with a usual name, or the one RDKit reads best. A row
    whose SMILES cannot be read is named and skipped, or refused. Hydrogens stay implicit unless
    `options.hydrogens`. `source["smiles"]` keeps the canonical SMILES of each id.

    Raises:
        DataError: If no column holds SMILES, no row can be read, or a column does not fit.
    """
    with chemistry() as chem:
        column = smiles_column(chem, table, options.smiles)
        kept: list[int] = []
        molecules: list[ReadMolecule] = []
        bad: list[tuple[int, str]] = []
        for row, text in enumerate(table.columns[column]):
            molecule = parse_smiles(chem, text)
            read = (
                molecule
                if isinstance(molecule, str)
                else graph_and_smiles(chem, molecule, options.hydrogens, options.largest)
            )
            if isinstance(read, str):
                bad.append((row, read))
                continue
            molecules.append(read)
            kept.append(row)
    notes = name_bad_rows(table, bad, options, column)
    notes += fragment_notes(molecules, options.largest)
    labels = read_labels(table.keep(kept), options, {column})
    canonical = [molecule.smiles for molecule in molecules]
    return assemble(
        [molecule.record for molecule in molecules],
        name=options.name or Path(table.name).name.partition(".")[0],
        ids=labels.ids,
        targets=labels.targets,
        columns=labels.columns,
        splits=labels.splits,
        node_names=ATOM_FEATURES,
        edge_names=BOND_FEATURES,
        notes=(f"Column {column} gives the molecules.", *notes, *labels.notes),
        source={
            "format": "smiles",
            "smiles": smiles_by_id(labels.ids, canonical, table.name),
            "split_column": labels.split_column,
            "rows": tuple(kept),
            "elements": tuple(molecule.elements for molecule in molecules),
            "records": len(table),
            "record_ids": row_names(table, options, {column}),
            "unread": dict(bad),
        },
    )


def read_smiles_list(texts: Sequence[str], options: Options) -> GraphSet:
    """Read molecules given as a list of SMILES; their ids are their places in it."""
    places = tuple(f"molecule {number}" for number in range(len(texts)))
    table = Table("the list", {"smiles": list(texts)}, tuple(range(len(texts))), places)
    return read_smiles_table(table, options)


def read_smi(path: str | Path) -> Table:
    """A `.smi` file as a table: each line a SMILES and, after white space, an optional name."""
    lines = [
        (f"line {number}", line.split(None, 1))
        for number, line in enumerate(read_utf8(path).splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    if lines and lines[0][1][0].lower() in SMILES_NAMES:
        lines = lines[1:]
    if not lines:
        raise DataError(f"{path} is empty; expected one SMILES per line")
    columns = {"smiles": [cells[0] for _, cells in lines]}
    if all(len(cells) == 2 for _, cells in lines):
        columns["name"] = [cells[1].strip() for _, cells in lines]
    return Table(str(path), columns, tuple(range(len(lines))), tuple(place for place, _ in lines))


def smiles_column(chem: Any, table: Table, named: str | None) -> str:
    """Which column holds the molecules.

    Raises:
        DataError: If none does.
    """
    if named is not None:
        return table.find(named)
    if usual := table.first_of(SMILES_NAMES):
        return usual
    shares: dict[str, tuple[float, float]] = {}
    for column, cells in table.columns.items():
        sample = [cell for cell in cells if cell][:_SAMPLE]
        if not sample or numbers(sample) is not None:
            continue
        read = sum(not isinstance(parse_smiles(chem, cell), str) for cell in sample)
        # Words such as C, F or IN are SMILES too; longer and more varied text is the likelier one.
        shares[column] = (read / len(sample), len(set("".join(sample))))
    best = max(shares, key=lambda column: shares[column], default=None)
    if best is None or shares[best][0] < 0.5:
        raise DataError(
            f"no column of {table.name} holds SMILES (columns: {shortened(table.columns)}); "
            "name it with --smiles COLUMN (smiles=), or for an edge list use the columns graph, "
            "source, target"
        )
    return best


def name_bad_rows(
    table: Table, bad: list[tuple[int, str]], options: Options, *used: str
) -> list[str]:
    """Name each row that cannot be read by its place, its id and why; refuse them where asked."""
    if not bad:
        return []
    ids = row_names(table, options, used)
    numbered = ids == tuple(map(str, table.rows))
    named = [
        f"{table.places[row]}{'' if numbered else f' ({ids[row]})'}: {why}" for row, why in bad
    ]
    return settle_bad_records(named, len(table), table.name, options.on_bad)


def smiles_by_id(ids: tuple[str, ...], smiles: list[str], where: str) -> dict[str, str]:
    """Canonical SMILES by id, so that they follow a selection of the graphs."""
    found: dict[str, str] = {}
    for name, text in zip(ids, smiles, strict=True):
        if found.setdefault(name, text) != text:
            raise DataError(
                f"id {name!r} of {where} names two molecules, {found[name]} and {text}; "
                "name another column with id=, or leave it out to number the rows"
            )
    return found
