"""Graphs held in memory: PyG `Data`, networkx graphs, and anything that is an adjacency matrix.

PyG: `x`, `edge_index`, `edge_attr`, `edge_weight`, `pos`, `y` and `id`. A `y` with one row per node
of every graph belongs to nodes, one with one row per edge to edges; PyG's own graph-level targets
are `[1, T]`. Any object with those attributes is read; PyG itself is not imported.

networkx: node attribute `x`, edge attributes `weight` and `e`; the target is `y` of the graph
(`graph.graph["y"]`), of every node, or of every edge, whichever exists. The id is
`graph.graph["id"]` or the graph's name. An undirected edge is entered both ways.

Other attributes are named in a note.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import adjacency, refuse_multigraph
from ...graphs.conversion import check_edge_index, refuse_batch, to_numpy
from ..graph_set import GraphRecord, GraphSet, Level, as_float32, assemble, source_of_names
from . import Options
from .labels import targets_of_array
from .tables import shortened

Array = NDArray[Any]
_PYG_FIELDS = frozenset(
    ("x", "edge_index", "edge_attr", "edge_weight", "pos", "y", "id", "num_nodes", "batch", "ptr")
)
_OF_GRAPHML = {"node_default", "edge_default"}


def read_matrices(items: Sequence[Any], options: Options) -> GraphSet:
    """Read a list of graphs without features: whatever `g2n2.graphs.adjacency` takes."""
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


def read_pyg(
    data: Sequence[Any], options: Options, unused: Collection[str] | None = None
) -> GraphSet:
    """Read a list of `Data` or a PyG dataset; `unused` attributes are found where not given."""
    records = [_record(item, f"graph {number}") for number, item in enumerate(data)]
    ids = [str(getattr(item, "id", None) or number) for number, item in enumerate(data)]
    ys = [_numbers(getattr(i, "y", None), f"graph {number}: y") for number, i in enumerate(data)]
    targets: dict[str, Any] = {"notes": []}
    if any(y is not None for y in ys) and options.target != ():
        whole = all(y is None or y.dtype.kind in "biu" for y in ys)
        level, block = _targets(ys, records, options.level)
        targets = {"level": level, **targets_of_array(block, options, whole=whole)}
    if unused is None:
        unused = set().union(*map(_fields, data)) - _PYG_FIELDS
    pairs = zip(records, data, strict=True)
    if any(r.positions is None and getattr(i, "pos", None) is not None for r, i in pairs):
        unused = {*unused, "pos (expected [n, 3])"}
    if unused:
        targets["notes"].append(f"Attributes not used: {shortened(sorted(unused))}.")
    name = options.name or "graphs"
    return assemble(records, name=name, ids=ids, source={"format": "pyg"}, **targets)


def _fields(item: Any) -> set[str]:
    """The attributes of PyG data that hold something."""
    names = item.keys() if callable(getattr(item, "keys", None)) else vars(item)
    return {name for name in names if getattr(item, name) is not None}


def _record(item: Any, where: str) -> GraphRecord:
    if item.edge_index is None:
        raise DataError(
            f"{where} is {type(item).__name__} without an edge_index; expected a PyG Data with one "
            "(HeteroData: to_homogeneous(); adj_t: keep edge_index too)"
        )
    refuse_batch(item, where)
    nodes = int(item.num_nodes or 0)
    ends = _numbers(item.edge_index, f"{where}: edge_index")
    assert ends is not None
    check_edge_index(ends, nodes, where)

    def field(name: str, rows: int, per: str) -> Array | None:
        """`[rows, F]` of an attribute."""
        values = _numbers(getattr(item, name, None), f"{where}: {name}")
        if values is None:
            return None
        if values.ndim not in (1, 2) or len(values) != rows:
            raise DataError(
                f"{where}: {name} has shape {list(values.shape)}, expected [{rows}, F], "
                f"a row for each {per}"
            )
        return as_float32(values if values.ndim == 2 else values[:, None])

    weights, positions = field("edge_weight", ends.shape[1], "edge"), field("pos", nodes, "node")
    if weights is not None and weights.shape[1] != 1:
        raise DataError(f"{where}: edge_weight has {weights.shape[1]} columns, expected one")
    return GraphRecord(
        size=nodes,
        edges=ends.astype(np.int64),
        node_features=field("x", nodes, "node"),
        edge_features=field("edge_attr", ends.shape[1], "edge"),
        weights=None if weights is None else weights[:, 0],
        positions=positions if positions is not None and positions.shape[1] == 3 else None,
    )


def _targets(
    ys: Sequence[Array | None], records: Sequence[GraphRecord], level: Level | None
) -> tuple[Level, NDArray[np.float64]]:
    """What targets belong to, and `[rows, T]` of them, NaN for every row of a graph without `y`.

    They belong to graphs if each y is one row; to nodes or edges if it has as many rows.
    """
    rows_of: dict[Level, list[int]] = {
        "graph": [1] * len(records),
        "node": [record.size for record in records],
        "edge": [record.edges.shape[1] for record in records],
    }
    fitting = (
        of
        for of, rows in rows_of.items()
        if all(y is None or len(np.atleast_1d(y)) == n for y, n in zip(ys, rows, strict=True))
    )
    chosen: Level = next(fitting, "graph") if level is None else level
    blocks: list[Array] = []
    widths = set[int]()
    for index, (y, rows) in enumerate(zip(ys, rows_of[chosen], strict=True)):
        if y is not None and y.size % max(rows, 1):
            raise DataError(
                f"graph {index}: y has shape {list(y.shape)}, expected {rows} rows as the targets "
                f"belong to {chosen}s"
            )
        if y is not None and rows:
            blocks.append(y.reshape(rows, -1))
            widths.add(blocks[-1].shape[1])
        else:
            blocks.append(np.full((rows, 1), np.nan))
    if len(widths) > 1:
        raise DataError(
            f"y has {' and '.join(map(str, sorted(widths)))} columns in different graphs; "
            "expected one number of targets everywhere, NaN where one is missing"
        )
    width = widths.pop() if widths else 0
    wide = [np.broadcast_to(block[:, :width], (len(block), width)) for block in blocks]
    return chosen, np.concatenate(wide).astype(np.float64)


def read_networkx(graphs: Sequence[Any], options: Options) -> GraphSet:
    """Read a list of networkx graphs or digraphs; rows follow each graph's own node order."""
    on_nodes, on_edges = (
        {key for graph in graphs for *_, held in getattr(graph, view)(data=True) for key in held}
        for view in ("nodes", "edges")
    )
    on_graphs = {key for graph in graphs for key in graph.graph} - _OF_GRAPHML
    level: Level = options.level or "graph"
    if options.level is None and "y" not in on_graphs:
        level = "node" if "y" in on_nodes else "edge" if "y" in on_edges else "graph"
    data = [_as_pyg(graph, f"graph {number}", level) for number, graph in enumerate(graphs)]
    unused = set[str]()
    for of, held, used in (
        ("graph", on_graphs, {"id", "name"}),
        ("node", on_nodes, {"x"}),
        ("edge", on_edges, {"e", "weight"}),
    ):
        unused |= {str(key) for key in held - used if key != "y" or of != level}
    read = read_pyg(data, replace(options, level=level), unused)
    return replace(read, source={"format": "networkx", **source_of_names([*map(list, graphs)])})


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


def _numbers(values: Any, what: str) -> Array | None:
    """A tensor, array, list or number as an array of real numbers; None as it is."""
    if values is None:
        return None
    try:
        array = np.asarray(to_numpy(values))
    except ValueError as error:
        raise DataError(f"{what} has different lengths; expected one length") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} holds {array.dtype}, expected numbers")
    return array
