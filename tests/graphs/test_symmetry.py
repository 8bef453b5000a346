"""Orbits and isomorphism, held against networkx, and against nauty where it is installed."""

from __future__ import annotations

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from networkx.algorithms.isomorphism import DiGraphMatcher

from g2n2 import separate
from g2n2.graphs import adjacency, are_isomorphic
from g2n2.graphs.symmetry import orbits

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


def test_one_refinement_colour_may_hold_two_orbits() -> None:
    """Six vertices of a hexagon and of two triangles have one colour, and two orbits."""
    graph = nx.disjoint_union_all([nx.cycle_graph(6), nx.cycle_graph(3), nx.cycle_graph(3)])
    assert orbits(nx.to_numpy_array(graph)).tolist() == [0] * 6 + [6] * 6


def test_a_search_that_takes_too_long_leaves_vertices_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("g2n2.graphs.symmetry.MOST_REFINEMENTS", 1)
    found = orbits(nx.to_numpy_array(nx.hypercube_graph(4)))
    assert len(set(found.tolist())) > 1


HARD = [
    ("C6", "2·C3"),
    ("rook 4×4", "Shrikhande graph"),
    ("CFI(K4)", "twisted CFI(K4)"),
    ("CSL(41, 2)", "CSL(41, 3)"),
]


def relabelled(
    matrix: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    order = rng.permutation(len(matrix))
    return matrix[np.ix_(order, order)]


@pytest.mark.parametrize("names", HARD, ids=" / ".join)
def test_hard_graphs_are_themselves_and_not_each_other(names: tuple[str, str]) -> None:
    rng = np.random.default_rng(0)
    first, second = map(adjacency, names)
    assert are_isomorphic(first, second) is False
    assert are_isomorphic(first, relabelled(first, rng)) is True
    assert are_isomorphic(second, relabelled(second, rng)) is True


def test_directed_graphs_with_loops_and_weights_agree_with_networkx() -> None:
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(150):
        nodes = rng.integers(1, 7)
        first = rng.integers(0, 3, (nodes, nodes)).astype(float)
        second = relabelled(first, rng)
        if rng.random() < 0.5:
            entry = tuple(rng.integers(0, nodes, 2))
            second[entry] = (second[entry] + 1) % 3
        graphs = (nx.from_numpy_array(m, create_using=nx.DiGraph) for m in (first, second))
        truth = nx.is_isomorphic(*graphs, edge_match=lambda a, b: a["weight"] == b["weight"])
        assert are_isomorphic(first, second) is truth
        seen.add(truth)
    assert seen == {True, False}


def test_what_is_not_decided_is_not_claimed() -> None:
    path = nx.to_numpy_array(nx.path_graph(501))
    assert are_isomorphic(path, path[::-1, ::-1]) is True  # the same matrix
    assert are_isomorphic(path, relabelled(path, np.random.default_rng(0))) is None


@pytest.mark.parametrize("grammar", ["r-G_L3", "r-G_L1", "3-WL"])
@pytest.mark.parametrize("engine", ["closure", "mixing"])
def test_separate_says_that_graphs_are_isomorphic(grammar: str, engine: str) -> None:
    """`mixing` is the name that random_probes had before."""
    same = separate(grammar, "C6", "EhEG", engine=engine)
    assert (same.verdict, "isomorphic" in same.note) == ("same", True)
    merged = separate("r-G_L3", "rook 4×4", "Shrikhande graph", engine=engine)
    assert (merged.verdict, "isomorphic" in merged.note) == ("same", False)
