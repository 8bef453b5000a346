"""Substructure counts are exact, and the counting sets carry them."""

from math import comb, factorial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from networkx.algorithms.isomorphism import GraphMatcher

from benchmark_files import real_file
from g2n2.data.benchmarks import (
    generate_counting,
    load_counting,
    regular_counting_set,
    substructure_counts,
)
from g2n2.errors import DataError

DIAMOND = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
TAILED = nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
PATTERNS = {
    "triangle": nx.cycle_graph(3),
    "tailed_triangle": TAILED,
    "3_star": nx.star_graph(3),
    "4_cycle": nx.cycle_graph(4),
    "5_cycle": nx.cycle_graph(5),
    "6_cycle": nx.cycle_graph(6),
    "chordal_cycle": DIAMOND,
}


def brute_force(graph: nx.Graph, pattern: nx.Graph, induced: bool = False) -> int:
    """Count embeddings one by one, each subgraph once."""
    matcher = GraphMatcher(graph, pattern)
    found = matcher.subgraph_isomorphisms_iter if induced else matcher.subgraph_monomorphisms_iter
    symmetries = sum(1 for _ in GraphMatcher(pattern, pattern).isomorphisms_iter())
    return sum(1 for _ in found()) // symmetries


def test_counts_equal_brute_force() -> None:
    graphs = [nx.gnp_random_graph(7, p, seed=seed) for seed, p in enumerate([0.3, 0.5, 0.6, 0.7])]
    stack = np.stack([nx.to_numpy_array(graph) for graph in graphs])
    counted = substructure_counts(stack)
    assert counted.keys() == PATTERNS.keys()
    for name, pattern in PATTERNS.items():
        expected = [brute_force(graph, pattern) for graph in graphs]
        assert counted[name].tolist() == expected, name
        assert max(expected) > 0


def counts(graph: nx.Graph) -> dict[str, float]:
    stack = nx.to_numpy_array(graph)[None]
    return {name: count.item() for name, count in substructure_counts(stack).items()}


def test_counts_of_known_graphs() -> None:
    assert counts(nx.petersen_graph()) == {
        "triangle": 0, "tailed_triangle": 0, "3_star": 10, "4_cycle": 0, "5_cycle": 12,
        "6_cycle": 10, "chordal_cycle": 0,
    }  # fmt: skip
    complete = counts(nx.complete_graph(9))
    for length in (3, 4, 5, 6):
        name = "triangle" if length == 3 else f"{length}_cycle"
        assert complete[name] == comb(9, length) * factorial(length - 1) // 2
    assert set(counts(nx.empty_graph(3)).values()) == {0}


def test_random_graphs_have_the_published_figures() -> None:
    path = real_file("counting", "random_graphs.npz")
    data = load_counting()
    assert len(data) == 5000
    assert data.sizes.mean() == pytest.approx(18.80, abs=0.005)
    assert data.edge_counts.mean() / 2 == pytest.approx(31.34, abs=0.005)
    assert np.unique(data.sizes, return_counts=True)[1].tolist() == [1228, 1274, 1233, 1265]
    assert [len(data.splits[name]) for name in ("train", "validation", "test")] == [
        1500,
        1000,
        2500,
    ]
    names = [column.name for column in data.columns]
    with np.load(path) as stored:
        for place, name in enumerate(["triangle", "tailed_triangle", "3_star", "4_cycle"]):
            assert np.abs(data.targets[:, names.index(name)] - stored["y"][:, place]).max() < 1e-6
    means = data.targets.mean(0)
    assert means[:4] == pytest.approx([5.042, 35.594, 61.905, 10.600], abs=0.0006)
    assert (data.targets == np.round(data.targets)).all()


def test_generated_graphs_follow_the_recipe() -> None:
    data = generate_counting(200, seed=1)
    shapes = {
        (n, m // 2) for n, m in zip(data.sizes.tolist(), data.edge_counts.tolist(), strict=True)
    }
    assert shapes == {(10, 20), (15, 30), (20, 30), (30, 45)}
    assert not data.directed
    assert [len(data.splits[name]) for name in ("train", "validation", "test")] == [60, 40, 100]
    assert (generate_counting(200, seed=1).edges == data.edges).all()
    other = generate_counting(200, seed=2)
    assert other.edges.shape != data.edges.shape or (other.edges != data.edges).any()


def test_regular_graphs_differ_only_beyond_1_wl() -> None:
    data = regular_counting_set(100, nodes=14, degree=3, seed=3)
    assert (len(data), set(data.sizes.tolist()), set(data.edge_counts.tolist())) == (
        100,
        {14},
        {42},
    )
    assert [column.name for column in data.columns] == ["triangle", "4_cycle"]
    for index in range(100):
        matrix = data.adjacency(index)
        assert (matrix.sum(1) == 3).all()
        assert (matrix.diagonal() == 0).all()
        triangles = sum(nx.triangles(nx.from_numpy_array(matrix)).values()) // 3
        assert triangles == data.targets[index, 0]
    assert data.targets[5, 1] == brute_force(
        nx.from_numpy_array(data.adjacency(5)), nx.cycle_graph(4)
    )
    assert (data.targets.std(0) > 0.5).all()
    assert [len(data.splits[name]) for name in ("train", "validation", "test")] == [60, 20, 20]
    assert (regular_counting_set(100, 14, 3, 3).edges == data.edges).all()


@pytest.mark.parametrize(("nodes", "degree"), [(5, 3), (4, 4), (4, 0)])
def test_no_such_regular_graph(nodes: int, degree: int) -> None:
    with pytest.raises(DataError, match=f"no graph with {nodes} nodes, all of degree {degree}"):
        regular_counting_set(1, nodes, degree)


def test_a_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("G2N2_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataError, match=r"random_graphs\.npz.* counting-generated"):
        load_counting()
