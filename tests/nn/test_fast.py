"""Fast layers give what the layers of the plan give, by every backend."""

import copy
import subprocess
import sys

import networkx as nx
import pytest
import torch

from g2n2 import catalogue
from g2n2.compiler.grammar_to_plan import undefined_supports, unsupported
from g2n2.compiler.presets import PRESETS
from g2n2.data.batch import GraphBatch
from g2n2.errors import LoweringError
from g2n2.language.sorts import M
from g2n2.nn import GrammarGNN, fast
from g2n2.ops import packed_mlp
from g2n2.ops.rule_kernels.spec import MOST_NODES
from kernel_checks import DEVICE
from sample_batches import Powers, weighted_batch

ALL = [
    (name, preset, task)
    for name, grammar in catalogue().items()
    for preset in PRESETS
    if not unsupported(grammar, preset, supports=True)
    for task in ("graph", "node", "edge")
]
IN_KERNELS = [
    ("r-G_L3", "modern", "graph"),
    ("r-G_L3", "modern", "node"),
    ("r-G_L3", "modern", "edge"),
    ("four-rule", "paper", "edge"),
    ("r-G_L3", "official", "node"),
]


def network(grammar, preset, task="graph", **options):
    torch.manual_seed(1)
    chosen = catalogue()[grammar]
    matrices = any(rule.head == M for rule in chosen.rules)
    supports = Powers() if undefined_supports(chosen) else None
    given = {"width": 4, "layers": 2, "decision": (5,), "supports": supports}
    return GrammarGNN(
        chosen, 3, 2 if matrices else 0, preset=preset, task=task, **{**given, **options}
    )


def batch(model, dtype=torch.float64):
    inputs = model.plan.inputs
    return weighted_batch(inputs.node_features, inputs.edge_features).to(dtype)


def small_batch(model, dtype):
    """Few nodes: the interpreter is slow."""
    inputs = model.plan.inputs
    sizes = (1, 5)
    draw = torch.Generator().manual_seed(2)
    return GraphBatch.of(
        [torch.ones(n, n).numpy() for n in sizes],
        [torch.randn(n, inputs.node_features, generator=draw) for n in sizes],
        [torch.randn(n, n, inputs.edge_features, generator=draw) for n in sizes],
        dtype=dtype,
    )


def outcome(model, data, backend):
    """Outputs and the gradients of all parameters."""
    model.backend = backend
    model.zero_grad()
    value = model(data)
    value.square().sum().backward()
    # A selector nothing reads has no gradient, or zeros where it is part of a larger product.
    zeros = (torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters())
    return [value.detach(), *zeros]


def assert_same(model, data, backend, tolerance):
    for got, expected in zip(
        outcome(model, data, backend), outcome(model, data, "reference"), strict=True
    ):
        assert (got - expected).norm() <= tolerance * max(1.0, expected.norm())


def assert_kernels_agree(grammar, preset, task="graph", **options):
    pytest.importorskip("triton", reason="the kernels need triton")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = network(grammar, preset, task, width=8, **options).to(device)
    data = small_batch(model, torch.float32).to(device)
    assert_same(model, data, "triton", 1e-4)
    model.backend = "triton"
    with torch.no_grad():
        without = model(data)
    torch.testing.assert_close(without, model(data).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("grammar", "preset", "task"), IN_KERNELS)
def test_kernels_give_what_the_layers_give(grammar, preset, task):
    assert_kernels_agree(grammar, preset, task)


@pytest.mark.parametrize(
    ("grammar", "preset", "options"),
    [
        ("r-G_L3", "modern", {"pair_bias": False, "readout": "grammar"}),
        ("r-G_L3", "paper", {"functions": "free"}),
        ("r-G_L3 ∖ {M⊙M}", "modern", {"functions": "free", "readout": "grammar"}),
        ("PPGN", "modern", {"functions": "free", "readout": "grammar"}),
    ],
)
def test_kernels_with_other_functions_and_read_outs(grammar, preset, options):
    assert_kernels_agree(grammar, preset, **options)


