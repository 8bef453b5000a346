"""One door for a user's own graphs: `read_graphs` recognises what it is given."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import DataError
from ..input_files import require_regular
from .graph_set import GraphSet, Level
from .readers.options import OnBad, Options, Task

Reader = Callable[[Options], GraphSet]

_ANYWHERE = {"target", "name", "on_bad"}
_ABOUT_TARGETS = _ANYWHERE | {"task"}
_OF_TABLES = _ABOUT_TARGETS | {"id", "split_column"}
# What may be said of each format; an option that would be ignored is refused.
_FITTING = {
    "molecules in a table": _OF_TABLES | {"smiles", "hydrogens", "largest"},
    "molecule files": _OF_TABLES | {"largest"},
    "an edge list": _OF_TABLES | {"directed", "level"},
    "an npz file": _ABOUT_TARGETS | {"level"},
    "graph6": _ANYWHERE,
    "a TU dataset": _ANYWHERE | {"directed"},
    "a list of graphs": _ABOUT_TARGETS | {"level"},
}
SMILES = "smiles:"
"""Before each string of a list of molecules; other strings are graphs without features."""
_TABLES = (".csv", ".tsv", ".txt")
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_PANDAS = {".parquet": "read_parquet", ".feather": "read_feather", ".jsonl": "read_json"}
_KNOWN = (
    "CSV with SMILES, .smi, .sdf, .mol, .xyz, .g6, .npz, an edge-list CSV (graph, source, target), "
    "a TU folder or zip, or a folder of .sdf or .xyz files"
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
    hydrogens: bool = False,
    largest: bool = False,
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
        source: A CSV with a SMILES column, a `.smi`, SDF, XYZ, graph6 or `.npz` file, an edge-list
            CSV, a TU folder or zip, a folder of SDF or XYZ files; a list of PyG `Data`, of
            networkx graphs, of SMILES (`smiles:CCO`), or of anything `g2n2.graphs.adjacency`
            takes. The modules in `g2n2.data.readers` state each layout.
        target: What to predict, by name. None takes every column of numbers that is no id and no
            split; () reads no targets.
        task: What the targets are; None infers it for each.
        smiles: The column with the molecules; None finds it.
        id: The column with the ids; None finds it, or numbers the rows from 0.
        split_column: The column that names each graph's part of the split.
        on_bad: `skip` leaves records out that cannot be read and names them in the notes,
            `refuse` ends with an error that names them.
        hydrogens: Make the hydrogens of SMILES nodes of their own.
        largest: Keep only the largest fragment of each molecule, as of a salt.
        directed: Keep the direction of the edges in an edge list.
        level: What the targets belong to, where the source leaves it open.
        name: What the set is called; None takes it from the file.

    Raises:
        DataError: If the source is none of these, or holds nothing that can be read.
    """
    if isinstance(source, GraphSet):
        return source
    options = reading_options(
        {
            "target": target,
            "task": task,
            "smiles": smiles,
            "id": id,
            "split_column": split_column,
            "on_bad": on_bad,
            "hydrogens": hydrogens,
            "largest": largest,
            "directed": directed,
            "level": level,
            "name": name,
        }
    )
    if not isinstance(source, str | Path):
        return _read_list(source, options)
    path = Path(source)
    return read_recognised(path, recognise(path, options)[1], options)


def read_recognised(path: Path, read: Reader, options: Options) -> GraphSet:
    """What a reader finds, with where it comes from."""
    graphs = read(options)
    return replace(graphs, source=MappingProxyType({**provenance(path), **graphs.source}))


def recognise(path: Path, options: Options) -> tuple[str, Reader]:
    """Which format a path holds and how to read it, by its ending and, in a CSV, its columns.

    Raises:
        DataError: It holds none that is known, or an option says nothing about it.
    """
    if not os.path.exists(path):  # pathlib raises on a name the system refuses
        raise DataError(f"no file or folder {str(path)!r}: check the path")
    if not path.is_dir():
        require_regular(path)
    what, read = _recognise(path, options)
    _refuse_unfitting(options, what)
    return what, read


def read_with(source: str | Path | Iterable[Any], options: Mapping[str, Any]) -> GraphSet:
    """`read_graphs` with options by name.

    Raises:
        DataError: As `read_graphs`, or there is no such option.
    """
    _refuse_unknown(options)
    return read_graphs(source, **options)


def reading_options(said: Mapping[str, Any]) -> Options:
    """Options of `read_graphs` by name.

    Raises:
        DataError: There is no such option, or it has no such value.
    """
    _refuse_unknown(said)
    target = said.get("target")
    options = Options(**{**said, "target": (target,) if isinstance(target, str) else target})
    _check_choices(options)
    return options


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    allowed = [name for name in signature(read_graphs).parameters if name != "source"]
    for name in options:
        if name not in allowed:
            raise DataError(
                f"there is no option {name!r} for your own graphs; known: {', '.join(allowed)}"
            )


