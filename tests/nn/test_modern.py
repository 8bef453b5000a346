"""The preset `modern` starts well: it tells graphs apart, and every part of it learns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import networkx as nx
import pytest
import torch
from torch import Tensor, nn

from g2n2.data.batch import GraphBatch
from g2n2.nn import G2N2, GrammarGNN
from sample_batches import molecule_batch

SEEDS = range(15)
GRAPHS, WIDTH, OUTPUTS = 6, 16, 4


def drawn(seed: int) -> tuple[GrammarGNN, GraphBatch]:
    """A fresh network and molecule-sized graphs, another pair for each seed."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model = G2N2(11, 4, width=WIDTH, layers=3, out=OUTPUTS, backend="reference")
    return model, molecule_batch([draw.randint(5, 29) for _ in range(GRAPHS)], seed)


@contextmanager
def watched(model: GrammarGNN) -> Iterator[dict[str, Tensor]]:
    """What enters each activation: for each one, which of its units are above zero somewhere."""
    alive: dict[str, Tensor] = {}

    def watch(name: str) -> nn.Module:
        def look(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            alive[name] = (inputs[0] > 0).flatten(0, -2).any(0)

        return look  # type: ignore[return-value]

    hooks = [
        module.register_forward_hook(watch(name))  # type: ignore[arg-type]
        for name, module in model.named_modules()
        if isinstance(module, nn.ReLU)
    ]
    yield alive
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize("size", [1.0, 4.0])
def test_sums_are_divided_by_the_typical_size_for_each_node_they_are_over(size: float) -> None:
    """Ones on graphs of 3 and 5 nodes: 3, 3 and 6 ordered pairs; 5, 5 and 20."""
    readout = G2N2(width=2, layers=1, typical_size=size).readout
    mask = torch.arange(5) < torch.tensor([[3], [5]])
    nodes, pairs = mask[..., None], (mask[:, :, None] & mask[:, None])[..., None]
    ones = {"V": nodes.float().expand(-1, -1, 2), "M": pairs.float().expand(-1, -1, -1, 2)}
    parts = readout.pooled(ones, mask).split(2, dim=1)
    expected = {"nodes": [3 / size, 5 / size], "off-diagonal": [6 / size**2, 20 / size**2]}
    expected["diagonal"] = expected["nodes"]
    names = [name for name, _ in readout.plan.pools]
    assert {n: x[:, 0].tolist() for n, x in zip(names, parts, strict=True)} == expected


@pytest.mark.parametrize("backend", ["reference", "packed"])
def test_means_over_rows_do_not_depend_on_the_typical_size(backend: str) -> None:
    batch, outputs = molecule_batch([5, 9], 0), []
    for size in (1.0, 7.0):
        torch.manual_seed(0)
        model = G2N2(
            11,
            4,
            width=4,
            layers=1,
            task="node",
            pooling="mean",
            typical_size=size,
            backend=backend,
        )
        outputs.append(model(batch))
    torch.testing.assert_close(*outputs)


@pytest.mark.parametrize("seed", SEEDS)
def test_many_seeds(seed: int) -> None:
    model, batch = drawn(seed)
    with watched(model) as alive:
        output = model(batch)

    apart = torch.pdist(output.detach())
    assert float(apart.min()) > 0.01 * float(apart.mean()), "two graphs have the same output"
    assert float(apart.mean()) > 0.05 * float(output.detach().norm(dim=1).mean()), "all are alike"

    assert len(alive) == 2 * len(model.layers) + 1, "an MLP for each memory, and the decision"
    for name, units in alive.items():
        assert float(units.float().mean()) >= 0.5, f"{name} is mostly dead"

    (output - output.detach().mean(0) - 1).square().mean().backward()  # type: ignore[no-untyped-call]
    sizes = {name: float(value.grad.norm()) for name, value in model.named_parameters()}
    assert all(size > 0 for size in sizes.values()), [n for n, s in sizes.items() if s == 0]
    middle = sorted(sizes.values())[len(sizes) // 2]
    largest = max(sizes, key=sizes.__getitem__)
    assert sizes[largest] < 100 * middle, f"the gradient of {largest} drowns the others"


def sizes_of_memories(preset: str, n: int) -> dict[str, float]:
    torch.manual_seed(0)
    model = G2N2(11, 4, width=4, layers=3, preset=preset)
    batch = molecule_batch([n], seed=5)
    with torch.no_grad():
        memories, _ = model.final(batch.adjacency, batch.nodes, batch.edges, batch.mask)
        memories["out"] = model(batch)
    return {letter: float(value.abs().max()) for letter, value in memories.items()}


def test_values_do_not_grow_with_the_graph() -> None:
    """Thirty times the nodes: nodes and pairs keep their size, sums grow no faster than n."""
    small, large = sizes_of_memories("modern", 10), sizes_of_memories("modern", 300)
    for letter in ("M", "V"):
        assert large[letter] < 3 * small[letter]
    assert large["out"] < 30 * max(small["out"], 1.0)


@pytest.mark.parametrize(
    "grammar",
    ["G_L3", "r-G_L3", "PPGN", "2-IGN", "S → Tr(M) | SS; V_c → V_cS | MV_c | 1; M → MM | A"],
)
def test_dense_graphs_do_not_explode(grammar: str) -> None:
    """Complete graphs, where a sum over nodes has n equal terms: no faster than √n."""
    torch.manual_seed(0)
    model = GrammarGNN(grammar, width=4, layers=4, readout="mean")
    largest = []
    for n in (10, 100):
        batch = GraphBatch.of([torch.ones(n, n).fill_diagonal_(0).numpy()])
        with torch.no_grad():
            memories, _ = model.final(batch.adjacency, batch.nodes, batch.edges, batch.mask)
        largest.append(max(float(value.abs().max()) for value in memories.values()))
    assert largest[1] < 2 * 10**0.5 * largest[0]


def test_dropout_leaves_out_in_training_only() -> None:
    torch.manual_seed(0)
    model = G2N2(width=8, layers=1, decision=(64,))
    model.readout.dropout = 0.5
    given = GraphBatch.of([nx.cycle_graph(5)])
    model.eval()
    still = model(given)
    assert torch.equal(still, model(given))
    model.train()
    drawn = torch.stack([model(given) for _ in range(400)]).detach()
    assert float(drawn.std()) > 0
    model.readout.dropout = 0.0
    assert torch.equal(model(given), still)
