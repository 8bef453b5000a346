"""Edge-list CSV files with graph ids, and the files beside them.

| file | columns |
|-|-|
| `edges.csv` or `NAME.csv` | `graph`, `source`, `target`, optional `weight`, any edge features |
| `nodes.csv` or `NAME_nodes.csv` | `graph`, `node`, any node features; optional |
| `graphs.csv` or `NAME_graphs.csv` | `graph`, targets, optional split column; optional |

Nodes have names of any kind, used within their graph. Without a nodes file a graph has the nodes
its edges name, sorted if all are whole numbers. An edge is entered both ways unless `directed`.
Targets are the columns of the graphs file; a `target` that is a column of the nodes or edges file
belongs to nodes or edges, and so does `y` if there is no graphs file; `y` is never a feature.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import DataError
from ...graphs.text import NEGATIVE_NODE, are_numbers, negative_node
from ..graph_set import Floats, GraphRecord, GraphSet, Ints, Level, assemble
from . import Options
from .labels import numbers, read_labels, targets_of_columns
from .tables import WITH_POINT, Table, decimal_comma, is_number, is_text, read_table

_GRAPH_NAMES = ("graph", "graph_id", "graph_index")
_SOURCE_NAMES = ("source", "src", "from")
_TARGET_NAMES = ("target", "dst", "to")
_NODE_NAMES = ("node", "node_id", "id")

NodeRows = dict[str, dict[str, int]]
"""Graph to node name to its row in the nodes file."""


class GraphRows(NamedTuple):
    """One graph of an edge list.

    Attributes:
        ends: `[2, E]` its edges.
        rows: `[E]` the row of the edge table of each edge.
        nodes: `[n]` the row of the node table of each node; 0 to n - 1 without one.
    """

    ends: Ints
    rows: Ints
    nodes: Ints


def is_edge_list(table: Table) -> bool:
    """Whether a table has the columns of an edge list."""
    return all(table.first_of(names) for names in (_GRAPH_NAMES, _SOURCE_NAMES, _TARGET_NAMES))


def read_edge_lists(edges: Table, path: Path, options: Options) -> GraphSet:
    """Read an edge list and the nodes and graphs files beside it.

    Args:
        edges: The edge list itself.
        path: Its path, to find the files beside it.
        options: What the user said.
    """
    nodes, graphs = (_beside(path, kind) for kind in ("nodes", "graphs"))
    level, targets = _targets(edges, nodes, graphs, options)
    keys = [_key(edges, names) for names in (_GRAPH_NAMES, _SOURCE_NAMES, _TARGET_NAMES)]
    weight = edges.first_of(("weight",))
    skip = {*keys, weight, "y", *(targets if level == "edge" else ())}
    edge_names, edge_features, notes = _features(edges, skip)
    weights = _numeric_column(edges, weight) if weight else None
    node_rows = _rows_by_graph(nodes) if nodes else None
    order = _order(edges.columns[keys[0]], node_rows, graphs)
    by_graph = _gather(edges, keys, order, node_rows, options.directed, notes)
    node_names: tuple[str, ...] = ()
    node_features: Floats | None = None
    if nodes:
        skip = {_key(nodes, _GRAPH_NAMES), _key(nodes, _NODE_NAMES), "y"}
        node_names, node_features, more = _features(
            nodes, skip | set(targets if level == "node" else ())
        )
        notes += more
    fields: dict[str, Any] = {}
    split_column = None
    if graphs is not None:
        if level != "graph":  # the targets are elsewhere
            options = replace(options, target=(), id=None)
        labels = read_labels(graphs, options, {_key(graphs, _GRAPH_NAMES)})
        fields = {name: getattr(labels, name) for name in ("targets", "columns", "splits")}
        notes += labels.notes
        split_column = labels.split_column
    if level != "graph":
        table = nodes if level == "node" and nodes else edges
        values, columns, more = targets_of_columns(table, targets, options.task)
        rows = np.concatenate([g.nodes if level == "node" else g.rows for g in by_graph])
        fields |= {"targets": values[rows], "columns": columns, "level": level}
        notes += more
    return assemble(
        [
            GraphRecord(
                size=len(graph.nodes),
                edges=graph.ends,
                node_features=None if node_features is None else node_features[graph.nodes],
                edge_features=edge_features[graph.rows],
                weights=None if weights is None else weights[graph.rows],
            )
            for graph in by_graph
        ],
        name=options.set_name(path),
        ids=order,
        node_names=node_names,
        edge_names=edge_names,
        notes=notes,
        source={"format": "edge list", "split_column": split_column},
        **fields,
    )


def _beside(path: Path, kind: str) -> Table | None:
    stem, dot, ending = path.name.partition(".")
    name = kind if stem == "edges" else f"{stem.removesuffix('_edges')}_{kind}"
    file = path.with_name(f"{name}{dot}{ending}")
    return read_table(file) if file.is_file() else None


def _key(table: Table, names: Sequence[str]) -> str:
    column = table.first_of(names)
    if column is None:
        raise DataError(f"{table.name} has no column {names[0]!r}; expected it beside the others")
    return column


def _targets(
    edges: Table, nodes: Table | None, graphs: Table | None, options: Options
) -> tuple[Level, list[str]]:
    """Which file holds the targets, and their columns there unless it is the graphs file."""
    files: dict[Level, Table | None] = {"graph": graphs, "node": nodes, "edge": edges}
    default = ["y"] if graphs is None else []
    wanted = default if options.target is None else list(options.target)
    for level, table in files.items():
        if table is None or options.level not in (None, level):
            continue
        if level == "graph" and not wanted:
            return "graph", []
        if wanted and all(name in table.columns for name in wanted):
            return level, wanted
    if options.target:
        next(table for table in files.values() if table).find(options.target[0])
        raise DataError(f"no one file holds all the targets {', '.join(options.target)}")
    return "graph", []


def _features(
    table: Table, skip: Collection[str | None]
) -> tuple[tuple[str, ...], Floats, list[str]]:
    """Every other column of numbers as `[rows, F]`, with a note on columns of text."""
    columns: dict[str, Floats] = {}
    notes: list[str] = []
    for name, cells in table.columns.items():
        if name in skip:
            continue
        # A few odd cells among numbers are a slip to be told, not a column of text.
        of_text = sum(map(is_text, cells)) > len(cells) / 2
        if of_text and decimal_comma(cells) is None:
            notes.append(f"Column {name} of {Path(table.name).name} is text and not used.")
        else:
            columns[name] = _numeric_column(table, name)
    none = np.zeros((len(table), 0), np.float32)
    return tuple(columns), np.stack(list(columns.values()), axis=1) if columns else none, notes


def _numeric_column(table: Table, column: str) -> Floats:
    cells = table.columns[column]
    values = numbers(cells)
    if values is None or not np.isfinite(values).all():
        good = [is_number(cell) and math.isfinite(float(cell)) for cell in cells]
        bad = good.index(False)
        hint = f": {WITH_POINT}" if decimal_comma(cells) is not None else ""
        raise DataError(
            f"{table.name}, {table.places[bad]}: {column} is {cells[bad]!r}, "
            f"expected a finite number{hint}"
        )
    return values.astype(np.float32)


def _rows_by_graph(nodes: Table) -> NodeRows:
    rows: NodeRows = {}
    names = (nodes.columns[_key(nodes, keys)] for keys in (_GRAPH_NAMES, _NODE_NAMES))
    for row, (graph, node) in enumerate(zip(*names, strict=True)):
        if rows.setdefault(graph, {}).setdefault(node, row) != row:
            raise DataError(
                f"{nodes.name}, {nodes.places[row]}: node {node} of graph {graph} again"
            )
    return rows


def _order(of_edges: Sequence[str], node_rows: NodeRows | None, graphs: Table | None) -> list[str]:
    """The graphs in the order of the file that lists them."""
    in_edges = dict.fromkeys(of_edges)
    if graphs is None:
        return list(dict.fromkeys([*(node_rows or {}), *in_edges]))
    listed = graphs.columns[_key(graphs, _GRAPH_NAMES)]
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


def _gather(
    table: Table,
    keys: Sequence[str],
    order: Sequence[str],
    node_rows: NodeRows | None,
    directed: bool,
    notes: list[str],
) -> list[GraphRows]:
    """Group the rows of an edge list by graph and number the nodes of each."""
    rows_of: dict[str, list[int]] = {graph: [] for graph in order}
    for row, graph in enumerate(table.columns[keys[0]]):
        rows_of[graph].append(row)
    sources, targets = table.columns[keys[1]], table.columns[keys[2]]
    values = list(zip(*(table.columns[c] for c in table.columns if c not in keys), strict=True))
    by_graph: list[GraphRows] = []
    gaps: list[str] = []
    repeated = one_way = 0
    for graph, rows in rows_of.items():
        names = [name for row in rows for name in (sources[row], targets[row])]
        index = _node_numbers(names, graph, node_rows, gaps)
        row_of: dict[tuple[int, int], int] = {}
        written = set()
        for row in rows:
            try:
                u, v = index[sources[row]], index[targets[row]]
            except KeyError as error:
                raise DataError(
                    f"{table.name}, {table.places[row]}: node {error.args[0]} of graph {graph} is "
                    "not in the nodes file; add it there"
                ) from error
            repeated += (u, v) in written
            written.add((u, v))
            for edge in ((u, v),) if directed else ((u, v), (v, u)):
                before = row_of.setdefault(edge, row)
                if values and values[before] != values[row]:
                    raise DataError(
                        f"{table.name}, {table.places[row]}: the edge {sources[row]} "
                        f"{targets[row]} of graph {graph} has other values than on "
                        f"{table.places[before]}; remove one line"
                        + ("" if directed else ", or read with directed=True")
                    )
        one_way += sum((v, u) not in written for u, v in written)
        nodes = range(len(index)) if node_rows is None else node_rows.get(graph, index).values()
        by_graph.append(
            GraphRows(
                np.array(list(row_of), dtype=np.int64).reshape(-1, 2).T,
                np.array(list(row_of.values()), dtype=np.int64),
                np.array(list(nodes), dtype=np.int64),
            )
        )
    if repeated:
        notes.append(f"{repeated} edges are written twice and entered once.")
    if one_way and not directed:
        notes.append(f"{one_way} edges are written one way and entered both ways.")
    if gaps:
        notes.append(
            f"Node numbers have gaps in {len(gaps)} graphs ({gaps[0]}); a number that no edge "
            "names makes no node: list lone nodes in the nodes file."
        )
    return by_graph


def _node_numbers(
    names: Sequence[str], graph: str, node_rows: NodeRows | None, gaps: list[str]
) -> dict[str, int]:
    """Node name to its number: the nodes file's order, else by number, else by first mention."""
    if node_rows is not None:
        return {name: number for number, name in enumerate(node_rows.get(graph, {}))}
    distinct = list(dict.fromkeys(names))
    if (negative := negative_node(distinct)) is not None:
        raise DataError(f"graph {graph}: {NEGATIVE_NODE.format(negative)}")
    if are_numbers(distinct):
        distinct.sort(key=int)
        present = {int(name) for name in distinct}
        span = range(int(distinct[0]), int(distinct[-1]))
        missing = next((number for number in span if number not in present), None)
        if missing is not None:
            gaps.append(f"graph {graph} has no node {missing}")
    return {name: number for number, name in enumerate(distinct)}
