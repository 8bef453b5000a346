"""torch.compile(fullgraph=True): one graph for every grammar and preset, with the same numbers."""

from dataclasses import replace
from itertools import cycle

import networkx as nx
import numpy as np
import pytest
import torch

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import unsupported
from g2n2.compiler.presets import PRESETS
from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN
from sample_batches import catalogue_network as network

ALL = [
    (name, preset)
    for name, grammar in UNMARKED.items()
    for preset in PRESETS
    if not unsupported(grammar, preset, supports=True)
]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch.compiler.reset()


def batch(model: GrammarGNN, *sizes: int) -> GraphBatch:
    rng = np.random.default_rng(5)
    inputs = model.plan.inputs
    return GraphBatch.of(
        [nx.gnp_random_graph(n, 0.4, seed=n) for n in sizes],
        [rng.normal(size=(n, inputs.node_features)) for n in sizes],
        [rng.normal(size=(n, n, inputs.edge_features)) for n in sizes],
    )


def assert_one_graph(model: GrammarGNN) -> None:
    data = batch(model, 1, 2, 7)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(data), model(data))


@pytest.mark.parametrize("grammar", ["2-IGN", "GNNML3-3"])
def test_these_grammars_are_one_graph(grammar: str) -> None:
    assert_one_graph(network(grammar))


@pytest.mark.parametrize(
    ("preset", "task"),
    [("official", "node"), ("ppgn", "edge")],
)
def test_every_preset_and_task_is_one_graph(preset: str, task: str) -> None:
    assert_one_graph(network("r-G_L3", preset=preset, task=task, context=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grammar", "preset", "task"),
    [
        (*pair, task)
        for pair, task in zip(ALL[::25], cycle(["graph", "node", "edge"]), strict=False)
    ],
)
def test_networks_of_all_kinds_are_one_graph(grammar: str, preset: str, task: str) -> None:
    assert_one_graph(network(grammar, preset=preset, task=task, context=True))


def test_new_sizes_are_traced_once_and_not_for_every_batch() -> None:
    model = network("four-rule", decision=())
    traced = 0

    def counting(graph: torch.fx.GraphModule, example: object) -> object:
        nonlocal traced
        traced += 1
        return graph.forward

    compiled = torch.compile(model, backend=counting, fullgraph=True)
    for sizes in ((3, 5), (4, 7, 2), (9, 8, 6, 5), (3,) * 5, (11,) * 7):
        data = batch(model, *sizes)
        torch.testing.assert_close(compiled(data), model(data))
    assert traced == 2, "once for the first sizes, once for all others"


@pytest.mark.slow
def test_gradients_go_through_a_compiled_network() -> None:
    model = network("r-G_L3")
    data = batch(model, 2, 7)
    model(data).sum().backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    torch.compile(model, backend="aot_eager", fullgraph=True)(data).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name])


def test_a_compiled_network_still_refuses_wrong_features() -> None:
    model = network("GNNML1")
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    data = batch(model, 2, 7)
    wrong = replace(data, nodes=torch.zeros(2, 7, 3))
    with pytest.raises(RuntimeError, match=r"the batch has 3 node features, .* made for 2"):
        compiled(wrong)  # torch wraps what is raised while it traces, and quotes it


@pytest.mark.slow
def test_inductor_agrees_forward_and_backward() -> None:
    model = network("r-G_L3", preset="modern")
    compiled = torch.compile(model, fullgraph=True, dynamic=True)  # once for all sizes
    for sizes in ((1, 2, 7), (5, 29)):
        data = batch(model, *sizes)
        expected = model(data)
        got = compiled(data)
        scale = max(1.0, expected.abs().max().item())
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5 * scale)
        first = torch.autograd.grad(expected.sum(), list(model.parameters()), allow_unused=True)
        second = torch.autograd.grad(got.sum(), list(model.parameters()), allow_unused=True)
        for x, y in zip(first, second, strict=True):
            if x is not None:
                torch.testing.assert_close(y, x, rtol=1e-3, atol=1e-4 * max(1.0, x.abs().max()))
