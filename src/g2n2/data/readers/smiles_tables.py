"""A CSV with a SMILES column, or a `.smi` file: one molecule per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...input_files import require_readable_at_once
from ..graph_set import GraphSet
from .labels import read_labels, row_names
from .molecule_parsing import parse_records
from .molecules import ATOM_FEATURES, BOND_FEATURES, chemistry, fragment_notes, parse_smiles
from .options import Options, settle_bad_records
from .records import assemble
from .tables import Table, shortened, text_lines
from .targets import numbers

SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "smi", "molecule", "mol")
SAMPLE = 200


def read_smiles_table(table: Table, options: Options) -> GraphSet:
    """Read the molecules of a table with their ids, targets and split.

    The SMILES column is the one named, one with a usual name, or the one RDKit reads best. A row
    whose SMILES cannot be read is named and skipped, or refused. Hydrogens stay implicit unless
    `options.hydrogens`. `source["smiles"]` keeps the canonical SMILES of each.

    Raises:
        DataError: If no column holds SMILES, no row can be read, or a column does not fit.
    """
    with chemistry() as chem:
        column = smiles_column(chem, table, options.smiles)
    parsed = parse_records(table.columns[column], options)
    molecules = parsed.molecules
    notes = name_bad_rows(table, parsed.bad, options, column)
    notes += fragment_notes(molecules, options.largest)
    labels = read_labels(table.keep(parsed.kept), options, {column})
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
            "smiles": tuple(molecule.smiles for molecule in molecules),
            "split_column": labels.split_column,
            "rows": tuple(parsed.kept),
            "elements": tuple(molecule.elements for molecule in molecules),
            "records": len(table),
            "record_ids": row_names(table, options, {column}),
            "unread": dict(parsed.bad),
        },
    )


def read_smiles_list(texts: Sequence[str], options: Options) -> GraphSet:
    """Read molecules given as a list of SMILES; their ids are their places in it."""
    places = tuple(f"molecule {number}" for number in range(len(texts)))
    table = Table("the list", {"smiles": list(texts)}, tuple(range(len(texts))), places)
    return read_smiles_table(table, options)


@dataclass(frozen=True)
class SmiFile:
    """A `.smi` file: each line a SMILES and, after white space, an optional name.

    Attributes:
        name: The file, as the user wrote it.
        columns: `smiles`, and `name` where every molecule has one.
    """

    name: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, path: str | Path) -> SmiFile:
        """A file with its columns, for which it is read once.

        Raises:
            DataError: It is no text, or empty.
        """
        name, fewest = str(path), 2
        for _, cells in cls(name, ("smiles", "name")).rows():
            fewest = min(fewest, len(cells))
        return cls(name, ("smiles", "name")[:fewest])

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """The place and the cells of each molecule.

        Raises:
            DataError: There is none.
        """
        first = empty = True
        with text_lines(self.name) as lines:
            for number, line in enumerate(lines, start=1):
                cells = line.split(None, 1)
                if not cells or line.startswith("#"):
                    continue
                heads, first = first and cells[0].lower() in SMILES_NAMES, False
                if not heads:
                    empty = False
                    yield f"line {number}", [cell.strip() for cell in cells[: len(self.columns)]]
        if empty:
            raise DataError(f"{self.name} is empty; expected one SMILES per line")


def read_smi(path: str | Path) -> Table:
    """A `.smi` file as a table."""
    require_readable_at_once(path)
    file = SmiFile.of(path)
    places, rows = zip(*file.rows(), strict=True)
    cells = zip(*rows, strict=True)
    columns = {name: list(column) for name, column in zip(file.columns, cells, strict=True)}
    return Table(file.name, columns, tuple(range(len(places))), places)


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
        sample = [cell for cell in cells if cell][:SAMPLE]
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
