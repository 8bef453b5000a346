"""What a network refuses, in which words; and the odd graphs it must take."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError, G2N2Error, LoweringError, MemoryBudgetError, ShapeError
from g2n2.nn import GrammarGNN
from sample_batches import weighted_batch


def small(grammar: str = "r-G_L3", **options: Any) -> GrammarGNN:
    torch.manual_seed(0)
    return GrammarGNN(grammar, **{"width": 3, "layers": 2, "decision": (4,), **options})


def pyg_like(nodes: int = 3, **fields: Any) -> Any:
    """What PyG data looks like from outside: a path."""
    line = torch.arange(nodes - 1)
    ends = torch.cat([torch.stack([line, line + 1]), torch.stack([line + 1, line])], 1)
    return SimpleNamespace(num_nodes=nodes, edge_index=ends, **fields)


PATH = GraphBatch.of([nx.path_graph(3)])

BAD: list[tuple[GrammarGNN, Any, type[Exception], tuple[str, ...]]] = [
    (small(), weighted_batch(3).to(torch.float32), ShapeError, ("3 node features", "made for 0", "node_features=3")),
    (small(node_features=2), PATH, ShapeError, ("0 node features", "made for 2")),
    (small(), weighted_batch(0, 4).to(torch.float32), ShapeError, ("4 edge features", "made for 0", "edge_features=4")),
    (small(edge_features=2), PATH, ShapeError, ("0 edge features", "made for 2")),
    (small(), GraphBatch.of([nx.DiGraph([(0, 1)])]), DataError, ("directed", "r-G_L3", "directed=True", "symmetrise")),
    (small("GNNML1"), GraphBatch.of([nx.DiGraph([(0, 1)])]), DataError, ("directed", "GNNML1", "add V_c → (Aᵀ)V_c", "symmetrise")),
    (small(), PATH.to(torch.float64), DataError, ("torch.float64", "torch.float32", "batch.to('cpu', torch.float32)")),
    (small(), PATH.to("meta"), DataError, ("on meta", "on cpu")),
    (small(), nx.path_graph(3), DataError, ("GraphBatch, a PyG", "got Graph", "GraphBatch.of")),
    (small(), np.eye(3), DataError, ("got ndarray",)),
    (small(), None, DataError, ("got NoneType",)),
    (small(), [PATH], DataError, ("got list",)),
    (small(memory_budget=1000), PATH, MemoryBudgetError, ("1 graphs of up to 3 nodes", "MiB", "width", "memory_budget")),
    (small(memory_budget=0), PATH, MemoryBudgetError, ("memory_budget",)),
    (small(), pyg_like(200_000), MemoryBudgetError, ("200000 nodes", "GiB", "GNNML1")),
    (small(), SimpleNamespace(num_nodes=0, edge_index=torch.zeros(2, 0)), DataError, ("no nodes",)),
    (small(node_features=1), pyg_like(x=torch.tensor([1.0, torch.nan, 0.0])), DataError, ("node features", "NaN", "[1, 0]")),
    (small(edge_features=1), pyg_like(edge_attr=torch.tensor([1.0, 2.0, torch.inf, 0.0])), DataError, ("edge features", "infinity")),
    (small(), replace(PATH, mask=PATH.mask.float()), DataError, ("mask", "torch.float32", "torch.bool")),
    (small(), replace(PATH, mask=PATH.mask[:0]), DataError, ("batch is empty",)),
    (small(), replace(PATH, mask=torch.ones(1, 2, dtype=torch.bool)), ShapeError, ("adjacency", "[1, 3, 3]", "[1, 2, 2]")),
    (small(), replace(PATH, nodes=torch.zeros(1, 4, 0)), ShapeError, ("nodes", "[1, 4, 0]", "[1, 3, 0]")),
    (small(), replace(PATH, edges=torch.zeros(3, 3, 0)), ShapeError, ("edges", "[3, 3, 0]", "[1, 3, 3, 0]")),
    (small(), replace(PATH, mask=torch.zeros(1, 3, dtype=torch.bool)), DataError, ("graph 0", "no nodes")),
    (small(), replace(PATH, mask=torch.tensor([[True, False, True]])), DataError, ("put padding last",)),
]  # fmt: skip


@pytest.mark.parametrize(("model", "data", "kind", "words"), BAD)
def test_refused(
    model: GrammarGNN, data: Any, kind: type[Exception], words: tuple[str, ...]
) -> None:
    with pytest.raises(kind) as caught:
        model(data)
    assert isinstance(caught.value, G2N2Error)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("directed", "no", "directed is true or false"),
        ("context", 2, "context is true or false"),
        ("memory_budget", "1 GB", "number of bytes"),
        ("supports", 3, "torch.nn.Module"),
    ],
)
def test_options_of_another_kind_are_refused(option: str, value: Any, expected: str) -> None:
    """`directed="no"` is true to Python."""
    with pytest.raises(LoweringError, match=expected):
        small(**{option: value})


@pytest.mark.parametrize("rules", ["V_r → 1ᵀ | V_rA ; S → V_r1", "S → 1ᵀA1 | SS"])
def test_node_features_need_columns_or_matrices(rules: str) -> None:
    with pytest.raises(LoweringError, match="2 node features have nowhere to go; leave them out"):
        small(rules, node_features=2)


def test_each_side_of_a_mark_takes_the_features_it_can_hold() -> None:
    """The graphs have rows alone, their copies columns."""
    rules = "V_r → 1ᵀ | V_rA | Σv. V_r′ ; V_c′ → v | AV_c′ ; V_r′ → V_r | V_c′ᵀ ; S → V_r1"
    model, path = small(rules, node_features=1), nx.path_graph(3)
    ends, middle = (GraphBatch.of([path], nodes=[x]) for x in ([[1], [0], [1]], [[0], [1], [0]]))
    assert model(ends) != model(middle)


def test_features_that_are_no_numbers() -> None:
    with pytest.raises(DataError, match="node features of graph 1 are no numbers"):
        GraphBatch.of(["Bw", "Bw"], [np.zeros((3, 1)), ["C", "O", "N"]])


def test_the_rule_advised_for_directed_graphs_reads_them() -> None:
    forward, back = GraphBatch.of([[[0, 1], [0, 0]]]), GraphBatch.of([[[0, 0], [1, 0]]])
    model = small("GNNML1 ∪ V_c → (Aᵀ)V_c", task="node")
    torch.testing.assert_close(model(forward), model(back).flip(1))


def test_a_large_pyg_graph_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **options: Any) -> None:
        raise AssertionError("the dense batch was made first")

    monkeypatch.setattr(GraphBatch, "from_pyg", never)
    with pytest.raises(MemoryBudgetError):
        small(memory_budget=2**20)(pyg_like(5000))


def test_smaller_batches_are_advised() -> None:
    many = GraphBatch.of([nx.path_graph(9)] * 20)
    with pytest.raises(MemoryBudgetError, match="smaller batches"):
        small(memory_budget=10_000)(many)


def test_evaluation_needs_less() -> None:
    """A budget that training exceeds may do for one forward pass."""
    model, batch = small(layers=6), GraphBatch.of([nx.path_graph(9)])
    model.memory_budget = 60_000
    with pytest.raises(MemoryBudgetError):
        model(batch)
    with torch.no_grad():
        model.eval()(batch)


def test_supports_of_another_number() -> None:
    class One(torch.nn.Module):
        def forward(self, adjacency: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return adjacency.unsqueeze(-1)

    with pytest.raises(ShapeError, match=r"1 matrices.*C_1, C_2, C_3"):
        small("MPNN-3", supports=One())(PATH)


GRAPHS = {
    "one node": GraphBatch.of([nx.empty_graph(1)]),
    "one node with a loop": GraphBatch.of([[[1.0]]]),
    "no edges": GraphBatch.of([nx.empty_graph(4)]),
    "isolated nodes": GraphBatch.of([nx.disjoint_union(nx.path_graph(2), nx.empty_graph(3))]),
    "negative weights": GraphBatch.of([[[0, -1.5], [-1.5, 0]]]),
}


@pytest.mark.parametrize("preset", ["paper", "modern", "official", "ppgn"])
@pytest.mark.parametrize("task", ["graph", "node", "edge"])
def test_odd_graphs_are_taken(preset: str, task: Any) -> None:
    for name, batch in GRAPHS.items():
        for readout in ("sum", "mean", "max"):
            model = small(
                "PPGN" if preset == "ppgn" else "r-G_L3", preset=preset, task=task, readout=readout
            )
            output = model(batch)
            output.sum().backward()
            assert output.isfinite().all(), name
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            assert all(grad.isfinite().all() for grad in grads), name


def test_gcn_takes_isolated_nodes() -> None:
    output = small("GCN", task="node")(GRAPHS["isolated nodes"])
    assert output.isfinite().all()


def test_pyg_data_without_edges() -> None:
    for task, rows in (("graph", 1), ("node", 3), ("edge", 0)):
        model = small(task=task)
        data = SimpleNamespace(num_nodes=3, edge_index=None)
        assert model(data).shape == (rows, 1)


def test_a_batch_made_by_hand_can_be_checked() -> None:
    spoilt = replace(PATH, nodes=torch.full((1, 3, 1), torch.nan))
    with pytest.raises(DataError, match="node features of graph 0"):
        spoilt.checked()
    empty = replace(PATH, mask=torch.zeros(1, 3, dtype=torch.bool))
    with pytest.raises(DataError, match="graph 0 of the batch has no nodes"):
        empty.checked()


def test_directed_graphs_enter_where_words_read_them() -> None:
    """Two digraphs r-G_L3 merges without Aᵀ: 2→1, 3→1 and 2→1, 3→0."""
    one, other = np.zeros((4, 4)), np.zeros((4, 4))
    one[2, 1] = one[3, 1] = other[2, 1] = other[3, 0] = 1.0
    batch = GraphBatch.of([one, other])
    for grammar, options in (
        ("r-G_L3", {"directed": True}),
        ("i-G_L3", {}),
        ("r-G_L3 ∪ {M → Aᵀ}", {}),
    ):
        output = small(grammar, width=16, preset="modern", **options)(batch)
        assert abs(float((output[0] - output[1]).detach())) > 1e-4, grammar
    blind = small(width=16)
    merged = blind(replace(batch, directed=False))
    assert torch.allclose(merged[0], merged[1], atol=1e-6)
