"""Graphs held in memory: PyG `Data`, networkx graphs, and anything that is an adjacency matrix.

PyG: `x`, `edge_index`, `edge_attr`, `edge_weight`, `pos` and `y`. A `y` with one row per node of
every graph belongs to nodes, one with one row per edge to edges; PyG's own graph-level targets are
`[1, T]`. Any object with those attributes is read; PyG itself is not imported.

networkx: node attribute `x`, edge attributes `weight` and `e`; the target is `y` of the graph
(`graph.graph["y"]`), of every node, or of every edge, whichever exists. The id is
`graph.graph["id"]` or the graph's name. An undirected edge is entered both ways.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import adjacency, refuse_multigraph
from ...graphs.conversion import check_edge_index
from ..graph_set import Floats, GraphRecord, GraphSet, Level, assemble
from . import Options
from .labels import targets_of_array

Array = NDArray[Any]


def read_matrices(items: Sequence[Any], options: Options) -> GraphSet:
    """Read a list of graphs without features: whatever `g2n2.graphs.adjacency` takes."""
    if not items:
        raise DataError("the list holds no graph; expected at least one")
    records: list[GraphRecord] = []
    for number, item in enumerate(items):
        try:
            records.append(GraphRecord.of_matrix(adjacency(item)))
        except DataError as fault:
            kinds = ", ".join(sorted({type(other).__name__ for other in items}))
            raise DataError(
                f"the list holds {kinds}; item {number} is no graph: {fault}"
            ) from fault
    return assemble(records, name=options.name or "graphs", source={"format": "matrices"})


def is_networkx(item: object) -> bool:
    """Whether an object is a networkx graph; none exists before networkx is imported."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(item, networkx.Graph)


def is_pyg(item: object) -> bool:
    """Whether an object is a graph in PyG's form."""
    return hasattr(item, "edge_index") and hasattr(item, "num_nodes")


def read_pyg(items: Iterable[Any], options: Options) -> GraphSet:
    """Read a list of `Data` or a PyG dataset."""
    data = list(items)
    records = [_record(item, f"graph {number}") for number, item in enumerate(data)]
    ids = [str(getattr(item, "id", None) or number) for number, item in enumerate(data)]
    targets: dict[str, Any] = {}
    ys = [_array(getattr(item, "y", None)) for item in data]
    if any(y is not None for y in ys) and options.target != ():
        level = options.level or _level(ys, records)
        whole = all(y is None or y.dtype.kind in "biu" for y in ys)
        block = _target_block(ys, records, level)
        targets = {"level": level, **targets_of_array(block, options, whole=whole)}
    name = options.name or "graphs"
    return assemble(records, name=name, ids=ids, source={"format": "pyg"}, **targets)


def _record(item: Any, where: str) -> GraphRecord:
    if not is_pyg(item) or item.edge_index is None:
        raise DataError(
            f"{where} is {type(item).__name__} without an edge_index; expected a PyG Data with one "
            "(HeteroData: to_homogeneous(); adj_t: keep edge_index too)"
        )
    edges = np.asarray(_array(item.edge_index))
    features, edge_features = (
        _columns(getattr(item, name, None), f"{where}: {name}") for name in ("x", "edge_attr")
    )
    weights, positions = (_array(getattr(item, name, None)) for name in ("edge_weight", "pos"))
    if positions is not None and (positions.ndim != 2 or positions.shape[1] != 3):
        positions = None
    # From x if there is one: PyG warns when it must count the ends of edges.
    size = int(item.num_nodes if features is None else len(features))
    check_edge_index(edges, size, where)
    return GraphRecord(
        size=size,
        edges=edges.astype(np.int64),
        node_features=features,
        edge_features=edge_features,
        weights=None if weights is None else weights.reshape(-1).astype(np.float32),
        positions=None if positions is None else positions.astype(np.float32),
    )


def _array(value: Any) -> Array | None:
    """A tensor, array or number as an array."""
    if value is None:
        return None
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _columns(value: Any, where: str) -> Floats | None:
    values = _array(value)
    if values is None:
        return None
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
        raise DataError(f"{where} is {values.dtype} {list(values.shape)}, expected numbers [n, F]")
    return values.reshape(len(values), -1 if values.size else 1).astype(np.float32)


def _rows(record: GraphRecord, level: Level) -> int:
    rows: dict[Level, int] = {"graph": 1, "node": record.size, "edge": record.edges.shape[1]}
    return rows[level]


def _level(ys: Sequence[Array | None], records: Sequence[GraphRecord]) -> Level:
    """Graphs if each y is one row; nodes or edges if every y has as many rows as there are."""
    present = [(y, record) for y, record in zip(ys, records, strict=True) if y is not None]
    levels: tuple[Level, ...] = ("graph", "node", "edge")
    for level in levels:
        single = level == "graph"
        if all(len(y) == _rows(r, level) if y.ndim else single for y, r in present):
            return level
    return "graph"


