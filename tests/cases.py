"""One table of terms, graphs and exact values, run at every depth (interpreter, op, layer, kernel).

No value comes from the code under test: each is counted by networkx on the graph itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx
import numpy as np
import numpy.typing as npt

from g2n2.grammars.catalogue import catalogue

UNMARKED = {name: grammar for name, grammar in catalogue().items() if not grammar.scope}
"""The grammars without marks, whose networks have outputs for graphs, nodes and edges."""

GRAPHS: dict[str, nx.Graph] = {
    "K1": nx.complete_graph(1),
    "3·K1": nx.empty_graph(3),
    "P5": nx.path_graph(5),
    "K4": nx.complete_graph(4),
    "K1,4": nx.star_graph(4),
    "C4 + K1": nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1)),
    "C6": nx.cycle_graph(6),
    "2·C3": nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)),
    "bull": nx.bull_graph(),
    "lollipop": nx.lollipop_graph(4, 3),
    "Petersen": nx.petersen_graph(),
    "decalin": nx.Graph([*nx.cycle_graph(10).edges, (0, 5)]),
    "bicyclopentyl": nx.Graph(
        [*nx.cycle_graph(5).edges, *((a + 5, b + 5) for a, b in nx.cycle_graph(5).edges), (0, 5)]
    ),
    "rook 4×4": nx.convert_node_labels_to_integers(
        nx.line_graph(nx.complete_bipartite_graph(4, 4))
    ),
    "Shrikhande": nx.convert_node_labels_to_integers(
        nx.Graph(
            ((i, j), ((i + a) % 4, (j + b) % 4))
            for i in range(4)
            for j in range(4)
            for a, b in ((0, 1), (1, 0), (1, 1))
        )
    ),
    "random 9": nx.gnp_random_graph(9, 0.5, seed=7),
}


def edges(graph: nx.Graph) -> int:
    return int(graph.number_of_edges())


def degree_sum(power: int) -> Callable[[nx.Graph], int]:
    return lambda graph: sum(d**power for _, d in graph.degree)


def triangles(graph: nx.Graph) -> int:
    return sum(nx.triangles(graph).values()) // 3


def cycles(graph: nx.Graph, length: int) -> int:
    return sum(len(c) == length for c in nx.simple_cycles(graph, length_bound=length))


def common(graph: nx.Graph, u: int, v: int) -> int:
    return len(set(graph[u]) & set(graph[v]))


def over_edges(weight: Callable[[nx.Graph, int, int], int]) -> Callable[[nx.Graph], int]:
    """A sum over edges, each in both directions."""
    return lambda graph: sum(weight(graph, u, v) + weight(graph, v, u) for u, v in graph.edges)


def closed_walks_4(graph: nx.Graph) -> int:
    """Back and forth on an edge, on a path of two edges, or around a 4-cycle."""
    two_paths = sum(d * (d - 1) // 2 for _, d in graph.degree)
    return 2 * edges(graph) + 4 * two_paths + 8 * cycles(graph, 4)


def closed_walks_5(graph: nx.Graph) -> int:
    """Around a triangle with one edge walked back, in the triangle or beside it, or a 5-cycle."""
    at = nx.triangles(graph)
    pendant = sum(at[v] * (graph.degree[v] - 2) for v in graph)
    return 30 * triangles(graph) + 10 * pendant + 10 * cycles(graph, 5)


SENTENCES: dict[str, Callable[[nx.Graph], int]] = {
    "1ᵀ1": nx.number_of_nodes,
    "1ᵀA1": lambda g: 2 * edges(g),
    "1ᵀ(A⊙A)1": lambda g: 2 * edges(g),
    "1ᵀA²1": degree_sum(2),
    "1ᵀA³1": over_edges(lambda g, u, v: g.degree[u] * g.degree[v]),
    "(A1)ᵀA(A1)": over_edges(lambda g, u, v: g.degree[u] * g.degree[v]),
    "1ᵀdiag(A1)diag(A1)A1": degree_sum(3),
    "1ᵀ(A²⊙A)1": lambda g: 6 * triangles(g),
    "Tr(A²)": lambda g: 2 * edges(g),
    "1ᵀ(A²⊙diag(1))1": lambda g: 2 * edges(g),
    "Tr(A³)": lambda g: 6 * triangles(g),
    "Tr(A⁴)": closed_walks_4,
    "1ᵀ(A²⊙A²)1": closed_walks_4,
    "Tr(A⁵)": closed_walks_5,
    "1ᵀ(A³⊙A²)1": closed_walks_5,
    "1ᵀ(A²⊙A²⊙A)1": over_edges(lambda g, u, v: common(g, u, v) ** 2),
    "1ᵀ(A²⊙A)diag(A1)1": over_edges(lambda g, u, v: common(g, u, v) * g.degree[v]),
    "1ᵀ(A²⊙J)1": lambda g: degree_sum(2)(g) - 2 * edges(g),
    "1ᵀ(A − A²⊙A)1": lambda g: 2 * edges(g) - 6 * triangles(g),
    "0.5×(1ᵀA1) + 1ᵀ1": lambda g: edges(g) + g.number_of_nodes(),
}
"""Sentences and what each counts."""

VECTORS: dict[str, Callable[[nx.Graph], list[int]]] = {
    "A1": lambda g: [d for _, d in g.degree],
    "(A1)⊙(A1)": lambda g: [d * d for _, d in g.degree],
    "A²1": lambda g: [sum(g.degree[u] for u in g[v]) for v in g],
    "(A²⊙A)1": lambda g: [2 * t for t in nx.triangles(g).values()],
}

MATRICES: dict[str, Callable[[nx.Graph], list[list[int]]]] = {
    "A²": lambda g: [[common(g, u, v) for v in g] for u in g],
    "diag(A1)": lambda g: [[g.degree[u] * (u == v) for v in g] for u in g],
    "A²⊙A": lambda g: [[common(g, u, v) * g.has_edge(u, v) for v in g] for u in g],
    "A1·1ᵀ": lambda g: [[g.degree[u] for _ in g] for u in g],
}


@dataclass(frozen=True)
class Case:
    """What a term is worth on a named graph, with the shape its sort says."""

    term: str
    graph: str
    value: npt.NDArray[np.int64]

    def __str__(self) -> str:
        return f"{self.term} on {self.graph}"


CASES: list[Case] = [
    *(
        Case(term, name, np.array([[count(graph)]]))
        for term, count in SENTENCES.items()
        for name, graph in GRAPHS.items()
    ),
    *(
        Case(term, name, np.array(count(graph)).reshape(-1, 1))
        for term, count in VECTORS.items()
        for name, graph in GRAPHS.items()
    ),
    *(
        Case(term, name, np.array(count(graph)))
        for term, count in MATRICES.items()
        for name, graph in GRAPHS.items()
    ),
]
