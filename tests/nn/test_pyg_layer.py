"""GrammarLayer in other people's models, and GrammarGNN on PyG's tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import pytest
import torch
from torch import Tensor

from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError, G2N2Error, GrammarError, LoweringError, ShapeError
from g2n2.grammars.catalogue import TEXTS
from g2n2.nn import GrammarGNN, GrammarLayer, PairFeatures

EXACT = 1e-10


def edges_of(graph: nx.Graph, start: int = 0) -> Tensor:
    """Both directions of every edge, nodes counted from `start`."""
    listed = [(u + start, v + start) for u, v in graph.edges]
    listed += [(v, u) for u, v in listed]
    return torch.tensor(listed, dtype=torch.long).reshape(-1, 2).T


GRAPHS = [nx.path_graph(4), nx.empty_graph(1), nx.cycle_graph(5), nx.empty_graph(2)]


def tensors(
    graphs: list[nx.Graph] = GRAPHS, features: int = 3, channels: int = 2, seed: int = 0
) -> dict[str, Tensor]:
    """PyG's tensors of some graphs, isolated nodes among them."""
    draw = torch.Generator().manual_seed(seed)
    sizes = torch.tensor([len(graph) for graph in graphs])
    starts = (torch.cumsum(sizes, 0) - sizes).tolist()
    index = torch.cat([edges_of(g, s) for g, s in zip(graphs, starts, strict=True)], dim=1)
    return {
        "x": torch.randn(int(sizes.sum()), features, generator=draw, dtype=torch.float64),
        "edge_index": index,
        "edge_attr": torch.randn(index.shape[1], channels, generator=draw, dtype=torch.float64),
        "batch": torch.repeat_interleave(torch.arange(len(graphs)), sizes),
    }


def dense(given: dict[str, Tensor], graphs: list[nx.Graph] = GRAPHS) -> GraphBatch:
    """The same graphs as a GraphBatch, filled entry by entry."""
    nodes, edges, start = [], [], 0
    for graph in graphs:
        n = len(graph)
        nodes.append(given["x"][start : start + n])
        pair = torch.zeros(n, n, given["edge_attr"].shape[1], dtype=torch.float64)
        for (u, v), values in zip(given["edge_index"].T.tolist(), given["edge_attr"], strict=True):
            if start <= u < start + n:
                pair[u - start, v - start] = values
        edges.append(pair)
        start += n
    return GraphBatch.of(graphs, nodes, edges, torch.float64)


def layer_of(grammar: str = "r-G_L3", **options: Any) -> GrammarLayer:
    torch.manual_seed(0)
    return GrammarLayer(grammar, 3, 6, edge_dim=2, **options).double()


@pytest.mark.parametrize("preset", ["modern", "paper", "official", "ppgn"])
def test_the_layer_on_tensors_is_the_layer_on_a_batch(preset: str) -> None:
    layer, given = layer_of(preset=preset), tensors()
    nodes, pairs = layer(**given)
    expected, dense_pairs = layer.on_batch(dense(given))
    assert torch.equal(nodes, expected)
    assert torch.equal(pairs.values, dense_pairs.values)
    assert nodes.shape == (12, 6)
    assert pairs.values.shape == (4, 5, 5, 6)


@pytest.mark.parametrize("task", ["graph", "node", "edge"])
def test_a_network_on_tensors_is_the_network_on_a_batch(task: Any) -> None:
    torch.manual_seed(0)
    model = GrammarGNN("r-G_L3", 3, 2, width=5, layers=2, out=2, task=task).double()
    given = tensors()
    got, whole = model(**given), model(dense(given))
    assert torch.equal(model(*given.values()), got)
    batch = dense(given)
    if task == "graph":
        expected = whole
    elif task == "node":
        expected = whole[batch.mask]
    else:
        place = batch.mask.nonzero()
        start, end = place[given["edge_index"][0]], place[given["edge_index"][1]]
        expected = whole[start[:, 0], start[:, 1], end[:, 1]]
    assert torch.equal(got, expected)


def test_a_network_takes_data_tensors_and_nothing_else() -> None:
    data = pytest.importorskip("torch_geometric.data")
    model = GrammarGNN("r-G_L3", 3, 2, width=4, layers=1).double()
    given = tensors()
    batch = data.Data(**{k: v for k, v in given.items() if k != "batch"}, batch=given["batch"])
    assert torch.equal(model(batch), model(**given))
    with pytest.raises(DataError, match="Data holds all there is; leave out edge_index"):
        model(batch, given["edge_index"])
    with pytest.raises(DataError, match="x comes without edge_index"):
        model(given["x"])
    assert model(GraphBatch.from_pyg(batch)).shape == (4, 1)


