"""Which functions are free, and the grammar whose test describes a plan."""

from dataclasses import replace

import pytest

from g2n2.compiler.grammar_to_plan import plan_network
from g2n2.compiler.plan import NetworkPlan
from g2n2.compiler.plan_to_text import plan_text
from g2n2.compiler.presets import PRESETS
from g2n2.errors import LoweringError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.free_functions import free_functions
from g2n2.grammars.grammar import Grammar
from g2n2.language.sorts import M, R, S, V

FREE = [
    # grammar, variable, X⊙X, its constant
    ("r-G_L3", M, True, False),
    ("r-G_L3", V, True, True),  # diag(V)V by M → diag(V) and V → MV
    ("r-G_L1", V, True, True),
    ("G_L1", M, False, True),  # 1·1ᵀ by V_cV_r
    ("G_L1", R, True, True),  # V_r diag(V_rᵀ)
    ("PPGN", M, False, False),
    ("GCN", V, False, True),
    ("2-IGN", M, False, True),
    ("2-IGN", V, True, True),  # (M⊙I)V with M = V1ᵀ
    ("r-G_L3 ∖ {diag(V_c)}", V, False, True),
    ("M → A ; V_c → (M⊙(V_c1ᵀ))1 | 1", V, False, True),
    ("M → A | V_c1ᵀ ; V_c → (M⊙(V_c1ᵀ))1 | 1", V, False, True),  # n·(V⊙V) is not V⊙V
    ("M → A | diag(V_c) ; V_c → (M⊙(V_c1ᵀ))1 | 1", V, True, True),
    ("V_c → f(V_c) | A1", V, False, False),
]


@pytest.mark.parametrize(("grammar", "sort", "products", "constant"), FREE)
def test_products_and_constants(grammar, sort, products, constant):
    found = free_functions(find_grammar(grammar), sort)
    assert (found.products, found.constant) == (products, constant)


def test_a_rule_f_makes_functions_free():
    found = free_functions(Grammar.parse("V_c → f(V_c) | AV_c | A1"), V)
    assert found.rule
    assert found.mlp
    assert found.bias
    assert not free_functions(Grammar.parse("V_c → relu(V_c) | A1"), V).rule


def plan(grammar, layers=2, **options) -> NetworkPlan:
    return plan_network(find_grammar(grammar), width=4, layers=layers, **options)


def mixers(made: NetworkPlan) -> dict:
    return {
        update.sort: (len(update.mixer), update.mixer[0].bias) for update in made.layers[-1].updates
    }


@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_mlps_stand_where_they_are_free(preset):
    assert mixers(plan("G_L1", preset=preset, functions="free")) == {
        M: (1, False),
        V: (2, True),
        R: (2, True),
        S: (2, False),
    }
    assert mixers(plan("r-G_L3", preset=preset, functions="free")) == {M: (2, False), V: (2, True)}
    assert mixers(plan("r-G_L3", preset=preset)) == {M: (2, True), V: (2, True)}
    assert mixers(plan("r-G_L3", preset=preset, pair_bias=False)) == {M: (2, False), V: (2, True)}


def test_how_m_is_normalised_is_chosen_apart():
    made = plan("r-G_L3", preset="modern", pair_norm="none")
    assert [sort for sort, _ in made.layers[0].norms] == [V]
    assert "RMS norms, not of M" in plan_text(made)
    assert "RMS norms, M by graph" in plan_text(plan("r-G_L3", preset="modern", pair_norm="graph"))
    assert plan("r-G_L3", preset="paper", pair_norm="none").layers == plan("r-G_L3").layers
    for options, words in (
        ({"preset": "paper", "pair_norm": "graph"}, "preset paper normalises no memory"),
        ({"preset": "modern", "pair_norm": "row"}, "entry, graph, none or the preset's"),
    ):
        with pytest.raises(LoweringError, match=words):
            plan("r-G_L3", **options)


def test_a_norm_is_a_function_and_goes_with_the_mlp():
    made = plan("G_L1", layers=3, preset="modern", functions="free")
    assert [sort for sort, _ in made.layers[-1].norms] == [V, R, S]
    assert all(not update.mixer[0].bias for update in made.layers[-1].updates if update.sort == M)
    everywhere = plan("G_L1", layers=3, preset="modern")
    assert [sort for sort, _ in everywhere.layers[-1].norms] == [M, V, R, S]


def test_the_identity_is_given_only_where_it_is_a_word():
    text = "M → diag(V_c) | A ; V_c → MV_c | A1"
    assert "I" in plan(text).inputs.matrix
    assert "I" not in plan(text, functions="free").inputs.matrix
    assert "I" in plan("r-G_L3", functions="free").inputs.matrix


