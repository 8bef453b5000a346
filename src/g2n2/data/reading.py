"""`read_graphs` recognises a user's own graphs and reads them; `open_stream` reads them in chunks.

A stream of molecules needs memory for a chunk only. The file is scanned before its first chunk: the
scan counts the records, finds the columns and meets whatever makes the file unreadable. Other
graphs are read at once and given in chunks.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import DataError, guess
from ..input_files import require_regular, sha256_of
from ..validation import read_as
from .graph_set import GraphSet, Level
from .readers import OnBad, Options, Task
from .readers.arrays import read_graph6, read_npz_graphs
from .readers.edge_lists import read_edge_lists
from .readers.molecule_files import is_molecule_file, open_molecule_files
from .readers.molecules import MoleculeFile, fragment_notes, parse_records, read_smiles_list
from .readers.objects import is_networkx, is_pyg, read_matrices, read_networkx, read_pyg
from .readers.tables import open_table
from .readers.workbooks import is_workbook
from .tu import is_tu_folder, load_tu

Reader = Callable[[Options], GraphSet | MoleculeFile]

SMILES = "smiles:"
"""Prefix of each string of a list of molecules; other strings are graphs without features."""
_TARGETS = {"target", "name", "on_bad", "task"}
_COLUMNS = _TARGETS | {"id", "split_column"}
_MOLECULES = {"hydrogens", "largest", "stereo", "join", "descriptors"}
_OPTIONS_OF = {
    "molecules in a table": _COLUMNS | _MOLECULES | {"smiles"},
    "molecule files": _COLUMNS | _MOLECULES,
    "an edge list": _COLUMNS | {"directed", "level", "join"},
    "an npz file": _TARGETS | {"level"},
    "graph6": _COLUMNS,
    "a TU dataset": _TARGETS - {"task"} | {"directed"},
    "a list of graphs": _TARGETS | {"level"},
}
_TO_CSV = "save it as CSV, in Python: pandas.{}.to_csv('data.csv', index=False)"
# Endings of what is not read, what it is, and the next move.
_NOT_READ = (
    ((".xls", ".xlsb", ".ods"), "a spreadsheet", _TO_CSV.format("read_excel(path)")),
    ((".parquet",), "a table", _TO_CSV.format("read_parquet(path)")),
    ((".feather",), "a table", _TO_CSV.format("read_feather(path)")),
    ((".jsonl", ".ndjson"), "a table", _TO_CSV.format("read_json(path, lines=True)")),
    ((".json",), "a table", _TO_CSV.format("read_json(path)")),
    ((".graphml",), "GraphML", "in Python: read_graphs([networkx.read_graphml(path)])"),
    ((".gml",), "GML", "in Python: read_graphs([networkx.read_gml(path)])"),
    ((".s6", ".d6"), "sparse6 or digraph6", "give read_graphs a list of its lines"),
    ((".npy",), "a single array", "save the matrices as array 'A' of an .npz"),
    (
        (".pkl", ".pickle", ".gpickle", ".pt", ".pth"),
        "a pickle, which can run any code",
        "if you trust it, load it in Python and give read_graphs a list of its graphs",
    ),
)


def read_graphs(
    source: str | Path | GraphSet | Iterable[Any],
    *,
    target: str | Sequence[str] | None = None,
    task: Task | None = None,
    smiles: str | None = None,
    id: str | None = None,
    split_column: str | None = None,
    on_bad: OnBad = "skip",
    hydrogens: bool | None = None,
    largest: bool = False,
    stereo: bool = True,
    join: str | Sequence[str] = (),
    descriptors: bool = False,
    directed: bool = False,
    level: Level | None = None,
    name: str | None = None,
) -> GraphSet:
    """Read graphs from a file, a folder or a list in memory.

    >>> import networkx as nx
    >>> from g2n2 import read_graphs
    >>> graphs = read_graphs([nx.cycle_graph(5), nx.path_graph(3)])
    >>> len(graphs), graphs.sizes.tolist()
    (2, [5, 3])

    Args:
        source: A CSV or Excel file with a SMILES column, a `.smi`, SDF, XYZ, graph6 or `.npz`
            file, an edge-list CSV, a TU folder or zip, a folder of SDF or XYZ files; a list of PyG
            `Data`, of networkx graphs, of SMILES (`smiles:CCO`), or of anything
            `g2n2.graphs.adjacency` takes. The modules in `g2n2.data.readers` state each layout.
        target: What to predict, by name. None takes every column of numbers that is no id and no
            split; () reads no targets.
        task: What the targets are; None infers it for each.
        smiles: The column with the molecules; None finds it.
        id: The column with the ids; None finds it, or numbers the rows from 0.
        split_column: The column that names each graph's part of the split.
        on_bad: `skip` leaves out records that cannot be read and names them in the notes,
            `refuse` raises an error that names them.
        hydrogens: Whether hydrogens are nodes: True adds those that are implicit, False folds
            those of an SDF or XYZ file into their neighbours, None leaves them as they are written.
        largest: Keep only the largest fragment of each molecule, as of a salt.
        stereo: Label the R, S, E and Z of molecules; else those features are 0.
        join: Columns of numbers that become `graph_features`: names, or one text with commas.
        descriptors: RDKit's 2D descriptors of each molecule as `graph_features` too.
        directed: Keep the direction of the edges in an edge list.
        level: What the targets belong to, if the source leaves it open.
        name: What the set is called; None takes it from the file.

    Raises:
        DataError: If the source is none of these, or holds nothing that can be read.
    """
    given = dict(locals())  # before any other name is bound here
    return read_with(given.pop("source"), given)


def read_with(source: str | Path | GraphSet | Iterable[Any], given: Mapping[str, Any]) -> GraphSet:
    """`read_graphs` with options by name."""
    if isinstance(source, GraphSet):
        return source
    options = reading_options(given)
    if not isinstance(source, str | Path):
        return _read_list(source, options)
    return read_whole(Path(source), open_graphs(Path(source), options))


def reading_options(given: Mapping[str, Any]) -> Options:
    """Options of `read_graphs` by name; one target may be a text, and columns to join one too."""
    allowed = [field.name for field in fields(Options)]
    for name in given:
        if name not in allowed:
            raise DataError(
                f"no option {name!r} for your own graphs; known: {', '.join(allowed)}"
                f"{guess(name, allowed)}"
            )
    values = dict(given)
    if isinstance(target := values.get("target"), str):
        values["target"] = [target]
    if isinstance(join := values.get("join"), str):
        values["join"] = list(filter(None, map(str.strip, join.split(","))))
    for name, value in values.items():
        values[name] = list(value) if isinstance(value, tuple) else value
    options: Options = read_as(Options, values, "", None)
    return options


def _refuse_unused(options: Options, what: str) -> None:
    """Refuse an option that this format would ignore."""
    for field in fields(Options):
        value = getattr(options, field.name)
        if value != field.default and field.name not in _OPTIONS_OF[what]:
            raise DataError(f"{field.name}={value!r} says nothing about {what}; leave it out")


def open_graphs(path: Path, options: Options) -> GraphSet | MoleculeFile:
    """The graphs of a path; molecules are still to be read.

    The format is known by the ending of the path and, in a CSV, by its columns.
    """
    if not os.path.exists(path):  # pathlib raises on a name the system refuses
        raise DataError(f"no file or folder {str(path)!r}: check the path")
    if not path.is_dir():
        require_regular(path)
    what, open_path = _recognise(path, options)
    _refuse_unused(options, what)
    return open_path(options)


def read_whole(path: Path, graphs: GraphSet | MoleculeFile) -> GraphSet:
    """All graphs of a path, with the path and the checksum of a file."""
    graphs = graphs.read() if isinstance(graphs, MoleculeFile) else graphs
    source = {"path": str(path)}
    if not path.is_dir():
        source["sha256"] = sha256_of(path)
    return replace(graphs, source={**source, **graphs.source})


def holds_molecules(source: str, options: Mapping[str, Any]) -> bool:
    """Whether a source is a file or folder of molecules."""
    if not (os.path.isfile(source) or os.path.isdir(source)):
        return False
    return "molecule" in _recognise(Path(source), reading_options(options))[0]


def takes_option(source: str | Path, name: str, options: Mapping[str, Any]) -> bool:
    """Whether graphs at a path are read with an option of that name."""
    return name in _OPTIONS_OF[_recognise(Path(source), reading_options(options))[0]]


def _recognise(path: Path, options: Options) -> tuple[str, Reader]:
    ending = path.name.lower().removesuffix(".gz")
    if path.is_dir():
        is_tu = is_tu_folder(path)
        for name in () if is_tu else ("edges.csv", "edges.csv.gz"):
            if (path / name).is_file():
                return _recognise(path / name, options)
        if not is_tu:
            return "molecule files", partial(MoleculeFile, open_molecule_files(path))
    if path.is_dir() or ending.endswith(".zip"):
        return "a TU dataset", partial(_read_tu, path)
    if ending.endswith(".npz"):
        return "an npz file", partial(read_npz_graphs, path)
    if ending.endswith((".g6", ".graph6")):
        return "graph6", partial(read_graph6, path)
    of_cells = ending.endswith((".csv", ".tsv", ".txt")) or is_workbook(path.name)
    if of_cells or ending.endswith((".smi", ".smiles")):
        file = open_table(path)
        if of_cells and options.smiles is None and file.header().is_edge_list():
            return "an edge list", partial(read_edge_lists, path)
        return "molecules in a table", partial(MoleculeFile.of_table, file)
    if is_molecule_file(path):
        return "molecule files", partial(MoleculeFile, open_molecule_files(path))
    for suffixes, what, move in _NOT_READ:
        if ending.endswith(suffixes):
            raise DataError(f"{str(path)!r} is {what}, and not read: {move}")
    raise DataError(
        f"{str(path)!r} has no known ending; expected CSV or .xlsx with SMILES, .smi, .sdf, .mol, "
        ".xyz, .g6, .npz, an edge-list CSV (graph, source, target), a TU folder or zip, or a "
        "folder of .sdf or .xyz files"
    )


def _read_tu(path: Path, options: Options) -> GraphSet:
    graphs = load_tu(path, directed=options.directed).with_targets(options.target)
    return replace(graphs, name=options.name or graphs.name)


def graphs_in_memory(source: Any) -> list[Any]:
    """The graphs of a list, or one graph as a list of it."""
    kind = type(source).__name__
    if is_networkx(source) or is_pyg(source) or len(getattr(source, "shape", ())) == 2:
        if hasattr(source, "to_csv"):
            raise DataError(f"got {kind}; write it with to_csv, and give the path of that file")
        return [source]
    if not isinstance(source, Iterable):
        raise DataError(f"got {kind}; expected a path or a list of graphs")
    if isinstance(source, Mapping):
        raise DataError(f"got {kind}; expected a list of graphs: its values")
    return list(source)


def _read_list(source: Iterable[Any], options: Options) -> GraphSet:
    _refuse_unused(options, "a list of graphs")
    items = graphs_in_memory(source)
    if all(is_networkx(item) for item in items):
        return read_networkx(items, options)
    if all(is_pyg(item) for item in items):
        return read_pyg(items, options)
    if all(isinstance(item, str) and item.lower().startswith(SMILES) for item in items):
        return read_smiles_list([item[len(SMILES) :] for item in items], options)
    if any(is_pyg(item) or is_networkx(item) for item in items):
        kinds = ", ".join(sorted({type(item).__name__ for item in items}))
        raise DataError(f"the list holds {kinds}; expected PyG Data only, or networkx graphs only")
    return read_matrices(items, options)


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
    notes: tuple[str, ...] = ()  # on the columns that are read

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
        notes = [*molecules.choice]
        if molecules.smiles and molecules.naming:
            notes.append(f"Column {molecules.naming} gives the ids.")
        name = options.set_name(file.name)
        return cls(name, label, total, options, repeated, molecules, tuple(notes))

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