@pytest.mark.parametrize(
    ("preset", "task", "width"),
    [("modern", "node", 4), ("modern", "edge", 4), ("official", "node", {"M": 4, "V_c": 2})],
)
def test_kernels_on_graphs_beyond_one_tile(preset, task, width):
    pytest.importorskip("triton", reason="the kernels need triton")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = network("r-G_L3", preset, task, width=width, layers=1).to(device)
    graphs = [nx.path_graph(MOST_NODES + 1), nx.star_graph(3)]
    draw = torch.Generator().manual_seed(2)
    data = GraphBatch.of(
        graphs,
        [torch.randn(len(g), 3, generator=draw) for g in graphs],
        [torch.randn(len(g), len(g), 2, generator=draw) for g in graphs],
    ).to(device)
    assert_same(model, data, "triton", 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("grammar", "preset", "task"), ALL[::20])  # the interpreter is slow
def test_kernels_for_networks_of_all_kinds(grammar, preset, task):
    assert_kernels_agree(grammar, preset, task)


def test_float64_is_computed_without_kernels():
    pytest.importorskip("triton", reason="the kernels need triton")
    model = network("r-G_L3", "modern").double()
    assert_same(model, batch(model), "triton", 1e-11)


@pytest.mark.parametrize(
    ("grad", "activation", "room", "expected"),
    [
        (True, "relu", 10**9, "streamed"),
        (False, "relu", 10**9, "streamed"),
        (True, "silu", 10**9, "triton"),
        (True, "relu", 10, "triton"),
    ],
)
def test_a_hidden_layer_is_written_if_it_fits(grad, activation, room, expected, monkeypatch):
    pytest.importorskip("triton", reason="the kernels need triton")
    from g2n2.ops.pair_mlp import streamed
    from g2n2.ops.pair_mlp.parts import Pairs

    monkeypatch.setattr(streamed, "HIDDEN_BYTES", room)
    mask = torch.ones(1, 3, dtype=torch.bool)
    parts = [Pairs(torch.zeros(1, 3, 3, 4))]
    with torch.set_grad_enabled(grad):
        mix = fast._kernel_mix(parts, torch.zeros(16, 4), torch.zeros(4, 16), mask, activation)
    assert mix.__module__.rpartition(".")[2] == expected
    odd = torch.zeros(15, 4)
    assert fast._kernel_mix(parts, odd, odd.T, mask, activation) is fast._mix_rows


# --- choosing ---


def test_an_unknown_backend_is_refused():
    with pytest.raises(LoweringError, match=r"no backend is called 'cuda'; known: auto, ref"):
        network("r-G_L3", "paper", backend="cuda")


def test_triton_is_asked_for_and_missing(monkeypatch):
    monkeypatch.setattr(fast, "_has_triton", lambda: False)
    with pytest.raises(LoweringError, match=r'needs triton: pip install "g2n2\[kernels\]"'):
        network("r-G_L3", "paper", backend="triton")
    assert fast.choose("auto", torch.device("cuda")) == "packed"


def test_triton_on_a_cpu_says_where_it_runs(monkeypatch):
    pytest.importorskip("triton", reason="the kernels need triton")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    model = network("r-G_L3", "paper", backend="triton")
    with pytest.raises(LoweringError, match=r"runs on a GPU, and the batch is on cpu: .*packed"):
        model(small_batch(model, torch.float32))


def test_auto_takes_the_fastest_there_is(monkeypatch):
    monkeypatch.setattr(fast, "_has_triton", lambda: True)
    assert fast.choose("auto", torch.device("cpu")) == "packed"
    assert fast.choose("auto", torch.device("cuda")) == "triton"


def test_the_compiler_is_given_the_reference(monkeypatch):
    model = network("r-G_L3", "paper", backend="packed")
    monkeypatch.setattr(packed_mlp, "mix", None)
    data = small_batch(model, torch.float32)
    with pytest.raises(TypeError):
        model(data)
    torch.compile(model, backend="eager", fullgraph=True)(data)


HIDDEN = """
import sys
sys.modules["triton"] = None
import importlib.util
importlib.util.find_spec = lambda name, plain=importlib.util.find_spec: (
    None if name == "triton" else plain(name)
)
import networkx as nx
from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN
model = GrammarGNN("r-G_L3", width=4, layers=1)
model(GraphBatch.of([nx.path_graph(3)])).sum().backward()
try:
    GrammarGNN("r-G_L3", width=4, layers=1, backend="triton")
except NotImplementedError as error:
    print(error)
"""


