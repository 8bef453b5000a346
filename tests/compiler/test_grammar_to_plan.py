"""What a plan gives each memory: inputs, widths, steps; and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import plan_network, undefined_supports, unsupported
from g2n2.compiler.plan import LayerPlan, NetworkPlan
from g2n2.errors import G2N2Error, LoweringError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule, parse_rules
from g2n2.language.sorts import M, R, S, V
from g2n2.nn import GrammarGNN


def planned(text: str, **options: Any) -> NetworkPlan:
    return plan_network(find_grammar(text), **options)


def rules_of(layer: LayerPlan) -> set[Rule]:
    return {step.rule for update in layer.updates for step in update.steps}


def rules(text: str) -> set[Rule]:
    return {rule for line in text.split(";") for rule in parse_rules(line.strip())}


@pytest.mark.parametrize(
    ("name", "matrix", "column"),
    [
        ("r-G_L3", ("I", "A"), ("1",)),
        ("G_L3", ("I", "A"), ("1",)),
        ("G_L1", ("I", "A"), ("1",)),
        ("r-G_L3 ∖ {diag(V_c)}", ("A",), ("1",)),
        ("r-G_L3 ∖ {diag(V_c)} ∪ {I}", ("I", "A"), ("1",)),
        ("r-G_L3 ∖ {MV_c}", ("I", "A"), ("1",)),
        ("four-rule", ("I", "A"), ()),
        ("PPGN", ("I", "A"), ()),
        ("TriMul", ("A",), ()),
        ("2-IGN", ("A",), ("1",)),
        ("GNNML1", (), ("1",)),
        ("GCN", (), ("1",)),
    ],
)
def test_inputs(name: str, matrix: tuple[str, ...], column: tuple[str, ...]) -> None:
    """I is an input iff diag(V_c) or the terminal I is in the grammar."""
    inputs = planned(name).inputs
    assert (inputs.matrix, inputs.column) == (matrix, column)


@pytest.mark.parametrize(
    ("text", "sort", "names"),
    [
        ("M → MM | Aᵀ | A", M, ("A", "Aᵀ")),
        ("M → MM | J | A", M, ("A", "J")),
        ("M → MM | 1·1ᵀ | A", M, ("A", "1·1ᵀ")),
        ("M → MM | C; C = A + I", M, ("C",)),
        ("V_c → AV_c | A1", V, ("A1",)),
        ("V_c → (V_r)ᵀ | 1; V_r → V_rA | 1ᵀ", R, ("1ᵀ",)),
        ("V_c → V_cS | 1; S → SS | Tr(A)", S, ("Tr(A)",)),
    ],
)
def test_every_rule_without_variables_is_an_input(
    text: str, sort: Any, names: tuple[str, ...]
) -> None:
    assert planned(text).inputs.parts[sort] == names


def test_features_take_their_place() -> None:
    """C⁰ = I‖A‖E and H⁰ = X‖1; where there are no columns, X stands on the diagonal."""
    with_nodes = planned("r-G_L3", node_features=11, edge_features=4).inputs
    assert with_nodes.matrix == ("I", "A", "E")
    assert with_nodes.column == ("X", "1")
    assert (with_nodes.widths[M], with_nodes.widths[V]) == (6, 12)
    without = planned("PPGN", node_features=11, edge_features=4).inputs
    assert without.matrix == ("I", "A", "E", "diag(X)")
    assert without.widths[M] == 17
    official = planned("r-G_L3", node_features=11, preset="official").inputs
    assert official.column == ("X",)
    assert planned("r-G_L3", preset="official").inputs.column == ("1",)


def test_directed() -> None:
    assert planned("r-G_L3", directed=True).inputs.matrix == ("I", "A", "Aᵀ")
    assert planned("M → MM | Aᵀ | A", directed=True).inputs.matrix == ("A", "Aᵀ")
    for name, safe in (
        ("r-G_L3", False),
        ("r-G_L3 ∪ {Mᵀ}", True),
        ("i-G_L3", True),
        ("TriMul", True),
        ("GNNML1", False),
        ("V_c → AV_c | AᵀV_c | 1", True),
        ("V_c → AV_c | CV_c | 1; C = Aᵀ", True),
        ("V_c → AV_c | CV_c | 1; C = A + I", False),
    ):
        assert planned(name).inputs.directed_safe is safe, name
    assert planned("r-G_L3", directed=True).inputs.directed_safe


def test_widths_by_variable() -> None:
    plan = planned("r-G_L3", width={"M": 8, "V": 5}, layers=2)
    assert plan.layers[0].widths() == {M: 8, V: 5}
    assert planned("r-G_L3", width={"M": 8, "V_c": 5}).layers[0].widths() == {M: 8, V: 5}
    assert planned("r-G_L3", width={"M": 8}).layers[0].widths() == {M: 8, V: 8}
    model = GrammarGNN("G_L3", width={"M": 3, "V_c": 4, "V_r": 5, "S": 2}, layers=3)
    assert model.plan.layers[-1].widths() == {M: 3, V: 4, R: 5, S: 2}


def test_a_rule_waits_for_its_operands() -> None:
    """G_L3 starts without rows: V_rM comes one layer after (V_c)ᵀ has made some."""
    first, second, third = planned("G_L3", layers=3).layers
    at_once = "M → (M⊙M) | MM | Mᵀ | diag(V_c); V_c → (V_c⊙V_c) | MV_c; V_r → (V_c)ᵀ"
    with_rows = "M → (V_c)(V_r); V_c → (V_r)ᵀ; V_r → (V_r⊙V_r) | V_rM; S → (V_r)(V_c)"
    with_scalars = "S → diag(S) | SS | (S⊙S); V_c → V_cS; V_r → SV_r"
    assert rules_of(first) == rules(at_once)
    assert rules_of(second) == rules_of(first) | rules(with_rows)
    assert rules_of(third) == rules_of(second) | rules(with_scalars)
    first, second = planned("V_c → M1 | MV_c; M → MM | A", layers=2).layers
    assert rules_of(second) - rules_of(first) == rules("V_c → MV_c")


def test_every_step_appears() -> None:
    """After enough layers no rule with variables is left out."""
    for name, grammar in UNMARKED.items():
        plan = plan_network(grammar, layers=4, supports=True)
        applied = [s.rule for update in plan.layers[-1].updates for s in update.steps]
        assert sorted(map(str, applied)) == sorted(str(r) for r in grammar.rules if r.holes), name


def test_unsupported_says_everything_at_once() -> None:
    grammar = Grammar.parse("V_c → C_1V_c | C_2V_c | AV_c | 1", "mine")
    assert undefined_supports(grammar) == ("C_1", "C_2")
    reasons = unsupported(grammar, "official")
    assert len(reasons) == 3
    with pytest.raises(LoweringError) as caught:
        plan_network(grammar, preset="official")
    for part in ("mine", "C_1", "C_2", "official", "`C_1 = A`", "supports="):
        assert part in str(caught.value)
    assert unsupported(grammar, supports=True) == []
    assert all(not unsupported(g, supports=True) for g in UNMARKED.values())


def test_official_is_for_g2n2_only() -> None:
    """Its node update is MV_c, so a grammar without that rule must not get it."""
    fits = [n for n, g in UNMARKED.items() if not unsupported(g, "official", supports=True)]
    assert fits == [
        "r-G_L3",
        "r-G_L3 ∪ {Mᵀ}",
        "r-G_L3 ∖ {M⊙M}",
        "r-G_L3 ∖ {MM}",
        "r-G_L3 ∖ {diag(V_c)}",
        "r-G_L3 ∖ {diag(V_c)} ∪ {I}",
        "2-IGN (as printed)",
        "2-IGN",
    ]


BAD_OPTIONS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("r-G_L3", {"preset": "papre"}, ("'papre'", "paper", "official", "ppgn", "modern")),
    ("r-G_L3", {"task": "graphs"}, ("graph, node or edge", "'graphs'")),
    ("r-G_L3", {"readout": "median"}, ("sum, mean, max or none", "'median'")),
    ("r-G_L3", {"readout": {"edges": "sum"}}, ("'edges'", "nodes", "off-diagonal")),
    ("r-G_L3", {"readout": "none"}, ("leaves nothing",)),
    ("r-G_L3", {"width": 0}, ("width", "at least 1", "0")),
    ("r-G_L3", {"width": 2.5}, ("width", "whole number", "2.5")),
    ("r-G_L3", {"width": True}, ("width", "whole number", "True")),
    ("r-G_L3", {"width": {"M": 2.5}}, ("width", "whole number", "2.5")),
    ("r-G_L3", {"decision": 512}, ("hidden widths, such as (512, 256), got 512",)),
    ("r-G_L3", {"decision": (8, 0)}, ("a decision layer's width", "at least 1, got 0")),
    ("r-G_L3", {"typical_size": 0.0}, ("a number of nodes above 0, got 0.0",)),
    ("r-G_L3", {"width": {"X": 3}}, ("X", "M, V_c")),
    ("r-G_L3", {"width": {"S": 3}}, ("S", "M, V_c")),
    ("r-G_L3", {"layers": 0}, ("layers", "at least 1")),
    ("r-G_L3", {"layers": "3"}, ("layers", "whole number", "'3'")),
    ("r-G_L3", {"out": 0}, ("out", "at least 1")),
    ("r-G_L3", {"node_features": -1}, ("node_features", "at least 0", "-1")),
    ("GNNML1", {"edge_features": 4}, ("GNNML1", "edge features", "edge_features=0")),
    ("GNNML1", {"directed": True}, ("GNNML1", "Aᵀ", "V_c → (Aᵀ)V_c", "GNNML1 ∪ V_c → (Aᵀ)V_c")),
    ("r-G_L1ΣΣ", {"directed": True}, ("r-G_L1ΣΣ ∪ V_c″ → (Aᵀ)V_c″",)),
    ("V → AV | 1", {"directed": True}, ("add the rule V_c → (Aᵀ)V_c to its rules",)),
    ("GNNML3-2", {}, ("C_1", "C_2", "supports=")),
    ("PPGN", {"preset": "official"}, ("official", "MV_c")),
    ("r-G_L3 ∖ {MV_c}", {"preset": "official"}, ("official", "MV_c")),
    ("no such grammar", {}, ("no grammar is called",)),
    (7, {}, ("got int, expected a grammar, its name",)),
]


@pytest.mark.parametrize(("name", "options", "words"), BAD_OPTIONS)
def test_bad_options(name: str, options: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(G2N2Error) as caught:
        GrammarGNN(name, **options)
    for word in words:
        assert word in str(caught.value)