FUNCTIONS = [
    ("r-G_L3", {"preset": "paper"}, {M: "any", V: "any"}),
    ("r-G_L3", {"preset": "paper", "pair_bias": False}, {M: "homogeneous", V: "any"}),
    ("r-G_L3", {"preset": "modern", "pair_bias": False}, {M: "zero", V: "any"}),
    (
        "r-G_L3",
        {"preset": "modern", "pair_bias": False, "pair_norm": "graph"},
        {M: "zero", V: "any"},
    ),
    (
        "r-G_L3",
        {"preset": "modern", "pair_bias": False, "pair_norm": "none"},
        {M: "homogeneous", V: "any"},
    ),
    ("PPGN", {"preset": "paper", "functions": "free"}, {M: "linear"}),
    ("PPGN", {"preset": "modern", "functions": "free"}, {M: "linear"}),
    ("PPGN", {"preset": "ppgn"}, {M: "any"}),
    ("PPGN", {"preset": "ppgn", "functions": "free"}, {M: "linear"}),
    ("GCN", {"preset": "paper", "functions": "free"}, {V: "linear"}),
]


@pytest.mark.parametrize(("grammar", "options", "expected"), FUNCTIONS)
def test_functions_of_each_memory(grammar, options, expected):
    assert plan(grammar, **options).functions() == expected


ADDED = [
    ("r-G_L3", {}, ["M → 1·1ᵀ"]),
    ("r-G_L3", {"pair_bias": False}, []),
    ("r-G_L1", {}, []),
    ("PPGN", {}, ["M → (M⊙M)", "M → 1·1ᵀ"]),
    ("PPGN", {"functions": "free"}, []),
    ("G_L1", {}, ["M → (M⊙M)"]),
    ("GCN", {}, ["V_c → (V_c⊙V_c)"]),
    ("r-G_L3 ∖ {M⊙M}", {}, ["M → (M⊙M)", "M → 1·1ᵀ"]),
]


@pytest.mark.parametrize(("grammar", "options", "expected"), ADDED)
@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_rules_that_functions_add(grammar, options, expected, preset):
    made = plan(grammar, preset=preset, **options)
    assert [str(rule) for rule in made.added_rules()] == expected
    for rule in made.added_rules():
        assert Grammar.parse(f"{made.grammar} ; {rule}") == made.grammar | rule


TESTS = [
    ("r-G_L3", {"readout": "grammar"}, "V_c → MV_c | 1 ; M → M⊙M | MM | diag(V_c) | A | I"),
    (
        "r-G_L3",
        {},
        "V_c → MV_c | 1 ; M → M⊙M | MM | diag(V_c) | A | I ; S → 1ᵀV_c | Tr(M) | 1ᵀ(M⊙J)1",
    ),
    (
        "r-G_L3",
        {"preset": "modern", "pair_norm": "graph", "readout": "grammar"},
        "V_c → MV_c | 1 ; M → M⊙M | MM | diag(V_c) | A | I ; S → 1ᵀV_c | 1ᵀM1",
    ),
    ("PPGN", {"readout": "grammar"}, "M → MM | diag(1) | A ; S → Tr(M) | 1ᵀM1"),
    ("PPGN", {}, "M → MM | diag(1) | A ; S → Tr(M) | 1ᵀ(M⊙J)1"),
    ("M → A ; S → Tr(MMM)", {"readout": "grammar"}, "M → A ; S → Tr(MMM)"),
    ("M → A ; S → Tr(MMM)", {}, "M → A ; S → Tr(MMM) | Tr(M) | 1ᵀ(M⊙J)1"),
    ("M → A ; S → Tr(MMM)", {"readout": "pooled-only"}, "M → A ; S → Tr(M) | 1ᵀ(M⊙J)1"),
    ("GNNML1", {}, "V_c → V_c⊙V_c | AV_c | 1 ; S → 1ᵀV_c"),
    ("M → MM | A", {"directed": True}, "M → MM | A | Aᵀ ; S → Tr(M) | 1ᵀ(M⊙J)1"),
]


FULL = (
    "V_c → MV_c | 1 | Σv. V_c′ ; M → M⊙M | MM | diag(V_c) | A | Σv. M′ | Σv. V_c′V_c′ᵀ | I ; "
    "V_c′ → M′V_c′ | v | V_c | 1 | Av ; "
    "M′ → M′⊙M′ | M′M′ | diag(V_c′) | M | A | I | diag(v) | diag(Av)"
)
REDUCED = (
    "V → Σv. V′ ; M → Σv. M′ | Σv. V′V′ᵀ ; V′ → M′V′ | v | V ; "
    "M′ → M′⊙M′ | M′M′ | diag(V′) | A | M ; S → 1ᵀV"
)
TESTS += [
    ("L3Σ (full)", {"readout": "grammar"}, f"{FULL} ; S → 1ᵀV_c"),
    ("L3Σ (full)", {}, f"{FULL} ; S → 1ᵀV_c | Tr(M) | 1ᵀ(M⊙J)1"),
    (REDUCED, {"readout": "grammar"}, f"{REDUCED} ; V′ → Av ; M′ → I | diag(v) | diag(Av)"),
]


@pytest.mark.parametrize(("grammar", "options", "expected"), TESTS)
def test_the_grammar_of_the_test(grammar, options, expected):
    assert plan(grammar, **options).test_grammar() == Grammar.parse(expected)


