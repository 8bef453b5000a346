"""Files of graphs read in chunks of records, so that memory does not grow with the file.

A file is scanned before its first chunk: the scan counts the records, finds the columns and meets
whatever makes the file unreadable. Other graphs than molecules are read at once and given in
chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .graph_set import GraphSet
from .readers import Options
from .readers.molecules import MoleculeFile, fragment_notes, parse_records
from .reading import open_graphs, read_whole


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive records of a file, before any chemistry."""

    first: int  # index of the first of them in the file
    names: tuple[str, ...]  # the user's name of each; empty for graphs that are read already
    # where each is in the file, such as `line 3`; empty for graphs read already
    places: tuple[str, ...]
    # a SMILES, or a molecule of an SDF or XYZ file, for each; or the graphs
    records: Sequence[Any] | GraphSet
    name: str  # what the set is called
    joined: Sequence[Sequence[str]] = ()  # the cells of each in the columns to be joined

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
    _source: MoleculeFile | GraphSet

    @property
    def graphs(self) -> GraphSet | None:
        """All of them, if they are in memory."""
        return self._source if isinstance(self._source, GraphSet) else None

    @classmethod
    def of_graphs(cls, graphs: GraphSet, label: str, options: Options) -> GraphStream:
        """Graphs that are in memory."""
        counts = Counter(name for name in graphs.source.get("record_ids", ()) if name)
        repeated = next((name for name, count in counts.items() if count > 1), None)
        return cls(graphs.name, label, len(graphs), options, repeated, graphs)

    @classmethod
    def of_molecules(cls, molecules: MoleculeFile, label: str) -> GraphStream:
        """The records of a file with the user's names for them."""
        options, file, facts = molecules.options, molecules.file, molecules.facts
        twice = facts.repeated_hashes if molecules.naming else ()
        names = (name for rows in file.blocks() for name in molecules.names(rows)) if twice else ()
        repeated = next((name for name in names if name and hash(name) in twice), None)
        total = facts.rows or sum(map(len, file.blocks()))
        return cls(options.set_name(file.name), label, total, options, repeated, molecules)

    def chunks(self, size: int, start: int = 0) -> Iterator[Chunk]:
        """The records from index `start` on, `size` at a time."""
        source = self._source
        if isinstance(source, GraphSet):
            if source.source.get("unread"):
                size = len(source)  # their rows are among those of all the others
            for number, block in enumerate(source.blocks(size, start)):
                yield Chunk(start + number * size, (), (), block, self.name)
            return
        for rows in source.file.blocks(size, start):
            records, joined = source.records(rows), source.joined(rows)
            names, places = source.names(rows), tuple(rows.places)
            yield Chunk(rows.rows[0], names, places, records, self.name, joined)


def open_stream(source: str | Path, options: Options) -> GraphStream:
    """Open a file or folder, as `read_graphs` takes it, to read it in chunks.

    If targets or a split are wanted, it is read at once.
    """
    graphs = open_graphs(Path(source), options)
    if isinstance(graphs, MoleculeFile) and options.target == () and options.split_column is None:
        return GraphStream.of_molecules(graphs, str(source))
    return GraphStream.of_graphs(read_whole(Path(source), graphs), str(source), options)


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