def test_networks_work_without_triton():
    process = subprocess.run(
        [sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True
    )
    assert "backend triton needs triton" in process.stdout


def test_packed_networks_do_not_import_triton():
    code = (
        "import sys, networkx as nx; from g2n2.nn import GrammarGNN; "
        "from g2n2.data.batch import GraphBatch; "
        "GrammarGNN('r-G_L3', width=4)(GraphBatch.of([nx.path_graph(3)])); "
        "print('g2n2.ops.pair_mlp.triton' in sys.modules, 'g2n2.ops.packed_mlp' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.split() == ["False", "True"]


# --- copies, dtypes, files ---


def test_a_copy_computes_with_its_own_weights():
    model = network("r-G_L3", "modern", backend="packed")
    data = small_batch(model, torch.float32)
    expected = model(data).detach()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    torch.testing.assert_close(twin(data).detach(), expected)
    twin(data).sum().backward()
    assert all(p.grad is None for p in model.parameters())
    assert any(bool(p.grad.any()) for p in twin.layers.parameters() if p.grad is not None)
    for own, layer in zip(twin.fast, twin.layers, strict=True):
        assert own.layer is layer


def test_a_network_keeps_its_fast_layers_in_another_dtype():
    model = network("r-G_L3", "modern", backend="packed")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        model = model.to(dtype)
        assert model(small_batch(model, dtype)).dtype == dtype


@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_a_file_brings_back_the_same_numbers(preset, tmp_path):
    model = network("r-G_L3", preset, backend="packed")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    model.save(tmp_path / "network.safetensors")
    again = GrammarGNN.load(tmp_path / "network.safetensors")
    data = small_batch(model, torch.float32)
    for backend in ("packed", "reference"):
        again.backend = backend
        torch.testing.assert_close(again(data), model(data))


@pytest.mark.parametrize("preset", ["paper", "modern", "ppgn", "official"])
def test_autocast_computes_in_bfloat16_and_learns_in_float32(preset, monkeypatch):
    model = network("r-G_L3", preset, backend="packed")
    data = small_batch(model, torch.float32)
    expected = model(data).detach()
    seen = []
    whole = packed_mlp.mix
    monkeypatch.setattr(
        packed_mlp, "mix", lambda *args: seen.append(args[1][0].dtype) or whole(*args)
    )
    with torch.autocast("cpu", torch.bfloat16):
        value = model(data)
    value.float().sum().backward()
    assert (value - expected).norm() <= 0.1 * expected.norm()
    assert all(p.grad.dtype == torch.float32 for p in model.parameters() if p.grad is not None)
    assert set(seen) == (set() if preset == "ppgn" else {torch.bfloat16})


@pytest.mark.parametrize("backend", ["packed", "triton"])
def test_second_derivatives_are_refused_and_not_wrong(backend):
    """The reference has them; a fast backward pass says that it has none."""
    if backend == "triton":
        pytest.importorskip("triton", reason="the kernels need triton")
    torch.manual_seed(0)
    model = GrammarGNN("r-G_L3", 1, width=8, layers=1, backend="reference").to(DEVICE)
    mask = torch.ones(1, 4, dtype=torch.bool, device=DEVICE)
    nodes = torch.randn(1, 4, 1, device=DEVICE, requires_grad=True)
    edges = torch.zeros(1, 4, 4, 0, device=DEVICE)
    adjacency = torch.ones(1, 4, 4, device=DEVICE) - torch.eye(4, device=DEVICE)

    def slope():
        value = model.network(adjacency, nodes, edges, mask).sum()
        return torch.autograd.grad(value, nodes, create_graph=True)[0].square().sum()

    slope().backward()
    slopes = [weight.grad for weight in model.layers.parameters() if weight.grad is not None]
    assert any(bool(slope.abs().sum() > 0) for slope in slopes)
    model.backend = backend
    with pytest.raises(RuntimeError, match=r"once_differentiable|differentiate twice"):
        slope().backward()
