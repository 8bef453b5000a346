"""Hard graphs made by rule: circulants, CFI pairs, strongly regular graphs, two molecules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations

import networkx as nx
import numpy as np

from ..errors import DataError
from .conversion import Adjacency, GraphLike, adjacency, is_simple

CSL_NODES = 41
CSL_SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
LARGEST_CFI = 4096

GadgetNode = tuple[int, frozenset[tuple[int, int]]]


def circular_skip_link(nodes: int, skip: int) -> Adjacency:
    """Return the circulant with edges `(i, i + 1)` and `(i, i + skip)` modulo `nodes`."""
    if nodes < 4 or not 2 <= skip <= nodes - 2:
        raise DataError(
            f"no circular skip link graph with {nodes} nodes and skip {skip}: "
            "expected 2 <= skip <= nodes - 2"
        )
    return adjacency(nx.circulant_graph(nodes, [1, skip]))


def cfi(base: GraphLike) -> tuple[Adjacency, Adjacency]:
    """Build the Cai-Fuerer-Immerman pair over a base graph, untwisted and twisted.

    A base node becomes the gadget of all even subsets of its edges; members of neighbouring
    gadgets are joined when they agree on the common edge. In the twisted graph one gadget holds
    the odd subsets instead; which one makes no difference, as the base is connected. The pair is
    never isomorphic, and k-FWL tells it apart iff k is at least the treewidth of the base.

    Args:
        base: A connected simple graph with at least one edge.
    """
    matrix = adjacency(base)
    if not is_simple(matrix):
        raise DataError("a CFI base is a simple undirected graph, got loops, directions or weights")
    graph = nx.from_numpy_array(matrix)
    if len(graph) == 1 or not nx.is_connected(graph):
        raise DataError(
            f"a CFI base is connected and has an edge, got {len(graph)} node(s) in "
            f"{nx.number_connected_components(graph)} component(s): twist one component at a time"
        )
    size = sum(2 ** (degree - 1) for _, degree in graph.degree)
    if size > LARGEST_CFI:
        raise DataError(
            f"CFI over this base has {size:,} nodes (half of 2 ** degree per base node), the limit "
            f"is {LARGEST_CFI:,}: take a base of smaller degree"
        )
    return _cfi_graph(graph, odd_nodes=()), _cfi_graph(graph, odd_nodes=(0,))


def rook_graph(side: int) -> Adjacency:
    """Return the rook's graph: squares of a board, joined in the same row or column."""
    if side < 1:
        raise DataError(f"a rook's graph needs a board of side 1 or more, got {side}")
    rows, columns = np.divmod(np.arange(side * side), side)
    same_row, same_column = rows[:, None] == rows, columns[:, None] == columns
    return adjacency(same_row != same_column)


def shrikhande_graph() -> Adjacency:
    """Return the Shrikhande graph, SR(16, 6, 2, 2) like the rook's graph of side 4."""
    row, column = np.divmod(np.arange(16), 4)
    steps = np.stack([row[:, None] - row, column[:, None] - column], axis=-1) % 4
    joined = np.zeros((16, 16))
    for step in ((0, 1), (1, 0), (1, 1)):
        joined += (steps == step).all(axis=-1) | (-steps % 4 == step).all(axis=-1)
    return adjacency(joined)


def decalin() -> Adjacency:
    """Return the carbon skeleton of decalin: two six-rings that share an edge."""
    return adjacency(nx.Graph([*nx.cycle_graph(10).edges, (0, 5)]))


def bicyclopentyl() -> Adjacency:
    """Return the carbon skeleton of bicyclopentyl: two five-rings joined by an edge.

    1-WL merges it with decalin.
    """
    rings = nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(5))
    return adjacency(nx.Graph([*rings.edges, (0, 5)]))


def _cfi_graph(base: nx.Graph, odd_nodes: Sequence[int]) -> Adjacency:
    """Glue the gadgets, with odd subsets at the given base nodes."""
    members: list[GadgetNode] = []
    for node in base:
        edges = [(min(node, other), max(node, other)) for other in base[node]]
        sizes = range(1 if node in odd_nodes else 0, len(edges) + 1, 2)
        subsets = chain.from_iterable(combinations(edges, size) for size in sizes)
        members += [(node, frozenset(subset)) for subset in subsets]
    matrix = np.zeros((len(members), len(members)))
    for (i, (u, chosen)), (j, (v, other)) in combinations(enumerate(members), 2):
        edge = (min(u, v), max(u, v))
        if base.has_edge(u, v) and (edge in chosen) == (edge in other):
            matrix[i, j] = matrix[j, i] = 1
    return adjacency(matrix)
