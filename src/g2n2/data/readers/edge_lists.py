"""Edge-list CSV files with graph ids, and the files beside them.

| file | columns |
|-|-|
| `edges.csv` or `NAME.csv` | `graph`, `source`, `target`, optional `weight`, any edge features |
| `nodes.csv` or `NAME_nodes.csv` | `graph`, `node`, any node features; optional |
| `graphs.csv` or `NAME_graphs.csv` | `graph`, targets, optional split column; optional |

Nodes are names of any kind, used within their graph. Without a nodes file a graph has the nodes its
edges name, sorted where all are whole numbers. An edge is entered both ways unless `directed`.
Targets are the columns of the graphs file; a `target` that is a column of the nodes or edges file
belongs to nodes or edges, and so does `y` where there is no graphs file; `y` is never a feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..assembly import Record, assemble
from ..graph_set import GraphSet, Ints, Level
from .edge_rows import EdgeRows, gather_edges
from .labels import read_labels
from .options import Options
from .tables import WITH_POINT, Table, decimal_comma, read_table
from .targets import from_cells, infer_together, numbers

GRAPH_NAMES = ("graph", "graph_id", "graph_index")
SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
_NODE_NAMES = ("node", "node_id", "id")
_WEIGHT_NAMES = ("weight",)


def is_edge_list(table: Table) -> bool:
    """Whether a table has the columns of an edge list."""
    return all(table.first_of(names) for names in (GRAPH_NAMES, SOURCE_NAMES, TARGET_NAMES))


def read_edge_lists(edges: Table, path: Path, options: Options) -> GraphSet:
    """Read an edge list and the nodes and graphs files beside it.

    Args:
        edges: The edge list itself.
        path: Where it stands, to find the files beside it.
        options: What the user said.

    Raises:
        DataError: Naming the file and the line at fault.
    """
    nodes, graphs = (_beside(path, kind) for kind in ("nodes", "graphs"))
    level, chosen = _targets(edges, nodes, graphs, options)
    keys = [_key(edges, names) for names in (GRAPH_NAMES, SOURCE_NAMES, TARGET_NAMES)]
    weight = edges.first_of(_WEIGHT_NAMES)
    skip = {*keys, weight, "y", *(chosen if level == "edge" else ())}
    edge_names, edge_block, notes = _features(edges, skip)
    weights = _numeric_column(edges, weight) if weight else None
    node_rows = _rows_by_graph(nodes, _NODE_NAMES) if nodes else None
    order = _order(edges, keys[0], node_rows, graphs)
    found = gather_edges(edges, keys, order, node_rows, options.directed)
    notes += found.notes
    node_names: Sequence[str] = ()
    node_block: NDArray[np.float32] | None = None
    if nodes:
        skip = {_key(nodes, GRAPH_NAMES), _key(nodes, _NODE_NAMES), "y"}
        skip |= set(chosen) if level == "node" else set()
        node_names, node_block, more = _features(nodes, skip)
        notes += more
    records = [
        Record(
            size=len(found.nodes[graph]),
            edges=found.ends[graph],
            node_features=None if node_block is None else node_block[found.nodes[graph]],
            edge_features=edge_block[found.rows[graph]],
            weights=None if weights is None else weights[found.rows[graph]],
        )
        for graph in order
    ]
    extra = _labelled(level, chosen, edges, nodes, graphs, found, options)
    return assemble(
        records,
        name=options.name or path.name.partition(".")[0],
        ids=order,
        node_names=tuple(node_names),
        edge_names=tuple(edge_names),
        notes=(*notes, *extra.pop("notes")),
        source={"format": "edge list", "split_column": extra.pop("split_column", None)},
        **extra,
    )


def _beside(path: Path, kind: str) -> Table | None:
    stem, dot, ending = path.name.partition(".")
    name = kind if stem == "edges" else f"{stem.removesuffix('_edges')}_{kind}"
    file = path.with_name(f"{name}{dot}{ending}")
    return read_table(file) if file.is_file() else None


def _key(table: Table, names: Sequence[str]) -> str:
    found = table.first_of(names)
    if found is None:
        raise DataError(f"{table.name} has no column {names[0]!r}; expected it beside the others")
    return found


def _targets(
    edges: Table, nodes: Table | None, graphs: Table | None, options: Options
) -> tuple[Level, list[str]]:
    """Which file holds the targets, and their columns there unless it is the graphs file."""
    files: dict[Level, Table | None] = {"graph": graphs, "node": nodes, "edge": edges}
    unless_said = ["y"] if graphs is None else []
    wanted = unless_said if options.target is None else list(options.target)
    for level, table in files.items():
        if table is None or options.level not in (None, level):
            continue
        if level == "graph" and not wanted:
            return "graph", []
        if wanted and all(name in table.columns for name in wanted):
            return level, wanted
    if options.target:
        held = [table for table in files.values() if table]
        held[0].find(options.target[0])
        raise DataError(f"no one file holds all the targets {', '.join(options.target)}")
    return "graph", []


def _features(
    table: Table, skip: set[str | None]
) -> tuple[list[str], NDArray[np.float32], list[str]]:
    """Every other column of numbers as `[rows, F]`, with a note on columns of text."""
    names: list[str] = []
    notes: list[str] = []
    blocks: list[NDArray[np.float32]] = []
    for column in table.columns:
        if column in skip:
            continue
        cells = table.columns[column]
        # A few odd cells among numbers are a slip to be told, not a column of text.
        of_text = sum(numbers([cell]) is None for cell in cells) > len(cells) / 2
        if of_text and decimal_comma(cells) is None:
            notes.append(f"Column {column} of {Path(table.name).name} is text and not used.")
            continue
        names.append(column)
        blocks.append(_numeric_column(table, column))
    empty = np.zeros((len(table), 0), np.float32)
    return names, np.stack(blocks, axis=1) if blocks else empty, notes


def _numeric_column(table: Table, column: str) -> NDArray[np.float32]:
    values = numbers(table.columns[column])
    if values is None or not np.isfinite(values).all():
        bad = next(
            row
            for row, cell in enumerate(table.columns[column])
            if (one := numbers([cell])) is None or not np.isfinite(one).all()
        )
        comma = decimal_comma(table.columns[column]) is not None
        raise DataError(
            f"{table.name}, {table.places[bad]}: {column} is {table.columns[column][bad]!r}, "
            f"expected a finite number{f': {WITH_POINT}' if comma else ''}"
        )
    return values.astype(np.float32)


def _rows_by_graph(nodes: Table, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Graph to node name to its row in the nodes file."""
    found: dict[str, dict[str, int]] = {}
    pairs = zip(
        nodes.columns[_key(nodes, GRAPH_NAMES)], nodes.columns[_key(nodes, names)], strict=True
    )
    for row, (graph, node) in enumerate(pairs):
        if found.setdefault(graph, {}).setdefault(node, row) != row:
            raise DataError(
                f"{nodes.name}, {nodes.places[row]}: node {node} of graph {graph} again"
            )
    return found


