"""Replayed forward passes: those of the network itself, for every batch and weight."""

import networkx as nx
import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError, ShapeError
from g2n2.nn import G2N2, Replay


def batch(*graphs):
    return GraphBatch.of(graphs).to("cuda")


def test_a_network_on_a_cpu_is_refused_in_words():
    with pytest.raises(DataError, match=r"needs a GPU, and the network is on cpu"):
        Replay(G2N2(width=8, layers=1))


@pytest.fixture(autouse=True)
def precision_as_before():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "near"), [(None, 1e-5), (torch.bfloat16, 1e-5)])
def test_replays_are_the_passes_of_the_network(dtype, near):
    torch.manual_seed(0)
    model = G2N2(width=16, layers=2).to("cuda")
    replay = Replay(model, dtype)
    first = batch(nx.cycle_graph(5), nx.path_graph(4))
    other = batch(nx.path_graph(5), nx.star_graph(3))
    larger = batch(nx.cycle_graph(9))

    # Beside half precision a replay takes in tf32 what stays in float32.
    torch.set_float32_matmul_precision("highest" if dtype is None else "high")

    def plain(given):
        with torch.no_grad(), torch.autocast("cuda", dtype, enabled=dtype is not None):
            return model(given)

    for given in (first, other, larger, first):
        torch.testing.assert_close(replay(given), plain(given), rtol=near, atol=near)
    assert len(replay.recorded) == 2
    assert not torch.allclose(plain(first), plain(other))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    torch.testing.assert_close(replay(other), plain(other), rtol=near, atol=near)


@pytest.mark.gpu
def test_a_batch_that_does_not_fit_is_refused():
    replay = Replay(G2N2(node_features=3, width=8, layers=1).to("cuda"))
    with pytest.raises(ShapeError):
        replay(batch(nx.cycle_graph(5)))
