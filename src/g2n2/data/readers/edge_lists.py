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

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ...described import counted
from ...errors import DataError
from ...graphs.text import NEGATIVE_NODE, are_numbers, negative_node
from ..graph_set import COLUMN, Floats, GraphSet, Ints, Level, graph_set, source_of_names
from . import Options
from .labels import read_labels, targets_of_columns
from .tables import (
    EDGE_LIST_NAMES,
    GRAPH_NAMES,
    Table,
    decimal_comma,
    finite_number,
    is_text,
    read_table,
)

_NODE_NAMES = ("node", "node_id", "id")

NodeNumbers = dict[str, dict[str, int]]
"""Graph to node name to its row in the nodes file, or its place among the graph's nodes."""


def read_edge_lists(path: Path, options: Options) -> GraphSet:
    """Read an edge list and the nodes and graphs files beside it."""
    edges, nodes, graphs = read_table(path), _beside(path, "nodes"), _beside(path, "graphs")
    level, targets = _targets(edges, nodes, graphs, options)
    keys = [_key(edges, names) for names in EDGE_LIST_NAMES]
    weight = edges.first_of(("weight",))
    notes: list[str] = []
    skip = {*keys, weight, "y", *(targets if level == "edge" else ())}
    edge_names, edge_features = _features(edges, skip, notes)
    node_rows = _listed_nodes(nodes) if nodes else _named_nodes(edges, keys, notes)
    order = _order(edges.columns[keys[0]], node_rows, graphs)
    ends, edge_rows = _number_edges(edges, keys, order, node_rows, options.directed, notes)
    sizes = np.array([len(node_rows[graph]) for graph in order], dtype=np.int64)
    owner = np.repeat(np.arange(len(order)), sizes)[ends[0]]
    fields: dict[str, Any] = {}
    node_features: Floats | None = None
    file_rows = np.array([row for graph in order for row in node_rows[graph].values()], np.int64)
    if nodes:
        skip = {_key(nodes, GRAPH_NAMES), _key(nodes, _NODE_NAMES), "y"}
        names, values = _features(nodes, skip | set(targets if level == "node" else ()), notes)
        node_features, fields["node_names"] = values[file_rows], names
    for option in ("join", "id", "split_column"):
        if option == "id" and options.target == ():
            continue  # of a run, whose new graphs need no graphs file
        if graphs is None and (named := getattr(options, option)):
            raise DataError(f"{path} has no graphs file beside it: {option}={named!r} names none")
    fields["ids"] = order
    if graphs is not None:
        joined = graphs.joined(options.join)
        if joined:
            block = [_numeric_column(graphs, column) for column in joined]
            fields["graph_features"] = np.stack(block, axis=1).astype(np.float64)
            fields["graph_names"] = tuple(f"{COLUMN}{column}" for column in options.join)
        if level != "graph":  # the targets are elsewhere
            options = replace(options, target=())
        naming = graphs.find(options.id) if options.id else None
        labels = read_labels(graphs, options, {_key(graphs, GRAPH_NAMES)}, joined, naming)
        notes += labels.pop("notes")
        fields |= labels if naming else {**labels, "ids": order}
    if level != "graph":
        table, rows = (nodes, file_rows) if level == "node" and nodes else (edges, edge_rows)
        labels = targets_of_columns(table, targets, options)
        notes += labels.pop("notes")
        fields |= {**labels, "targets": labels["targets"][rows], "level": level}
    if weight:
        fields["weights"] = _numeric_column(edges, weight)[edge_rows]
    source = {"format": "edge list", "split_column": None, **fields.pop("source", {})}
    source |= source_of_names([list(node_rows[graph]) for graph in order])
    return graph_set(
        sizes,
        np.bincount(owner, minlength=len(order)),
        ends - (np.cumsum(sizes) - sizes)[owner],
        node_features,
        edge_features[edge_rows],
        name=options.set_name(path),
        edge_names=edge_names,
        notes=notes,
        source=source,
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
    if "" in table.columns[column]:
        place = table.places[list(table.columns[column]).index("")]
        raise DataError(f"{table.name}, {place}: the {column} is empty; name it, or drop the line")
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
    table: Table, skip: Collection[str | None], notes: list[str]
) -> tuple[tuple[str, ...], Floats]:
    """Every other column of numbers as `[rows, F]`, with a note on columns of text."""
    columns: dict[str, Floats] = {}
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
    return tuple(columns), np.stack(list(columns.values()), axis=1) if columns else none


def _numeric_column(table: Table, column: str) -> Floats:
    values = []
    for cell, place in zip(table.columns[column], table.places, strict=True):
        try:
            values.append(finite_number(cell, column))
        except DataError as fault:
            raise DataError(f"{table.name}, {place}: {fault}") from None
    return np.array(values, np.float32)


