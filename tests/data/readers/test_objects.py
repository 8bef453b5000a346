"""networkx graphs and PyG Data come in as they are, whatever their targets belong to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.data.reading import read_graphs


def test_networkx_graphs_with_features_and_targets() -> None:
    graph = nx.Graph(id="mine", y=[0.5, 1.5])
    graph.add_node("b", x=[1, 2])
    graph.add_node("a", x=[3, 4])
    graph.add_edge("a", "b", weight=2.0, e=7, colour="red")
    other = nx.Graph(y=[2.5, float("nan")])
    other.add_node(0, x=[5, 6])
    graphs = read_graphs([graph, other])
    assert graphs.ids == ("mine", "1")
    assert graphs.node_features.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert graphs.adjacency(0).tolist() == [[0, 2], [2, 0]]
    assert graphs.edge_features.tolist() == [[7], [7]]
    assert [column.name for column in graphs.columns] == ["y0", "y1"]
    assert graphs.targets[:, 0].tolist() == [0.5, 2.5]
    assert np.isnan(graphs.targets[1, 1])
    assert any("colour" in note for note in graphs.notes)


def test_networkx_directions_and_loops() -> None:
    graph = nx.DiGraph([(0, 1), (1, 1)])
    graphs = read_graphs(graph)
    assert graphs.adjacency(0).tolist() == nx.to_numpy_array(graph).tolist()
    loop = nx.Graph([(0, 0), (0, 1)])
    assert read_graphs([loop]).adjacency(0).tolist() == nx.to_numpy_array(loop).tolist()


def test_a_graph_without_weights_among_weighted_ones_has_ones() -> None:
    weighted = nx.Graph()
    weighted.add_edge(0, 1, weight=3.0)
    graphs = read_graphs([nx.path_graph(2), weighted])
    assert graphs.adjacency(0).tolist() == [[0, 1], [1, 0]]
    assert graphs.adjacency(1).tolist() == [[0, 3], [3, 0]]


def test_networkx_node_and_edge_targets() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 1, 1: 0, 2: 1}, "y")
    nodes = read_graphs([graph])
    assert (nodes.level, nodes.columns[0].kind) == ("node", "binary")
    assert nodes.targets[:, 0].tolist() == [1, 0, 1]
    path = nx.path_graph(3)
    nx.set_edge_attributes(path, {(0, 1): 0.5, (1, 2): 2.5}, "y")
    edges = read_graphs([path])
    assert edges.level == "edge"
    ends = {
        tuple(pair): value
        for pair, value in zip(edges.edges.T.tolist(), edges.targets[:, 0], strict=True)
    }
    assert ends == {(0, 1): 0.5, (1, 0): 0.5, (1, 2): 2.5, (2, 1): 2.5}


def make(n: int, y: Any, **more: Any) -> Any:
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data", reason="PyG is not installed")
    edges = torch.tensor([[*range(n - 1), *range(1, n)], [*range(1, n), *range(n - 1)]])
    target = None if y is None else torch.tensor(y)
    return data.Data(x=torch.ones(n, 2), edge_index=edges, y=target, **more)


@pytest.mark.parametrize(
    ("ys", "level", "kind", "shape"),
    [
        ([[[0.5, 1.0]], [[2.5, 1.0]]], "graph", "regression", (2, 2)),
        ([1, 0], "graph", "binary", (2, 1)),
        ([2.5, 0.5], "graph", "regression", (2, 1)),
        ([[2], [0]], "graph", "binary", (2, 1)),
        ([[1.5, 2.5], [0.5, 3.5]], "graph", "regression", (2, 2)),
        ([[1, 0, 2], [1, 2, 0, 1]], "node", "multiclass", (7, 1)),
        ([[[0.5]] * 4, [[1.5]] * 6], "edge", "regression", (10, 1)),
        ([None, 1.5], "graph", "regression", (2, 1)),
    ],
)
def test_pyg_targets(ys: list[Any], level: str, kind: str, shape: tuple[int, int]) -> None:
    graphs = read_graphs([make(3, ys[0]), make(4, ys[1])])
    assert (graphs.level, graphs.columns[0].kind, graphs.targets.shape) == (level, kind, shape)
    if ys[0] is None:
        assert np.isnan(graphs.targets[0, 0])


def test_pyg_features_weights_and_positions() -> None:
    torch = pytest.importorskip("torch")
    data = make(
        3,
        1.5,
        edge_attr=torch.arange(8.0).reshape(4, 2),
        edge_weight=torch.arange(4.0),
        pos=torch.eye(3),
    )
    graphs = read_graphs([data])
    assert graphs.edge_features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graphs.weights is not None
    assert graphs.weights.tolist() == [0, 1, 2, 3]
    assert graphs.positions is not None
    assert np.array_equal(graphs.positions, np.eye(3))


def test_any_object_of_pygs_form_is_read_without_pyg() -> None:
    item = SimpleNamespace(num_nodes=2, edge_index=np.array([[0], [1]]), y=np.array([1.5]))
    graphs = read_graphs([item])
    assert graphs.adjacency(0).tolist() == [[0, 1], [0, 0]]
    assert graphs.targets.tolist() == [[1.5]]


def test_tensors_numpy_does_not_know_are_read() -> None:
    torch = pytest.importorskip("torch")
    ends = torch.tensor([[0], [1]])
    half = SimpleNamespace(num_nodes=2, edge_index=ends, x=torch.eye(2, dtype=torch.bfloat16))
    sparse = SimpleNamespace(num_nodes=2, edge_index=ends, x=torch.eye(2).to_sparse())
    assert read_graphs([half, sparse]).node_features.tolist() == [[1, 0], [0, 1]] * 2


def test_what_is_not_read_is_named() -> None:
    item = SimpleNamespace(num_nodes=2, edge_index=np.array([[0], [1]]), z=np.ones(2), none=None)
    assert "Attributes not used: z." in read_graphs([item]).notes
    flat = SimpleNamespace(num_nodes=2, edge_index=np.array([[0], [1]]), pos=np.ones((2, 2)))
    assert "Attributes not used: pos (expected [n, 3])." in read_graphs([flat]).notes
    data = make(3, 1.5, train_mask=[True] * 3)
    assert "Attributes not used: train_mask." in read_graphs([data]).notes
    graph = nx.path_graph(2, create_using=nx.Graph)
    graph.graph.update(y=1, mass=2)
    nx.set_node_attributes(graph, 5, "y")
    assert "Attributes not used: mass, y." in read_graphs([graph]).notes
    assert read_graphs([graph]).targets.tolist() == [[1]]


def test_nodes_of_networkx_keep_their_names() -> None:
    graph = nx.Graph([("b", "a"), ("a", 7)])
    graphs = read_graphs([graph, nx.path_graph(3)])
    assert [graphs.node_name(0, node) for node in range(3)] == ["b", "a", 7]
    assert "names_of_nodes" not in read_graphs([nx.path_graph(3)]).source
