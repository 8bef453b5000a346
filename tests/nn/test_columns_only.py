"""Networks that keep no matrix, on a sparse A: the dense path is what they are compared with."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cases import UNMARKED
from g2n2 import GrammarGNN, GraphBatch, find_grammar
from g2n2.compiler.lowering import columns_only
from g2n2.data import store
from g2n2.errors import DataError, ShapeError
from g2n2.training.run import Run
from g2n2.training.session import train_config
from small_runs import no_pictures, small_config
from small_sets import small_set

dense = GraphBatch.from_edges
sparse = partial(GraphBatch.from_edges, sparse=True)
GRAMMARS = (
    "GNNML1",
    "GCN",
    "r-G_L1",
    "V → (A²)V | (AᵀA)V | (diag(A1) + -1 × A)V | 1",
    "V → J(V⊙V) | (V1ᵀ)V | (A(diag(V)A))V | A1",
    "V → tanh(AV) | Rᵀ | VS | 1\nR → RA | R(AI) | Vᵀ\nS → RV | 1ᵀA1",
)


def graphs() -> dict[str, torch.Tensor]:
    """Four directed graphs with loops, parallel edges, weights and a node without edges."""
    draw = torch.Generator().manual_seed(3)
    sizes = torch.tensor([5, 9, 1, 7])
    owner = torch.arange(4).repeat_interleave(torch.tensor([8, 30, 0, 12]))
    ends = (torch.rand(2, 50, generator=draw, dtype=torch.float64) * sizes[owner]).long()
    ends[:, 1], owner[1] = ends[:, 0], owner[0]
    ends[:, 8:38] = ends[:, 8:38].clamp(max=7)
    return {
        "sizes": sizes,
        "graph_of_edge": owner,
        "ends": ends,
        "nodes": torch.randn(22, 3, generator=draw, dtype=torch.float64),
        "weights": torch.randn(50, generator=draw, dtype=torch.float64),
    }


@pytest.mark.parametrize("grammar", GRAMMARS)
@pytest.mark.parametrize(
    ("preset", "backend", "task"),
    [
        ("paper", "packed", "graph"),
        ("modern", "packed", "node"),
        ("paper", "reference", "edge"),
        ("modern", "reference", "graph"),
    ],
)
def test_a_sparse_adjacency_gives_the_outputs_and_gradients_of_a_dense_one(
    grammar: str, preset: str, backend: str, task: str
) -> None:
    torch.manual_seed(0)
    rules = find_grammar(grammar)
    model = GrammarGNN(
        rules, 3, width=4, layers=2, task=task, preset=preset, backend=backend, context=True
    ).double()
    made = graphs()
    found = []
    for make in (dense, sparse):
        nodes = made["nodes"].clone().requires_grad_()
        batch = make(**{**made, "nodes": nodes}, directed=False)
        outputs = model(batch)
        if task == "edge" and make is dense:
            outputs = outputs[made["graph_of_edge"], made["ends"][0], made["ends"][1]]
        model.zero_grad()
        (outputs.sin() * torch.linspace(0.1, 1, outputs.shape[-2])[:, None]).sum().backward()
        weights = [w.grad for w in model.parameters() if w.grad is not None]
        found.append([outputs.detach(), nodes.grad, *weights])
    assert len(found[0]) == len(found[1])
    for naive, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, naive, rtol=1e-9, atol=1e-9)


def test_which_grammars_of_the_catalogue_need_no_matrix() -> None:
    named = {name for name, grammar in UNMARKED.items() if columns_only(grammar)}
    assert named == {"r-G_L1", "GCN", "GNNML1"}


@pytest.mark.parametrize(
    "text", ["V → (A⊙A)V | 1", "V → exp(A)V | 1", "V → AV | 1\nS → Tr(A) | 1ᵀV", "V → CV | 1"]
)
def test_a_rule_that_reads_entries_needs_the_matrix(text: str) -> None:
    assert not columns_only(find_grammar(text))


def test_a_sparse_batch_is_refused_by_other_networks() -> None:
    batch = sparse(**graphs(), directed=False).to(torch.float32)
    with pytest.raises(DataError, match=r"sparse A.*r-G_L3.*to_dense"):
        GrammarGNN("r-G_L3", 3, width=4, layers=1)(batch)
    edges = sparse(**graphs(), edges=torch.ones(50, 2), directed=False).to(torch.float32)
    with pytest.raises(ShapeError, match="2 edge features"):
        GrammarGNN("GNNML1", 3, width=4, layers=1)(edges)
    spoilt = graphs() | {"weights": torch.full((50,), torch.nan)}
    with pytest.raises(DataError, match=r"graph 0 hold NaN"):
        sparse(**spoilt, directed=False).checked()


def test_whether_a_sparse_batch_is_directed() -> None:
    made = graphs() | {"weights": torch.arange(50.0)}
    there, back = made["ends"], made["ends"].flip(0)
    both = made | {
        "ends": torch.cat([there, back], 1),
        "graph_of_edge": made["graph_of_edge"].repeat(2),
        "weights": made["weights"].repeat(2),
    }
    for graph in (made, both):
        assert sparse(**graph).directed == dense(**graph).directed
    assert sparse(**made).directed
    assert not sparse(**both).directed


@pytest.mark.parametrize("level", ["graph", "node", "edge"])
def test_a_run_on_large_graphs_learns_what_it_learns_on_a_dense_adjacency(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Train, evaluate and predict, the first at a size where every graph counts as large."""
    config = small_config(options={}, dataset="small", grammar="GCN", epochs=2, precision="64")
    graphs, made = small_set(level), []
    fitted = GrammarGNN.fitted
    for name, large in (("sparse", 1), ("dense", 10**6)):
        seen: list[GraphBatch] = []

        def watched(model: GrammarGNN, batch: GraphBatch, seen: list[GraphBatch] = seen) -> Any:
            seen.append(batch)
            return fitted(model, batch)

        monkeypatch.setattr(store, "LARGE", large)
        monkeypatch.setattr(GrammarGNN, "fitted", watched)
        with no_pictures():
            train_config(config, tmp_path / name, graphs=graphs)
        run = Run(tmp_path / name)
        held = run.evaluate(graphs=graphs)
        made.append((run.predict(small_set(level, seed=1)).values, held.scores["all"]["mae"]))
        assert {batch.adjacency.is_sparse for batch in seen} == {name == "sparse"}
    np.testing.assert_allclose(made[0][0], made[1][0], rtol=1e-6, atol=1e-8)
    assert made[0][1] == pytest.approx(made[1][1])
