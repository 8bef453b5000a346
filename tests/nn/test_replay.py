"""Replayed forward passes: those of the network itself, for every batch and weight."""

import networkx as nx
import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError, ShapeError
from g2n2.nn import G2N2, GrammarGNN, Replay
from g2n2.ops.precision import float32_products


def batch(*graphs):
    return GraphBatch.of(graphs).to("cuda")


def test_a_network_on_a_cpu_is_refused_in_words():
    with pytest.raises(DataError, match=r"needs a GPU, and the network is on cpu"):
        Replay(G2N2(width=8, layers=1))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_replays_are_the_passes_of_the_network(dtype):
    torch.manual_seed(0)
    model = G2N2(width=16, layers=2).to("cuda")
    replay = Replay(model, dtype)
    first = batch(nx.cycle_graph(5), nx.path_graph(4))
    other = batch(nx.path_graph(5), nx.star_graph(3))
    larger = batch(nx.cycle_graph(9))

    def plain(given):
        # Beside half precision a replay takes in tf32 what stays in float32.
        with (
            torch.no_grad(),
            float32_products(dtype is not None),
            torch.autocast("cuda", dtype, enabled=dtype is not None),
        ):
            return model(given)

    for given in (first, other, larger, first):
        torch.testing.assert_close(replay(given), plain(given), rtol=1e-5, atol=1e-5)
    assert len(replay.passes) == 2
    assert not torch.allclose(plain(first), plain(other))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    torch.testing.assert_close(replay(other), plain(other), rtol=1e-5, atol=1e-5)
    assert len(replay.passes) == 2
    for weight in model.parameters():
        weight.data = weight.data * 0.5
    torch.testing.assert_close(replay(other), plain(other), rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
def test_a_recording_under_inference_mode_is_of_use_outside_it():
    replay = Replay(G2N2(width=8, layers=1).to("cuda"))
    given = batch(nx.cycle_graph(5))
    with torch.inference_mode():
        inside = replay(given)
    torch.testing.assert_close(replay(given), inside)


@pytest.mark.gpu
def test_pyg_goes_in_and_out_as_with_the_network():
    data = pytest.importorskip("torch_geometric.data", reason="needs PyG")
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]], device="cuda")
    graph = data.Data(edge_index=edges, num_nodes=3)
    model = GrammarGNN("r-G_L3", width=8, layers=1, task="node").to("cuda")
    with torch.no_grad():
        torch.testing.assert_close(Replay(model)(graph), model(graph), rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
def test_what_the_network_refuses_is_refused():
    replay = Replay(G2N2(node_features=3, width=8, layers=1).to("cuda"))
    with pytest.raises(ShapeError):
        replay(batch(nx.cycle_graph(5)))
    with pytest.raises(DataError):
        replay(nx.cycle_graph(5))
    from g2n2.nn import baseline

    with pytest.raises(DataError, match="supports from eigenvectors"):
        Replay(baseline("GNNML3", width=8, layers=1).to("cuda"))
