"""Isomorphism of small and hard graphs, held against networkx."""

import networkx as nx
import numpy as np
import pytest

from g2n2 import separate
from g2n2.graphs import adjacency, are_isomorphic

HARD = [
    ("C6", "2·C3"),
    ("rook 4×4", "Shrikhande graph"),
    ("CFI(K4)", "twisted CFI(K4)"),
    ("CSL(41, 2)", "CSL(41, 3)"),
]


def relabelled(matrix, rng):
    order = rng.permutation(len(matrix))
    return matrix[np.ix_(order, order)]


@pytest.mark.parametrize("names", HARD, ids=" / ".join)
def test_hard_graphs_are_themselves_and_not_each_other(names):
    rng = np.random.default_rng(0)
    first, second = map(adjacency, names)
    assert are_isomorphic(first, second) is False
    assert are_isomorphic(first, relabelled(first, rng)) is True
    assert are_isomorphic(second, relabelled(second, rng)) is True


def test_directed_graphs_with_loops_and_weights_agree_with_networkx():
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


def test_what_is_not_decided_is_not_claimed():
    path = nx.to_numpy_array(nx.path_graph(501))
    assert are_isomorphic(path, path[::-1, ::-1]) is True  # the same matrix
    assert are_isomorphic(path, relabelled(path, np.random.default_rng(0))) is None


@pytest.mark.parametrize("grammar", ["r-G_L3", "r-G_L1", "3-WL"])
@pytest.mark.parametrize("engine", ["closure", "mixing"])
def test_separate_says_that_graphs_are_isomorphic(grammar, engine):
    """`mixing` is the name that random_probes had before."""
    same = separate(grammar, "C6", "EhEG", engine=engine)
    assert (same.verdict, "isomorphic" in same.note) == ("same", True)
    merged = separate("r-G_L3", "rook 4×4", "Shrikhande graph", engine=engine)
    assert (merged.verdict, "isomorphic" in merged.note) == ("same", False)
