"""Files of graphs read a chunk of records at a time, so that memory does not grow with them.

A file is gone through before its first chunk: that counts the records, finds the columns and meets
whatever makes the file unreadable. Formats that are one object (`.npz`, edge lists, TU folders) are
read at once and given in chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ..graphs import graph6_lines, parse_graph6
from .graph_set import GraphSet
from .readers.labels import ColumnFacts, naming_column
from .readers.molecule_files import found_molecules
from .readers.molecule_parsing import parse_records
from .readers.molecules import ATOM_FEATURES, BOND_FEATURES, chemistry, fragment_notes
from .readers.options import Options
from .readers.records import assemble, from_matrix
from .readers.smiles_tables import SAMPLE, SMILES_NAMES, SmiFile, smiles_column
from .readers.tables import Table, TableFile
from .reading import read_recognised, recognise

LOOKED_AT = 4096
"""Rows looked through at a time."""

Kind = Literal["molecules", "graph6", "graphs"]
Rows = Callable[[], Iterator[tuple[str, Sequence[str], Any]]]
"""Goes through a file from its beginning: place, cells and record of each row."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some records in a row as they stand in the file, before any chemistry.

    Attributes:
        first: The number of the first of them in the file, from 0.
        names: What the user calls each; empty for graphs that are read already.
        places: Where each stands, such as `line 3`; empty for graphs that are read already.
        records: A SMILES, a molecule of an SDF or XYZ file, or graph6, for each; or the graphs.
        kind: What the records are.
        name: What the set is called.
    """

    first: int
    names: tuple[str, ...]
    places: tuple[str, ...]
    records: tuple[Any, ...] | GraphSet
    kind: Kind
    name: str

    def __len__(self) -> int:
        return len(self.records)


@dataclass(frozen=True, eq=False)
class GraphStream:
    """The graphs of a file, a chunk at a time.

    Attributes:
        name: What the set is called.
        label: The file, as the user wrote it.
        total: Records there are.
        options: How they are read.
        repeated: The first name, if any, that more than one record has.
    """

    name: str
    label: str
    total: int
    options: Options
    repeated: str | None
    _kind: Kind
    _records: Callable[[], Iterator[tuple[str, str, Any]]] | GraphSet

    @property
    def graphs(self) -> GraphSet | None:
        """All of them, where they are in memory."""
        return self._records if isinstance(self._records, GraphSet) else None

    @classmethod
    def of_graphs(cls, graphs: GraphSet, label: str, options: Options) -> GraphStream:
        """Graphs that are in memory."""
        names = graphs.source.get("record_ids", ())
        return cls(graphs.name, label, len(graphs), options, _first_twice(names), "graphs", graphs)

    def chunks(self, size: int, start: int = 0) -> Iterator[Chunk]:
        """The records from one on, `size` at a time."""
        if isinstance(self._records, GraphSet):
            if self._records.source.get("unread"):
                size = len(self._records)  # rows of those stand among all the others
            for place, block in enumerate(self._records.blocks(size, start)):
                yield Chunk(start + place * size, (), (), block, self._kind, self.name)
            return
        records = islice(self._records(), start, None)
        while found := list(islice(records, size)):
            places, names, items = zip(*found, strict=True)
            yield Chunk(start, names, places, items, self._kind, self.name)
            start += len(found)


def open_stream(source: str | Path, options: Options) -> GraphStream:
    """A file or folder as `read_graphs` takes it, to be read a chunk at a time.

    Args:
        source: The file or folder.
        options: How to read it. Where targets or a split are wanted, it is read at once.

    Raises:
        DataError: As `read_graphs`.
    """
    path = Path(source)
    what, read = recognise(path, options)
    by_record = options.target == () and options.split_column is None
    if by_record and what == "molecules in a table":
        return _table_stream(path, str(source), options)
    if by_record and what == "molecule files":
        return _molecule_stream(path, str(source), options)
    if by_record and what == "graph6":
        return _graph6_stream(path, str(source), options)
    return GraphStream.of_graphs(read_recognised(path, read, options), str(source), options)


def read_chunk(chunk: Chunk, options: Options) -> GraphSet:
    """The graphs of a chunk, none where no record of it can be read.

    `source` says which records they are, what each record is called and which cannot be read, in
    numbers of the chunk.
    """
    if isinstance(chunk.records, GraphSet):
        return chunk.records
    if chunk.kind == "graph6":
        pairs = zip(chunk.records, chunk.places, strict=True)
        graphs = [from_matrix(parse_graph6(text, place)) for text, place in pairs]
        return assemble(graphs, name=chunk.name, ids=chunk.names, source={"format": "graph6"})
    parsed = parse_records(chunk.records, options)
    source = {
        "rows": tuple(parsed.kept),
        "elements": tuple(molecule.elements for molecule in parsed.molecules),
        "record_ids": chunk.names,
        "unread": dict(parsed.bad),
    }
    if not parsed.molecules:
        return _no_graphs(chunk.name, source)
    return assemble(
        [molecule.record for molecule in parsed.molecules],
        name=chunk.name,
        ids=[chunk.names[place] for place in parsed.kept],
        node_names=ATOM_FEATURES,
        edge_names=BOND_FEATURES,
        notes=fragment_notes(parsed.molecules, options.largest),
        source=source,
    )


def _no_graphs(name: str, source: Mapping[str, Any]) -> GraphSet:
    none, no_features = np.zeros(0, dtype=np.int64), np.zeros((0, 0), np.float32)
    return GraphSet(
        name=name,
        sizes=none,
        edge_counts=none,
        edges=np.zeros((2, 0), dtype=np.int64),
        node_features=no_features,
        edge_features=no_features,
        targets=np.zeros((0, 0)),
        source=MappingProxyType(dict(source)),
    )


def _table_stream(path: Path, label: str, options: Options) -> GraphStream:
    ending = path.name.lower().removesuffix(".gz")
    of_lines = ending.endswith((".smi", ".smiles"))
    file = SmiFile.of(path) if of_lines else TableFile.of(path)
    table = Table(file.name, {name: [] for name in file.columns}, (), ())
    if options.smiles is None and table.first_of(SMILES_NAMES) is None:
        table = _sample(file)
    with chemistry() as chem:
        column = smiles_column(chem, table, options.smiles)
    at = file.columns.index(column)

    def rows() -> Iterator[tuple[str, Sequence[str], Any]]:
        return ((place, cells, cells[at]) for place, cells in file.rows())

    scan = _Scan(rows, file.columns)
    return _named_stream(scan, path, label, options, {column})


def _sample(file: TableFile | SmiFile) -> Table:
    """The first cells of each column that are not empty, from which SMILES are known."""
    columns: dict[str, list[str]] = {name: [] for name in file.columns}
    for _, cells in file.rows():
        for kept, cell in zip(columns.values(), cells, strict=True):
            if cell and len(kept) < SAMPLE:
                kept.append(cell)
        if all(len(kept) == SAMPLE for kept in columns.values()):
            break
    return Table(file.name, columns, (), ())


def _molecule_stream(path: Path, label: str, options: Options) -> GraphStream:
    keys: dict[str, None] = {}
    for item in found_molecules(path):
        keys.update(dict.fromkeys(item.properties))
    columns = tuple(keys)

    def rows() -> Iterator[tuple[str, Sequence[str], Any]]:
        for item in found_molecules(path):
            yield item.place, [item.properties.get(key, "") for key in columns], item

    return _named_stream(_Scan(rows, columns), path, label, options, {"charge"})


def _graph6_stream(path: Path, label: str, options: Options) -> GraphStream:
    total = 0
    for number, text in graph6_lines(path):
        parse_graph6(text, f"{path}:{number}")
        total += 1

    def records() -> Iterator[tuple[str, str, Any]]:
        for place, (number, text) in enumerate(graph6_lines(path)):
            yield f"{path}:{number}", str(place), text

    name = options.name or path.name.partition(".")[0]
    return GraphStream(name, label, total, options, None, "graph6", records)


@dataclass
class _Scan:
    """What is known of the rows of a file, each pass over which looks at some columns."""

    rows: Rows
    columns: tuple[str, ...]
    total: int = 0
    facts: dict[str, ColumnFacts] = field(default_factory=dict)

    def facts_of(self, columns: Collection[str]) -> Mapping[str, ColumnFacts]:
        fresh = {name: ColumnFacts() for name in columns if name not in self.facts}
        if fresh or not self.total:
            self.total, rows = 0, self.rows()
            places = [(facts, self.columns.index(name)) for name, facts in fresh.items()]
            while found := [cells for _, cells, _ in islice(rows, LOOKED_AT)]:
                self.total += len(found)
                for facts, place in places:
                    facts.seen([cells[place] for cells in found])
            self.facts |= fresh
        return {name: self.facts[name] for name in columns}

    def cells(self, column: str) -> Iterator[str]:
        place = self.columns.index(column)
        return (cells[place] for _, cells, _ in self.rows())


def _named_stream(
    scan: _Scan, path: Path, label: str, options: Options, used: set[str]
) -> GraphStream:
    """The records of a table with what the user calls them."""
    table = Table(label, {name: [] for name in scan.columns}, (), ())
    column = naming_column(table, options, used, scan.facts_of)
    repeated = None
    facts = scan.facts_of([] if column is None else [column])
    if column is not None and (twice := facts[column].repeated_hashes):
        repeated = next((name for name in scan.cells(column) if name and hash(name) in twice), None)

    def records() -> Iterator[tuple[str, str, Any]]:
        at = None if column is None else scan.columns.index(column)
        for number, (place, cells, record) in enumerate(scan.rows()):
            yield place, str(number) if at is None else cells[at], record

    name = options.name or path.name.partition(".")[0]
    return GraphStream(name, label, scan.total, options, repeated, "molecules", records)


def _first_twice(names: Iterable[str]) -> str | None:
    """The first name, if any, that more than one record has."""
    counts = Counter(name for name in names if name)
    return next((name for name, count in counts.items() if count > 1), None)
