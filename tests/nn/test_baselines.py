"""Baselines against PyG's own layers on a plain Batch, and their invariances."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import networkx as nx
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch import nn  # noqa: E402
from torch_geometric.data import Batch, Data  # noqa: E402
from torch_geometric.nn import GINConv, global_add_pool, global_max_pool, global_mean_pool  # noqa: E402

from g2n2.data.batch import GraphBatch  # noqa: E402
from g2n2.errors import DataError, G2N2Error, LoweringError, ShapeError  # noqa: E402
from g2n2.nn import GrammarGNN  # noqa: E402
from g2n2.nn.baselines import BASELINES, baseline  # noqa: E402

EXACT = 1e-10
POOLS = {"sum": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}
SIZES = (1, 2, 7, 29)


def data_of(n: int, weighted: bool = False, edges: int = 0, features: int = 3) -> Data:
    graph = nx.gnp_random_graph(n, min(1.0, 4 / n), seed=n)
    generator = torch.Generator().manual_seed(n)
    pairs = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    data = Data(
        x=torch.randn(n, features, generator=generator, dtype=torch.float64),
        edge_index=torch.cat([pairs, pairs.flip(0)], 1),
        num_nodes=n,
    )
    if weighted:
        half = torch.rand(pairs.shape[1], generator=generator, dtype=torch.float64) + 0.5
        data.edge_weight = torch.cat([half, half])
    if edges:
        attributes = torch.randn(pairs.shape[1], edges, generator=generator, dtype=torch.float64)
        data.edge_attr = torch.cat([attributes, attributes])
    return data


def batch_of(**options: Any) -> Batch:
    return Batch.from_data_list([data_of(n, **options) for n in SIZES])


def through_pyg(model: Any, kind: str, batch: Batch) -> torch.Tensor:
    """The nodes' last values by PyG alone, with the weights of our network."""
    x = batch.x
    for place, convolution in enumerate(model.convolutions):
        if kind == "GIN":
            twin = GINConv(convolution.nn, train_eps=True)
            twin.eps = convolution.eps
            x = twin(x, batch.edge_index)
            norm = model.norms[place]
            inputs = x, norm.running_mean.clone(), norm.running_var.clone()
            x = nn.functional.batch_norm(
                *inputs, norm.weight, norm.bias, training=model.training, eps=norm.eps
            )
        elif kind == "ChebNet":
            x = convolution(x, batch.edge_index, batch.edge_weight, batch.batch, torch.tensor(2.0))
        else:
            x = convolution(x, batch.edge_index, batch.edge_weight)
        x = x.relu()
    return x


@pytest.mark.parametrize("pooling", POOLS)
@pytest.mark.parametrize(
    ("kind", "weighted"),  # PyG's GINConv has no weights to compare with
    [("GCN", False), ("GCN", True), ("ChebNet", False), ("ChebNet", True), ("GIN", False)],
)
def test_same_as_pyg_on_a_plain_batch(kind: str, weighted: bool, pooling: str) -> None:
    torch.manual_seed(0)
    batch = batch_of(weighted=weighted)
    model = baseline(kind, node_features=3, width=6, out=2, readout=pooling).double()
    for convolution in model.convolutions:
        for parameter in convolution.parameters():
            nn.init.normal_(parameter, std=0.5)  # ε and biases start at zero: untold apart
    pooled = POOLS[pooling](through_pyg(model, kind, batch), batch.batch)
    expected = model.readout.decision(pooled)
    found = model(batch)
    assert found.shape == (len(SIZES), 2)
    assert (found - expected).abs().max() < EXACT * max(1.0, expected.abs().max())


def test_gin_sums_with_weights() -> None:
    """One layer by hand: MLP((1 + ε)x + Aᵀx), on a directed weighted pair."""
    torch.manual_seed(0)
    data = Data(
        x=torch.tensor([[1.0], [2.0]], dtype=torch.float64),
        edge_index=torch.tensor([[0], [1]]),
        edge_weight=torch.tensor([3.0], dtype=torch.float64),
    )
    model = baseline("GIN", node_features=1, width=4, layers=1, task="node", decision=()).double()
    layer = model.convolutions[0]
    nn.init.constant_(layer.eps, 0.25)
    summed = torch.tensor([[1.25], [2.5 + 3.0]], dtype=torch.float64)
    normed = nn.functional.batch_norm(layer.nn(summed), None, None, training=True, eps=0.1)
    expected = model.readout.decision(normed.relu())
    assert (model(data) - expected).abs().max() < EXACT


@pytest.mark.parametrize("kind", ["GCN", "ChebNet"])
def test_node_and_edge_outputs_in_pygs_layout(kind: str) -> None:
    torch.manual_seed(0)
    batch = batch_of()
    model = baseline(kind, node_features=3, width=6, task="node", out=2).double()
    values = through_pyg(model, kind, batch)
    assert (model(batch) - model.readout.decision(values)).abs().max() < EXACT
    model = baseline(kind, node_features=3, width=6, task="edge").double()
    values = through_pyg(model, kind, batch)
    ends = torch.cat([values[batch.edge_index[0]], values[batch.edge_index[1]]], 1)
    assert (model(batch) - model.readout.decision(ends)).abs().max() < EXACT


def permuted(batch: GraphBatch) -> tuple[GraphBatch, torch.Tensor]:
    order = torch.randperm(batch.mask.shape[1])
    return replace(
        batch,
        adjacency=batch.adjacency[:, order][:, :, order],
        nodes=batch.nodes[:, order],
        edges=batch.edges[:, order][:, :, order],
        mask=batch.mask[:, order],
    ), order


