"""Names of graphs a reader knows: C6, 2·C3, K1,4, C4+K1, the Petersen graph; else graph6."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import networkx as nx
import numpy as np

from ..errors import DataError
from .conversion import Adjacency, GraphLike, adjacency, is_simple, to_graph6
from .families import (
    CSL_NODES,
    CSL_SKIPS,
    bicyclopentyl,
    cfi,
    circular_skip_link,
    decalin,
    rook_graph,
    shrikhande_graph,
)
from .text import read_only

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


LARGEST_NAMED = 2000
"""Nodes up to which a graph is made of its name."""

_COMPLEMENT = "complementof"
_SIZE = "[1-9][0-9]{0,6}"
_COUNTED = re.compile(rf"({_SIZE})[·*x]?([^0-9].*)")
_NUMBERED = re.compile(
    rf"([kcp])({_SIZE})|k({_SIZE}(?:,{_SIZE})+)|spider\(({_SIZE}(?:,{_SIZE})+)\)|wheeloverc({_SIZE})"
)


def graph_of_name(text: str) -> Adjacency | None:
    """The graph of a name as `graph_name` gives it; None where the text is no name.

    Case and spaces do not matter, nor does the word `graph`; `2C3`, `2*C3` and `2·C3` are one.

    >>> matrix = graph_of_name("2·C3")
    >>> graph_name(matrix), len(matrix)
    ('2·C3', 6)

    Raises:
        DataError: The graph has more than 2,000 nodes.
    """
    body = _plain(text)
    turned = body.startswith(_COMPLEMENT)
    parts: list[tuple[int, Callable[[], GraphLike], int]] = []
    for part in body.removeprefix(_COMPLEMENT).split("+"):
        counted = _COUNTED.fullmatch(part)
        count, name = (int(counted[1]), counted[2]) if counted else (1, part)
        found = _of_single(name)
        if found is None:
            return None
        parts.append((count, *found))
    nodes = sum(count * size for count, _, size in parts)
    if nodes > LARGEST_NAMED:
        raise DataError(
            f"{text!r} has {nodes:,} nodes; a graph is made of its name up to {LARGEST_NAMED:,}"
        )
    matrix, at = np.zeros((nodes, nodes)), 0
    for count, make, size in parts:
        one = adjacency(make())
        for _ in range(count):
            matrix[at : at + size, at : at + size] = one
            at += size
    return read_only(1 - np.eye(nodes) - matrix if turned else matrix)


def named_graph(text: str) -> Adjacency:
    """The graph of a name.

    Raises:
        DataError: No graph is called so, or it is too large; the message lists the names.
    """
    found = graph_of_name(text)
    if found is None:
        raise DataError(
            f"no graph is called {text!r} here; known: C6, P4, K5, K1,4, spider(1,2,2), "
            f"wheel over C5, {', '.join(_SINGLE)}; sums such as C4+K1 and 2·C3; complement of any"
        )
    return found


def _of_single(name: str) -> tuple[Callable[[], GraphLike], int] | None:
    """How to make the connected graph of a plain name, and its number of nodes."""
    known = _plain_names().get(name.removesuffix("graph"))
    if known is not None:
        return _SINGLE[known], len(_known()[known][0])
    m = _NUMBERED.fullmatch(name)
    if m is None:
        return None
    if m[1]:
        size = int(m[2])
        make_one = {"k": nx.complete_graph, "c": nx.cycle_graph, "p": nx.path_graph}[m[1]]
        return None if m[1] == "c" and size < 3 else (lambda: make_one(size), size)
    if m[5]:
        rim = int(m[5])
        return (lambda: nx.wheel_graph(rim + 1), rim + 1) if rim >= 3 else None
    sizes = [int(entry) for entry in (m[3] or m[4]).split(",")]
    if m[3]:
        return lambda: nx.complete_multipartite_graph(*sizes), sum(sizes)
    return lambda: _spider_of(sizes), 1 + sum(sizes)


def _spider_of(legs: list[int]) -> nx.Graph:
    """Paths of these lengths that start in one node."""
    graph = nx.empty_graph(1)
    for leg in legs:
        first = len(graph)
        nx.add_path(graph, [0, *range(first, first + leg)])
    return graph


@cache
def _plain_names() -> dict[str, str]:
    return {_plain(name).removesuffix("graph"): name for name in _SINGLE}


def _plain(name: str) -> str:
    """A name without case and spaces, its signs in ASCII but for `·`."""
    return re.sub(r"\s", "", name.lower()).replace("−", "-").replace("×", "x")