def _order(
    edges: Table,
    key: str,
    node_rows: dict[str, dict[str, int]] | None,
    graphs: Table | None,
) -> list[str]:
    """The graphs in the order of the file that lists them."""
    in_edges = dict.fromkeys(edges.columns[key])
    if graphs is None:
        return list(dict.fromkeys([*(node_rows or {}), *in_edges]))
    listed = graphs.columns[_key(graphs, GRAPH_NAMES)]
    seen: set[str] = set()
    for row, graph in enumerate(listed):
        if graph in seen:
            raise DataError(f"{graphs.name}, {graphs.places[row]}: graph {graph} is there again")
        if graph not in in_edges and graph not in (node_rows or {}):
            raise DataError(
                f"graph {graph} of {graphs.name} has no edges, and no nodes are listed for it; "
                "list its nodes in the nodes file"
            )
        seen.add(graph)
    for graph in (*in_edges, *(node_rows or {})):
        if graph not in seen:
            raise DataError(f"graph {graph} is not in {graphs.name}; add a row for it")
    return listed


def _labelled(
    level: Level,
    chosen: Sequence[str],
    edges: Table,
    nodes: Table | None,
    graphs: Table | None,
    found: EdgeRows,
    options: Options,
) -> dict[str, Any]:
    """Targets with their columns, level, splits and notes."""
    extra: dict[str, Any] = {"notes": ()}
    if graphs is not None:
        key = _key(graphs, GRAPH_NAMES)
        wanted = (
            options if level == "graph" else Options(target=(), split_column=options.split_column)
        )
        labels = read_labels(graphs, wanted, {key})
        extra = {
            "targets": labels.targets,
            "columns": labels.columns,
            "splits": labels.splits,
            "notes": labels.notes,
            "split_column": labels.split_column,
        }
    if level == "graph":
        return extra
    table = nodes if level == "node" else edges
    assert table is not None
    values, columns, notes = infer_together(
        [from_cells(name, table.columns[name], table.places, options.task) for name in chosen]
    )
    per_graph = found.nodes if level == "node" else found.rows
    rows: Ints = np.concatenate(list(per_graph.values()))
    return extra | {
        "targets": values[rows],
        "columns": columns,
        "level": level,
        "notes": (*extra["notes"], *notes),
    }
