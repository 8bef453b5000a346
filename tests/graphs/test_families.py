"""Graphs made by rule have the properties that define them."""

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.errors import DataError
from g2n2.graphs.families import (
    bicyclopentyl,
    cfi,
    circular_skip_link,
    decalin,
    rook_graph,
    shrikhande_graph,
)

K4_MINUS_EDGE = nx.Graph([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)])


def isomorphic(first: np.ndarray, second: np.ndarray) -> bool:
    return bool(nx.is_isomorphic(nx.from_numpy_array(first), nx.from_numpy_array(second)))


@pytest.mark.parametrize(
    ("matrix", "degree", "common_joined", "common_apart"),
    [
        (rook_graph(4), 6, 2, 2),
        (shrikhande_graph(), 6, 2, 2),
        (rook_graph(5), 8, 3, 2),
    ],
)
def test_strongly_regular(
    matrix: np.ndarray, degree: int, common_joined: int, common_apart: int
) -> None:
    identity, everything = np.eye(len(matrix)), np.ones_like(matrix)
    apart = everything - identity - matrix
    expected = degree * identity + common_joined * matrix + common_apart * apart
    assert np.array_equal(matrix @ matrix, expected)


def test_circular_skip_links_are_4_regular_and_different() -> None:
    graphs = [circular_skip_link(41, skip) for skip in (2, 3, 4)]
    assert all((matrix.sum(axis=0) == 4).all() for matrix in graphs)
    for first, second in combinations(graphs, 2):
        assert not isomorphic(first, second)
    assert isomorphic(graphs[0], circular_skip_link(41, 20))  # multiply by 20: 2 * 20 = -1


@pytest.mark.parametrize(
    "base", [nx.cycle_graph(3), K4_MINUS_EDGE, nx.complete_graph(4), nx.path_graph(2)]
)
def test_cfi_pairs_look_alike_and_are_not_isomorphic(base: nx.Graph) -> None:
    plain, twisted = cfi(base)
    assert len(plain) == len(twisted) == sum(2 ** (degree - 1) for _, degree in base.degree)
    assert not isomorphic(plain, twisted)


def test_cfi_over_the_triangle_and_k4_are_classics() -> None:
    plain, twisted = cfi(nx.cycle_graph(3))
    assert nx.number_connected_components(nx.from_numpy_array(plain)) == 2
    assert isomorphic(twisted, nx.to_numpy_array(nx.cycle_graph(6)))
    assert isomorphic(cfi("C~")[0], rook_graph(4))
    assert isomorphic(cfi("C~")[1], shrikhande_graph())


def test_two_twists_cancel() -> None:
    # Relabelled bases put the twist at another node, which must make no difference.
    base = nx.to_numpy_array(K4_MINUS_EDGE)
    order = [3, 1, 0, 2]
    moved = base[np.ix_(order, order)]
    for first, second in zip(cfi(base), cfi(moved), strict=True):
        assert isomorphic(first, second)


def test_molecules() -> None:
    first, second = nx.from_numpy_array(decalin()), nx.from_numpy_array(bicyclopentyl())
    for graph, ring in ((first, 6), (second, 5)):
        assert graph.number_of_nodes() == 10
        assert graph.number_of_edges() == 11
        assert [len(cycle) for cycle in nx.minimum_cycle_basis(graph)] == [ring, ring]


BAD_CALLS: list[tuple[Any, tuple[Any, ...], str]] = [
    (circular_skip_link, (3, 1), "2 <= skip <= nodes - 2"),
    (circular_skip_link, (41, 40), "2 <= skip <= nodes - 2"),
    (cfi, (nx.empty_graph(1),), "connected and has an edge, got 1 node"),
    (cfi, (nx.empty_graph(2),), r"2 node\(s\) in 2 component"),
    (cfi, (nx.DiGraph([(0, 1)]),), "simple undirected"),
    (cfi, (nx.complete_graph(13),), "26,624 nodes"),
    (rook_graph, (0,), "side 1 or more"),
]


@pytest.mark.parametrize(("make", "arguments", "message"), BAD_CALLS)
def test_bad_parameters_are_refused(make: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        make(*arguments)
