"""Parameter counts of the paper's networks, of the released code and of PPGN, as literals.

Each is counted twice: by the plan, and by the PyTorch module made of it.
"""

import pytest

from g2n2.compiler.costs import NetworkCost
from g2n2.compiler.grammar_to_plan import plan_network
from g2n2.grammars.catalogue import find_grammar
from g2n2.nn.model import GrammarGNN

G_L3 = {"preset": "paper", "edge_features": 4}
NAMED = [
    ("r-G_L3", {"preset": "paper", "edge_features": 4, "width": 64}, 844_685),
    ("r-G_L3", {"preset": "paper", "edge_features": 5, "width": 64}, 845_929),
    ("r-G_L3", {"preset": "paper", "edge_features": 4, "width": 32}, 339_085),
    ("r-G_L3", {"preset": "paper", "edge_features": 5, "width": 32}, 339_721),
    ("r-G_L3", {"preset": "official", "edge_features": 5, "width": 64}, 1_174_270),
    ("r-G_L3", {"preset": "official", "edge_features": 5, "width": 32}, 354_206),
    ("PPGN", {"preset": "ppgn", "node_features": 13, "edge_features": 4, "width": 400}, 2_970_497),
    ("r-G_L3 ∪ {Mᵀ}", {"preset": "paper", "edge_features": 4, "width": 32}, 399_629),
    ("r-G_L3 ∪ {Mᵀ}", {"preset": "paper", "edge_features": 4, "width": 64}, 1_084_557),
    ("i-G_L3", {"preset": "paper", "edge_features": 4, "width": 32}, 503_085),
    ("i-G_L3", {"preset": "paper", "edge_features": 4, "width": 64}, 1_463_501),
    ("G_L3", {**G_L3, "width": 32, "readout": "pooled-only"}, 777_773),
    ("G_L3", {**G_L3, "width": 64, "readout": "pooled-only"}, 2_522_829),
    # Two selectors of S → (V_r)(V_c), and what the first decision layer reads of it.
    ("G_L3", {**G_L3, "width": 32}, 777_773 + 2 * 32**2 + 32 * 512),
    ("G_L3", {**G_L3, "width": 64}, 2_522_829 + 2 * 64**2 + 64 * 512),
]


@pytest.mark.parametrize(("grammar", "options", "expected"), NAMED)
def test_counts_by_plan_and_by_module(grammar, options, expected):
    options = {"node_features": 11, "layers": 3, "out": 1} | options
    module = GrammarGNN(grammar, **options)
    assert module.parameter_count == sum(p.numel() for p in module.parameters()) == expected
    assert NetworkCost(module.plan, 1, 1).total.parameters == expected


BY_LAYER = {  # node features 11, edge features 4
    ("r-G_L3", 32): [36_108, 60_864, 60_864],
    ("r-G_L3", 64): [129_164, 242_560, 242_560],
    ("r-G_L3 ∪ {Mᵀ}", 64): [196_748, 328_704, 328_704],
    ("i-G_L3", 32): [58_092, 123_680, 123_680],
    ("i-G_L3", 64): [214_092, 493_120, 493_120],
    ("G_L3", 32): [68_652, 193_600, 301_504],
    ("G_L3", 64): [251_596, 772_224, 1_203_072],
}


@pytest.mark.parametrize(("grammar", "width"), BY_LAYER)
def test_counts_by_layer(grammar, width):
    plan = plan_network(find_grammar(grammar), node_features=11, edge_features=4, width=width)
    parts = NetworkCost(plan, 1, 1).parts
    counted = [parts[f"layer {number}"].parameters for number in (1, 2, 3)]
    assert counted == BY_LAYER[grammar, width]


@pytest.mark.parametrize("width", [32, 64])
def test_layers_hold_five_and_two_times_those_of_the_reduced_grammar(width):
    """293 s² and 120 s² against 59 s²; the paper says "divided by 2" for the reduction."""
    counts = {}
    for grammar, squares in (("G_L3", 293), ("i-G_L3", 120), ("r-G_L3", 59)):
        plan = plan_network(find_grammar(grammar), node_features=11, width=width, layers=5)
        updates = plan.layers[4].updates
        selectors = [s for u in updates for step in u.steps for s in step.selectors]
        steady = [x for part in [*selectors] for x in part.maps] + [
            x for u in updates for x in u.mixer
        ]
        assert sum(x.width_in * x.width_out for x in steady) == squares * width**2
        counts[grammar] = sum(x.parameters for x in steady)
    assert counts["G_L3"] / counts["r-G_L3"] == pytest.approx(5, rel=0.02)
    assert counts["i-G_L3"] / counts["r-G_L3"] == pytest.approx(2, rel=0.04)