@pytest.mark.parametrize("task", ["graph", "node"])
@pytest.mark.parametrize("name", BASELINES)
def test_padding_batch_mates_and_node_order_do_not_matter(name: str, task: Any) -> None:
    torch.manual_seed(0)
    model = baseline(
        name, node_features=3, edge_features=2, width=5, layers=2, out=2, task=task, decision=(7,)
    ).double()
    model.eval()  # batch normalisation looks at its batch while it is trained
    together = model(GraphBatch.from_pyg(batch_of(weighted=True, edges=2)))
    for i, n in enumerate(SIZES):
        alone = GraphBatch.from_pyg(data_of(n, weighted=True, edges=2))
        if n == 1:  # no edge, so no edge feature is stored
            alone = replace(alone, edges=torch.zeros(1, 1, 1, 2, dtype=torch.float64))
        moved, order = permuted(alone)
        expected = together[i] if task == "graph" else together[i, :n]
        bound = EXACT * max(1.0, expected.detach().abs().max().item())
        assert (model(alone)[0] - expected).abs().max() < bound
        turned = model(moved)[0]
        assert (turned - (expected if task == "graph" else expected[order])).abs().max() < bound
    if task == "node":
        assert not together[1, 2:].any()


@pytest.mark.parametrize("name", BASELINES)
def test_what_lies_in_the_padding_is_not_read(name: str) -> None:
    torch.manual_seed(0)
    model = baseline(name, node_features=3, width=5, layers=2, decision=(7,)).double()
    batch = GraphBatch.from_pyg(batch_of())
    padding = ~batch.mask
    adjacency, nodes = batch.adjacency.clone(), batch.nodes.clone()
    adjacency[padding] = 2.0
    adjacency.mT[padding] = 2.0
    nodes[padding] = 5.0
    noisy = model.network(adjacency, nodes, batch.edges, batch.mask)
    expected = model(batch)
    assert (noisy - expected).abs().max() < EXACT * max(1.0, expected.detach().abs().max().item())


@pytest.mark.parametrize("name", BASELINES)
def test_edge_features_are_read_where_the_table_says_so(name: str) -> None:
    torch.manual_seed(0)
    model = baseline(name, node_features=3, edge_features=2, width=5, decision=(7,)).double()
    batch = GraphBatch.from_pyg(batch_of(edges=2))
    changed = model(replace(batch, edges=2 * batch.edges))
    assert (model(batch) - changed).abs().max().gt(1e-9) == BASELINES[name].reads_edges


@pytest.mark.parametrize("name", ["GIN", "GCN", "ChebNet"])
def test_nodes_without_features_start_with_one(name: str) -> None:
    torch.manual_seed(0)
    out = baseline(name, width=6)(GraphBatch.of([nx.cycle_graph(4), nx.star_graph(4)]))
    assert out[0].item() != pytest.approx(out[1].item(), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "grammar", "preset"),
    [
        ("GNNML1", "GNNML1", "paper"),
        ("gnnml3", "GNNML3-5", "paper"),
        ("PPGN", "PPGN", "ppgn"),
        ("2-IGN", "2-IGN", "paper"),
        ("g2n2", "r-G_L3", "modern"),
    ],
)
def test_grammars_and_presets(name: str, grammar: str, preset: str) -> None:
    model = baseline(name, width=4)
    assert isinstance(model, GrammarGNN)
    assert (model.plan.grammar.name, model.plan.preset.name) == (grammar, preset)
    assert baseline(name, width=4, preset="modern").plan.preset.name == "modern"


def test_options_reach_the_network() -> None:
    assert len(baseline("ChebNet", width=4, order=7).convolutions[0].lins) == 7
    model = baseline("GNNML3", width=4, supports=3, bandwidth=2.0, receptive_field=2, learned=False)
    assert (model.supports.count, model.supports.bandwidth) == (3, 2.0)
    assert (model.supports.receptive_field, model.supports.mix) == (2, None)


@pytest.mark.parametrize("name", ["GIN", "GCN", "ChebNet"])
def test_a_network_that_is_no_grammar_has_no_preset(name: str) -> None:
    with pytest.raises(LoweringError, match=f"{name} has layers of its own and no preset"):
        baseline(name, preset="modern")


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LoweringError, match="'GAT'; known: GCN, GIN, ChebNet"):
        baseline("GAT")
    with pytest.raises(LoweringError, match="layers must be at least 1, got 0"):
        baseline("GCN", layers=0)
    batch = GraphBatch.of([nx.path_graph(3)])
    with pytest.raises(ShapeError, match="0 node features, the network was made for 2"):
        baseline("GIN", node_features=2)(batch)
    with pytest.raises(ShapeError, match="0 edge features, the network was made for 2"):
        baseline("GIN", edge_features=2)(batch)
    with pytest.raises(DataError, match=r"float32 .* the network torch\.float64"):
        baseline("GIN").double()(batch)
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.setattr("g2n2.nn.convolutions.find_spec", lambda name: None)
    with pytest.raises(G2N2Error, match=r"g2n2\[pyg\]"):
        baseline("GCN")


def test_gin_keeps_calm_where_all_nodes_are_alike() -> None:
    """Trained on regular graphs, its outputs stay near its targets in evaluation too."""
    torch.manual_seed(0)
    batch = GraphBatch.of([nx.random_regular_graph(3, 12, seed=seed) for seed in range(8)])
    model = baseline("GIN", width=8, layers=3)
    steps = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(100):
        steps.zero_grad()
        (model(batch) - 1.0).square().mean().backward()
        steps.step()
    assert (model.eval()(batch) - 1.0).abs().max() < 0.3