def _target_block(
    ys: Sequence[Array | None], records: Sequence[GraphRecord], level: Level
) -> NDArray[np.float64]:
    """Targets `[rows, T]`, NaN for every row of a graph without `y`."""
    rows = [_rows(record, level) for record in records]
    blocks: list[NDArray[np.float64] | None] = []
    for index, (y, count) in enumerate(zip(ys, rows, strict=True)):
        if y is not None and (y.dtype.kind not in "biuf" or y.size % max(count, 1)):
            raise DataError(
                f"graph {index}: y is {y.dtype} {list(y.shape)}, expected numbers in {count} rows "
                f"as the targets belong to {level}s"
            )
        blocks.append(y.astype(np.float64).reshape(count, -1) if y is not None and count else None)
    widths = {block.shape[1] for block in blocks if block is not None}
    if len(widths) > 1:
        raise DataError(
            f"y has {' and '.join(map(str, sorted(widths)))} columns in different graphs; "
            "expected one number of targets everywhere, NaN where one is missing"
        )
    width = widths.pop() if widths else 0
    return np.concatenate(
        [
            np.full((count, width), np.nan) if block is None else block
            for block, count in zip(blocks, rows, strict=True)
        ]
    )


def read_networkx(items: Iterable[Any], options: Options) -> GraphSet:
    """Read a list of networkx graphs or digraphs; rows follow each graph's own node order."""
    graphs = list(items)
    on_nodes, on_edges = (
        {key for graph in graphs for *_, held in getattr(graph, view)(data=True) for key in held}
        for view in ("nodes", "edges")
    )
    level: Level = options.level or "graph"
    if options.level is None and not any("y" in graph.graph for graph in graphs):
        level = "node" if "y" in on_nodes else "edge" if "y" in on_edges else "graph"
    data = [_as_pyg(graph, f"graph {number}", level) for number, graph in enumerate(graphs)]
    read = read_pyg(data, replace(options, level=level))
    unused = sorted(map(str, (on_nodes | on_edges) - {"x", "y", "e", "weight"}))
    notes = [f"Attributes not used: {', '.join(unused[:12])}."] if unused else []
    return replace(read, notes=(*read.notes, *notes), source={"format": "networkx"})


def _as_pyg(graph: Any, where: str, level: Level) -> SimpleNamespace:
    """The graph in the form of PyG."""
    refuse_multigraph(graph, where)
    if not graph.number_of_nodes():
        raise DataError(f"{where} has no nodes; drop it")
    index = {node: number for number, node in enumerate(graph)}
    nodes = {f"node {node!r}": attributes for node, attributes in graph.nodes(data=True)}
    ends: list[tuple[int, int]] = []
    edges: list[tuple[str, Mapping[str, Any]]] = []
    for u, v, attributes in graph.edges(data=True):
        both = [(u, v)] if graph.is_directed() or u == v else [(u, v), (v, u)]
        ends += [(index[a], index[b]) for a, b in both]
        edges += [(f"edge {u!r} {v!r}", attributes)] * len(both)
    y = None
    if level != "graph":
        y = _attribute(nodes.items() if level == "node" else edges, "y", where)
    elif graph.graph.get("y") is not None:
        y = _numbers([np.ravel(graph.graph["y"])], f"{where}: y")
    weights = [attributes.get("weight", 1.0) for _, attributes in edges]
    return SimpleNamespace(
        num_nodes=len(index),
        edge_index=np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        x=_attribute(nodes.items(), "x", where),
        edge_attr=_attribute(edges, "e", where),
        edge_weight=None if all(w == 1 for w in weights) else _numbers(weights, f"{where}: weight"),
        y=y,
        id=graph.graph.get("id") or graph.name or None,
    )


def _attribute(items: Iterable[tuple[str, Mapping[str, Any]]], key: str, where: str) -> Any:
    """One attribute of every node or edge as `[rows, width]`; None if none has it."""
    items = list(items)
    lacking = [name for name, attributes in items if key not in attributes]
    if len(lacking) == len(items):
        return None
    if lacking:
        raise DataError(f"{where}: {lacking[0]} has no {key!r} and others have; give it to all")
    return _numbers([np.ravel(attributes[key]) for _, attributes in items], f"{where}: {key}")


def _numbers(values: list[Any], what: str) -> Array:
    try:
        array = np.array(values)
    except ValueError as error:
        raise DataError(f"{what} has different lengths; expected one length") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} holds {array.dtype}, expected numbers")
    return array