def test_pairs_in_every_layout() -> None:
    layer, given = layer_of(), tensors()
    _, pairs = layer(**given)
    index, rows, owner = pairs.pair_index(), pairs.rows(), pairs.pair_batch()
    listed, start = [], 0
    for number, graph in enumerate(GRAPHS):
        n = len(graph)
        listed += [(start + i, start + j, number, i, j) for i in range(n) for j in range(n)]
        start += n
    assert index.T.tolist() == [[a, b] for a, b, *_ in listed]
    assert owner.tolist() == [number for _, _, number, *_ in listed]
    for row, (_, _, number, i, j) in zip(rows, listed, strict=True):
        assert torch.equal(row, pairs.values[number, i, j])
    assert torch.equal(pairs.at(index), rows)
    loops = torch.arange(12).expand(2, -1)
    assert torch.equal(pairs.diagonal(), pairs.at(loops))
    assert pairs.channels == 6
    with pytest.raises(DataError, match="nodes of two graphs"):
        pairs.at(torch.tensor([[0], [11]]))
    with pytest.raises(DataError, match="names nodes 0 to 12"):
        pairs.at(torch.tensor([[0], [12]]))


def outputs(layers: list[GrammarLayer], graph: nx.Graph) -> Tensor:
    """Sums of node features after stacked layers, pair features carried on."""
    x, pairs = torch.ones(len(graph), 1, dtype=torch.float64), None
    for layer in layers:
        x, pairs = layer(x, edges_of(graph), pairs=pairs)
    return x.sum(0)


@pytest.mark.parametrize(("grammar", "apart"), [("r-G_L3", True), ("r-G_L1", False)])
def test_stacked_layers_have_the_power_of_their_grammar(grammar: str, apart: bool) -> None:
    pair = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    torch.manual_seed(0)
    channels = 8 * apart  # r-G_L1 has no matrices
    layers = [GrammarLayer(grammar, 1, 8).double()]
    layers += [GrammarLayer(grammar, 8, 8, pair_channels=channels).double() for _ in range(2)]
    first, second = (outputs(layers, graph) for graph in pair)
    difference = float((first - second).detach().abs().max())
    assert difference > 1e-3 if apart else difference < EXACT


@pytest.mark.parametrize("grammar", [*TEXTS])
def test_gradients_reach_every_weight(grammar: str) -> None:
    torch.manual_seed(0)
    has_matrices = "M →" in TEXTS[grammar]
    edge_dim = 2 if has_matrices else None
    first = GrammarLayer(grammar, 3, 6, edge_dim).double()
    second = GrammarLayer(grammar, 6, 6, edge_dim, pair_channels=6 * has_matrices).double()
    given = tensors([*GRAPHS, nx.Graph([(0, 0), (0, 1)])])  # M⊙I reads nothing without a loop
    given = given if has_matrices else {k: v for k, v in given.items() if k != "edge_attr"}
    nodes, pairs = first(**given)
    assert (pairs is not None) == has_matrices
    nodes, pairs = second(**{**given, "x": nodes}, pairs=pairs)
    nodes.square().sum().backward()  # node features alone: pair features reach them
    dead = [
        name
        for layer in (first, second)
        for name, weight in layer.named_parameters()
        if weight.grad is None or (not weight.grad.abs().sum() and "bias" not in name)
    ]
    assert dead == []


def test_pairs_are_read_beside_the_edge_features() -> None:
    first, given = layer_of(), tensors()
    second = GrammarLayer("r-G_L3", 3, 4, edge_dim=2, pair_channels=6).double()
    _, pairs = first(**given)
    nodes, made = second(**given, pairs=pairs)
    batch = dense(given)
    joined = replace(batch, edges=torch.cat([batch.edges, pairs.values], dim=-1))
    expected, dense_made = second.on_batch(joined)
    assert torch.equal(nodes, expected)
    assert torch.equal(made.values, dense_made.values)
    other = PairFeatures(2 * pairs.values, pairs.mask)
    assert (second(**given, pairs=other)[0] - nodes).abs().max() > 1e-3


def test_several_layers_in_one() -> None:
    layer = layer_of(layers=3)
    assert len(layer.network.layers) == 3
    assert layer(**tensors())[0].shape == (12, 6)
    assert "3, 6, edge_dim=2" in repr(layer)


def test_one_channel_and_other_numbers() -> None:
    torch.manual_seed(0)
    layer, given = GrammarLayer("r-G_L3", 1, 4, edge_dim=1), tensors()
    whole = torch.arange(12)
    flat = given["edge_attr"][:, 0].float()
    expected, _ = layer(whole[:, None].float(), given["edge_index"], flat[:, None], given["batch"])
    got, _ = layer(whole, given["edge_index"].int(), flat, given["batch"].int())
    assert torch.equal(got, expected)


def test_no_edges_one_graph_and_no_features() -> None:
    layer = GrammarLayer("r-G_L3", 0, 4)
    for nothing in (torch.empty(2, 0), torch.empty(2, 0, dtype=torch.long)):
        nodes, pairs = layer(torch.empty(3, 0), nothing)
        assert nodes.shape == (3, 4)
        assert torch.equal(nodes[0], nodes[1])
        assert pairs.values.shape == (1, 3, 3, 4)
    by_batch, _ = layer(None, edges_of(nx.path_graph(3)), batch=torch.zeros(3, dtype=torch.long))
    assert torch.equal(by_batch, layer(torch.empty(3, 0), edges_of(nx.path_graph(3)))[0])


