"""The printed plan: every line, the totals, the units, and the same as JSON."""

import json

import pytest

from cases import UNMARKED
from g2n2.compiler.costs import Cost, NetworkCost
from g2n2.compiler.grammar_to_plan import plan_network, unsupported
from g2n2.compiler.plan_to_text import (
    HEADERS,
    plan_as_json,
    plan_rows,
    plan_table,
    plan_text,
)
from g2n2.described import bytes_text, flops_text
from g2n2.grammars.catalogue import find_grammar
from g2n2.nn import GrammarGNN


def g2n2(**options):
    given = {"node_features": 11, "edge_features": 4} | options
    return plan_network(find_grammar("r-G_L3"), **given)


def test_table_of_g2n2():
    """Sizes by hand: 198 = 6 + 3·64 and 76 = 12 + 64 channels enter the MLPs of layer 1."""
    table = plan_table(g2n2(), 32, 29)
    assert all(len(row) == len(HEADERS) for row in table)
    columns = [row[:5] for row in table]
    assert columns == [
        ("inputs", "C⁰ = I ‖ A ‖ E", "", "", "[B, N, N, 6]"),
        ("", "H⁰ = X ‖ 1", "", "", "[B, N, 12]"),
        ("layer 1", "M → (M⊙M)", "64", "L1, L2 [B, N, N, 6→64]", "[B, N, N, 64]"),
        ("", "M → MM", "64", "L3, L4 [B, N, N, 6→64]", "[B, N, N, 64]"),
        ("", "M → diag(V_c)", "64", "L6 [B, N, 12→64]", "[B, N, N, 64]"),
        ("", "MLP_M", "", "198→396→64", "[B, N, N, 64]"),
        ("", "V_c → MV_c", "64", "L5 [B, N, N, 6→64]; L7 [B, N, 12→64]", "[B, N, 64]"),
        ("", "MLP_V_c", "", "76→152→64", "[B, N, 64]"),
        ("layers 2–3, each", "M → (M⊙M)", "64", "L1, L2 [B, N, N, 64→64]", "[B, N, N, 64]"),
        ("", "M → MM", "64", "L3, L4 [B, N, N, 64→64]", "[B, N, N, 64]"),
        ("", "M → diag(V_c)", "64", "L6 [B, N, 64→64]", "[B, N, N, 64]"),
        ("", "MLP_M", "", "256→512→64", "[B, N, N, 64]"),
        ("", "V_c → MV_c", "64", "L5 [B, N, N, 64→64]; L7 [B, N, 64→64]", "[B, N, 64]"),
        ("", "MLP_V_c", "", "128→256→64", "[B, N, 64]"),
        ("read-out", "pool", "", "Σ H ‖ Σ diag C ‖ Σ offdiag C", "[B, 192]"),
        ("decision", "MLP", "", "192→512→256→1", "[B, 1]"),
        ("total", "", "", "", ""),
    ]
    assert table[3][5:] == ("768", "141 M", "13.1 MiB")  # 2·(2·6·64 + 29·64)·32·29² and 2·64·32·29²
    assert table[-1][5] == "844,685"


CASES = [
    (grammar, preset)
    for grammar in ("r-G_L3", "G_L3", "GCN", "PPGN", "2-IGN")
    for preset in ("paper", "official", "ppgn", "modern")
    if not unsupported(UNMARKED[grammar], preset)
]


@pytest.mark.parametrize(("grammar", "preset"), CASES)
@pytest.mark.parametrize("task", ["graph", "node", "edge"])
def test_lines_cost_what_the_network_costs(grammar, preset, task):
    plan = plan_network(UNMARKED[grammar], node_features=3, preset=preset, task=task)
    cost = NetworkCost(plan, 5, 11)
    parts = plan_rows(cost)
    assert [rows[0].part for rows in parts] == list(cost.parts)
    for rows, total in zip(parts, cost.parts.values(), strict=True):
        assert sum((row.cost for row in rows), Cost()) == total


@pytest.mark.parametrize("options", [{}, {"trunk": 2, "marks": 3}])
def test_lines_cost_what_a_network_with_marks_costs(options):
    plan = plan_network(find_grammar("r-G_L1ΣΣ"), preset="modern", layers=2, **options)
    cost = NetworkCost(plan, 5, 11)
    assert cost.graphs == 5 * (3**2 if options else 11**2)
    for rows, (name, total) in zip(plan_rows(cost), cost.parts.items(), strict=True):
        assert rows[0].part == name
        assert sum((row.cost for row in rows), Cost()) == total
    model = GrammarGNN("r-G_L1ΣΣ", layers=2, **options)
    assert cost.weights == model.parameter_count
    assert "copies of a graph" in plan_text(plan)


def test_lines_where_copies_meet():
    plan = plan_network(find_grammar("L3Σ (full)"), preset="modern", layers=2, width=8)
    cost = NetworkCost(plan, 5, 11)
    for rows, (name, total) in zip(plan_rows(cost), cost.parts.items(), strict=True):
        assert rows[0].part == name
        assert sum((row.cost for row in rows), Cost()) == total
    text = plan_text(plan, 5, 11)
    assert "in C′ and H′ the first N counts marked copies" in text
    assert "C′⁰ = I ‖ A ‖ diag(v) ‖ diag(Av)" in text
    assert "marks       11 copies of a graph; " in text
    line = next(line for line in text.splitlines() if "V_c → Σv. V_c′" in line)
    assert "[B, N, N, 8→8]" in line
    assert "[B, N, 8] " in line


def test_text_says_it_in_words():
    text = plan_text(g2n2(), 32, 29)
    first, legend, *_ = text.splitlines()
    assert first == "r-G_L3: 3 layers, preset paper, graph level"
    assert "here B = 32, N = 29" in legend
    assert "parameters  844,685\n" in text
    assert "forward     26.1 GFLOPs\ntraining    78.3 GFLOPs" in text
    assert "343 MiB of activations" in text
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_node_and_edge_read_outs_are_named():
    node = plan_table(g2n2(task="node", readout="mean"))
    assert node[-3][3] == "H ‖ mean row C"
    edge = plan_table(g2n2(task="edge", context=True, preset="modern"))
    assert edge[-3][3] == "C ‖ H_i ‖ H_j ‖ Σ H ‖ Σ diag C ‖ Σ offdiag C"
    assert edge[-2][3] == "384→256→1; beside it 384→1"


def test_json_has_every_layer_and_the_same_total():
    content = json.loads(json.dumps(plan_as_json(g2n2(), 32, 29)))
    assert content["total"]["parameters"] == 844_685
    assert content["total"]["training_flops"] == 3 * content["total"]["flops"]
    assert [step["part"] for step in content["steps"]].count("layer 3") == 6
    for quantity in ("parameters", "flops", "activation_bytes"):
        counted = sum(step["cost"][quantity] for step in content["steps"])
        assert counted == content["total"][quantity]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0 FLOPs"), (999, "999 FLOPs"), (1500, "1.50 KFLOPs"), (26_100_000_000, "26.1 GFLOPs")],
)
def test_flops_have_units(number, expected):
    assert flops_text(number) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1023, "1023 B"), (1024, "1.00 KiB"), (1024**2 - 1, "1.00 MiB"), (150 * 1024**3, "150 GiB")],
)
def test_bytes_have_units(number, expected):
    assert bytes_text(number) == expected
