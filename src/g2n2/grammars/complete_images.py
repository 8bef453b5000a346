"""Complete graphs among the homomorphic images of a pattern that is too large to list them."""

from __future__ import annotations

import networkx as nx

MOST_COLOURED, MOST_STEPS = 16, 50_000
"""Vertices of a pattern that is coloured, and steps of the search."""


def has_complete_image(pattern: nx.Graph, size: int) -> bool:
    """Whether an image was found with the treewidth of K_size at least; without one all is open.

    It is K_size itself, or has it as a minor: where the pattern with an edge contracted has such an
    image, the pattern has one with that edge still in it.
    """
    graph = nx.convert_node_labels_to_integers(pattern)
    while graph.number_of_edges() >= size * (size - 1) // 2:
        if len(graph) <= MOST_COLOURED and _maps_onto_complete(graph, size):
            return True
        v = min((v for v in graph if graph.degree(v)), key=graph.degree)
        near = min(graph[v], key=graph.degree)
        graph = nx.contracted_nodes(graph, near, v, self_loops=False)
    return False


def _maps_onto_complete(graph: nx.Graph, size: int) -> bool:
    """Whether some colours of the vertices, unequal along edges, meet in all pairs along edges."""
    order = [v for part in nx.connected_components(graph) for v in nx.bfs_tree(graph, min(part))]
    earlier = [[u for u in order[:i] if graph.has_edge(u, v)] for i, v in enumerate(order)]
    edges_left = [sum(map(len, earlier[i:])) for i in range(len(order) + 1)]
    pairs, colours = size * (size - 1) // 2, dict.fromkeys(order, 0)
    steps = 0

    def grown(i: int, used: int, met: frozenset[frozenset[int]]) -> bool:
        nonlocal steps
        steps += 1
        if len(met) == pairs:
            return True  # what is left may stay as it is
        if len(met) + edges_left[i] < pairs or steps > MOST_STEPS:
            return False
        near = {colours[u] for u in earlier[i]}
        for colour in range(min(used + 1, size)):
            if colour in near:
                continue
            colours[order[i]] = colour
            more = met | {frozenset((colour, other)) for other in near}
            if grown(i + 1, max(used, colour + 1), more):
                return True
        return False

    return grown(0, 0, frozenset())
