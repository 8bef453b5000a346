"""Which rules of S pooling contains, decided from their bodies."""

from dataclasses import replace
from itertools import product

import pytest

from g2n2.compiler.grammar_to_plan import plan_network, unsupported
from g2n2.compiler.plan_to_text import plan_as_json, plan_text
from g2n2.compiler.readout_plan import is_pooled
from g2n2.errors import LoweringError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule, is_linear

ALL_SUMS = [(part, "sum") for part in ("nodes", "rows", "scalars", "diagonal", "off-diagonal")]

CONTAINED = [
    "S → 1ᵀV_c",
    "S → V_r1",
    "S → Tr(M)",
    "S → 1ᵀM1",
    "S → 1ᵀ(M⊙I)1",
    "S → 1ᵀ(M⊙J)1",
    "S → 1ᵀMᵀ1",
    "S → Tr(Mᵀ)",
    "S → 1ᵀ(V_cᵀ)ᵀ",
    "S → V_cᵀ1",
    "S → 1ᵀV_rᵀ",
    "S → Tr(diag(V_c))",
    "S → 1ᵀdiag(V_c)1",
    "S → Tr(MI)",
    "S → Tr(V_c1ᵀ)",
    "S → diag(S)",
    "S → SS",
    "S → (S⊙S)",
    "S → f(S)",
]
NOT_CONTAINED = [
    "S → 1ᵀAV_c",
    "S → V_rV_c",
    "S → V_cᵀV_c",
    "S → Tr(MM)",
    "S → Tr(MMM)",
    "S → Tr(AM)",
    "S → 1ᵀ(M⊙A)1",
    "S → 1ᵀ(M⊙M)1",
    "S → 1ᵀ1(1ᵀV_c)",
    "S → 1ᵀf(V_c)",
    "S → f(1ᵀV_c)",
    "S → S(1ᵀA1)",
    "S → S(1ᵀV_c)",
]


@pytest.mark.parametrize("text", CONTAINED)
def test_contained(text):
    assert is_pooled(Rule.parse(text), ALL_SUMS, mlp=True)


@pytest.mark.parametrize("text", NOT_CONTAINED)
def test_not_contained(text):
    assert not is_pooled(Rule.parse(text), ALL_SUMS, mlp=True)


def test_one_linear_map_computes_no_product_of_scalars():
    assert not is_pooled(Rule.parse("S → SS"), ALL_SUMS, mlp=False)
    assert not is_pooled(Rule.parse("S → f(S)"), ALL_SUMS, mlp=False)
    assert is_pooled(Rule.parse("S → diag(S)"), ALL_SUMS, mlp=False)


@pytest.mark.parametrize("how", ["mean", "max"])
def test_only_sums_contain_sums(how):
    pools = [(part, how) for part, _ in ALL_SUMS]
    assert not is_pooled(Rule.parse("S → 1ᵀV_c"), pools, mlp=True)
    assert is_pooled(Rule.parse("S → SS"), pools, mlp=True)
    mixed = [("nodes", how), ("diagonal", "sum"), ("off-diagonal", how)]
    assert is_pooled(Rule.parse("S → Tr(M)"), mixed, mlp=True)
    assert not is_pooled(Rule.parse("S → 1ᵀM1"), mixed, mlp=True)
    rest = [("diagonal", how), ("off-diagonal", "sum")]
    assert is_pooled(Rule.parse("S → 1ᵀ(M⊙J)1"), rest, mlp=True)
    assert not is_pooled(Rule.parse("S → Tr(M)"), rest, mlp=True)


def test_rules_without_variables():
    rule = Rule.parse("S → 1ᵀA1")
    assert not is_pooled(rule, [("nodes", "sum")], mlp=True)
    assert is_pooled(rule, [("nodes", "sum"), ("scalars", "sum")], mlp=True)


@pytest.mark.parametrize(
    ("body", "linear"),
    [
        ("1ᵀV_c", True),
        ("1ᵀ(A + I)V_c", True),
        ("1ᵀf(A)V_c", True),
        ("1ᵀ(V_c + 1)", False),
        ("f(1ᵀV_c)", False),
        ("1ᵀf(V_c)", False),
        ("V_rV_c", False),
        ("1ᵀA1", False),
    ],
)
def test_linear_in_one_variable(body, linear):
    assert is_linear(Rule.parse(f"S → {body}").body) is linear


def steps(grammar, **options):
    plan = plan_network(Grammar.parse(grammar), width=5, layers=2, **options)
    return {str(s.rule): (s.copies, len(s.selectors)) for s in plan.readout.steps}


def test_linear_rules_read_every_channel_and_others_select():
    text = "M → MM | A ; V_c → MV_c | 1 ; S → 1ᵀV_c | Tr(MM) | 1ᵀA1"
    found = {"S → 1ᵀV_c": (5, 0), "S → Tr(MM)": (5, 2), "S → 1ᵀA1": (1, 0)}
    assert steps(text, readout="grammar") == found
    del found["S → 1ᵀV_c"]
    assert steps(text) == found
    assert steps(text, readout="pooled-only") == {}
    assert steps(text, preset="ppgn") == {}
    assert steps(text, preset="ppgn", readout="pooled").keys() >= {"S → 1ᵀV_c", "S → Tr(MM)"}


