"""A DenseStore cuts the same batches as the GraphStore it was made of."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from g2n2.data import dense_store
from g2n2.data.dense_store import DenseStore
from g2n2.data.store import GraphStore
from g2n2.errors import DataError
from small_sets import small_set

CHOICES = [np.array([0]), np.array([5, 2, 2, 59]), np.arange(60)[::-1].copy()]


def with_everything(graphs):
    """The set with edge features, weights and positions."""
    random = np.random.default_rng(1)
    edges = int(graphs.edge_counts.sum())
    nodes = int(graphs.sizes.sum())
    return replace(
        graphs,
        edge_features=random.integers(0, 2, (edges, 3)).astype(np.float32),
        edge_names=("x", "y", "z"),
        weights=random.normal(size=edges).astype(np.float32),
        positions=random.normal(size=(nodes, 3)).astype(np.float32),
    )


def assert_same_batches(store, dense):
    for indices in CHOICES:
        expected = store.batch(indices)
        got = dense.batch(torch.from_numpy(indices), dense.widest(indices))
        for field in ("adjacency", "nodes", "edges", "mask", "targets"):
            ours, theirs = getattr(got, field), getattr(expected, field)
            assert ours.dtype == theirs.dtype, field
            assert torch.equal(ours, theirs), field
        assert got.directed == expected.directed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("distance", [(), ("raw", "rbf4")])
@pytest.mark.parametrize("full", [False, True])
def test_batches_are_those_of_the_flat_store(full, distance, dtype, monkeypatch):
    monkeypatch.setattr(dense_store, "ENTRIES", 7 * 8**2)  # seven graphs of eight nodes
    graphs = small_set()
    store = GraphStore(with_everything(graphs) if full else graphs, "cpu", distance, dtype)
    assert_same_batches(store, DenseStore(store))


def test_whole_numbers_are_bytes_and_others_are_not():
    dense = DenseStore(GraphStore(with_everything(small_set())))
    assert dense.edges.dtype == torch.uint8
    assert dense.adjacency.dtype == dense.nodes.dtype == torch.float32
    assert DenseStore(GraphStore(small_set())).adjacency.dtype == torch.uint8


@pytest.mark.parametrize("odd", [256.0, -1.0, 0.5])
def test_one_number_that_is_no_byte_keeps_all_wide(odd, monkeypatch):
    monkeypatch.setattr(dense_store, "ENTRIES", 7 * 8**2)  # seven graphs of eight nodes
    graphs = small_set()
    features = np.ones_like(graphs.node_features)
    features[40] = odd
    store = GraphStore(replace(graphs, node_features=features))
    dense = DenseStore(store)
    assert dense.nodes.dtype == torch.float32
    assert_same_batches(store, dense)


def test_the_estimate_holds_what_is_kept():
    store = GraphStore(with_everything(small_set()), "cpu", ("raw",))
    dense = DenseStore(store)
    kept = sum(x.nbytes for x in (dense.adjacency, dense.nodes, dense.edges, dense.positions))
    assert kept <= DenseStore.bytes_of(store) <= 4 * kept


@pytest.mark.parametrize("level", ["node", "edge"])
def test_targets_of_nodes_and_edges_are_refused(level):
    with pytest.raises(DataError, match=rf"one target for each {level}, .* GraphStore"):
        DenseStore(GraphStore(small_set(level)))


@pytest.mark.gpu
def test_batches_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    store = GraphStore(with_everything(small_set()), "cuda", ("raw",))
    dense = DenseStore(store)
    got = dense.batch(torch.tensor([3, 1], device="cuda"), dense.widest(np.array([3, 1])))
    assert torch.equal(got.edges, store.batch(np.array([3, 1])).edges)
