"""Layers on small graphs: which they are, and that their kernels give what the layers give."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from cases import UNMARKED
from g2n2.compiler.presets import PRESETS
from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN
from g2n2.nn.kernel_layer import stacked
from g2n2.ops import packing
from g2n2.ops.packing import Packing
from g2n2.ops.rule_kernels.spec import MOST_NODES
from kernel_checks import DEVICE

pytest.importorskip("triton", reason="the kernels need triton")
pytestmark = pytest.mark.usefixtures("bfloat16_in_the_interpreter", "by_kernels")

COVERED = {
    "r-G_L3",
    "r-G_L3 ∖ {M⊙M}",
    "r-G_L3 ∖ {MM}",
    "r-G_L3 ∖ {diag(V_c)}",
    "r-G_L3 ∖ {diag(V_c)} ∪ {I}",
    "four-rule",
    "PPGN",  # its one rule M → MM, with linear selectors
}
LEFT = ["r-G_L3 ∪ {Mᵀ}", "r-G_L3 ∖ {MV_c}", "TriMul", "2-IGN", "G_L3", "r-G_L1"]
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.2}


def network(grammar, preset="modern", width=8, layers=2, **options):
    torch.manual_seed(1)
    chosen = UNMARKED.get(grammar, grammar)
    return GrammarGNN(
        chosen, 3, 0, width=width, layers=layers, preset=preset, decision=(5,), **options
    ).to(DEVICE)


def batch(*sizes, features=3):
    draw = torch.Generator().manual_seed(2)
    graphs, nodes = [], []
    for n in sizes:
        upper = (torch.rand(n, n, generator=draw) < 0.4).triu(1).float()
        graphs.append((upper + upper.T).numpy())
        nodes.append(torch.randn(n, features, generator=draw))
    return GraphBatch.of(graphs, nodes, dtype=torch.float32).to(DEVICE)


def covered(model):
    return [layer.by_kernels is not None for layer in model.packed.layers]


# --- which ---


@pytest.mark.parametrize("preset", ["modern", "paper"])
@pytest.mark.parametrize("grammar", sorted(COVERED))
def test_grammars_of_the_four_rules_are_covered(grammar, preset):
    assert covered(network(grammar, preset, layers=3)) == [True] * 3


@pytest.mark.parametrize("preset", ["modern", "paper"])
@pytest.mark.parametrize("grammar", LEFT)
def test_grammars_with_more_are_left_to_the_general_way(grammar, preset):
    assert covered(network(grammar, preset)) == [False, False]


@pytest.mark.parametrize(
    ("grammar", "preset"), [("PPGN", "ppgn"), ("r-G_L3", "ppgn"), ("r-G_L3", "official")]
)
def test_presets_with_other_selectors_or_updates_are_left(grammar, preset):
    assert covered(network(grammar, preset)) == [False, False]


def test_what_the_kernels_have_no_tile_for_is_left():
    assert covered(network("r-G_L3", width=256, layers=1)) == [True]
    assert covered(network("r-G_L3", width=257, layers=1)) == [False], "wider than a tile"
    silu = replace(PRESETS["modern"], activation="silu")
    assert covered(network("r-G_L3", silu, layers=1)) == [False], "no ReLU"


def test_rules_say_where_their_channels_are():
    """r-G_L3 with one width: operands of each memory side by side, outputs after the memory."""
    small = network("r-G_L3", width=8, layers=1).packed.layers[0].by_kernels
    kinds = {rule.kind: rule for rule in small.rules}
    assert sorted(kinds) == ["column", "diagonal", "hadamard", "product"]
    assert sorted(r.to for r in small.rules if r.kind != "column") == [8, 16, 24]
    assert kinds["column"].to == 0
    starts = [kinds["product"].operands, kinds["hadamard"].operands, kinds["column"].operands[:1]]
    assert sorted(s for pair in starts for s in pair) == [0, 8, 16, 24, 32]
    vectors = [kinds["diagonal"].operands[0], kinds["column"].operands[1]]
    assert sorted(vectors) == [0, 8]
    assert [kinds[k].power for k in ("product", "column", "hadamard", "diagonal")] == [1, 1, 0, 0]


# --- what they compute ---


def outcome(model, data, backend, dtype):
    """Outputs and the gradients of all parameters."""
    model.backend = backend
    model.zero_grad()
    with torch.autocast(DEVICE.type, dtype, enabled=dtype != torch.float32):
        value = model(data)
    value.square().sum().backward()
    return value.detach(), {n: p.grad for n, p in model.named_parameters()}


def assert_same(model, data, dtype=torch.float32):
    """Kernels in some dtype, the layers as they are written in float32.

    A gradient may be off by what is left of large terms that cancel: in half precision, twice as
    far as that of the reference in the same precision.
    """
    value, slopes = outcome(model, data, "packed", dtype)
    expected, wanted = outcome(model, data, "reference", torch.float32)
    _, rounded = outcome(model, data, "reference", dtype)
    near = TOLERANCE[dtype]
    assert (value - expected).norm() <= near * max(1.0, float(expected.norm()))
    whole = torch.stack([w.norm() for w in wanted.values() if w is not None]).norm()
    for name, want in wanted.items():
        got = slopes[name]
        if want is None or got is None:
            assert not any(bool(x.any()) for x in (got, want) if x is not None), name
            continue
        error, size = float((got - want).norm()), float(want.norm())
        assert got.dtype == torch.float32
        as_good = 2.0 * float((rounded[name] - want).norm()) if dtype != torch.float32 else 0.0
        allowed = max(near * (size + 0.05 * float(whole)), as_good)
        assert error <= allowed, f"{name}: {error / size:.2e}"


QUICK = [("r-G_L3", "modern"), ("r-G_L3", "paper"), ("four-rule", "modern")]
EVERY = [
    pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
    for case in product(sorted(COVERED), ["modern", "paper"])
]
# Presets take turns.
HALF = [case for number, case in enumerate(EVERY) if not case.marks or number % 4 in (0, 3)]


@pytest.mark.parametrize(("grammar", "preset"), EVERY)
def test_every_ablation(grammar, preset, launches, poisoned):
    assert_same(network(grammar, preset), batch(1, 7, 4))
    expected = "rule_kernels.entries_kernel" if "{MM}" in grammar else "rule_kernels.product_kernel"
    assert expected in launches, "the kernels for small graphs"


OTHER_NORMS = [("graph", True, 5), ("graph", False, 8), ("none", True, 8), ("none", False, 5)]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("pair_norm", "pair_bias", "width"), OTHER_NORMS)
def test_other_norms(pair_norm, pair_bias, width, dtype, launches, poisoned):
    model = network("r-G_L3", width=width, pair_norm=pair_norm, pair_bias=pair_bias)
    assert covered(model) == [True, True]
    assert_same(model, batch(1, 7, 4), dtype)
    assert ("sums.graph_means_kernel" in launches) == (pair_norm == "graph")


@pytest.mark.parametrize("pair_norm", ["entry", "graph", "none"])
def test_rows_of_no_graph_count_for_nothing(pair_norm, poisoned):
    """As a recorded step has them: rubbish after the last graph changes no gradient."""
    model, data = network("r-G_L3", pair_norm=pair_norm), batch(1, 7, 4)
    given = model.checked(data)
    graphs = model.packed.pack(*given)
    rows, found = graphs.packing, []
    for tail in (1, 70):
        packing = Packing.within(rows.sizes, rows.most, rows.nodes + tail, rows.pairs + tail)
        first = {
            letter: torch.cat([x, 9.0 * torch.randn(tail, x.shape[1], device=x.device)])
            for letter, x in graphs.first.items()
        }
        longer = model.packed.from_inputs(packing, first, None, None)
        model.zero_grad()
        value = model.packed.on_graphs(longer)
        value.square().sum().backward()
        slopes = [p.grad for p in model.parameters() if p.grad is not None]
        found.append([value.detach(), *slopes])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    value = outcome(model, data, "reference", torch.float32)[0]
    torch.testing.assert_close(found[0][0], value[graphs.packing.caller], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("grammar", "preset"), HALF)
def test_half_precision(grammar, preset, launches):
    assert_same(network(grammar, preset, layers=1), batch(1, 7, 4), torch.bfloat16)
    assert any(name.startswith("rule_kernels.") for name in launches)


@pytest.mark.parametrize("width", [{"M": 8, "V_c": 5}, {"M": 5, "V_c": 9}, 7], ids=str)
@pytest.mark.parametrize("preset", ["modern", "paper"])
def test_widths_of_any_kind(width, preset, poisoned):
    model = network("r-G_L3", preset, width)
    assert covered(model) == [True, True]
    assert_same(model, batch(2, 7))


def test_a_stack_of_parts_is_the_whole():
    whole = torch.randn(6, 4, requires_grad=True)
    first, second, third = whole.split([1, 3, 2])
    assert stacked([first, second, third]) is whole
    for others in ([second, first, third], [first, second], [first, second, whole[4:].clone()]):
        joined = stacked(others)
        assert joined is not whole
        assert torch.equal(joined, torch.cat(others))


@pytest.mark.parametrize("preset", ["modern", "paper"])
@pytest.mark.parametrize("rules", ["MM | M⊙M | MM | diag(V) | diag(V)", "diag(V) | M⊙M | diag(V)"])
def test_several_rules_of_one_kind(rules, preset, launches, poisoned):
    model = network(f"M → {rules} | A\nV → MV | MV | 1", preset, width=5)
    assert covered(model) == [True, True]
    assert_same(model, batch(2, 7))


@pytest.mark.parametrize("nodes", [17, pytest.param(MOST_NODES, marks=pytest.mark.slow)])
def test_the_larger_tile(nodes, launches, poisoned):
    model = network("r-G_L3", width=4, layers=1)
    assert_same(model, batch(nodes, 5))
    assert "rule_kernels.product_kernel" in launches


GENERAL = [
    ("r-G_L3", "official", "node"),
    ("r-G_L3", "ppgn", "graph"),
    ("r-G_L3 ∪ {Mᵀ}", "modern", "edge"),
    ("2-IGN", "modern", "graph"),
    ("G_L3", "paper", "graph"),
]


@pytest.mark.parametrize(("grammar", "preset", "task"), GENERAL)
def test_other_rules_beside_kernels(grammar, preset, task, launches, poisoned):
    """Products and columns by kernels where a layer has them, all else on padded blocks."""
    model = network(grammar, preset, task=task, layers=1)
    assert covered(model) == [False]
    assert_same(model, batch(1, 7, 4))
    multiplied = any(
        rule.kind in ("product", "selected product")
        for rules in model.packed.layers[0].rules.values()
        for rule in rules
    )
    assert ("rule_kernels.product_kernel" in launches) == multiplied


@pytest.mark.parametrize("sizes", [(MOST_NODES + 1, 5), (MOST_NODES + 1, 5, 2)], ids=str)
def test_larger_graphs_go_the_general_way(sizes, launches, poisoned):
    """Those of few sizes by the library, of many by the kernels for several tiles."""
    model = network("r-G_L3", layers=1, width=4)
    assert_same(model, batch(*sizes))
    tiled = {"tiled_rules.matrix_matrix_kernel", "tiled_rules.matrix_column_kernel"}
    assert tiled & set(launches) == (tiled if len(sizes) > 2 else set())
    assert not any(name.startswith("rule_kernels.") for name in launches)


def test_sums_of_pairs_where_only_products_have_kernels(monkeypatch, launches, poisoned):
    """The last layer gives sums in the place of M, and products are by kernels."""
    monkeypatch.setattr(packing, "pads", lambda _, most: False)
    model = network("r-G_L3", layers=1, width=4)
    assert_same(model, batch(MOST_NODES + 1, 5, 2))
    assert "tiled_rules.matrix_matrix_kernel" in launches


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("preset", ["modern", "paper"])
@pytest.mark.parametrize("grammar", sorted(COVERED))
def test_width_64_on_a_gpu(grammar, preset, dtype, launches):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model = network(grammar, preset, width=64, layers=3)
    assert_same(model, batch(29, 18, 4, 1, 23, 16), dtype)
    assert any(name.startswith("rule_kernels.") for name in launches)