def test_scalars_that_feed_back_are_read_with_their_rules():
    text = "S → SS | Tr(M) | 1ᵀA1 ; M → S×M | MM | A"
    assert steps(text, readout="grammar") == {"S → SS": (5, 2), "S → Tr(M)": (5, 0)}
    assert steps(text) == {}
    assert steps(text, decision=()) == {"S → SS": (5, 2)}
    assert steps(text, pooling="max") == {"S → Tr(M)": (5, 0)}
    plan = plan_network(Grammar.parse(text), readout="grammar")
    assert plan.readout.pools == (("scalars", "sum"),)


def test_occurrences_of_rules_of_s_have_a_width_of_their_own():
    text = "M → A ; S → Tr(MMM)"
    plan = plan_network(Grammar.parse(text), width={"M": 3, "S": 7})
    assert [step.copies for step in plan.readout.steps] == [7]
    assert plan.layers[-1].widths().keys() == {rule.head for rule in plan.grammar.rules}
    with pytest.raises(LoweringError, match="width names S"):
        plan_network(find_grammar("r-G_L3"), width={"M": 3, "S": 7})


BAD = [
    ({"readout": "words"}, "grammar (the rules of S) or pooled, got 'words'"),
    ({"readout": "grammar", "pooling": "max"}, "the rules of S say what is summed"),
    ({"pooling": "median"}, "sum, mean, max or none, got 'median'"),
    ({"functions": "all"}, "functions is mlp or free, got 'all'"),
    ({"pair_bias": 1}, "pair_bias is true, false or the preset's"),
    ({"functions": "free", "preset": "official"}, "ReLUs between all layers"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_refusals(options, message):
    with pytest.raises(LoweringError) as caught:
        plan_network(find_grammar("r-G_L3"), **options)
    assert message in str(caught.value)


def test_too_few_layers_for_any_rule_of_s():
    grammar = Grammar.parse("V_c → AV_c | 1 ; V_r → (V_c)ᵀA ; M → V_cV_r ; S → Tr(M)")
    with pytest.raises(LoweringError, match="more layers"):
        plan_network(grammar, layers=1, readout="grammar")
    plan_network(grammar, layers=2, readout="grammar")


def lines(grammar, **options):
    plan = plan_network(find_grammar(grammar), width=4, layers=2, **options)
    text = plan_text(plan)
    assert not any(line != line.rstrip() for line in text.splitlines())
    return text[text.index("\nread-out    ") + 1 :].splitlines()


def test_the_plan_says_what_is_read_out_and_what_functions_add():
    pooled = lines("r-G_L3")
    assert pooled == [
        "read-out    pooled: S → 1ᵀV_c | Tr(M) | 1ᵀ(M⊙J)1",
        "functions   MLP with biases on M, V_c",
        "            they add M → 1·1ᵀ to the words of the grammar",
    ]
    own = lines("r-G_L3", readout="grammar", pair_bias=False)
    assert own[0] == "read-out    grammar: S → 1ᵀV_c"
    assert "a layer more" in own[1]
    assert "an example: r-G_L3 on BREC" in own[1]
    assert own[2:] == ["functions   MLP without biases on M; MLP with biases on V_c"]
    joined = lines("M → A ; S → Tr(MMM)", functions="free")
    assert joined == [
        "read-out    pooled: S → Tr(M) | 1ᵀ(M⊙J)1, joined by S → Tr(MMM)",
        "functions   one linear map on M",
        "            they add nothing to the words of the grammar",
    ]


def test_the_cost_in_depth_is_said_only_where_pooling_would_read_more():
    assert not any("a layer more" in line for line in lines("PPGN", readout="grammar"))
    unread = lines("r-G_L3 ∖ {MV_c}", readout="grammar")
    assert unread[1].strip() == "no sentence reads M: its words have no part in the output"


def test_json_says_the_same():
    plan = plan_network(find_grammar("M → A ; S → Tr(MMM)"))
    content = plan_as_json(plan)
    assert content["readout"]["mode"] == "pooled"
    assert content["readout"]["rules"] == ["S → Tr(MMM)"]
    assert content["functions"] == {"M": "any"}
    assert content["added_rules"] == ["M → (M⊙M)", "M → 1·1ᵀ"]
    assert content["exceptions"] == []


@pytest.mark.parametrize("name", ["r-G_L3", "PPGN", "r-G_L1", "GNNML1", "GCN", "2-IGN"])
def test_the_papers_networks_are_pooled_as_they_were(name):
    grammar = find_grammar(name)
    for preset, task in product(("paper", "modern", "ppgn", "official"), ("graph", "node", "edge")):
        if unsupported(grammar, preset):
            continue
        given = {"preset": preset, "task": task, "context": True}
        now = plan_network(grammar, **given)
        before = plan_network(grammar, **given, readout="pooled-only")
        assert replace(now.readout, mode="pooled-only") == before.readout
        assert now.layers == before.layers


@pytest.mark.parametrize(
    ("operations", "named"),
    [
        ("·", "; Tr (S → Tr(M)) would give some"),
        ("· 1", "; Tr (S → Tr(M)) or ᵀ (S → 1ᵀV_c) would give some"),
        ("1 ᵀ", "; Tr (S → Tr(M)) or · (S → 1ᵀV_c) or · (S → V_r1) would give some"),
    ],
)
def test_operations_that_would_give_sentences(operations, named):
    with pytest.raises(LoweringError) as caught:
        plan_network(Fragment.parse(operations).exhaustive(), readout="grammar")
    assert named in str(caught.value)
