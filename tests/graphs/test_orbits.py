"""Orbits against all automorphisms, listed by networkx, and against nauty where it is installed."""

from __future__ import annotations

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from networkx.algorithms.isomorphism import DiGraphMatcher

from g2n2.graphs.orbits import orbits

Ints = npt.NDArray[np.int64]


def listed(pairs: Ints) -> list[int]:
    """Least vertices of the orbits, from every automorphism of a coloured complete digraph."""
    n = len(pairs)
    graph = nx.DiGraph()
    for v in range(n):
        graph.add_node(v, kind=pairs[v, v])
    graph.add_edges_from(
        (u, v, {"kind": pairs[u, v]}) for u in range(n) for v in range(n) if u != v
    )
    matcher = DiGraphMatcher(
        graph,
        graph,
        node_match=lambda a, b: a["kind"] == b["kind"],
        edge_match=lambda a, b: a["kind"] == b["kind"],
    )
    least = list(range(n))
    for image in matcher.isomorphisms_iter():
        for v, moved in image.items():
            least[moved] = min(least[moved], v)
    return least


def test_all_graphs_of_up_to_five_vertices() -> None:
    for graph in nx.graph_atlas_g()[1:53]:
        pairs = nx.to_numpy_array(graph, dtype=np.int64)
        assert orbits(pairs).tolist() == listed(pairs)


@pytest.mark.parametrize("seed", range(20))
def test_features_of_vertices_and_directed_edges_count(seed: int) -> None:
    random = np.random.default_rng(seed)
    half = random.integers(0, 2, (3, 3))
    pairs = np.block([[half, half.T], [half.T, half]])  # a relabelling carries one half over
    if seed % 2:
        pairs[0, 0] += 5
    assert orbits(pairs).tolist() == listed(pairs)


def test_every_channel_of_a_pair_counts() -> None:
    cycle = nx.to_numpy_array(nx.cycle_graph(6))
    marked = np.zeros((6, 6))
    marked[0, 1] = 1
    assert orbits(np.stack([cycle, np.zeros((6, 6))], axis=2)).tolist() == [0] * 6
    assert orbits(np.stack([cycle, marked], axis=2)).tolist() == list(range(6))


def test_graphs_that_refinement_cannot_split() -> None:
    nauty = pytest.importorskip("pynauty", reason="the comparison needs pip install pynauty")
    graphs = [
        nx.random_regular_graph(3, 40, seed=1),
        nx.disjoint_union(nx.cycle_graph(6), nx.disjoint_union(*[nx.cycle_graph(3)] * 2)),
        nx.convert_node_labels_to_integers(nx.hypercube_graph(5)),
        nx.complete_graph(30),
        nx.line_graph(nx.petersen_graph()),
        nx.empty_graph(1),
    ]
    for graph in graphs:
        graph = nx.convert_node_labels_to_integers(graph)
        neighbours = {v: list(graph[v]) for v in graph}
        expected = nauty.autgrp(nauty.Graph(len(graph), adjacency_dict=neighbours))[3]
        found = orbits(nx.to_numpy_array(graph))
        first: dict[int, int] = {}
        assert found.tolist() == [first.setdefault(o, v) for v, o in enumerate(expected)]


def test_one_refinement_colour_may_hold_two_orbits() -> None:
    """Six vertices of a hexagon and of two triangles have one colour, and two orbits."""
    graph = nx.disjoint_union_all([nx.cycle_graph(6), nx.cycle_graph(3), nx.cycle_graph(3)])
    assert orbits(nx.to_numpy_array(graph)).tolist() == [0] * 6 + [6] * 6


def test_a_search_that_takes_too_long_leaves_vertices_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("g2n2.graphs.orbits.MOST_REFINEMENTS", 1)
    found = orbits(nx.to_numpy_array(nx.hypercube_graph(4)))
    assert len(set(found.tolist())) > 1