def _listed_nodes(nodes: Table) -> NodeNumbers:
    rows: NodeNumbers = {}
    names = (nodes.columns[_key(nodes, keys)] for keys in (GRAPH_NAMES, _NODE_NAMES))
    for row, (graph, node) in enumerate(zip(*names, strict=True)):
        if rows.setdefault(graph, {}).setdefault(node, row) != row:
            raise DataError(
                f"{nodes.name}, {nodes.places[row]}: node {node} of graph {graph} again"
            )
    return rows


def _named_nodes(edges: Table, keys: Sequence[str], notes: list[str]) -> NodeNumbers:
    """The nodes that edges name: by number, or else by first mention."""
    names: dict[str, dict[str, int]] = {}
    for graph, *ends in zip(*(edges.columns[key] for key in keys), strict=True):
        names.setdefault(graph, {}).update(dict.fromkeys(ends, 0))
    gaps = []
    for graph, of_graph in names.items():
        distinct = list(of_graph)
        if (negative := negative_node(distinct)) is not None:
            cells = zip(*(edges.columns[key] for key in keys), strict=True)
            row = next(n for n, (of, *ends) in enumerate(cells) if of == graph and negative in ends)
            where = f"{edges.name}, {edges.places[row]}: graph {graph}"
            raise DataError(f"{where}: {NEGATIVE_NODE.format(negative)}")
        if are_numbers(distinct):
            distinct.sort(key=int)
            present = [int(name) for name in distinct]
            after = (low + 1 for low, high in pairwise(present) if high > low + 1)
            if (missing := next(after, None)) is not None:
                gaps.append(f"graph {graph} has no node {missing}")
        names[graph] = {name: number for number, name in enumerate(distinct)}
    if gaps:
        notes.append(
            f"Node numbers have gaps in {counted(len(gaps), 'graph')} ({gaps[0]}); a number that "
            "no edge names makes no node: list lone nodes in the nodes file."
        )
    return names


def _order(in_edges: Sequence[str], node_rows: NodeNumbers, graphs: Table | None) -> list[str]:
    """The graphs in the order of the file that lists them."""
    with_nodes = dict.fromkeys([*node_rows, *in_edges])
    if graphs is None:
        return list(with_nodes)
    listed, seen = graphs.columns[_key(graphs, GRAPH_NAMES)], set[str]()
    for row, graph in enumerate(listed):
        if graph in seen:
            raise DataError(f"{graphs.name}, {graphs.places[row]}: graph {graph} is there again")
        if graph not in with_nodes:
            raise DataError(
                f"graph {graph} of {graphs.name} has no edges, and no nodes are listed for it; "
                "list its nodes in the nodes file"
            )
        seen.add(graph)
    for graph in with_nodes:
        if graph not in seen:
            raise DataError(f"graph {graph} is not in {graphs.name}; add a row for it")
    return list(listed)


def _number_edges(
    table: Table,
    keys: Sequence[str],
    order: Sequence[str],
    node_rows: NodeNumbers,
    directed: bool,
    notes: list[str],
) -> tuple[Ints, Ints]:
    """Edges `[2, E]` by graph, nodes counted through all graphs, and the row of each."""
    number: dict[tuple[str, str], int] = {}
    for graph in order:
        for node in node_rows.get(graph, ()):
            number[graph, node] = len(number)
    graph_cells, *end_cells = (table.columns[key] for key in keys)
    others = [table.columns[name] for name in table.columns if name not in keys]
    rank = {graph: place for place, graph in enumerate(order)}
    written: set[tuple[int, int]] = set()
    entered: dict[tuple[int, int], int] = {}
    for row in sorted(range(len(table)), key=lambda row: rank[graph_cells[row]]):
        graph, names = graph_cells[row], [cells[row] for cells in end_cells]
        for name in names:
            if (graph, name) not in number:
                raise DataError(
                    f"{table.name}, {table.places[row]}: node {name} of graph {graph} is not in "
                    "the nodes file; add it there"
                )
        start, end = (number[graph, name] for name in names)
        written.add((start, end))
        for edge in ((start, end),) if directed else ((start, end), (end, start)):
            before = entered.setdefault(edge, row)
            if before != row and any(cells[row] != cells[before] for cells in others):
                raise DataError(
                    f"{table.name}, {table.places[row]}: the edge {' '.join(names)} of graph "
                    f"{graph} has other values than on {table.places[before]}; remove one line"
                    + ("" if directed else ", or read with directed=True")
                )
    if repeated := len(table) - len(written):
        notes.append(f"Written twice and entered once: {counted(repeated, 'edge')}.")
    if (one_way := sum((end, start) not in written for start, end in written)) and not directed:
        notes.append(f"Written one way and entered both ways: {counted(one_way, 'edge')}.")
    return np.array(list(entered), np.int64).reshape(-1, 2).T, np.array(list(entered.values()))
