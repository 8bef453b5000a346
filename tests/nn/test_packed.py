"""The packed executor gives what the layers of the plan give: outputs and all gradients."""

from functools import partial

import networkx as nx
import numpy as np
import pytest
import torch

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import undefined_supports, unsupported
from g2n2.compiler.presets import PRESETS
from g2n2.data.batch import GraphBatch
from g2n2.grammars.grammar import Grammar
from g2n2.language.sorts import M
from g2n2.nn import GrammarGNN
from g2n2.nn import packed as nn_packed
from g2n2.nn.packed import OUTPUT_ROWS, unpacked
from g2n2.nn.packed_layer import SPARSE
from g2n2.nn.supports import SpectralSupports
from g2n2.ops import packed, packed_mlp
from g2n2.ops.packing import Packing
from random_grammars import random_grammar
from sample_batches import Powers

SIZES = (7, 1, 29, 2, 63, 7, 2)
"""Not sorted, some alone and some equal: the caller's order has to come back."""
TASKS = ("graph", "node", "edge")
EVERY = [
    (name, preset, task)
    for name, grammar in UNMARKED.items()
    for preset in PRESETS
    if not unsupported(grammar, preset, supports=True)
    for task in TASKS
]
QUICK = [
    ("r-G_L3", "modern", "graph", {"pair_bias": False, "readout": "grammar"}),
    ("r-G_L3", "modern", "edge", {"context": True, "directed": True}),
    ("r-G_L3", "modern", "graph", {"pair_norm": "graph"}),
    ("r-G_L3", "modern", "node", {"pair_norm": "none", "pair_bias": False}),
    ("2-IGN", "modern", "edge", {"pair_norm": "graph", "pair_bias": False}),
    ("r-G_L3", "paper", "node", {"functions": "free"}),
    ("r-G_L3", "official", "node", {}),
    ("r-G_L3", "modern", "graph", {"pooling": "mean"}),
    ("PPGN", "ppgn", "graph", {}),
    ("2-IGN", "modern", "graph", {}),
    ("G_L3", "paper", "edge", {}),
    ("GNNML1", "modern", "graph", {}),
    ("GNNML3-3", "paper", "graph", {}),
]


def network(grammar: Grammar, preset: str, task: str, **options) -> GrammarGNN:
    torch.manual_seed(1)
    matrices = any(rule.head == M for rule in grammar.rules)
    supports = Powers() if undefined_supports(grammar) else None
    settings = {"width": 4, "layers": 2, "decision": (5,), "supports": supports, **options}
    return GrammarGNN(
        grammar, 3, 2 if matrices else 0, preset=preset, task=task, **settings
    ).double()


def batch(model: GrammarGNN, sizes: tuple[int, ...] = SIZES) -> GraphBatch:
    """Weighted graphs, directed ones where the network can read them."""
    draw = np.random.default_rng(0)
    graphs = [(draw.random((n, n)) < 4 / n) * draw.random((n, n)) for n in sizes]
    if not model.plan.inputs.directed_safe:
        graphs = [matrix + matrix.T for matrix in graphs]
    channels = model.plan.inputs.edge_features
    return GraphBatch.of(
        graphs,
        [draw.standard_normal((n, 3)) for n in sizes],
        [draw.standard_normal((n, n, channels)) for n in sizes],
        dtype=torch.float64,
    )


LAYOUTS = ("runs", "padded", "tail")
"""Blocks as views of runs, as one padded copy, and that with rows that belong to no graph."""


def outcome(model: GrammarGNN, data: GraphBatch, backend: str) -> list[torch.Tensor]:
    """Outputs, and the gradients of all parameters and inputs."""
    model.backend = "reference" if backend == "reference" else "packed"
    model.zero_grad()
    adjacency, nodes, edges, mask = model.checked(data)
    given = [tensor.clone().requires_grad_() for tensor in (nodes, edges)]
    if backend == "tail":
        value = with_tail(model, adjacency, *given, mask)
    else:
        value = model.network(adjacency, *given, mask)
    weights = torch.linspace(0.5, 1.5, len(value), device=value.device)
    (value.sin() * weights.view(-1, *[1] * (value.dim() - 1))).sum().backward()
    leaves = (*model.parameters(), *given)
    zeros = (torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves)
    return [value.detach(), *zeros]