def _recognise(path: Path, options: Options) -> tuple[str, Reader]:
    from .readers.molecule_files import is_molecule_file, read_molecule_files

    if path.is_dir():
        if any(path.glob("*_A.txt")) or any(path.glob("raw/*_A.txt")):
            return "a TU dataset", lambda options: _read_tu(path, options)
        if (path / "edges.csv").is_file():
            return _recognise(path / "edges.csv", options)
        return "molecule files", lambda options: read_molecule_files(path, options)
    ending = path.name.lower().removesuffix(".gz")
    if ending.endswith(".npz"):
        from .readers.arrays import read_npz_graphs

        return "an npz file", lambda options: read_npz_graphs(path, options)
    if ending.endswith((".g6", ".graph6")):
        from .readers.arrays import read_graph6

        return "graph6", lambda options: read_graph6(path, options)
    if ending.endswith(".zip"):
        return "a TU dataset", lambda options: _read_tu(path, options)
    if is_molecule_file(path):
        return "molecule files", lambda options: read_molecule_files(path, options)
    if ending.endswith((".smi", ".smiles", *_TABLES)):
        return _recognise_table(path, options, ending)
    if ending.endswith(_SPREADSHEETS):
        raise DataError(
            f"{str(path)!r} is a spreadsheet, which is not read: save its sheet as CSV "
            "(File, Save As, CSV UTF-8), or in Python: pandas.read_excel(path).to_csv('data.csv', "
            "index=False)"
        )
    if ending.endswith(tuple(_PANDAS)):
        reader = next(name for suffix, name in _PANDAS.items() if ending.endswith(suffix))
        raise DataError(
            f"{str(path)!r} is a table that is not read; save it as CSV: "
            f"pandas.{reader}(path).to_csv('data.csv', index=False)"
        )
    raise DataError(f"{str(path)!r} has no known ending; expected {_KNOWN}")


def _recognise_table(path: Path, options: Options, ending: str) -> tuple[str, Reader]:
    from .readers.edge_lists import is_edge_list, read_edge_lists
    from .readers.smiles_tables import read_smi, read_smiles_table
    from .readers.tables import TableFile, read_table

    if not ending.endswith(_TABLES):
        return "molecules in a table", lambda options: read_smiles_table(read_smi(path), options)
    if is_edge_list(TableFile.of(path).without_rows()) and options.smiles is None:
        return "an edge list", lambda options: read_edge_lists(read_table(path), path, options)
    return "molecules in a table", lambda options: read_smiles_table(read_table(path), options)


def _read_tu(path: Path, options: Options) -> GraphSet:
    from .tu.loading import load_tu

    graphs = load_tu(path, directed=options.directed)
    names = [column.name for column in graphs.columns]
    wanted = names if options.target is None else list(options.target)
    if unknown := [name for name in wanted if name not in names]:
        raise DataError(f"{path} has no target {unknown[0]!r}; it has {', '.join(names)}")
    chosen = [names.index(name) for name in wanted]
    return replace(
        graphs,
        name=options.name or graphs.name,
        targets=graphs.targets[:, chosen],
        columns=tuple(graphs.columns[place] for place in chosen),
    )


def _read_list(source: Iterable[Any], options: Options) -> GraphSet:
    from .readers.networkx_graphs import read_networkx
    from .readers.pyg import is_pyg, read_pyg

    _refuse_unfitting(options, "a list of graphs")
    networkx = sys.modules.get("networkx")  # no networkx graph exists before networkx is imported
    is_networkx = isinstance(source, networkx.Graph) if networkx else False
    if not (is_networkx or is_pyg(source) or isinstance(source, Iterable)):
        raise DataError(f"got {type(source).__name__}; expected a path or a list of graphs")
    items: list[Any] = [source] if is_networkx or is_pyg(source) else list(source)
    if not items:
        raise DataError("the list holds no graph; expected PyG Data, networkx graphs or text")
    if networkx and all(isinstance(item, networkx.Graph) for item in items):
        return read_networkx(items, options)
    if all(is_pyg(item) for item in items):
        return read_pyg(items, options)
    if all(isinstance(item, str) and item.lower().startswith(SMILES) for item in items):
        from .readers.smiles_tables import read_smiles_list

        return read_smiles_list([item[len(SMILES) :] for item in items], options)
    kinds = sorted({type(item).__name__ for item in items})
    if any(is_pyg(item) or (networkx and isinstance(item, networkx.Graph)) for item in items):
        raise DataError(
            f"the list holds {', '.join(kinds)}; expected PyG Data only, or networkx graphs only"
        )
    from .readers.arrays import read_matrices

    return read_matrices(items, options)


def _check_choices(options: Options) -> None:
    for what, got, known in (
        ("task", options.task, (None, "regression", "binary", "multiclass", "multilabel")),
        ("on_bad", options.on_bad, ("skip", "refuse")),
        ("level", options.level, (None, "graph", "node", "edge")),
    ):
        if got not in known:
            expected = ", ".join(repr(value) for value in known if value)
            raise DataError(f"{what} is {got!r}, expected {expected}")
    for what in ("smiles", "id", "split_column", "name"):
        if not isinstance(got := getattr(options, what), str | None):
            raise DataError(f"{what} is {got!r}, expected text")
    for what in ("hydrogens", "largest", "directed"):
        if type(got := getattr(options, what)) is not bool:
            raise DataError(f"{what} is {got!r}, expected true or false")
    named = options.target or ()
    if not (isinstance(named, list | tuple) and all(isinstance(one, str) for one in named)):
        raise DataError(f"target is {options.target!r}, expected names of targets")


def _refuse_unfitting(options: Options, what: str) -> None:
    unset = Options()
    for option in fields(Options):
        given = getattr(options, option.name)
        if given != getattr(unset, option.name) and option.name not in _FITTING[what]:
            raise DataError(f"{option.name}={given!r} says nothing about {what}; leave it out")


def provenance(path: Path) -> dict[str, str]:
    """Where graphs come from, with the checksum of a file."""
    if path.is_dir():
        return {"path": str(path)}
    with path.open("rb") as file:
        return {"path": str(path), "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
