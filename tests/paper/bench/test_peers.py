"""Networks of others on our batches."""

import pytest
import torch

from g2n2.bench import Workload, drawn_molecules
from g2n2_paper.bench import peers
from g2n2_paper.bench.cases import cases_for
from g2n2_paper.bench.run import Bench

CPU = torch.device("cpu")


@pytest.fixture
def work():
    return Workload.of(drawn_molecules(6), 3, CPU, "modern", width=8, layers=2)


def test_pyg_batches_hold_the_same_molecules(work):
    pytest.importorskip("torch_geometric", reason="a batch of PyG")
    graphs, indices = work.graphs, work.batches[0]
    data = peers._joined(work, indices)
    assert data.num_graphs == len(indices)
    assert data.edge_index.shape[1] == graphs.edge_counts[indices].sum()
    torch.testing.assert_close(data.y, torch.from_numpy(graphs.targets[indices]).float())
    sizes = graphs.sizes[indices]
    assert data.pairs.shape[1] == (sizes * (sizes - 1)).sum()
    left, right = data.pairs
    assert torch.equal(data.batch[left], data.batch[right]), "pairs stay within a molecule"
    torch.testing.assert_close((data.pos[left] - data.pos[right]).norm(dim=1), data.distances)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("peer", sorted(peers.SPARSE))
def test_a_pass_of_a_pyg_network_moves_its_weights_in_training_only(
    work, peer, training, monkeypatch
):
    pytest.importorskip("torch_geometric", reason="a network of PyG")
    torch.manual_seed(0)
    network = peers.SPARSE[peer](work)
    monkeypatch.setitem(peers.SPARSE, peer, lambda _: network)
    one_pass = peers.sparse_pass(work, peer, training)
    before = [weight.detach().clone() for weight in network.parameters()]
    one_pass()
    same = [torch.equal(*pair) for pair in zip(before, network.parameters(), strict=True)]
    assert all(same) is not training


def test_a_peer_that_cannot_run_says_why(work, monkeypatch):
    (case,) = cases_for("cuda", ["train-128-bf16-modern"])
    bench = Bench(CPU, quick=True)
    ours = 1.0
    assert "need a GPU" in bench._peer(case, work, "compiled", ours, None)["skipped"]
    monkeypatch.setattr("g2n2_paper.bench.run.find_spec", lambda name: None)
    for peer, module in (("gine", "torch_geometric"), ("floydnet", "floydnet")):
        row = bench._peer(case, work, peer, ours, None)
        assert row == {"skipped": f"{module} is not installed"}