def with_tail(model: GrammarGNN, adjacency, nodes, edges, mask) -> torch.Tensor:
    """As a CUDA graph computes it: sizes on the device, and rows of rubbish after the last."""
    graphs = model.packed.pack(adjacency, nodes, edges, mask)
    rows = graphs.packing
    sizes = torch.cat([rows.sizes, torch.zeros(2, dtype=torch.int64)])  # two empty graphs
    packing = Packing.within(sizes, rows.most + 2, rows.nodes + 9, rows.pairs + 70)
    more = {"M": 70, "V": 9, "R": 9, "S": 2}

    def longer(values: torch.Tensor, letter: str) -> torch.Tensor:
        rubbish = torch.randn(more[letter], values.shape[1], dtype=values.dtype)
        return torch.cat([values, 1e3 * rubbish])

    first = {letter: longer(values, letter) for letter, values in graphs.first.items()}
    longer_graphs = model.packed.from_inputs(packing, first, longer(graphs.adjacency, "M"), None)
    value = model.packed.on_graphs(longer_graphs)
    letter = OUTPUT_ROWS[model.plan.readout.task]
    count = {"S": rows.graphs, "V": rows.nodes, "M": rows.pairs}[letter]
    return unpacked(value[:count], letter, rows, mask)


def assert_same(model: GrammarGNN, data: GraphBatch | None = None, layout: str = "runs") -> None:
    data = batch(model) if data is None else data
    for got, expected in zip(
        outcome(model, data, layout), outcome(model, data, "reference"), strict=True
    ):
        assert got.isfinite().all()
        assert (got - expected).norm() <= 1e-10 * max(1.0, expected.norm())


@pytest.fixture
def laid_out(request, monkeypatch, poisoned):
    """A layout, with every buffer full of NaN before it is written."""
    if request.param == "padded":
        monkeypatch.setattr(nn_packed, "Packing", partial(Packing, padded=True))
    return request.param


@pytest.mark.parametrize("laid_out", LAYOUTS, indirect=True)
@pytest.mark.parametrize(("grammar", "preset", "task", "options"), QUICK)
def test_what_the_layers_give(grammar, preset, task, options, laid_out):
    assert_same(network(UNMARKED[grammar], preset, task, **options), layout=laid_out)


@pytest.mark.slow
@pytest.mark.parametrize(("grammar", "preset", "task"), EVERY[::9])  # presets and tasks take turns
def test_every_grammar_of_the_catalogue(grammar, preset, task):
    assert_same(network(UNMARKED[grammar], preset, task))


