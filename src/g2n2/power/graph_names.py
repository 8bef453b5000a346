"""Names of graphs a reader knows: C6, 2·C3, K1,4, C4+K1, the Petersen graph; else graph6."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import networkx as nx
import numpy as np

from ..graphs import Adjacency, GraphLike, adjacency, is_simple, to_graph6
from .graph_sets.families import (
    CSL_NODES,
    CSL_SKIPS,
    bicyclopentyl,
    cfi,
    circular_skip_link,
    decalin,
    rook_graph,
    shrikhande_graph,
)

LARGEST_SEARCHED = 16
"""Nodes up to which a graph is recognised whatever its node order is; larger ones as they are."""

_DIAMOND = nx.Graph([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)])

_SINGLE: dict[str, Callable[[], GraphLike]] = {
    "paw": lambda: nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)]),
    "K4−e": lambda: _DIAMOND,
    "bull": nx.bull_graph,
    "house": nx.house_graph,
    "butterfly": lambda: nx.Graph([(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 0)]),
    "prism": lambda: nx.circular_ladder_graph(3),
    "cube": lambda: nx.cubical_graph(),
    "Petersen graph": nx.petersen_graph,
    "rook 4×4": lambda: rook_graph(4),
    "Shrikhande graph": shrikhande_graph,
    "decalin": decalin,
    "bicyclopentyl": bicyclopentyl,
    "CFI(K4−e)": lambda: cfi(_DIAMOND)[0],
    "twisted CFI(K4−e)": lambda: cfi(_DIAMOND)[1],
    "CFI(K2,3)": lambda: cfi(nx.complete_bipartite_graph(2, 3))[0],
    "twisted CFI(K2,3)": lambda: cfi(nx.complete_bipartite_graph(2, 3))[1],
    "CFI(K4)": lambda: cfi(nx.complete_graph(4))[0],
    "twisted CFI(K4)": lambda: cfi(nx.complete_graph(4))[1],
    **{
        f"CSL({CSL_NODES}, {skip})": lambda skip=skip: circular_skip_link(CSL_NODES, skip)  # type: ignore[misc]
        for skip in CSL_SKIPS
    },
}


def graph_text(graph: GraphLike) -> str:
    """A graph's name, its graph6 where it has none, and its arcs where that cannot hold it."""
    matrix = adjacency(graph)
    if not is_simple(matrix):
        return "arcs " + " ".join(f"{i}→{j}" for i, j in np.argwhere(matrix).tolist())
    return graph_name(matrix) or to_graph6(matrix)


def graph_name(graph: GraphLike) -> str | None:
    """The name of a simple graph up to isomorphism; None where it has none here.

    >>> graph_name("EhEG"), graph_name("EJaG")
    ('C6', '2·C3')
    """
    matrix = adjacency(graph)
    if not is_simple(matrix):
        return None
    return _of_matrix(matrix.astype(np.uint8).tobytes(), len(matrix))


@cache
def _of_matrix(content: bytes, nodes: int) -> str | None:
    matrix = np.frombuffer(content, dtype=np.uint8).reshape(nodes, nodes)
    whole = nx.from_numpy_array(matrix)
    name = _by_components(whole)
    if name is None and nodes <= LARGEST_SEARCHED:
        other = _by_components(nx.complement(whole))
        name = None if other is None else f"complement of {other}"
    return name


def _by_components(graph: nx.Graph) -> str | None:
    """`C4+K1`, `2·C3`: the largest components first."""
    parts = sorted(nx.connected_components(graph), key=len, reverse=True)
    names = [_connected(graph.subgraph(part)) for part in parts]
    if None in names:
        return None
    counts = Counter(name for name in names if name is not None)
    if len(counts) > 1 and any(" " in name for name in counts):
        return None
    return "+".join(f"{n}·{name}" if n > 1 else name for name, n in counts.items())


def _connected(graph: nx.Graph) -> str | None:
    nodes, edges = len(graph), graph.number_of_edges()
    degrees = sorted(degree for _, degree in graph.degree)
    if edges == nodes * (nodes - 1) // 2 and nodes != 3:
        return f"K{nodes}"
    if degrees[-1] == 2:
        return f"C{nodes}" if degrees[0] == 2 else f"P{nodes}"
    if (parts := _multipartite(graph)) is not None:
        return "K" + ",".join(map(str, parts))
    if edges == nodes - 1 and degrees[-2] <= 2:
        return _spider(graph)
    if (single := _single(graph)) is not None:
        return single
    if degrees[-1] == nodes - 1 and edges == 2 * (nodes - 1) and degrees[0] == 3:
        rim = graph.subgraph([node for node, degree in graph.degree if degree != nodes - 1])
        if len(rim) == nodes - 1 and nx.is_connected(rim):
            return f"wheel over C{nodes - 1}"
    return None


def _multipartite(graph: nx.Graph) -> list[int] | None:
    """Sizes of the parts of a complete multipartite graph: its complement is complete graphs."""
    other = nx.complement(graph)
    parts = list(nx.connected_components(other))
    whole = all(
        other.subgraph(part).number_of_edges() == len(part) * (len(part) - 1) // 2 for part in parts
    )
    return sorted(map(len, parts)) if whole else None


def _spider(graph: nx.Graph) -> str:
    """A tree with one branching node, by the lengths of its legs."""
    centre = max(graph.degree, key=lambda pair: pair[1])[0]
    rest = graph.subgraph([node for node in graph if node != centre])
    legs = sorted(map(len, nx.connected_components(rest)))
    return f"spider({','.join(map(str, legs))})"


def _single(graph: nx.Graph) -> str | None:
    for name, (known, degrees) in _known().items():
        if len(known) != len(graph) or degrees != sorted(d for _, d in graph.degree):
            continue
        if len(graph) > LARGEST_SEARCHED:
            if nx.utils.graphs_equal(known, nx.convert_node_labels_to_integers(graph)):
                return name
        elif nx.is_isomorphic(known, graph):
            return name
    return None


@cache
def _known() -> dict[str, tuple[nx.Graph, list[int]]]:
    graphs = {name: nx.from_numpy_array(adjacency(make())) for name, make in _SINGLE.items()}
    return {name: (graph, sorted(d for _, d in graph.degree)) for name, graph in graphs.items()}


def pair_text(first: Adjacency, second: Adjacency) -> str:
    """Both graphs in one phrase."""
    return f"{graph_text(first)} and {graph_text(second)}"