def test_scalars_that_feed_back_stay_rules_and_pooling_is_no_rule_of_layers():
    found = plan("G_L1").test_grammar()
    assert [str(rule) for rule in found.readout] == [
        "S → 1ᵀV_c",
        "S → V_r1",
        "S → Tr(M)",
        "S → 1ᵀ(M⊙J)1",
    ]
    assert {str(rule) for rule in found.rules if rule.head == S} == {
        "S → (V_r)(V_c)",
        "S → diag(S)",
        "S → SS",
    }


EXCEPTIONS = [
    ("r-G_L3", {"preset": "paper"}, []),
    ("r-G_L3", {"preset": "modern"}, []),
    ("PPGN", {"preset": "ppgn"}, ["in the selectors", "a maximum", "no rule of S"]),
    ("r-G_L3", {"preset": "official"}, ["the new C"]),
    ("r-G_L3", {"preset": "paper", "pooling": "mean"}, ["mean pooling"]),
    ("r-G_L3", {"preset": "modern", "pair_bias": False}, ["which no norm follows"]),
    ("r-G_L3", {"preset": "modern", "pair_norm": "graph"}, []),
    ("r-G_L3", {"preset": "modern", "pair_norm": "none"}, []),
    (
        "r-G_L3",
        {"preset": "modern", "pair_norm": "graph", "readout": "grammar"},
        ["shows every entry a sum"],
    ),
    (
        "r-G_L3",
        {"preset": "modern", "pair_norm": "graph", "pair_bias": False},
        ["which no norm follows", "leaves the multiples"],
    ),
    ("r-G_L3Σ", {"preset": "modern", "pair_norm": "graph"}, ["of a marked copy", "divided by √n"]),
    ("L3Σ (full)", {"preset": "modern"}, []),
    ("L3Σ (full)", {"preset": "modern", "pair_norm": "graph"}, ["of a marked copy"]),
    ("V → AV | 1 | Σv. V′ ; V′ → AV′ | v ; S′ → V′ᵀV′ ; S → Σv. S′", {}, ["read out after it"]),
    ("r-G_L3", {"preset": "paper", "task": "node"}, ["outputs for nodes"]),
    ("r-G_L3", {"preset": "modern", "node_features": 3}, ["are normalised before the first layer"]),
    (
        "M → MM | A ; S → Tr(M)",
        {"preset": "modern", "functions": "free", "readout": "grammar"},
        ["divided by √n"],
    ),
    ("M → A ; S → Tr(MMM)", {"readout": "pooled-only"}, ["no rule of S"]),
]


@pytest.mark.parametrize(("grammar", "options", "words"), EXCEPTIONS)
def test_where_the_test_is_not_exact(grammar, options, words):
    found = plan(grammar, **options).exceptions()
    assert len(found) == len(words)
    for reason, word in zip(found, words, strict=True):
        assert word in reason


def test_a_bias_on_one_linear_map_is_a_rule_of_the_test():
    preset = replace(PRESETS["paper"], hidden=0)
    made = plan("PPGN", preset=preset, readout="grammar")
    assert made.functions() == {M: "linear"}
    expected = Grammar.parse("M → MM | diag(1) | A | 1·1ᵀ ; S → Tr(M) | 1ᵀM1")
    assert made.test_grammar() == expected


def test_what_is_free_follows_the_meaning_of_an_operation() -> None:
    from g2n2.language.operations import Operation
    from g2n2.testing import registered

    text = "M → op(M, M) | A; S → 1ᵀM1"
    for signature, free in (("ab,ab->ab", True), ("ab,bc->ac", False), ("ab,ab->ab", True)):
        with registered(Operation("op", "op", signature)):
            assert free_functions(Grammar.parse(text), M).products is free


def test_memories_nobody_reads_are_left_out_of_the_last_layer():
    made = plan("L3Σ (full)", layers=2)
    assert [str(u.sort.variable) for u in made.layers[0].updates] == ["M", "V_c", "M′", "V_c′"]
    assert [str(u.sort.variable) for u in made.layers[1].updates] == ["M", "V_c"]
    assert made.shown_layer == 0
    read = plan("V → AV | 1 | Σv. V′ ; V′ → AV′ | v ; S → Σv. V′ᵀV′ | 1ᵀV", layers=2)
    assert [str(u.sort.variable) for u in read.layers[1].updates] == ["V_c", "V_c′"]


def test_each_scope_starts_with_its_own_words_and_the_inner_one_with_what_it_lifts():
    made = plan("V → MV | 1 | Σv. V′ ; M → A ; V′ → M′V′ | v ; M′ → M | diag(V′) ; S → 1ᵀV")
    outside, inside = made.scoped.outside, made.scoped.inside
    assert (outside.matrix, outside.column) == (("A",), ("1",))
    assert (inside.matrix, inside.column) == (("I", "A"), ())
    assert made.inputs.unmarked.matrix == ("A", "I")
    assert made.inputs.unmarked.places(inside) == {M: [0, 1]}
    assert made.inputs.unmarked.places(outside) == {M: [0], V: [0]}
