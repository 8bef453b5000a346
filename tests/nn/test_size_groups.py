"""Groups of nearly equal graphs: little padding, and what the whole batch gives."""

import networkx as nx
import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN, size_groups

QM9_LIKE = [12, 14, 15, 16, 16, 17, 17, 18, 18, 18, 18, 19, 19, 20, 20, 21, 22, 23, 25, 27] * 2


def test_every_graph_is_in_one_group():
    groups = size_groups.size_groups(QM9_LIKE, size_groups.SMALL)
    assert sorted(graph for group in groups for graph in group) == list(range(len(QM9_LIKE)))
    assert len(groups) > 1


def test_little_of_a_group_is_padding():
    groups = size_groups.size_groups(QM9_LIKE, size_groups.SMALL)
    rooms = sum(len(group) * max(QM9_LIKE[graph] for graph in group) ** 2 for group in groups)
    real = sum(n**2 for n in QM9_LIKE)
    assert len(QM9_LIKE) * 27**2 > 2 * real, "the whole batch is half padding"
    assert rooms < 1.2 * real


def test_a_small_batch_stays_whole():
    assert size_groups.size_groups([3, 4, 9], size_groups.SMALL) == [[2, 1, 0]]


def test_networks_without_matrices_are_split_less(monkeypatch):
    """Forty molecules are several groups to r-G_L3 and one to GNNML1; a protein is apart for it."""
    asked = []
    kept = size_groups.size_groups
    monkeypatch.setattr(
        size_groups, "size_groups", lambda *given: asked.append(kept(*given)) or asked[-1]
    )
    molecules = GraphBatch.of([nx.path_graph(n) for n in QM9_LIKE])
    proteins = GraphBatch.of([nx.path_graph(n) for n in [300, *QM9_LIKE]])
    for grammar in ("r-G_L3", "GNNML1"):
        GrammarGNN(grammar, width=2, layers=1)(molecules)
    GrammarGNN("GNNML1", width=2, layers=1)(proteins)
    assert [len(groups) > 1 for groups in asked] == [True, False, True]


@pytest.mark.parametrize("task", ["graph", "node", "edge"])
def test_outputs_and_gradients_are_those_of_the_whole_batch(task, monkeypatch):
    torch.manual_seed(0)
    sizes = (3, 9, 5, 1, 9, 4)
    batch = GraphBatch.of([nx.gnp_random_graph(n, 0.5, seed=n) for n in sizes], dtype=torch.float64)
    model = GrammarGNN("r-G_L3", width=4, layers=2, task=task, decision=(5,)).double()

    def outcome(backend):
        model.backend = backend
        value = model(batch)
        return value, torch.autograd.grad(value.square().sum(), list(model.parameters()))

    expected, slopes = outcome("reference")
    monkeypatch.setattr("g2n2.nn.model.SMALL", 0)
    assert len(size_groups.size_groups(sizes, 0)) == 5
    value, grads = outcome("plain")
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(grads, slopes)
