"""Files of graphs read in chunks of records, so that memory does not grow with the file.

A file is scanned before its first chunk: the scan counts the records, finds the columns and meets
whatever makes the file unreadable. Other graphs than molecules are
read at once and given in chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..graphs.text import chemistry
from .graph_set import GraphSet
from .readers import Options
from .readers.labels import ColumnFacts, naming_column
from .readers.molecule_files import NOT_LABELS, open_molecule_files
from .readers.molecules import SAMPLE, fragment_notes, parse_records, smiles_column
from .readers.tables import SMILES_NAMES, RecordFile, Table, open_table
from .reading import read_recognised, recognise

ROWS_AT_ONCE = 4096
"""Rows that a scan holds in memory."""

Row = tuple[str, str, Any, Sequence[str]]
Records = Callable[[], Iterator[Row]]
"""Reads a file from its beginning: place, name, record and cells to be joined of each row."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive records of a file, before any chemistry."""

    first: int  # index of the first of them in the file
    names: tuple[str, ...]  # the user's name of each; empty for graphs that are read already
    # where each is in the file, such as `line 3`; empty for graphs read already
    places: tuple[str, ...]
    # a SMILES, or a molecule of an SDF or XYZ file, for each; or the graphs
    records: tuple[Any, ...] | GraphSet
    name: str  # what the set is called
    joined: tuple[Sequence[str], ...] = ()  # the cells of each in the columns to be joined

    def __len__(self) -> int:
        return len(self.records)


@dataclass(frozen=True, eq=False)
class GraphStream:
    """The graphs of a file, in chunks."""

    name: str  # what the set is called
    label: str  # the file, as the user wrote it
    total: int  # number of records
    options: Options  # how they are read
    repeated: str | None  # the first name, if any, that more than one record has
    _records: Records | GraphSet

    @property
    def graphs(self) -> GraphSet | None:
        """All of them, if they are in memory."""
        return self._records if isinstance(self._records, GraphSet) else None

    @classmethod
    def of_graphs(cls, graphs: GraphSet, label: str, options: Options) -> GraphStream:
        """Graphs that are in memory."""
        counts = Counter(name for name in graphs.source.get("record_ids", ()) if name)
        repeated = next((name for name, count in counts.items() if count > 1), None)
        return cls(graphs.name, label, len(graphs), options, repeated, graphs)

    def chunks(self, size: int, start: int = 0) -> Iterator[Chunk]:
        """The records from index `start` on, `size` at a time."""
        if isinstance(self._records, GraphSet):
            if self._records.source.get("unread"):
                size = len(self._records)  # their rows are among those of all the others
            for number, block in enumerate(self._records.blocks(size, start)):
                yield Chunk(start + number * size, (), (), block, self.name)
            return
        records = islice(self._records(), start, None)
        while rows := list(islice(records, size)):
            places, names, items, joined = zip(*rows, strict=True)
            yield Chunk(start, names, places, items, self.name, joined)
            start += len(rows)


def open_stream(source: str | Path, options: Options) -> GraphStream:
    """Open a file or folder, as `read_graphs` takes it, to read it in chunks.

    If targets or a split are wanted, it is read at once.
    """
    path, label = Path(source), str(source)
    what, read = recognise(path, options)
    if options.target == () and options.split_column is None:
        if what == "molecules in a table":
            return _table_stream(path, label, options)
        if what == "molecule files":
            return _molecule_stream(open_molecule_files(path), path, label, options, NOT_LABELS)
    return GraphStream.of_graphs(read_recognised(path, read, options), label, options)


def read_chunk(chunk: Chunk, options: Options) -> GraphSet:
    """The graphs of a chunk; none if none of its records can be read.

    `source` has the rows of the graphs, the name of each record and the records that cannot be
    read, by their index in the chunk.
    """
    if isinstance(chunk.records, GraphSet):
        return chunk.records
    parsed = parse_records(chunk.records, options, chunk.joined)
    return parsed.graph_set(
        options,
        {"record_ids": chunk.names, "fragmented": parsed.fragmented},
        name=chunk.name,
        ids=[chunk.names[row] for row in parsed.molecules],
        notes=fragment_notes(parsed.fragmented, options.largest),
    )


def _table_stream(path: Path, label: str, options: Options) -> GraphStream:
    """The molecules of a table; RDKit is asked for before any work."""
    file = open_table(path)
    table = file.header()
    if options.smiles is None and table.first_of(SMILES_NAMES) is None:
        # The first cells of each column that are not empty, to find the SMILES column.
        samples: dict[str, list[str]] = {name: [] for name in file.columns}
        for _, cells, _ in file.rows():
            for sample, cell in zip(samples.values(), cells, strict=True):
                if cell and len(sample) < SAMPLE:
                    sample.append(cell)
            if all(len(sample) == SAMPLE for sample in samples.values()):
                break
        table = Table(file.name, samples)
    with chemistry():
        column = smiles_column(table, options.smiles)
    at = file.columns.index(column)
    return _molecule_stream(file, path, label, options, (column,), at)


def _molecule_stream(
    file: RecordFile,
    path: Path,
    label: str,
    options: Options,
    used: Collection[str],
    smiles_at: int | None = None,
) -> GraphStream:
    """The records of a file with the user's names for them; a SMILES is a cell of its row."""
    known: dict[str, ColumnFacts] = {}
    total = 0

    def facts_of(columns: Collection[str]) -> Mapping[str, ColumnFacts]:
        """Scan the file for the columns that were not looked at yet."""
        nonlocal total
        fresh = {name: ColumnFacts() for name in columns if name not in known}
        if fresh or not total:
            total, rows = 0, file.rows()
            while block := [cells for _, cells, _ in islice(rows, ROWS_AT_ONCE)]:
                total += len(block)
                for name, facts in fresh.items():
                    column = file.columns.index(name)
                    facts.seen([cells[column] for cells in block])
            known.update(fresh)
        return {name: known[name] for name in columns}

    joined = file.header().joined(options.join)
    joined_at = [file.columns.index(name) for name in joined]
    column = naming_column(file.header(), options, {*used, *joined}, facts_of)
    at = None if column is None else file.columns.index(column)

    def records() -> Iterator[Row]:
        for number, (place, cells, record) in enumerate(file.rows()):
            name = str(number) if at is None else cells[at]
            record = record if smiles_at is None else cells[smiles_at]
            yield place, name, record, [cells[place] for place in joined_at]

    repeated = None
    facts = facts_of([] if column is None else [column])
    if column is not None and (twice := facts[column].repeated_hashes):
        repeated = next((name for _, name, *_ in records() if name and hash(name) in twice), None)
    name = options.set_name(path)
    return GraphStream(name, label, total, options, repeated, records)
