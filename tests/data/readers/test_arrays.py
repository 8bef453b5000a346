"""npz and graph6 files give the graphs networkx has, with features and targets in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.data.graph_set import GraphSet
from g2n2.data.reading import read_graphs
from g2n2.errors import DataError

GRAPHS = [nx.path_graph(3), nx.cycle_graph(5), nx.star_graph(3)]  # 3, 5 and 4 nodes
SIZES = [len(graph) for graph in GRAPHS]
EDGES = [2 * graph.number_of_edges() for graph in GRAPHS]


def padded() -> np.ndarray[Any, Any]:
    matrices = np.zeros((3, 5, 5))
    for matrix, graph in zip(matrices, GRAPHS, strict=True):
        matrix[: len(graph), : len(graph)] = nx.to_numpy_array(graph)
    return matrices


def read(folder: Path, level: Any = None, **arrays: Any) -> GraphSet:
    np.savez(folder / "mine.npz", **({"A": padded(), "sizes": np.array(SIZES)} | arrays))
    return read_graphs(folder / "mine.npz", level=level)


def test_matrices_with_sizes(tmp_path: Path) -> None:
    graphs = read(tmp_path, y=np.array([0.5, 1.5, 2.5]))
    assert graphs.sizes.tolist() == SIZES
    for index, graph in enumerate(GRAPHS):
        assert np.array_equal(graphs.adjacency(index), nx.to_numpy_array(graph))
    assert graphs.weights is None
    assert graphs.targets.tolist() == [[0.5], [1.5], [2.5]]
    assert graphs.node_names == ("one",)


def test_weights_and_directions_are_kept(tmp_path: Path) -> None:
    matrix = np.array([[0, 2.5], [0, 0]])
    np.savez(tmp_path / "one.npz", A=matrix)
    graphs = read_graphs(tmp_path / "one.npz")
    assert graphs.adjacency(0).tolist() == matrix.tolist()
    assert graphs.directed


def test_node_features_padded_or_flat_are_the_same(tmp_path: Path) -> None:
    flat = np.arange(24.0).reshape(12, 2)
    wide = np.full((3, 5, 2), -9.0)
    for block, rows in zip(wide, np.split(flat, np.cumsum(SIZES)[:-1]), strict=True):
        block[: len(rows)] = rows
    for x in (flat, wide):
        assert np.array_equal(read(tmp_path, x=x).node_features, flat)
    assert np.array_equal(read(tmp_path, x=wide[..., 0]).node_features, flat[:, :1])


def test_edge_features_are_read_where_edges_are(tmp_path: Path) -> None:
    place = np.arange(75.0).reshape(3, 5, 5)
    graphs = read(tmp_path, e=np.stack([place, -place], axis=-1))
    ends = graphs.edges
    owner = np.repeat([0, 1, 2], EDGES)
    assert np.array_equal(graphs.edge_features[:, 0], owner * 25 + ends[0] * 5 + ends[1])
    assert np.array_equal(graphs.edge_features[:, 1], -graphs.edge_features[:, 0])


@pytest.mark.parametrize(
    ("shape", "level", "expected", "rows", "columns"),
    [
        ((3,), None, "graph", 3, 1),
        ((3, 4), None, "graph", 3, 4),
        ((12,), None, "node", 12, 1),
        ((12, 2), None, "node", 12, 2),
        ((3, 5), "node", "node", 12, 1),
        ((3, 5, 2), "node", "node", 12, 2),
        ((20,), None, "edge", 20, 1),
        ((3, 5, 5), None, "edge", 20, 1),
        ((3, 5, 5, 2), "edge", "edge", 20, 2),
    ],
)
def test_the_level_of_targets(
    tmp_path: Path, shape: tuple[int, ...], level: Any, expected: str, rows: int, columns: int
) -> None:
    graphs = read(tmp_path, y=np.random.default_rng(0).normal(size=shape), level=level)
    assert graphs.level == expected
    assert graphs.targets.shape == (rows, columns)


def test_whole_numbers_are_classes(tmp_path: Path) -> None:
    graphs = read(tmp_path, y=np.array([7, 3, 5]))
    assert (graphs.columns[0].kind, graphs.columns[0].classes) == ("multiclass", ("3", "5", "7"))
    assert graphs.targets[:, 0].tolist() == [2, 0, 1]


def test_names_and_ids(tmp_path: Path) -> None:
    read(
        tmp_path,
        y=np.eye(3)[:, :2] * 0.5,
        target_names=np.array(["p", "q"]),
        ids=np.array(["a", "b", "c"]),
    )
    graphs = read_graphs(tmp_path / "mine.npz", target="q")
    assert graphs.ids == ("a", "b", "c")
    assert graphs.targets[:, 0].tolist() == [0, 0.5, 0]


def test_graph6(tmp_path: Path) -> None:
    path = tmp_path / "mine.g6"
    path.write_bytes(b"".join(nx.to_graph6_bytes(graph) for graph in GRAPHS))
    graphs = read_graphs(path)
    assert graphs.targets.shape == (3, 0)
    for index, graph in enumerate(GRAPHS):
        assert np.array_equal(graphs.adjacency(index), nx.to_numpy_array(graph))


def test_a_tu_folder(tmp_path: Path) -> None:
    for part, text in (
        ("A", "1, 2\n2, 1\n3, 4\n4, 3\n"),
        ("graph_indicator", "1\n1\n2\n2\n"),
        ("graph_labels", "4\n-2\n"),
        ("node_labels", "0\n1\n1\n1\n"),
    ):
        (tmp_path / f"mine_{part}.txt").write_text(text)
    graphs = read_graphs(tmp_path)
    assert graphs.sizes.tolist() == [2, 2]
    assert graphs.targets[:, 0].tolist() == [1, 0]
    assert read_graphs(tmp_path, target=()).columns == ()


def test_graph6_targets_stand_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "rings.g6"
    path.write_bytes(b"".join(nx.to_graph6_bytes(nx.cycle_graph(n)) for n in (3, 4, 5)))
    with pytest.raises(DataError, match=r"no target 'energy': .* rings_graphs\.csv beside it"):
        read_graphs(path, target="energy")
    assert "rings_graphs.csv beside it" in read_graphs(path).notes[0]
    (tmp_path / "rings_graphs.csv").write_text("graph,energy,kind\n0,1.5,odd\n1,2.5,even\n2,,odd\n")
    graphs = read_graphs(path)
    assert [(c.name, c.kind) for c in graphs.columns] == [
        ("energy", "regression"),
        ("kind", "binary"),
    ]
    assert graphs.targets[:2, 0].tolist() == [1.5, 2.5]
    assert np.isnan(graphs.targets[2, 0])
    assert read_graphs(path, target=()).targets.shape == (3, 0)
    table = "id,energy,split\na,1,train\nb,2,test\nc,3,\n"
    (tmp_path / "rings_graphs.csv").write_text(table)
    graphs = read_graphs(path)
    assert (graphs.ids, [c.name for c in graphs.columns]) == (("a", "b", "c"), ["energy"])
    assert {part: rows.tolist() for part, rows in graphs.splits.items()} == {
        "train": [0],
        "test": [1],
    }
    (tmp_path / "rings_graphs.csv").write_text("id,energy\n1034,1\n22,2\n517,3\n")
    assert read_graphs(path).ids == ("1034", "22", "517")  # numbers of a database have no order
    (tmp_path / "rings_graphs.csv").write_text("graph,energy\n2,1\n0,2\n1,3\n")
    with pytest.raises(
        DataError, match=r"line 3: graph 0 after 2; expected the graphs in the order"
    ):
        read_graphs(path)
    (tmp_path / "rings_graphs.csv").write_text("energy\n1\n")
    with pytest.raises(DataError, match="1 rows for 3 graphs"):
        read_graphs(path)
