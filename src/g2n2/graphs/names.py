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

_TRIANGLE = [(0, 1), (1, 2), (2, 0)]
_SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]

_ALSO_READ: dict[str, Callable[[], nx.Graph]] = {
    "triangle": lambda: nx.cycle_graph(3),
    "square": lambda: nx.cycle_graph(4),
    "pentagon": lambda: nx.cycle_graph(5),
    "diamond": lambda: _DIAMOND,
    "claw": lambda: nx.star_graph(3),
    "fork": lambda: _spider_of([1, 1, 2]),
    "chair": lambda: _spider_of([1, 1, 2]),
    "cross": lambda: _spider_of([1, 1, 1, 2]),
    "gem": lambda: nx.Graph([(0, 1), (1, 2), (2, 3), *((4, node) for node in range(4))]),
    "dart": lambda: nx.Graph([*_DIAMOND.edges, (0, 4)]),
    "kite": lambda: nx.Graph([*_DIAMOND.edges, (2, 4)]),
    "cricket": lambda: nx.Graph([*_TRIANGLE, (0, 3), (0, 4)]),
    "banner": lambda: nx.Graph([*_SQUARE, (0, 4)]),
    "bowtie": lambda: nx.windmill_graph(2, 3),
    "hourglass": lambda: nx.windmill_graph(2, 3),
    "house x": nx.house_x_graph,
    "net": lambda: nx.Graph([*_TRIANGLE, (0, 3), (1, 4), (2, 5)]),
    "domino": lambda: nx.ladder_graph(3),
    "tetrahedron": lambda: nx.complete_graph(4),
    "octahedron": nx.octahedral_graph,
    "icosahedron": nx.icosahedral_graph,
    "dodecahedron": nx.dodecahedral_graph,
    "Krackhardt kite": nx.krackhardt_kite_graph,
}
"""Further names that are read, as in graphclasses.org and networkx; other ones are printed.

None may be graph6 in any case: Hexagon and Heawood are graphs of nine vertices.
"""


def graph_text(graph: GraphLike) -> str:
    """A graph's name, its graph6 where it has none, and its arcs where that cannot hold it.

    An arc whose weight is not 1 has it behind a colon: `0→1:2.5`.
    """
    matrix = adjacency(graph)
    if not is_simple(matrix):
        weights = [(i, j, float(matrix[i, j])) for i, j in np.argwhere(matrix).tolist()]
        return "arcs " + " ".join(
            f"{i}→{j}" + (f":{weight:g}" if weight != 1 else "") for i, j, weight in weights
        )
    return graph_name(matrix) or to_graph6(matrix)


def graph_name(graph: GraphLike) -> str | None:
    """The name of a simple graph up to isomorphism; None where it has none here.

    >>> graph_name("EhEG"), graph_name("EJaG")
    ('C6', '2·C3')
    """
    matrix = adjacency(graph)
    if not is_simple(matrix):
        return None
    return _name_of(matrix.astype(np.uint8).tobytes(), len(matrix))


@cache
def _name_of(content: bytes, nodes: int) -> str | None:
    graph = nx.from_numpy_array(np.frombuffer(content, dtype=np.uint8).reshape(nodes, nodes))
    if (name := _by_components(graph)) is not None or nodes > LARGEST_SEARCHED:
        return name
    complement = _by_components(nx.complement(graph))
    return None if complement is None else f"complement of {complement}"


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
    # A graph is complete multipartite if its complement consists of complete graphs.
    other = nx.complement(graph)
    parts = [other.subgraph(part) for part in nx.connected_components(other)]
    if all(2 * part.number_of_edges() == len(part) * (len(part) - 1) for part in parts):
        return "K" + ",".join(map(str, sorted(map(len, parts))))
    if edges == nodes - 1 and degrees[-2] <= 2:  # a tree with one branching node
        centre = max(graph.degree, key=lambda pair: pair[1])[0]
        legs = nx.connected_components(graph.subgraph(set(graph) - {centre}))
        return f"spider({','.join(map(str, sorted(map(len, legs))))})"
    for name, (single, its_degrees) in _known().items():
        if its_degrees == degrees:
            if nodes > LARGEST_SEARCHED:
                if nx.utils.graphs_equal(single, nx.convert_node_labels_to_integers(graph)):
                    return name
            elif nx.is_isomorphic(single, graph):
                return name
    if degrees[-1] == nodes - 1 and edges == 2 * (nodes - 1) and degrees[0] == 3:
        rim = graph.subgraph([node for node, degree in graph.degree if degree != nodes - 1])
        if len(rim) == nodes - 1 and nx.is_connected(rim):
            return f"wheel over C{nodes - 1}"
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
    rf"|k({_SIZE})(?:-e|minusanedge)"
)


def graph_of_name(text: str) -> Adjacency | None:
    """The graph of a name as `graph_name` gives it; None where the text is no name.

    Case and spaces do not matter, nor does the word `graph`; `2C3`, `2*C3` and `2·C3` are one.

    >>> matrix = graph_of_name("2·C3")
    >>> graph_name(matrix), len(matrix)
    ('2·C3', 6)
    """
    body = _plain(text)
    complement = body.startswith(_COMPLEMENT)
    parts: list[tuple[int, Callable[[], GraphLike], int]] = []
    for part in body.removeprefix(_COMPLEMENT).split("+"):
        counted = _COUNTED.fullmatch(part)
        count, name = (int(counted[1]), counted[2]) if counted else (1, part)
        single = _of_single(name)
        if single is None:
            return None
        parts.append((count, *single))
    nodes = sum(count * size for count, _, size in parts)
    if nodes > LARGEST_NAMED:
        raise DataError(
            f"{text!r} has {nodes:,} nodes; a graph is made of its name up to {LARGEST_NAMED:,}"
        )
    matrix, at = np.zeros((nodes, nodes)), 0
    for count, make, size in parts:
        block = adjacency(make())
        for _ in range(count):
            matrix[at : at + size, at : at + size] = block
            at += size
    return read_only(1 - np.eye(nodes) - matrix if complement else matrix)


KNOWN_NAMES = ", ".join(
    ["C6, P4, K5, K5−e, K1,4, spider(1,2,2), wheel over C5", *_ALSO_READ, *_SINGLE]
)
"""Every name of a connected graph that is read, for messages."""


def named_graph(text: str) -> Adjacency:
    """The graph of a name; where there is none, the error lists the names."""
    matrix = graph_of_name(text)
    if matrix is None:
        raise DataError(
            f"no graph is called {text!r} here; known: {KNOWN_NAMES}; sums such as C4+K1 and "
            "2·C3; complement of any"
        )
    return matrix


def _of_single(name: str) -> tuple[Callable[[], GraphLike], int] | None:
    """How to make the connected graph of a plain name, and its number of nodes."""
    canonical = _plain_names().get(name.removesuffix("graph"))
    if canonical is not None:
        make = (_SINGLE | _ALSO_READ)[canonical]
        return make, len(adjacency(make()))
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
    if m[6]:
        order = int(m[6])
        return (lambda: _without_an_edge(order), order) if order >= 2 else None
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


def _without_an_edge(order: int) -> nx.Graph:
    graph: nx.Graph = nx.complete_graph(order)
    graph.remove_edge(0, 1)
    return graph


@cache
def _plain_names() -> dict[str, str]:
    return {_plain(name).removesuffix("graph"): name for name in (*_ALSO_READ, *_SINGLE)}


def _plain(name: str) -> str:
    """A name without case and spaces, its signs in ASCII but for `·`."""
    return re.sub(r"\s", "", name.lower()).replace("−", "-").replace("×", "x")
