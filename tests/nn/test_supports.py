"""Supports of GNNML3 against numpy's eigendecomposition, one graph at a time."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from g2n2.data.batch import GraphBatch  # noqa: E402
from g2n2.errors import DataError, LoweringError  # noqa: E402
from g2n2.nn import GrammarGNN  # noqa: E402
from g2n2.nn.supports import SpectralSupports  # noqa: E402

GRAPHS = [
    nx.empty_graph(1),
    nx.path_graph(2),
    nx.disjoint_union(nx.cycle_graph(5), nx.empty_graph(2)),
    nx.gnp_random_graph(12, 0.3, seed=4),
    nx.petersen_graph(),
    nx.empty_graph(3),
]
EXACT = 1e-10


def batch_of(graphs: list[nx.Graph]) -> GraphBatch:
    return GraphBatch.of(graphs, dtype=torch.float64)


def by_hand(graph: nx.Graph, count: int, bandwidth: float, steps: int) -> np.ndarray:
    n = len(graph)
    values, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(graph).toarray())
    supports = np.zeros((n, n, count))
    near = dict(nx.all_pairs_shortest_path_length(graph, cutoff=steps))
    order = list(graph)
    field = np.array([[j in near[i] for j in order] for i in order])
    for s, centre in enumerate(np.linspace(0, values.max(), count - 1)):
        bump = np.exp(-bandwidth * (values - centre) ** 2)
        supports[..., s] = field * (vectors @ np.diag(bump) @ vectors.T)
    supports[..., -1] = np.eye(n)
    return supports


@pytest.mark.parametrize(("count", "bandwidth", "steps"), [(5, 5.0, 1), (4, 10.0, 2), (2, 1.0, 3)])
def test_designed_supports(count: int, bandwidth: float, steps: int) -> None:
    batch = batch_of(GRAPHS)
    design = SpectralSupports(count, bandwidth, steps, learned=False)
    found = design(batch.adjacency, batch.mask).numpy()
    assert found.shape == (len(GRAPHS), 12, 12, count)
    for value, graph in zip(found, GRAPHS, strict=True):
        n = len(graph)
        assert np.abs(value[:n, :n] - by_hand(graph, count, bandwidth, steps)).max() < EXACT
        assert not value[n:].any()
        assert not value[:, n:].any()


def test_learned_supports_are_the_papers_function_of_the_designed_ones() -> None:
    torch.manual_seed(0)
    batch = batch_of(GRAPHS)
    supports = SpectralSupports(4).double()
    mix = supports.mix
    assert mix is not None
    c = torch.tensor(by_hand(GRAPHS[3], 4, 5.0, 1))
    w1, w2, w3, w4 = (layer.weight for layer in (mix.first, mix.left, mix.right, mix.last))
    hidden = torch.cat([(c @ w1.T).relu(), (c @ w2.T).tanh() * (c @ w3.T).tanh()], -1)
    found = supports(batch.adjacency, batch.mask)
    assert (found[3] - (hidden @ w4.T).relu()).abs().max() < EXACT
    assert w4.shape == (4, 16)
    assert found[3].abs().max() > 1e-3


def test_what_lies_in_the_padding_is_not_read() -> None:
    supports = SpectralSupports(3, receptive_field=2, learned=False)
    batch = batch_of([nx.path_graph(4), nx.path_graph(6)])
    noisy = batch.adjacency.clone()
    noisy[0, 5, :] = noisy[0, :, 5] = 7.0  # a short cut from one end of the path to the other
    assert torch.equal(supports(noisy, batch.mask), supports(batch.adjacency, batch.mask))


def test_no_gradient_runs_through_eigenvectors() -> None:
    """Theirs is infinite where eigenvalues coincide, as in every symmetric graph."""
    batch = batch_of([nx.petersen_graph()])
    adjacency = batch.adjacency.requires_grad_()
    SpectralSupports(3).double()(adjacency, batch.mask).sum().backward()
    assert adjacency.grad is None


def test_gnnml3_is_equivariant_and_trains() -> None:
    torch.manual_seed(2)
    model = GrammarGNN(
        "GNNML3-5", width=8, layers=2, task="node", preset="paper", supports=SpectralSupports(5)
    ).double()
    together = model(batch_of(GRAPHS))
    for i, graph in enumerate(GRAPHS):
        order = torch.randperm(len(graph))
        alone = batch_of([graph])
        moved = replace(alone, adjacency=alone.adjacency[:, order][:, :, order])
        expected = together[i, : len(graph)][order]
        assert (model(moved)[0] - expected).abs().max() < EXACT * max(1.0, expected.abs().max())
    together.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.supports.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_and_autocast(dtype: torch.dtype) -> None:
    batch = GraphBatch.of(GRAPHS, dtype=dtype)
    designed = SpectralSupports(5, learned=False)
    plain = designed(batch.adjacency, batch.mask)
    assert plain.dtype == dtype
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(designed(batch.adjacency, batch.mask), plain)


def test_refusals() -> None:
    with pytest.raises(LoweringError, match="count must be at least 2, got 1"):
        SpectralSupports(1)
    with pytest.raises(LoweringError, match="receptive_field must be at least 1, got 0"):
        SpectralSupports(3, receptive_field=0)
    with pytest.raises(LoweringError, match="bandwidth must be positive"):
        SpectralSupports(3, bandwidth=0.0)
    batch = batch_of([nx.DiGraph([(0, 1)])])
    with pytest.raises(DataError, match="directed"):
        SpectralSupports(3)(batch.adjacency, batch.mask)


@pytest.mark.parametrize("learned", [True, False])
def test_each_support_lies_in_one_piece(learned: bool) -> None:
    batch = batch_of(GRAPHS)
    model = GrammarGNN("GNNML3-4", width=4, supports=SpectralSupports(4, learned=learned)).double()
    constants = model.constants(batch.adjacency, batch.mask)
    whole = model.supports(batch.adjacency, batch.mask)
    for k, name in enumerate(("C_1", "C_2", "C_3", "C_4")):
        assert constants[name].is_contiguous(), "every product would copy it"
        assert torch.equal(constants[name][..., 0], whole[..., k])
