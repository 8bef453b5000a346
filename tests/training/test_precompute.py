"""Spectral supports made once for all graphs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from g2n2.data.store import GraphStore
from g2n2.errors import DataError
from g2n2.nn.baselines import baseline
from g2n2.nn.supports import SpectralSupports
from g2n2.training.cuda_graphs import GraphedStep, Recorded
from g2n2.training.optimiser import Average, Learner
from g2n2.training.precompute import precompute_supports
from g2n2.training.task import Task
from small_sets import small_set

GRAPHS = small_set()
CHOSEN = np.array([5, 17, 2, 30, 9])


def network(seed=0, device="cpu", **options):
    torch.manual_seed(seed)
    return baseline("GNNML3", node_features=2, width=8, layers=2, **options).to(device)


def test_a_network_says_the_same_of_supports_it_is_given(monkeypatch):
    monkeypatch.setattr("g2n2.training.precompute.AT_ONCE", 300)  # made in many pieces
    model, store = network(), GraphStore(GRAPHS)
    without = store.batch(CHOSEN)
    precompute_supports(model, store, Recorded())
    assert len(store.designed) == int((GRAPHS.sizes**2).sum()), "no padding is kept"
    batch = store.batch(CHOSEN)
    assert without.designed is None
    torch.testing.assert_close(
        batch.designed, model.supports.designed(batch.adjacency, batch.mask), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(model(batch), model(without), rtol=1e-4, atol=1e-5)
    rows = store.packed(CHOSEN)
    again = model(without)[np.argsort(GRAPHS.sizes[CHOSEN], kind="stable")]
    torch.testing.assert_close(model(rows), again, rtol=1e-4, atol=1e-5)


def test_given_supports_are_read_and_not_made_again(monkeypatch):
    model, store = network(), GraphStore(GRAPHS)
    precompute_supports(model, store, Recorded())
    monkeypatch.setattr(SpectralSupports, "_designed", None)  # fails where it is called
    batch = store.batch(CHOSEN)
    assert model(batch).shape == (5, 1)
    moved = batch.to(torch.float64)
    assert moved.designed.dtype == torch.float64
    changed = replace(batch, designed=batch.designed * 0.5)
    assert not torch.allclose(model(changed), model(batch))


def test_networks_without_spectral_supports_get_none():
    store = GraphStore(GRAPHS)
    precompute_supports(baseline("GNNML1", node_features=2, width=8), store, Recorded())
    assert store.designed is None


def test_a_table_beyond_the_limit_is_not_made(monkeypatch):
    monkeypatch.setattr("g2n2.training.precompute.LARGEST", 100)
    store = GraphStore(GRAPHS)
    precompute_supports(network(), store, Recorded())
    assert store.designed is None


def test_the_next_run_finds_the_table_unless_its_supports_differ():
    recorded, first, second, third = Recorded(), *(GraphStore(GRAPHS) for _ in range(3))
    precompute_supports(network(), first, recorded)
    precompute_supports(network(1), second, recorded)
    assert second.designed is first.designed
    precompute_supports(network(bandwidth=2.0), third, recorded)
    assert third.designed is not first.designed


@pytest.mark.parametrize("name", ["weights", "edges"])
def test_other_graphs_of_the_same_sizes_get_a_table_of_their_own(name):
    first, recorded = GraphStore(GRAPHS), Recorded()
    if name == "weights":
        others = replace(GRAPHS, weights=np.full(GRAPHS.edges.shape[1], 2.0, np.float32))
    else:
        last = np.repeat(GRAPHS.sizes - 1, GRAPHS.edge_counts)
        others = replace(GRAPHS, edges=last - GRAPHS.edges)  # the nodes in reverse
    second = GraphStore(others)
    precompute_supports(network(), first, recorded)
    precompute_supports(network(), second, recorded)
    assert not torch.allclose(first.designed, second.designed)


def test_directed_graphs_are_refused_before_anything_is_trained():
    edges = GRAPHS.edges[:, :-1]
    counts = GRAPHS.edge_counts.copy()
    counts[-1] -= 1
    directed = replace(
        GRAPHS, edges=edges, edge_counts=counts, edge_features=GRAPHS.edge_features[:-1]
    )
    with pytest.raises(DataError, match="some graph is directed"):
        precompute_supports(network(), GraphStore(directed), Recorded())


def steps_of(model, store):
    rate = torch.tensor(0.0, device=store.device)
    on_gpu = store.device.type == "cuda"
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, capturable=on_gpu, foreach=on_gpu)
    task = Task.of(GRAPHS)
    return GraphedStep(Learner(model, optimiser, Average(model, 0.0), store, task, 8, 1.0))


def test_a_recorded_step_reads_the_table():
    """Its loss is that of the network on a batch as it comes."""
    model, store = network(), GraphStore(GRAPHS)
    batch = store.batch(CHOSEN)
    expected, _ = Task.of(GRAPHS).loss(model(batch), batch.targets)
    precompute_supports(model, store, Recorded())
    step = steps_of(model, store)
    step._whole(step._tell(CHOSEN, 0.0, 0.0))
    torch.testing.assert_close(step.loss, expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_replayed_steps_with_supports_are_the_steps_taken_plainly():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model, twin = network(device="cuda"), network(device="cuda")
    store, plain = GraphStore(GRAPHS, "cuda"), GraphStore(GRAPHS, "cuda")
    precompute_supports(model, store, Recorded())
    step, optimiser = steps_of(model, store), torch.optim.Adam(twin.parameters(), lr=0.01)
    for number in range(1, 4):
        optimiser.zero_grad()
        batch = plain.batch(CHOSEN)
        loss, known = Task.of(GRAPHS).loss(twin(batch), batch.targets)
        (loss / known).backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        optimiser.step()
        taken, _ = step.step(CHOSEN, 0.01, number)
        assert float(taken) == pytest.approx(float(loss), rel=2e-3)
