"""Which executor computes a network, and what does not depend on it."""

import copy
import pickle
import subprocess
import sys

import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.errors import LoweringError
from g2n2.nn import GrammarGNN, baseline
from g2n2.ops import packed_mlp
from kernel_checks import DEVICE


def network(preset="modern", **options):
    torch.manual_seed(1)
    given = {"width": 4, "layers": 2, "decision": (5,)}
    return GrammarGNN("r-G_L3", 3, 2, preset=preset, **{**given, **options})


def batch(dtype=torch.float32):
    draw = torch.Generator().manual_seed(2)
    sizes = (1, 5)
    return GraphBatch.of(
        [torch.ones(n, n).numpy() for n in sizes],
        [torch.randn(n, 3, generator=draw) for n in sizes],
        [torch.randn(n, n, 2, generator=draw) for n in sizes],
        dtype=dtype,
    )


def test_an_unknown_backend_is_refused():
    with pytest.raises(LoweringError, match=r"no backend is called 'cuda'; known: auto, ref"):
        network(backend="cuda")


@pytest.mark.parametrize("name", ["plain", "triton"])
def test_backends_that_were_renamed_are_known(name):
    assert network(backend=name).backend == "packed"


def test_the_compiler_is_given_the_reference(monkeypatch):
    model = network("paper", backend="packed")
    monkeypatch.setattr(packed_mlp, "mix", None)
    with pytest.raises(TypeError):
        model(batch())
    torch.compile(model, backend="eager", fullgraph=True)(batch())


HIDDEN = """
import sys
sys.modules["triton"] = None
import networkx as nx
from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN, baseline
model = GrammarGNN("r-G_L3", width=4, layers=1, backend="triton")
model(GraphBatch.of([nx.path_graph(3)])).sum().backward()
assert "g2n2.ops.rule_kernels.triton" not in sys.modules
"""


def test_networks_work_without_triton():
    subprocess.run([sys.executable, "-c", HIDDEN], check=True)


def test_a_copy_computes_with_its_own_weights():
    model = network()
    expected = model(batch()).detach()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    torch.testing.assert_close(twin(batch()).detach(), expected)
    twin(batch()).sum().backward()
    assert all(p.grad is None for p in model.parameters())
    assert any(bool(p.grad.any()) for p in twin.layers.parameters() if p.grad is not None)


@pytest.mark.parametrize("grammar", ["r-G_L3", "GNNML1", "2-IGN", "L3Σ (full)"])
@pytest.mark.parametrize(
    "twin_of", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_pickles_and_copies_take_dense_and_sparse_batches(grammar, twin_of):
    """Pickles are what processes send each other."""
    torch.manual_seed(0)
    model = GrammarGNN(grammar, width=3, layers=2, memory_budget=2**30).eval()
    ends = torch.tensor([[0, 1, 1, 2, 0, 1], [1, 0, 2, 1, 1, 0]])
    owner, sizes = torch.tensor([0, 0, 0, 0, 1, 1]), torch.tensor([3, 2])
    data = [GraphBatch.from_edges(sizes, owner, ends)]
    if model.columns_only:
        data.append(GraphBatch.from_edges(sizes, owner, ends, sparse=True))
    twin = twin_of(model)
    assert not twin.training
    assert [twin(x).tolist() for x in data] == [model(x).tolist() for x in data]
    with torch.no_grad():
        next(twin.parameters()).add_(1.0)
    assert twin(data[0]).tolist() != model(data[0]).tolist()


def test_supports_can_be_pickled():
    path = GraphBatch.of([torch.tensor([[0, 1], [1, 0]])])
    model = baseline("GNNML3", width=3, layers=1).eval()
    assert pickle.loads(pickle.dumps(model))(path).tolist() == model(path).tolist()


@pytest.mark.parametrize("preset", ["paper", "modern", "ppgn", "official"])
def test_autocast_computes_in_bfloat16_and_learns_in_float32(preset, monkeypatch):
    model = network(preset)
    expected = model(batch()).detach()
    seen = []
    whole = packed_mlp.mix
    monkeypatch.setattr(
        packed_mlp, "mix", lambda *args: seen.append(args[1][0].dtype) or whole(*args)
    )
    with torch.autocast("cpu", torch.bfloat16):
        value = model(batch())
    value.float().sum().backward()
    assert (value - expected).norm() <= 0.1 * expected.norm()
    assert all(p.grad.dtype == torch.float32 for p in model.parameters() if p.grad is not None)
    assert set(seen) == (set() if preset == "ppgn" else {torch.bfloat16})


@pytest.mark.parametrize("kernels", [False, True])
def test_second_derivatives_are_refused_and_not_wrong(kernels, request):
    """The reference has them; a fast backward pass says that it has none."""
    if kernels:
        request.getfixturevalue("by_kernels")
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
    model.backend = "packed"
    with pytest.raises(LoweringError, match='backend="reference"'):
        slope().backward()
