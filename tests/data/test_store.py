"""GraphStore: the batches it cuts are those GraphBatch.of makes graph by graph."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.data.distances import distance_channels
from g2n2.data.store import GraphStore
from small_sets import small_set

CHOSEN = np.array([7, 0, 3, 11, 4])


def with_edge_features(graphs, directed=False):
    random = np.random.default_rng(5)
    count = graphs.edges.shape[1]
    features = random.normal(size=(count, 3)).astype(np.float32)
    weights = random.uniform(1, 2, count).astype(np.float32) if directed else None
    return replace(graphs, edge_features=features, edge_names=("x", "y", "z"), weights=weights)


def one_by_one(graphs, indices):
    """The same batch from dense matrices."""
    nodes, pairs = [], []
    for index in indices:
        n = graphs.sizes[index]
        span = slice(*graphs.edge_offsets[index : index + 2])
        pair = np.zeros((n, n, graphs.edge_features.shape[1]))
        pair[graphs.edges[0, span], graphs.edges[1, span]] = graphs.edge_features[span]
        pairs.append(pair)
        nodes.append(graphs.node_features[slice(*graphs.node_offsets[index : index + 2])])
    matrices = [graphs.adjacency(index) for index in indices]
    return GraphBatch.of(matrices, nodes=nodes, edges=pairs, dtype=torch.float32)


@pytest.mark.parametrize("directed", [False, True])
def test_batches_are_those_made_graph_by_graph(directed):
    graphs = with_edge_features(small_set(), directed)
    made, wanted = GraphStore(graphs).batch(CHOSEN), one_by_one(graphs, CHOSEN)
    assert made.directed is wanted.directed is directed
    for name in ("adjacency", "nodes", "edges", "mask"):
        assert torch.equal(getattr(made, name), getattr(wanted, name)), name
    assert made.targets is not None
    assert made.targets[:, 0].tolist() == graphs.targets[CHOSEN, 0].tolist()


def test_node_and_edge_targets_stand_at_their_places():
    graphs = small_set("node")
    made = GraphStore(graphs).batch(CHOSEN)
    degrees = made.adjacency.sum(2)
    assert torch.equal(made.targets[..., 0][made.mask], degrees[made.mask])
    assert made.targets[..., 0][~made.mask].isnan().all()
    graphs = small_set("edge")
    made = GraphStore(graphs).batch(CHOSEN)
    common = made.adjacency @ made.adjacency
    edge = made.adjacency > 0
    assert torch.equal(made.targets[..., 0][edge], common[edge])
    assert made.targets[..., 0][~edge].isnan().all()


def test_distances_are_appended_for_all_pairs():
    graphs = small_set()
    positions = np.random.default_rng(0).normal(size=(graphs.sizes.sum(), 3)).astype(np.float32)
    graphs = replace(with_edge_features(graphs), positions=positions)
    store = GraphStore(graphs, distance=("raw", "square", "inverse", "rbf4"))
    made = store.batch(CHOSEN)
    assert made.edges.shape[-1] == store.edge_width == 3 + 1 + 1 + 1 + 4
    for row, index in enumerate(CHOSEN):
        n = graphs.sizes[index]
        points = torch.from_numpy(positions[slice(*graphs.node_offsets[index : index + 2])])
        raw = torch.cdist(points, points)
        inverse = torch.where(raw > 0, 1 / raw.clamp(min=0.1), 0)
        for channel, values in enumerate((raw, raw**2 / 10, inverse), start=3):
            assert torch.allclose(made.edges[row, :n, :n, channel], values, atol=1e-4)
        assert not made.edges[row, n:].any()
        assert not made.edges[row].diagonal(dim1=0, dim2=1)[3:].any()
    assert torch.equal(
        made.edges[..., 3:],
        distance_channels(padded(positions, graphs, made.mask), made.mask, store.distance),
    )


def padded(positions, graphs, mask):
    places = torch.zeros(*mask.shape, 3)
    for row, index in enumerate(CHOSEN):
        points = positions[slice(*graphs.node_offsets[index : index + 2])]
        places[row, : len(points)] = torch.from_numpy(points)
    return places


def test_double_precision_is_kept():
    made = GraphStore(small_set(), dtype=torch.float64).batch(CHOSEN)
    assert {made.adjacency.dtype, made.nodes.dtype, made.targets.dtype} == {torch.float64}
