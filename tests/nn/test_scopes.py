"""Networks whose marked copies meet in every layer: rules between a graph and its copies."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from g2n2 import (
    Fragment,
    Grammar,
    GrammarGNN,
    GrammarLayer,
    GraphBatch,
    find_grammar,
    grammar_test,
    requirements,
    write_formula,
)
from g2n2.compiler.plan import Linear, RuleStep, Selector
from g2n2.compiler.presets import find_preset
from g2n2.errors import LoweringError, MemoryBudgetError
from g2n2.grammars.rules import Rule
from g2n2.graphs.families import rook_graph, shrikhande_graph
from g2n2.nn.exporting import export_program
from g2n2.nn.marks import MarkedCopies
from g2n2.nn.scopes import Crossing, PaddedCopies
from g2n2.power.witnesses import pair_of_rings
from g2n2.testing import assert_padding_invariant, assert_permutation_equivariant

FULL = "L3Σ (full)"
REDUCED = (
    "V → Σv. V′ ; M → Σv. M′ | Σv. V′V′ᵀ ; V′ → M′V′ | v | V ; "
    "M′ → M′⊙M′ | M′M′ | diag(V′) | A | M ; S → 1ᵀV"
)
SENTENCES = (
    "V → AV | 1 | Σv. V′ ; V′ → AV′ | v | diag(v)V ; "
    "S → Σv. V′ᵀV′ | 1ᵀV | Σv. 1ᵀV | Σv. vᵀV′ | Σv. vᵀA³v"
)
"""Sums of scalars are read out beside words from outside, and a rule names the mark."""
L1_FULL = "V → diag(V)V | AV | 1 | Σv. V′ ; V′ → diag(V′)V′ | AV′ | v | V ; S → 1ᵀV"
GRAMMARS: dict[str, Grammar] = {
    "full": find_grammar(FULL),
    "reduced": Grammar.parse(REDUCED),
    "exhaustive": Fragment("L3 Σ").exhaustive(),
    "sentences": Grammar.parse(SENTENCES),
}
SIZES = (1, 7, 2, 12, 7)


def network(grammar: str | Grammar, seed: int = 0, **options: object) -> GrammarGNN:
    torch.manual_seed(seed)
    options = {"width": 4, "layers": 2} | options
    return GrammarGNN(grammar, **options).double()  # type: ignore[arg-type]


def batch_of(*graphs: nx.Graph | np.ndarray) -> GraphBatch:
    given = [nx.from_numpy_array(g) if isinstance(g, np.ndarray) else g for g in graphs]
    return GraphBatch.of([nx.convert_node_labels_to_integers(g) for g in given]).to(torch.float64)


def featured(edges: bool) -> GraphBatch:
    torch.manual_seed(1)
    graphs = [nx.gnp_random_graph(n, 0.5, seed=n) for n in SIZES]
    nodes, pairs = [torch.randn(n, 2) for n in SIZES], [torch.randn(n, n, 1) for n in SIZES]
    symmetric = {"edges": [x + x.transpose(0, 1) for x in pairs]} if edges else {}
    return GraphBatch.of(graphs, nodes=nodes, **symmetric).to(torch.float64)


def gradients(model: GrammarGNN, batch: GraphBatch) -> dict[str, Tensor]:
    model.zero_grad()
    model(batch).square().sum().backward()
    return {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad
        for name, weight in model.named_parameters()
    }


def gap(model: GrammarGNN, first: np.ndarray, second: np.ndarray) -> float:
    """How far apart the outputs for two graphs are, relative to their size."""
    with torch.no_grad():
        one, other = model.eval()(batch_of(first, second))
    return float(((one - other).abs() / one.abs()).max())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("full", {}),
        ("full", {"preset": "paper"}),
        ("full", {"readout": "grammar", "pair_norm": "graph"}),
        ("full", {"task": "edge", "context": True}),
        ("reduced", {}),
        ("reduced", {"preset": "ppgn", "task": "node"}),
        ("exhaustive", {}),
        ("exhaustive", {"preset": "paper", "readout": "grammar"}),
        ("sentences", {}),
        ("sentences", {"preset": "paper", "readout": "grammar"}),
    ],
)
def test_executors_agree(name: str, options: dict[str, object]) -> None:
    edges = int(name != "sentences")
    options = {"node_features": 2, "edge_features": edges} | options
    batch = featured(bool(edges))
    models = [network(GRAMMARS[name], backend=b, **options) for b in ("reference", "packed")]
    outputs = [model(batch) for model in models]
    torch.testing.assert_close(*outputs, rtol=1e-10, atol=1e-10)
    slopes = [gradients(model, batch) for model in models]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-10)
    assert all(slope.isfinite().all() for slope in slopes[0].values())


@pytest.mark.parametrize("backend", ["reference", "packed"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_neither_numbering_nor_padding_nor_batch_mates_count(name: str, backend: str) -> None:
    model = network(GRAMMARS[name], backend=backend).eval()
    graph = nx.lollipop_graph(4, 3)
    assert_permutation_equivariant(model, batch_of(graph))
    assert_padding_invariant(model, batch_of(graph))
    alone, beside = model(batch_of(graph)), model(batch_of(graph, nx.complete_graph(9)))[:1]
    torch.testing.assert_close(alone, beside, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("task", ["node", "edge"])
def test_nodes_and_pairs_have_outputs_that_move_with_them(task: str) -> None:
    model, order = network(FULL, task=task).eval(), [2, 0, 4, 1, 3]
    matrix = nx.to_numpy_array(nx.bull_graph())
    output, moved = model(batch_of(matrix)), model(batch_of(matrix[np.ix_(order, order)]))
    expected = output[:, order] if task == "node" else output[:, order][:, :, order]
    torch.testing.assert_close(moved, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("backend", ["reference", "packed"])
@pytest.mark.parametrize("name", ["full", "exhaustive", "sentences"])
def test_a_layer_for_pyg_models(name: str, backend: str) -> None:
    """Node features move with the nodes, and pairs are those of the graph."""
    torch.manual_seed(0)
    layer = GrammarLayer(GRAMMARS[name], 3, 4, backend=backend).double()
    x, edges = torch.randn(5, 3).double(), torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    graph, order = torch.tensor([0, 0, 0, 1, 1]), torch.tensor([2, 0, 1, 4, 3])
    nodes, pairs = layer(x, edges, batch=graph)
    moved, _ = layer(x[order], order.argsort()[edges], batch=graph)
    torch.testing.assert_close(moved, nodes[order])
    assert (pairs is None) == (name == "sentences")
    assert pairs is None or pairs.values.shape == (2, 3, 3, 4)


def crossing(text: str, preset: str, *variables: str) -> Crossing:
    """A rule with selectors of width 3 for each of its variables, written `V′ → V`."""
    rule = Rule.parse(text)
    selectors = tuple(Selector(sort, (Linear(3, 3),)) for sort in rule.holes)
    torch.manual_seed(2)
    return Crossing(RuleStep(rule, 3, selectors), find_preset(preset)).double()


@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_rules_between_a_graph_and_its_copies_are_what_they_say(preset: str) -> None:
    """Two graphs of 2 and 3 nodes in one batch; every copy by itself, in plain loops."""
    torch.manual_seed(0)
    sizes, owners = (2, 3), [0, 0, 1, 1, 1]
    marked, weights = [0, 1, 0, 1, 2], [1.0, 1.0, 2.0, 0.5, 0.5]
    mask = torch.arange(3) < torch.tensor(sizes)[:, None]
    columns = torch.randn(2, 3, 3, dtype=torch.float64) * mask[..., None]
    inner = torch.randn(5, 3, 3, dtype=torch.float64) * mask[owners][..., None]
    pairs = torch.randn(5, 3, 3, 3, dtype=torch.float64)
    pairs *= (mask[owners][:, :, None] & mask[owners][:, None])[..., None]
    size = torch.tensor(sizes, dtype=torch.float64)
    constants = [
        {"1": m[..., None].double(), "1/√n": n.rsqrt()}
        for m, n in ((mask, size), (mask[owners], size[owners]))
    ]
    chosen = MarkedCopies(
        torch.tensor(owners), torch.tensor(marked), torch.tensor(weights, dtype=torch.float64)
    )
    copies = PaddedCopies(chosen, (constants[0], constants[1]))
    read = {"V": columns}, {"V": inner, "M": pairs}

    lift = crossing("V′ → V", preset)
    expected = torch.stack([columns[g] @ lift.selectors[0].maps[0].weight.T for g in owners])
    torch.testing.assert_close(lift(read, copies), expected)

    for text in ("V → Σv. V′", "M → Σv. M′", "M → Σv. V′V′ᵀ", "M → Σv. V(V′)ᵀ"):
        rule = crossing(text, preset)
        values = rule(read, copies)
        maps = [select.maps[0].weight.T for select in rule.selectors]
        for graph, n in enumerate(sizes):
            total = torch.zeros_like(values[graph])
            for copy, weight in enumerate(weights):
                if owners[copy] != graph:
                    continue
                given = [
                    (read[scope][letter][copy if scope else graph]) @ map_
                    for (scope, letter), map_ in zip(rule.reads, maps, strict=True)
                ]
                if len(given) == 2:
                    total += weight * torch.einsum("ik,jk->ijk", *given)
                else:
                    total += weight * given[0]
            scale = n**-0.5 if preset == "modern" else 1.0
            torch.testing.assert_close(values[graph], total * scale)


def test_random_marks_give_the_sum_on_average() -> None:
    """One mark of three, counted three times: the mean over the choices is the sum over all."""
    values = torch.randn(3, 3, 2, dtype=torch.float64)
    constants = {"1": torch.ones(1, 3, 1, dtype=torch.float64)}

    def summed(marks: list[int], weight: float) -> Tensor:
        weights = torch.full((len(marks),), weight, dtype=torch.float64)
        chosen = MarkedCopies(
            torch.zeros(len(marks), dtype=torch.int64), torch.tensor(marks), weights
        )
        return PaddedCopies(chosen, (constants, constants)).summed(values[marks], False)

    mean = sum(summed([mark], 3.0) for mark in range(3)) / 3
    torch.testing.assert_close(mean, summed([0, 1, 2], 1.0))


@pytest.mark.parametrize("backend", ["reference", "packed"])
def test_marks_are_drawn_in_training_alone(backend: str) -> None:
    batch = batch_of(nx.lollipop_graph(4, 3), nx.path_graph(2))
    drawn, every = (network(FULL, marks=m, backend=backend) for m in (2, "all"))
    first, second = drawn.train()(batch), drawn(batch)
    assert (first[0] - second[0]).abs() > 1e-6, "other vertices are drawn"
    torch.testing.assert_close(first[1], second[1])  # both vertices of the path, always
    torch.testing.assert_close(drawn.eval()(batch), every(batch))


@pytest.mark.parametrize("grammar", [FULL, REDUCED])
def test_a_network_sees_what_its_test_sees(grammar: str) -> None:
    """Rook and Shrikhande: the test needs three rounds, and networks three layers."""
    pair = rook_graph(4), shrikhande_graph()
    for layers in (1, 2, 3, 4):
        model = network(grammar, layers=layers)
        options = model.plan.test_options()
        assert options.describes == "exactly"
        colours = grammar_test(
            model.plan.test_grammar(),
            pair,
            rounds=layers,
            functions=options.functions,
            inputs=options.inputs,
        )
        apart = len(set(colours.graph_colours.tolist())) == 2
        assert apart == (layers >= 3)
        assert (gap(model, *pair) > 1e-9) == apart


def ring(order: str) -> np.ndarray:
    """Graphs C6 (R) and 2·C3 (S), each joined to a centre, the centres on a cycle."""
    parts = {"R": nx.cycle_graph(6), "S": nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))}
    graph = nx.empty_graph(0)
    for letter in order:
        start = len(graph)
        graph = nx.disjoint_union(graph, parts[letter])
        graph.add_edges_from((start + 6, node) for node in range(start, start + 6))
    graph.add_edges_from(pairwise([*range(6, 7 * len(order), 7), 6]))
    return nx.to_numpy_array(graph, nodelist=range(len(graph)))


def test_columns_that_come_back_out_of_a_mark_go_beyond_sums_at_the_end() -> None:
    """A mark sees one part of the ring at a time, the graph sees in what order they stand."""
    pair, stronger = (ring("RRSS"), ring("RSRS")), []
    for grammar, apart in (("r-G_L1Σ", False), (L1_FULL, True)):
        for layers in (3, 6):
            model = network(grammar, seed=1, width=8, layers=layers, out=8)
            options = model.plan.test_options()
            history = grammar_test(
                model.plan.test_grammar(), pair, functions=options.functions, inputs=options.inputs
            ).graph_history
            assert (len(set(history[-1].tolist())) == 2) == apart
            with torch.no_grad():
                for name, weight in model.layers.named_parameters():
                    weight.mul_(2.0) if weight.dim() == 2 else None
                    weight.normal_() if name.endswith("bias") else None
            stronger.append(gap(model, *pair))
    pooled, pooled_deep, early, deep = stronger
    assert max(pooled, pooled_deep, early) < 1e-12
    assert deep > 1e-10


@pytest.mark.slow
def test_few_layers_merge_what_few_rounds_merge() -> None:
    """RRSS and RSRS of rook's and Shrikhande's graphs, which four rounds tell apart, not three."""
    model = network(FULL, layers=3)
    options = model.plan.test_options()
    rounds = grammar_test(
        model.plan.test_grammar(),
        pair_of_rings(),
        rounds=4,
        functions=options.functions,
        inputs=options.inputs,
    ).graph_history
    assert [len(set(colours.tolist())) for colours in rounds] == [1, 1, 1, 1, 2]
    assert gap(model, *pair_of_rings()) < 1e-12


def test_the_network_trains_and_is_read_back(tmp_path: object) -> None:
    model = network(FULL, width=8)
    batch = batch_of(*(nx.gnp_random_graph(6, 0.5, seed=seed) for seed in range(8)))
    target = batch.adjacency.matrix_power(3).diagonal(dim1=1, dim2=2).sum(1, keepdim=True) / 6
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = (model(batch) - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    model.save(f"{tmp_path}/full.safetensors")
    back = GrammarGNN.load(f"{tmp_path}/full.safetensors")
    torch.testing.assert_close(back(batch), model(batch), rtol=0, atol=0)
    assert back.plan == model.plan


def test_half_precision_stays_near() -> None:
    batch = batch_of(nx.lollipop_graph(4, 3), nx.path_graph(4)).to(torch.float32)
    model = network(FULL).float()
    with torch.autocast("cpu", torch.bfloat16):
        half = model(batch)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, model(batch), rtol=0.1, atol=0.05)


def test_what_is_too_large_is_refused_before_it_is_made() -> None:
    model = network(FULL, width=32, memory_budget=2**28)
    with pytest.raises(MemoryBudgetError, match="summed over at the end, such as r-G_L3Σ"):
        model(batch_of(nx.path_graph(80)))
    model(batch_of(nx.path_graph(8)))


def test_a_program_takes_one_size_or_any() -> None:
    model = network(FULL).eval()
    batch = batch_of(nx.cycle_graph(5), nx.path_graph(3))
    for dynamic in (False, True):
        program = export_program(model, batch, dynamic=dynamic).module()
        torch.testing.assert_close(program(*model.checked(batch)), model(batch))


def test_formulas_are_refused() -> None:
    with pytest.raises(LoweringError, match="sum over marks at the end: take a grammar such"):
        write_formula(network(FULL, preset="paper"), "1ᵀA1")
    with pytest.raises(LoweringError, match="as r-G_L3Σ"):
        requirements(FULL, "1ᵀA1")