@pytest.mark.gpu
@pytest.mark.parametrize("sizes", [SIZES, (70, 5, 70), (70, 70)], ids=str)
@pytest.mark.parametrize(("grammar", "preset", "task"), EVERY)
def test_every_grammar_on_a_gpu(grammar, preset, task, sizes):
    """Small graphs in one padded copy, larger ones run by run, one run without any copy."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model = network(UNMARKED[grammar], preset, task).to("cuda")
    assert_same(model, batch(model, sizes).to("cuda"))


@pytest.mark.parametrize("laid_out", LAYOUTS, indirect=True)
@pytest.mark.parametrize("seed", range(6))
def test_random_grammars(seed, laid_out):
    assert_same(network(random_grammar(seed), "modern", TASKS[seed % 3]), layout=laid_out)


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_chunks_and_what_is_computed_again(activation, monkeypatch):
    """Chunks that end within a graph and nothing kept for the way back change no number."""
    from dataclasses import replace

    preset = replace(PRESETS["modern"], name="chunked", activation=activation)
    monkeypatch.setitem(packed_mlp.CHUNK_BYTES, "cpu", 100 * 32 * 8)
    monkeypatch.setitem(packed.KEPT_BYTES, "cpu", 0)
    assert_same(network(UNMARKED["r-G_L3"], preset, "graph"))


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("bias", [True, False])
def test_sums_of_an_update_without_the_update(activation, bias, monkeypatch):
    """The second map of sums is the sum of the second map: chunks end within graphs, and between.

    Graphs of 7 have 49 pairs, and a chunk has 98 rows.
    """
    monkeypatch.setitem(packed_mlp.CHUNK_BYTES, "cpu", 98 * 6 * 8)
    torch.manual_seed(0)
    packing = Packing([1, 7, 12, 7, 2, 7, 1, 7])
    shapes = [(packing.pairs, 3), (packing.nodes, 2), (packing.pairs, 4)]
    shapes += [(6, 5), (4, 6), *([(6,), (4,)] if bias else [])]
    leaves = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    rows, vector, residual, first, second, *biases = leaves
    maps = zip((first, second), biases or (None, None), strict=True)
    parts = [packed_mlp.Part(rows), packed_mlp.Part(vector, diagonal=True)]
    given = (parts, *maps, activation, packing, residual)
    expected = packed.pair_sums(packed_mlp.mix(*given), packing)
    values = packed_mlp.mix_sums(*given)
    for value, sums in zip(values, expected, strict=True):
        torch.testing.assert_close(value, sums, rtol=1e-12, atol=1e-12)
    grads, wanted = (
        torch.autograd.grad((pair[0].sin() + pair[1].cos()).sum(), leaves, allow_unused=True)
        for pair in (values, expected)
    )
    for grad, want in zip(grads, wanted, strict=True):
        torch.testing.assert_close(grad, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_that_lies_by_channel_changes_no_number(activation, bias, monkeypatch):
    """As `selected_product` leaves it on a GPU: the MLP reads it without a copy, chunk by chunk."""
    monkeypatch.setitem(packed_mlp.CHUNK_BYTES, "cpu", 100 * 32 * 8)
    torch.manual_seed(0)
    packing = Packing([9, 5, 9])
    widths = (3, 4, 4, 2)
    left, product, factor, vector = (
        torch.randn(packing.nodes if number == 3 else packing.pairs, width, dtype=torch.float64)
        for number, width in enumerate(widths)
    )
    maps = [
        (torch.randn(n, m, dtype=torch.float64), torch.randn(n, dtype=torch.float64))
        for n, m in ((32, 13), (5, 32))
    ]
    found = []
    for by_channel in (False, True):
        laid = product.T.contiguous().T if by_channel else product
        assert packed_mlp.Part(laid).by_channel == by_channel
        leaves = [x.clone().requires_grad_() for x in (left, factor, vector)]
        weights = [w.clone().requires_grad_() for weight in maps for w in weight]
        read = laid.detach().requires_grad_()
        parts = [
            packed_mlp.Part(leaves[0]),
            packed_mlp.Part(read),
            packed_mlp.Part(leaves[1], leaves[1]),
            packed_mlp.Part(leaves[2], diagonal=True),
        ]
        first, second = zip(weights[::2], weights[1::2] if bias else (None, None), strict=True)
        value = packed_mlp.mix(parts, first, second, activation, packing)
        value.sin().sum().backward()
        found.append(
            [value, read.grad, *(x.grad for x in (*leaves, *weights) if x.grad is not None)]
        )
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def test_spectral_supports():
    model = network(UNMARKED["GNNML3-3"], "paper", "graph", supports=SpectralSupports(3))
    data = batch(model)
    matrix = data.adjacency + data.adjacency.mT
    assert_same(model, GraphBatch(matrix, data.nodes, data.edges, data.mask))


def test_the_four_rules_have_ops_of_their_own():
    """Equal numbers do not tell whether a rule took the slow way."""
    layer = network(UNMARKED["r-G_L3"], "modern", "graph").packed.layers[0]
    kinds = {rule.kind for rules in layer.rules.values() for rule in rules}
    assert kinds == {"selected product", "hadamard", "diagonal", "column"}
    light = network(UNMARKED["GNNML1"], "modern", "graph").packed.layers[0]
    assert "adjacency" in {rule.kind for rules in light.rules.values() for rule in rules}


def test_entries_of_a_that_are_0_have_gradients():
    """Products with a sparse A skip them, where nobody asks."""
    model = network(Grammar.parse("V → AV | 1"), "modern", "graph")
    data = GraphBatch.of([nx.path_graph(9), nx.cycle_graph(9)], [torch.ones(9, 3)] * 2)
    adjacency, *rest = model.checked(data.to(torch.float64))
    assert (adjacency != 0).double().mean() < SPARSE
    assert torch.autograd.gradcheck(
        lambda a: model.network(a, *rest), adjacency.requires_grad_(), fast_mode=True
    )


def test_chunks_grow_with_the_threads_of_a_cpu(monkeypatch):
    """Each thread has a cache of its own."""
    one, three = [], []
    for threads, sizes in ((1, one), (3, three)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        sizes += [packed_mlp.chunk_bytes(torch.device(name)) for name in ("cpu", "cuda")]
    assert three == [3 * one[0], one[1]]
