"""GraphBatch: from matrices and from PyG, against PyG's own dense converters."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError

pyg = pytest.importorskip("torch_geometric", reason="PyG is not installed")
Data, Batch = pyg.data.Data, pyg.data.Batch


def drawn(n: int, edges: int, seed: int = 0, **fields: Any) -> Any:
    """PyG data with random directed edges, each at most once."""
    draw = torch.Generator().manual_seed(seed)
    places = torch.randperm(n * n, generator=draw)[:edges]
    return Data(edge_index=torch.stack([places // n, places % n]), num_nodes=n, **fields)


def featured(n: int, edges: int, seed: int) -> Any:
    data = drawn(n, edges, seed)
    draw = torch.Generator().manual_seed(100 + seed)
    data.x = torch.randn(n, 3, generator=draw)
    data.edge_attr = torch.randn(data.edge_index.shape[1], 2, generator=draw)
    data.y = torch.tensor([float(seed)])
    data.pos = torch.randn(n, 3, generator=draw)
    return data


MIXED = [featured(5, 8, 0), featured(1, 0, 1), featured(7, 0, 2), featured(4, 16, 3)]


def test_against_pyg() -> None:
    """One node, no edges, isolated nodes and loops among them."""
    data = Batch.from_data_list(MIXED)
    ours = GraphBatch.from_pyg(data)
    nodes, mask = pyg.utils.to_dense_batch(data.x, data.batch)
    assert torch.equal(ours.mask, mask)
    assert torch.equal(ours.nodes, nodes)
    assert torch.equal(ours.adjacency, pyg.utils.to_dense_adj(data.edge_index, data.batch))
    pairs = pyg.utils.to_dense_adj(data.edge_index, data.batch, data.edge_attr)
    assert torch.equal(ours.edges, pairs)
    assert torch.equal(ours.targets, data.y)
    assert ours.sizes.tolist() == [5, 1, 7, 4]
    assert len(ours) == 4
    assert ours.directed


def test_one_graph_needs_no_batch_vector() -> None:
    ours = GraphBatch.from_pyg(MIXED[0])
    assert ours.adjacency.shape == (1, 5, 5)
    assert torch.equal(ours.adjacency, pyg.utils.to_dense_adj(MIXED[0].edge_index, max_num_nodes=5))
    assert torch.equal(ours.nodes[0], MIXED[0].x)


def test_no_edges_anywhere() -> None:
    for data in (
        Data(x=torch.ones(3, 2)),
        Data(num_nodes=3),
        Data(x=torch.ones(3, 2), edge_index=torch.zeros(2, 0, dtype=torch.long)),
    ):
        ours = GraphBatch.from_pyg(data)
        assert ours.adjacency.shape == (1, 3, 3)
        assert not ours.adjacency.any()
        assert not ours.directed
        assert ours.edges.shape == (1, 3, 3, 0)


def test_features_of_one_column_and_of_integers() -> None:
    data = drawn(4, 6, x=torch.arange(4), edge_attr=torch.arange(6))
    ours = GraphBatch.from_pyg(data)
    assert ours.nodes.dtype == torch.get_default_dtype()
    assert ours.nodes[0, :, 0].tolist() == [0, 1, 2, 3]
    for k, (i, j) in enumerate(data.edge_index.T.tolist()):
        assert ours.edges[0, i, j].tolist() == [k]
    exact = GraphBatch.from_pyg(
        drawn(4, 6, x=torch.arange(4), edge_attr=torch.full((6,), 0.1, dtype=torch.float64))
    )
    assert exact.edges.dtype == torch.float64
    assert set(exact.edges[exact.adjacency > 0].flatten().tolist()) == {0.1}


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_edge_weights_are_the_entries_of_a(shape: tuple[int, ...]) -> None:
    weights = torch.linspace(1, 2, 6).view(shape)
    data = drawn(4, 6, edge_weight=weights)
    ours = GraphBatch.from_pyg(data)
    expected = pyg.utils.to_dense_adj(data.edge_index, edge_attr=weights.view(-1), max_num_nodes=4)
    assert torch.equal(ours.adjacency, expected)


def test_parallel_edges_add_up() -> None:
    data = Data(edge_index=torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]]), num_nodes=2)
    ours = GraphBatch.from_pyg(data)
    assert torch.equal(ours.adjacency[0], torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    assert not ours.directed


def test_directed_is_seen() -> None:
    there = torch.tensor([[0, 1], [1, 2]])
    assert GraphBatch.from_pyg(Data(edge_index=there, num_nodes=3)).directed
    both = torch.cat([there, there.flip(0)], 1)
    assert not GraphBatch.from_pyg(Data(edge_index=both, num_nodes=3)).directed
    weights = torch.tensor([1.0, 2.0, 1.0, 3.0])
    assert GraphBatch.from_pyg(Data(edge_index=both, num_nodes=3, edge_weight=weights)).directed


def test_distances_are_one_more_channel() -> None:
    data = Batch.from_data_list(MIXED)
    ours = GraphBatch.from_pyg(data).with_distances(data.pos, ("raw",))
    assert ours.edges.shape[-1] == 3
    for graph, data in enumerate(MIXED):
        n = data.num_nodes
        expected = np.linalg.norm(data.pos[:, None] - data.pos[None], axis=-1)
        np.testing.assert_allclose(ours.edges[graph, :n, :n, 2], expected, atol=1e-6)
        assert not ours.edges[graph, n:].any()
        assert not ours.edges[graph, :, n:].any()


def test_of_matrices_and_networkx() -> None:
    path, loop = nx.path_graph(3), [[2.0]]
    ours = GraphBatch.of(
        [path, loop, "Bw"], [[1, 2, 3], [4], [5, 6, 7]], [np.ones((n, n, 2)) for n in (3, 1, 3)]
    )
    assert torch.equal(ours.adjacency[0], torch.tensor(nx.to_numpy_array(path)).float())
    assert ours.adjacency[1, 0, 0] == 2.0
    assert ours.adjacency[1].sum() == 2.0
    assert torch.equal(ours.adjacency[2], torch.ones(3, 3) - torch.eye(3))  # a triangle in graph6
    assert ours.nodes[..., 0].tolist() == [[1, 2, 3], [4, 0, 0], [5, 6, 7]]
    assert ours.edges.sum((1, 2, 3)).tolist() == [18, 2, 18]
    assert not ours.directed
    assert GraphBatch.of([np.eye(2)], dtype=torch.float64).adjacency.dtype == torch.float64
    assert GraphBatch.of([nx.DiGraph([(0, 1)])]).directed


def test_of_and_from_pyg_agree() -> None:
    ours = GraphBatch.from_pyg(Batch.from_data_list(MIXED))
    again = GraphBatch.of(
        [ours.adjacency[i, :n, :n].numpy() for i, n in enumerate(ours.sizes)],
        [ours.nodes[i, :n] for i, n in enumerate(ours.sizes)],
        [ours.edges[i, :n, :n] for i, n in enumerate(ours.sizes)],
    )
    for name in ("adjacency", "nodes", "edges", "mask"):
        assert torch.equal(getattr(ours, name), getattr(again, name)), name
    assert ours.directed == again.directed


def test_to() -> None:
    """Numbers change their dtype; the mask and class numbers do not."""
    data = Batch.from_data_list(MIXED)
    data.y = torch.tensor([0, 1, 1, 2])
    moved = GraphBatch.from_pyg(data).to(torch.float64)
    assert {moved.adjacency.dtype, moved.nodes.dtype, moved.edges.dtype} == {torch.float64}
    assert moved.mask.dtype == torch.bool
    assert moved.targets.dtype == torch.int64
    moved = GraphBatch.from_pyg(Batch.from_data_list(MIXED)).to("meta", torch.float64)
    assert moved.targets.dtype == torch.float64
    assert {moved.mask.device.type, moved.targets.device.type, moved.edges.device.type} == {"meta"}


LINE = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_nodes": 0}, ("no nodes", "num_nodes")),
        ({"edge_index": LINE, "num_nodes": 1}, ("nodes 0 to 1", "1 nodes")),
        ({"edge_index": -LINE, "num_nodes": 2}, ("nodes -1 to 0",)),
        ({"edge_index": LINE, "x": torch.ones(2, 1), "edge_attr": torch.ones(3, 1)}, ("edge_attr", "[3, 1]", "[2, features]")),
        ({"edge_index": LINE, "x": torch.ones(2, 1, 1)}, ("x", "[2, 1, 1]", "[2, features]")),
        ({"edge_index": LINE, "num_nodes": 2, "edge_weight": torch.ones(2, 2)}, ("edge_weight", "2 columns")),
        ({"edge_index": LINE, "x": torch.tensor([[1.0], [torch.nan]])}, ("node features", "graph 0", "NaN", "[1, 0]")),
        ({"edge_index": LINE, "num_nodes": 2, "edge_attr": torch.tensor([[torch.inf], [1.0]])}, ("edge features", "infinity", "[0, 1, 0]")),
        ({"edge_index": LINE, "num_nodes": 2, "edge_weight": torch.tensor([1.0, torch.nan])}, ("adjacency", "NaN")),
        ({"num_nodes": 2, "adj_t": "sparse"}, ("adj_t", "edge_index")),
        ({"edge_index": LINE, "num_nodes": 4, "batch": torch.tensor([0, 1, 1, 1])}, ("mixed up", "two graphs")),
        ({"edge_index": LINE, "num_nodes": 4, "batch": torch.tensor([1, 1, 0, 0])}, ("mixed up", "sorted")),
        ({"edge_index": LINE, "num_nodes": 4, "batch": torch.tensor([0, 0, 2, 2])}, ("graph 1", "no nodes")),
        ({"edge_index": LINE, "num_nodes": 2, "batch": torch.tensor([0, 10**12])}, ("graph 1000000000000", "2 nodes")),
        ({"edge_index": LINE, "num_nodes": 2, "batch": [0, 0]}, ("batch is a list, expected a tensor",)),
        ({"edge_index": LINE, "num_nodes": 2, "x": [[1, 2], [3]]}, ("x is a list, expected a tensor",)),
        ({"edge_index": LINE.numpy(), "num_nodes": 2}, ("edge_index is a ndarray, expected a tensor",)),
        ({"edge_index": LINE, "num_nodes": 2, "pos": [[0.0, 0, 0]] * 2}, ("pos is a list, expected a tensor",)),
        ({"edge_index": LINE, "num_nodes": 2, "pos": torch.ones(3, 3)}, ("pos has shape [3, 3], expected [2, features] for 2 nodes",)),
        ({"edge_index": LINE, "num_nodes": 2, "pos": torch.full((2, 3), torch.nan)}, ("what is made of the positions", "NaN")),
    ],
)  # fmt: skip
def test_bad_pyg_data(fields: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        GraphBatch.from_pyg(Data(**fields), squared=True)
    for word in words:
        assert word in str(caught.value)


def test_positions_that_are_not_read_may_be_anything() -> None:
    data = Data(edge_index=LINE, x=torch.ones(2, 1), pos=[[0.0, 0, 0]] * 2)
    assert GraphBatch.from_pyg(data).adjacency.tolist() == [[[0, 1], [1, 0]]]


def test_sparse_features_are_read() -> None:
    data = Data(edge_index=LINE, x=torch.eye(2).to_sparse())
    assert GraphBatch.from_pyg(data).nodes.tolist() == [[[1, 0], [0, 1]]]


def test_huge_numbers_are_no_infinity() -> None:
    """Their sum overflows, they do not."""
    huge = torch.full((2, 1), 3e38)
    assert GraphBatch.from_pyg(Data(edge_index=LINE, x=huge)).nodes.isfinite().all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), ("empty",)),
        (([nx.Graph()],), ("no nodes",)),
        (([np.eye(2)], [np.ones((3, 1))]), ("graph 0", "[3, 1]", "[2]")),
        (([np.eye(2)], None, [np.ones((2, 3, 1))]), ("graph 0", "[2, 3, 1]", "[2, 2]")),
        (([np.eye(2), np.eye(1)], [np.ones((2, 1))]), ("1 graphs", "2 graphs")),
        (([np.eye(2), np.eye(1)], [np.ones((2, 1)), np.ones((1, 2))]), ("[1, 2] node features",)),
        (([np.eye(2)], [[[1.0], [np.nan]]]), ("node features", "NaN")),
        (([[[np.inf]]],), ("finite",)),
        (([np.ones((2, 3))],), ("square",)),
        (([3],), ("expected",)),
        ((None,), ("empty",)),
        (("C~",), ("graphs: got str, expected a list with one entry per graph",)),
        ((["Bw"], 5), ("nodes: got int, expected a list",)),
    ],
)
def test_bad_graphs(arguments: tuple[Any, ...], words: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        GraphBatch.of(*arguments)
    for word in words:
        assert word in str(caught.value)
