"""networkx graphs: node attribute `x`, edge attributes `weight` and `e`, targets `y`.

`y` of the graph (`graph.graph["y"]`), of every node, or of every edge is the target, whichever is
there. The id is `graph.graph["id"]` or the graph's name. An undirected edge is entered both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import refuse_multigraph
from ..graph_set import GraphSet, Level
from .options import Options
from .pyg import read_pyg

_USED = frozenset({"x", "y", "e", "weight"})


def read_networkx(items: Iterable[Any], options: Options) -> GraphSet:
    """Read a list of networkx graphs or digraphs; rows follow each graph's own node order.

    Raises:
        DataError: Naming the graph, and the node or edge at fault.
    """
    graphs = list(items)
    level = options.level or _level(graphs)
    read = read_pyg(
        [_converted(graph, f"graph {number}", level) for number, graph in enumerate(graphs)],
        replace(options, level=level),
    )
    unused = sorted(
        {
            str(key)
            for graph in graphs
            for view in (graph.nodes(data=True), graph.edges(data=True))
            for *_, attributes in view
            for key in attributes
            if key not in _USED
        }
    )
    notes = [f"Attributes not used: {', '.join(unused[:12])}."] if unused else []
    return replace(read, notes=(*read.notes, *notes), source={"format": "networkx"})


def _level(graphs: list[Any]) -> Level:
    if any("y" in graph.graph for graph in graphs):
        return "graph"
    if any("y" in attributes for graph in graphs for _, attributes in graph.nodes(data=True)):
        return "node"
    if any("y" in attributes for graph in graphs for *_, attributes in graph.edges(data=True)):
        return "edge"
    return "graph"


def _converted(graph: Any, where: str, level: Level) -> SimpleNamespace:
    """The graph in the form of PyG, so that both have one reader."""
    refuse_multigraph(graph, where)
    if not graph.number_of_nodes():
        raise DataError(f"{where} has no nodes; drop it")
    nodes = {f"node {node!r}": attributes for node, attributes in graph.nodes(data=True)}
    place = {node: number for number, node in enumerate(graph)}
    ends: list[tuple[int, int]] = []
    edges: list[Mapping[str, Any]] = []
    names: list[str] = []
    for u, v, attributes in graph.edges(data=True):
        both = [(u, v)] if graph.is_directed() or u == v else [(u, v), (v, u)]
        ends += [(place[a], place[b]) for a, b in both]
        edges += [attributes] * len(both)
        names += [f"edge {u!r} {v!r}"] * len(both)
    y = {
        "graph": lambda: _row(graph.graph.get("y"), f"{where}: y"),
        "node": lambda: _block(nodes.values(), nodes, "y", where),
        "edge": lambda: _block(edges, names, "y", where),
    }[level]()
    weights = [attributes.get("weight", 1.0) for attributes in edges]
    return SimpleNamespace(
        num_nodes=len(place),
        edge_index=np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        x=_block(nodes.values(), nodes, "x", where),
        edge_attr=_block(edges, names, "e", where),
        edge_weight=None if all(w == 1 for w in weights) else _numbers(weights, f"{where}: weight"),
        y=y,
        id=graph.graph.get("id") or graph.name or None,
    )


def _block(
    attributes: Iterable[Mapping[str, Any]], names: Iterable[str], key: str, where: str
) -> NDArray[Any] | None:
    """One attribute of every node or edge as `[rows, width]`; None where none has it."""
    every = list(zip(names, attributes, strict=True))
    if not any(key in found for _, found in every):
        return None
    if lacking := [name for name, found in every if key not in found]:
        raise DataError(
            f"{where}: {lacking[0]} has no attribute {key!r} and others have; give it to all"
        )
    return _numbers([np.ravel(found[key]) for _, found in every], f"{where}: {key}")


def _row(value: Any, what: str) -> NDArray[Any] | None:
    return None if value is None else _numbers([np.ravel(value)], what)


def _numbers(values: list[Any], what: str) -> NDArray[Any]:
    try:
        array = np.array(values)
    except ValueError as error:
        raise DataError(f"{what} has different lengths; expected one length") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} holds {array.dtype}, expected numbers")
    return array