LINE = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
X = torch.zeros(3, 2)

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"x": torch.zeros(3, 5)}, ShapeError, "x has 5 channels, the layer was made for 2: give in_channels=5"),
    ({"x": torch.zeros(3, 2, 1)}, DataError, r"x has shape \[3, 2, 1\]"),
    ({"x": X.double()}, DataError, "torch.float64"),
    ({"x": X * torch.nan}, DataError, "NaN"),
    ({"x": torch.zeros(3, 2, dtype=torch.complex64)}, DataError, "real numbers"),
    ({"x": torch.zeros(0, 2)}, DataError, "no nodes"),
    ({"x": None}, DataError, "how many nodes"),
    ({"x": [[0.0, 1.0]]}, DataError, "got list"),
    ({"edge_index": LINE.T}, DataError, r"shape \[4, 2\] .*expected whole numbers \[2, edges\]; transpose it"),
    ({"edge_index": LINE.float()}, DataError, "torch.float32, expected whole numbers"),
    ({"edge_index": LINE + 1}, DataError, "names nodes 1 to 3, but the PyG data has 3 nodes"),
    ({"edge_index": LINE - 1}, DataError, "names nodes -1 to 1"),
    ({"edge_index": LINE[:, :1]}, DataError, "directed"),
    ({"edge_index": LINE.to("meta")}, DataError, "edge_index is on meta, the nodes are on cpu"),
    ({"edge_index": LINE.tolist()}, DataError, "edge_index is a list, expected a tensor"),
    ({"edge_attr": torch.zeros(4, 3)}, ShapeError, "edge_attr has 3 channels, the layer was made for 0: give edge_dim=3"),
    ({"edge_attr": torch.zeros(3, 1)}, DataError, r"edge_attr has shape \[3, 1\]"),
    ({"edge_weight": torch.zeros(4, 2)}, DataError, "edge_weight has 2 columns"),
    ({"batch": torch.tensor([0, 1, 0])}, DataError, "graph by graph"),
    ({"batch": torch.tensor([0, 0, 1])}, DataError, "an edge joins two graphs"),
    ({"batch": torch.tensor([0, 0])}, DataError, r"batch has shape \[2\], expected the graph of 3 nodes"),
    ({"batch": torch.zeros(3)}, DataError, "batch holds torch.float32"),
    ({"batch": torch.tensor([-1, -1, -1])}, DataError, "batch names graph -1"),
    ({"batch": torch.tensor([1, 1, 1])}, DataError, "graph 0 of the batch has no nodes"),
    ({"pairs": PairFeatures(torch.zeros(1, 3, 3, 4), torch.ones(1, 3, dtype=torch.bool))}, ShapeError, "give pair_channels=4"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused_in_words(
    change: dict[str, Any], kind: type[Exception], message: str
) -> None:
    layer = GrammarLayer("r-G_L3", 2, 4)
    with pytest.raises(kind, match=message) as caught:
        layer(**{"x": X, "edge_index": LINE, **change})
    assert isinstance(caught.value, G2N2Error)


def test_pairs_of_other_graphs_are_refused() -> None:
    layer = GrammarLayer("r-G_L3", 2, 4, pair_channels=4)
    other = PairFeatures(torch.zeros(1, 2, 2, 4), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ShapeError, match=r"\[2\] nodes, this batch has \[3\]"):
        layer(X, LINE, pairs=other)
    with pytest.raises(ShapeError, match="pairs has 0 channels, the layer was made for 4"):
        layer(X, LINE)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("nonsense", 2, 4), GrammarError, "no grammar is called"),
        (("r-G_L3", -1, 4), LoweringError, "node_features must be"),
        (("r-G_L3", 2, 0), LoweringError, "must be a whole number, at least 1"),
        (("GNNML1", 2, 4, 3), LoweringError, "no matrix variable"),
        (("r-G_L3", 2, 4, -3), LoweringError, "edge_dim must be a whole number"),
    ],
)
def test_a_layer_that_cannot_be_made(arguments: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        GrammarLayer(*arguments)


def test_half_precision_gives_the_dtype_of_the_weights() -> None:
    layer = GrammarLayer("r-G_L3", 3, 8, edge_dim=2)
    given = {k: v.float() if v.is_floating_point() else v for k, v in tensors().items()}
    with torch.autocast("cpu", torch.bfloat16):
        nodes, pairs = layer(**given)
    assert (nodes.dtype, pairs.values.dtype) == (torch.float32, torch.float32)
    expected, _ = layer(**given)
    assert (nodes - expected).abs().max() < 0.1 * expected.abs().max()
