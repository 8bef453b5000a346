"""GraphSet: many graphs as flat arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.data.graph_set import GraphSet, Target, plain_graphs
from g2n2.errors import DataError
from g2n2.graphs import adjacency

TRIANGLE = ([0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2])
EDGE = ([0, 1], [1, 0])


def example(**changes: Any) -> GraphSet:
    """A triangle, two nodes without an edge, and an edge; features count their owners."""
    edges = np.concatenate([TRIANGLE, EDGE], axis=1).astype(np.int64)
    fields: dict[str, Any] = {
        "name": "three",
        "sizes": np.array([3, 2, 2]),
        "edge_counts": np.array([6, 0, 2]),
        "edges": edges,
        "node_features": np.arange(7, dtype=np.float32)[:, None],
        "edge_features": np.arange(8, dtype=np.float32)[:, None],
        "targets": np.array([[0.5], [1.5], [np.nan]]),
        "columns": (Target("y"),),
        "ids": ("a", "b", "c"),
        "splits": {"train": np.array([0, 1]), "test": np.array([2])},
    }
    return GraphSet(**{**fields, **changes})


def test_check_accepts_it() -> None:
    graphs = example()
    assert graphs.check() is graphs
    assert len(graphs) == 3
    assert graphs.node_offsets.tolist() == [0, 3, 5, 7]
    assert graphs.edge_offsets.tolist() == [0, 6, 6, 8]


def test_select_keeps_order_and_repeats() -> None:
    some = example(weights=np.arange(8, dtype=np.float32)).select([2, 0, 2]).check()
    assert some.sizes.tolist() == [2, 3, 2]
    assert some.edge_counts.tolist() == [2, 6, 2]
    assert some.node_features[:, 0].tolist() == [5, 6, 0, 1, 2, 5, 6]
    assert some.edge_features[:, 0].tolist() == [6, 7, 0, 1, 2, 3, 4, 5, 6, 7]
    assert some.weights is not None
    assert some.weights.tolist() == some.edge_features[:, 0].tolist()
    assert some.ids == ("c", "a", "c")
    np.testing.assert_array_equal(some.targets[:, 0], [np.nan, 0.5, np.nan])
    assert not some.splits
    np.testing.assert_array_equal(
        some.adjacency(1), example().adjacency(0) * [[0, 0, 5], [1, 0, 2], [4, 3, 0]]
    )


def test_select_by_flags() -> None:
    """True and false are not the numbers 1 and 0."""
    assert example().select(np.array([False, False, True])).ids == ("c",)
    assert example().select(np.array([True, False, True])).ids == ("a", "c")
    assert len(example().select([])) == 0


@pytest.mark.parametrize("indices", [[3], [-1], [0, 7]])
def test_select_refuses_other_numbers(indices: list[int]) -> None:
    with pytest.raises(DataError, match=rf"three has no graph {indices[-1]}: it has 3, from 0"):
        example().select(indices)


def test_select_refuses_other_flags() -> None:
    with pytest.raises(DataError, match="2 flags for the 3 graphs"):
        example().select(np.array([True, False]))


@pytest.mark.parametrize(
    ("level", "rows"), [("node", [5, 6, 0, 1, 2]), ("edge", [6, 7, 0, 1, 2, 3, 4, 5])]
)
def test_targets_of_nodes_and_edges_follow(level: Any, rows: list[int]) -> None:
    count = 7 if level == "node" else 8
    graphs = example(targets=np.arange(count, dtype=np.float64)[:, None], level=level).check()
    assert graphs.select([2, 0]).targets[:, 0].tolist() == rows


def test_directed() -> None:
    assert not example().directed
    one_way = example().edges.copy()
    one_way[:, -1] = [0, 1]
    assert example(edges=one_way).directed
    weights = np.ones(8, dtype=np.float32)
    assert not example(weights=weights).directed
    weights[-1] = 2.0
    assert example(weights=weights).directed
    looped = example(sizes=np.array([1]), edge_counts=np.array([1]), edges=np.array([[0], [0]]))
    assert not looped.directed


def test_edges_of_two_graphs_do_not_make_a_pair() -> None:
    """0 → 1 in one graph and 1 → 0 in another are two directed edges."""
    graphs = example(
        sizes=np.array([2, 2]), edge_counts=np.array([1, 1]), edges=np.array([[0, 1], [1, 0]])
    )
    assert graphs.directed


def test_adjacency() -> None:
    np.testing.assert_array_equal(example().adjacency(0), 1 - np.eye(3))
    np.testing.assert_array_equal(example().adjacency(1), np.zeros((2, 2)))
    parallel = example(edges=np.concatenate([TRIANGLE, ([0, 0], [1, 1])], axis=1))
    np.testing.assert_array_equal(parallel.adjacency(2), [[0, 2], [0, 0]])
    weighted = example(weights=np.full(8, 0.5, dtype=np.float32))
    np.testing.assert_array_equal(weighted.adjacency(2), [[0, 0.5], [0.5, 0]])


NAN = np.full((7, 1), np.nan, dtype=np.float32)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sizes": np.array([], dtype=np.int64), "edge_counts": np.array([], dtype=np.int64)}, ("three", "no graph")),
        ({"sizes": np.array([3, 0, 2])}, ("graph 1 (b) of three", "no nodes")),
        ({"edge_counts": np.array([6, 2])}, ("edge_counts", "2 rows", "expected 3")),
        ({"edges": np.zeros((2, 5), dtype=np.int64)}, ("edges", "5 rows", "expected 8")),
        ({"node_features": np.zeros((6, 1), dtype=np.float32)}, ("node_features", "6 rows", "7")),
        ({"edge_features": np.zeros((9, 1), dtype=np.float32)}, ("edge_features", "9 rows", "8")),
        ({"targets": np.zeros((2, 1))}, ("targets", "2 rows", "expected 3")),
        ({"columns": ()}, ("columns", "0 rows", "expected 1")),
        ({"level": "node"}, ("targets", "3 rows", "expected 7")),
        ({"weights": np.ones(3, dtype=np.float32)}, ("weights", "3 rows")),
        ({"positions": np.zeros((3, 3), dtype=np.float32)}, ("positions", "3 rows", "7")),
        ({"ids": ("a",)}, ("ids", "1 rows")),
        ({"edges": np.concatenate([TRIANGLE, ([0, 2], [1, 0])], axis=1)}, ("graph 2 (c)", "2 nodes", "joins 2 and 0")),
        ({"edges": np.concatenate([TRIANGLE, ([0, -1], [1, 0])], axis=1)}, ("graph 2 (c)", "joins -1 and 0")),
        ({"node_features": NAN}, ("node feature", "graph 0 (a)", "NaN")),
        ({"edge_features": np.array([[0.0]] * 6 + [[np.inf]] + [[0.0]], dtype=np.float32)}, ("edge feature", "graph 2 (c)", "infinite")),
        ({"weights": np.array([1.0] * 7 + [np.nan], dtype=np.float32)}, ("weight", "graph 2 (c)")),
        ({"positions": np.concatenate([np.zeros((4, 3)), NAN[:3] * np.ones(3)]).astype(np.float32)}, ("position", "graph 1 (b)")),
    ],
)  # fmt: skip
def test_check_refuses(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        example(**changes).check()
    for word in words:
        assert word in str(caught.value)


def test_missing_targets_are_no_fault() -> None:
    replace(example(), targets=np.full((3, 1), np.nan)).check()


def test_plain_graphs_hold_the_graphs_given() -> None:
    graphs = [nx.path_graph(3), nx.empty_graph(2), nx.star_graph(3)]
    data = plain_graphs("mine", [adjacency(graph) for graph in graphs])
    assert data.sizes.tolist() == [3, 2, 4]
    assert data.edge_counts.tolist() == [4, 0, 6]
    for index, graph in enumerate(graphs):
        assert data.adjacency(index).tolist() == nx.to_numpy_array(graph).tolist()
    assert data.node_features.tolist() == [[1.0]] * 9
    assert data.targets.shape == (3, 0)


def test_splits_and_source_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        example().splits["train"] = np.array([2])  # type: ignore[index]
    with pytest.raises(TypeError):
        example(source={"path": "a"}).source["path"] = "b"  # type: ignore[index]
