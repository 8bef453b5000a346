"""Costs against PyTorch: parameters, FLOPs of every product, tensors kept by autograd."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from cases import UNMARKED
from g2n2.compiler.costs import VECTOR_WORK, Cost, NetworkCost
from g2n2.compiler.grammar_to_plan import unsupported
from g2n2.compiler.lowering import FUSED
from g2n2.nn.marks import SumsOverMarks
from g2n2.nn.model import GrammarGNN

B, N, W = 3, 7, 8
GRAMMARS = [name for name in UNMARKED if not name.endswith("-3")]
PRESETS = ("paper", "official", "ppgn", "modern")
PAIRS = [(g, p) for g in GRAMMARS for p in PRESETS if not unsupported(UNMARKED[g], p)]


def made(grammar, preset, width=W, layers=2, **options):
    heads = {rule.head.letter for rule in UNMARKED[grammar].rules}
    edges = 3 if "M" in heads else 0
    return GrammarGNN(
        grammar, 5, edges, width=width, layers=layers, preset=preset, backend="reference", **options
    )


def tensors(module, batch=B, nodes=N):
    torch.manual_seed(0)
    adjacency = torch.rand(batch, nodes, nodes)
    edges = torch.rand(batch, nodes, nodes, module.plan.inputs.edge_features)
    mask = torch.ones(batch, nodes, dtype=torch.bool)
    return adjacency + adjacency.transpose(1, 2), torch.rand(batch, nodes, 5), edges, mask


@pytest.mark.parametrize(("grammar", "preset"), PAIRS)
def test_parameters_are_the_modules(grammar, preset):
    module = made(grammar, preset, task="node", context=True)
    held = sum(p.numel() for p in module.parameters())
    assert NetworkCost(module.plan, B, N).total.parameters == held


# What PyTorch's counter leaves out: entrywise products and sums, for each channel and graph, as
# (first layer, second layer, support), and then the pooling.
ENTRYWISE = {
    "r-G_L3": (N**2, N**2, 0),
    "r-G_L3 ∪ {Mᵀ}": (N**2, N**2, 0),
    "PPGN": (0, 0, 0),
    "TriMul": (0, 0, 0),
    "GNNML1": (N, N, 0),
    "r-G_L1": (N, N, 0),
    "2-IGN": (3 * N**2 + N, 3 * N**2 + N, 0),
    "G_L3": (N**2 + N, 2 * N**2 + 2 * N + 2 * N, 0),
    "GCN": (0, 0, 3 * N**2 + 4 * N),
}
POOLED = {"PPGN": N + N**2, "TriMul": N + N**2, "GNNML1": N, "r-G_L1": N, "GCN": N}
POOLED["G_L3"] = N + N + 1 + N + N**2
SENTENCES = {("G_L3", "paper"): 2 * N}
"""The rule S → (V_r)(V_c), which pooling does not contain; `ppgn` pools alone."""


@pytest.mark.parametrize("preset", ["paper", "ppgn"])
@pytest.mark.parametrize("grammar", ENTRYWISE)
def test_flops_are_those_of_pytorch_and_the_entrywise_ones(grammar, preset):
    module = made(grammar, preset)
    with FlopCounterMode(display=False) as counter:
        module.network(*tensors(module))
    first, second, support = ENTRYWISE[grammar]
    pooled = POOLED.get(grammar, N + N + N**2) + SENTENCES.get((grammar, preset), 0)
    uncounted = B * (W * (first + second + pooled) + support)
    assert NetworkCost(module.plan, B, N).total.flops == counter.get_total_flops() + uncounted


@pytest.mark.parametrize("preset", ["official", "modern"])
def test_flops_of_the_other_presets_are_close(preset):
    module = made("r-G_L3", preset, width=32)
    with FlopCounterMode(display=False) as counter:
        module.network(*tensors(module))
    counted = counter.get_total_flops()
    assert counted < NetworkCost(module.plan, B, N).total.flops < 1.01 * counted


def test_training_costs_three_forward_passes():
    module = made("r-G_L3", "paper", width=32)
    with FlopCounterMode(display=False) as counter:
        module.network(*tensors(module)).sum().backward()
    planned = NetworkCost(module.plan, B, N).training_flops
    assert planned == pytest.approx(counter.get_total_flops(), rel=0.02)


def kept_by_autograd(module, inputs):
    """Bytes of the distinct tensors saved for the backward pass, parameters aside."""
    own = {p.untyped_storage().data_ptr() for p in module.parameters()}
    held, alive = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            held[storage.data_ptr()] = storage.nbytes()
            alive.append(tensor)  # a freed address could be counted for another tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module.network(*inputs)
    return sum(held.values())


KEEPING = [p for p in PAIRS if p[0] in ("r-G_L3", "G_L3", "PPGN", "GNNML1", "2-IGN", "TriMul")]


@pytest.mark.parametrize(("grammar", "preset"), KEEPING)
def test_activation_memory_is_what_autograd_keeps(grammar, preset):
    module = made(grammar, preset, width=24).train()
    kept = kept_by_autograd(module, tensors(module, 2, 16))
    assert NetworkCost(module.plan, 2, 16).activation_bytes() == pytest.approx(kept, rel=0.12)


@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_costs_where_copies_meet_are_those_of_pytorch(preset):
    """Products, weights and what autograd keeps; a copy more is as much work again."""
    options = {"width": 24, "layers": 2, "preset": preset, "backend": "reference"}
    module = GrammarGNN("L3Σ (full)", 5, 3, **options).train()
    cost = NetworkCost(module.plan, 2, 8)
    assert cost.weights == module.parameter_count
    inputs = tensors(module, 2, 8)
    with FlopCounterMode(display=False) as counter:
        module.network(*inputs)
    assert 0.97 < counter.get_total_flops() / cost.total.flops <= 1
    assert cost.activation_bytes() == pytest.approx(kept_by_autograd(module, inputs), rel=0.12)
    drawn = replace(module.plan, marks=replace(module.plan.marks, chosen=4))
    assert 0.5 < NetworkCost(drawn, 2, 8).total.flops / cost.total.flops < 0.65


def test_every_cheaper_op_is_costed_as_it_is_computed():
    """A body with an op of its own either costs what its operations cost or is listed."""
    as_written = {"V_c1ᵀ", "1V_cᵀ"}
    assert set(FUSED) - as_written <= VECTOR_WORK


def test_the_parts_are_the_whole():
    cost = NetworkCost(made("r-G_L3", "modern", task="edge").plan, B, N)
    assert list(cost.parts) == ["inputs", "layer 1", "layer 2", "read-out", "decision"]
    assert cost.total == sum(cost.parts.values(), Cost())


@pytest.mark.parametrize("grammar", ["r-G_L3Σ", "r-G_L1ΣΣ"])
def test_marks_multiply_what_is_inside_them(grammar):
    model = GrammarGNN(grammar, 5, width=W, layers=2, backend="reference")
    cost = NetworkCost(model.plan, B, N)
    assert cost.weights == model.parameter_count
    counter, of_sums = FlopCounterMode(display=False), []
    sums = next(part for part in model.modules() if isinstance(part, SumsOverMarks))
    for linear in (part for part in sums.mixers.modules() if isinstance(part, nn.Linear)):
        linear.register_forward_hook(
            lambda part, given, _: of_sums.append(2 * given[0].numel() * part.out_features)
        )
    with counter:
        model.network(*tensors(model))
    assert cost.parts["marks"].flops == sum(of_sums)
    copies = B * N ** len(model.plan.marks.names)
    inside = NetworkCost(replace(model.plan, marks=None), copies, N)
    for part in ("layer 1", "layer 2", "read-out"):
        assert cost.parts[part] == inside.parts[part]
    assert 0.5 < counter.get_total_flops() / cost.total.flops <= 1
