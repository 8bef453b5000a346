"""The verdict: words, functions and networks against 1-WL and 3-WL, with evidence that holds."""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations

import pytest

from g2n2.compiler.grammar_to_plan import plan_network
from g2n2.data.suites import load_suite
from g2n2.grammars.catalogue import TEXTS, find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.graphs import adjacency
from g2n2.graphs.names import graph_name
from g2n2.language.operations import Operation
from g2n2.pipeline import compare, derive
from g2n2.placement import (
    Relation,
    Statement,
    against_test,
    compared_tests,
    turned,
    wl_statements,
)
from g2n2.power.grammar_test import words_of_test
from g2n2.power.random_probes import graph_classes
from g2n2.power.refinement import refine
from g2n2.power.wl_tests import ONE_WL, THREE_WL, WLTest
from g2n2.reduction.reduce import reduce
from g2n2.testing import registered
from g2n2.verdict import (
    comparison_verdict,
    derivation_verdict,
    grammar_verdict,
    network_verdict,
    sentence_makers,
)

ATLAS = [graph for graph in load_suite("atlas").graphs if len(graph) <= 6]
COLOURS = refine(ATLAS).graph_colours.tolist()
# All graphs of up to 5 nodes, and those of 6 that 1-WL merges with another.
SMALL = [
    graph
    for graph, colour in zip(ATLAS, COLOURS, strict=True)
    if len(graph) < 6 or COLOURS.count(colour) > 1
]
TESTS = {"1-WL": 1, "3-WL": 2}


def relations(statements: tuple[Statement, ...]) -> dict[str, str]:
    return {statement.against: statement.relation for statement in statements}


@cache
def statements_of(grammar: Grammar) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """As words and with functions, once for each grammar."""
    return wl_statements(grammar, False, ""), wl_statements(grammar, True, "")


# THEORY.md §1 and §4, WL-OF-GRAMMARS.md: as words, then with functions.
EXPECTED = [
    ("r-G_L1", ("equals", "strictly below"), ("equals", "strictly below")),
    ("G_L1", ("equals", "strictly below"), ("strictly above", "equals")),
    ("r-G_L3", ("strictly above", "equals"), ("strictly above", "equals")),
    ("PPGN", ("incomparable with", "strictly below"), ("strictly above", "equals")),
    ("r-G_{·, Tr}", ("incomparable with", "strictly below"), ("strictly above", "equals")),
    ("r-G_{·, ᵀ, 1}", ("strictly below", "strictly below"), ("equals", "strictly below")),
    ("r-G_{·, ᵀ, 1, Tr}", ("incomparable with", "strictly below"), ("strictly above", "equals")),
    ("r-G_{·, 1, diag, Tr}", ("strictly above", "strictly below"), ("strictly above", "equals")),
    ("r-G_{·, ᵀ, 1, ⊙}", ("strictly above", "equals"), ("strictly above", "equals")),
    ("r-G_L3 ∖ {M⊙M}", ("equals", "strictly below"), ("strictly above", "equals")),
    ("r-G_L3 ∖ {MM}", ("equals", "strictly below"), ("equals", "strictly below")),
    ("r-G_L3 ∖ {diag(V_c)}", ("not bounded by", "at most"), ("strictly above", "equals")),
    ("four-rule", ("strictly above", "equals"), ("strictly above", "equals")),
    ("2-IGN", ("equals", "strictly below"), ("equals", "strictly below")),
    ("GCN", ("strictly below", "strictly below"), ("strictly below", "strictly below")),
    ("GNNML1", ("equals", "strictly below"), ("equals", "strictly below")),
    ("TriMul", ("incomparable with", "strictly below"), ("strictly above", "equals")),
]


@pytest.mark.parametrize(("name", "words", "functions"), EXPECTED)
def test_where_known_grammars_stand(
    name: str, words: tuple[str, str], functions: tuple[str, str]
) -> None:
    by_words, by_functions = statements_of(find_grammar(name))
    assert relations(by_words) == dict(zip(TESTS, words, strict=True))
    assert relations(by_functions) == dict(zip(TESTS, functions, strict=True))


def partition(classes: list[int]) -> set[tuple[int, int]]:
    """The pairs of one size that are told apart."""
    return {
        (i, j)
        for i, j in combinations(range(len(SMALL)), 2)
        if len(SMALL[i]) == len(SMALL[j]) and classes[i] != classes[j]
    }


def wl_partition(folklore: int) -> set[tuple[int, int]]:
    found = refine(SMALL, folklore, "wl" if folklore == 1 else "fwl")
    return partition(found.graph_colours.tolist())


WL = {name: wl_partition(k) for name, k in TESTS.items()}


def check_against_small_graphs(statements: tuple[Statement, ...], words: Grammar) -> None:
    """No statement may be refuted by a small graph."""
    own = partition(graph_classes(words, SMALL).tolist())
    for statement in statements:
        test = WL[statement.against]
        if statement.relation in ("equals", "strictly below", "at most"):
            assert own <= test, statement
        if statement.relation in ("equals", "strictly above", "at least"):
            assert own >= test, statement
        for pair in statement.witness:
            check_witness(pair, words, statement.against)


def check_witness(pair: dict[str, object], words: Grammar, against: str) -> None:
    graphs = [adjacency(text) for text in pair["graphs"]]  # type: ignore[attr-defined]
    k = TESTS[against]
    test = refine(graphs, k, "wl" if k == 1 else "fwl").separated()
    own = len(set(graph_classes(words, graphs).tolist())) == 2
    assert {"it": own, against: test}[str(pair["told_apart_by"])]
    assert not {"it": own, against: test}[str(pair["merged_by"])]


SUBSETS = [
    names
    for size in range(1, 7)
    for names in combinations(("matmul", "transpose", "one", "diag", "hadamard", "trace"), size)
    if Fragment(names).exhaustive().sentence_rules
]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(names, id="+".join(names), marks=[pytest.mark.slow] if index % 6 else [])
        for index, names in enumerate(SUBSETS)
    ],
)
def test_no_small_graph_refutes_a_statement_about_any_set_of_operations(
    names: tuple[str, ...],
) -> None:
    check_both(reduce(Fragment(names).exhaustive(), alternatives=False).reduced)


@cache
def check_both(grammar: Grammar) -> None:
    """Once for each grammar: many sets of operations reduce to the same."""
    by_words, by_functions = statements_of(grammar)
    check_against_small_graphs(by_words, grammar)
    check_against_small_graphs(by_functions, words_of_test(grammar))


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "GCN"])
def test_no_small_graph_refutes_a_statement_about_the_catalogue(name: str) -> None:
    check_both(find_grammar(name))


MIRRORED = {
    "equals": "equals",
    "incomparable with": "incomparable with",
    "open against": "open against",
    "strictly below": "strictly above",
    "at most": "at least",
    "not bounded by": "does not reach",
}


@pytest.mark.parametrize(
    ("relation", "other"), [*MIRRORED.items(), *((b, a) for a, b in MIRRORED.items())]
)
def test_a_statement_from_the_other_side(relation: Relation, other: Relation) -> None:
    found = turned(Statement("G as words", relation, "1-WL"), "1-WL", "as words")
    assert (found.about, found.relation, found.against) == ("1-WL", other, "G as words")


def test_the_check_can_fail() -> None:
    wrong = Statement("", "at most", "1-WL")
    with pytest.raises(AssertionError):
        check_against_small_graphs((wrong,), find_grammar("r-G_L3"))
    wrong = Statement("", "at least", "1-WL")
    with pytest.raises(AssertionError):
        check_against_small_graphs((wrong,), find_grammar("M → MM | A; S → Tr(M)"))


def test_derivations_say_what_the_issue_asks_for() -> None:
    for fragment, line in (("L3", "equals 3-WL"), ("L1", "equals 1-WL")):
        text = str(derive(fragment))
        verdict = text[text.index("Verdict, for simple undirected graphs") :]
        assert verdict.splitlines()[2:4] == ["as words", f"  {line}"]
    text = str(derive("· Tr").verdict)
    assert "incomparable with 1-WL" in text
    assert "strictly below 3-WL" in text
    assert "tells apart C6 and 2·C3, which 1-WL merges: Tr(A³) has the values 0 and 12" in text
    assert "merges C4+K1 and K1,4, which 1-WL tells apart" in text
    assert "EhEG" not in text


def test_functions_may_part_the_exhaustive_grammar_from_the_reduced_one() -> None:
    exhaustive, reduced = find_grammar("G_L1"), find_grammar("r-G_L1")
    statements = derivation_verdict(exhaustive, reduced).statements
    found = {(s.about, s.against): s.relation for s in statements}
    assert found["with functions, in the limit: r-G_L1", "1-WL"] == "equals"
    assert found["with functions, in the limit: G_L1", "3-WL"] == "equals"


def test_json_has_names_and_graph6() -> None:
    answer = json.loads(json.dumps(derive("· Tr").to_json()))["verdict"]
    (first, *_) = answer["statements"]
    assert first["about"] == "as words"
    assert [pair["names"] for pair in first["witness"]] == [["C6", "2·C3"], ["C4+K1", "K1,4"]]
    for statement in answer["statements"]:
        for pair in statement["witness"]:
            assert [graph_name(text) for text in pair["graphs"]] == pair["names"]


@pytest.mark.parametrize(
    ("operations", "makers"),
    [
        ({"matmul"}, [("trace",), ("transpose", "one")]),
        ({"matmul", "one"}, [("transpose",), ("trace",)]),
        ({"hadamard"}, [("trace",)]),
    ],
)
def test_what_would_give_sentences_is_found_by_trying(
    operations: set[str], makers: list[tuple[str, ...]]
) -> None:
    assert [m for m in sentence_makers(frozenset(operations)) if len(m) < 3] == makers
    for names in makers:
        assert Fragment([*operations, *names]).exhaustive().sentence_rules


@pytest.mark.parametrize(
    ("left", "right", "relation"),
    [
        ("1-WL", "2-WL", "equals"),
        ("3-WL", "2-FWL", "equals"),
        ("4-WL", "3-FWL", "equals"),
        ("1-WL", "3-WL", "strictly below"),
        ("4-WL", "3-WL", "strictly above"),
        ("3-FWL", "1-FWL", "strictly above"),
    ],
)
def test_tests_against_tests(left: str, right: str, relation: str) -> None:
    a, b = WLTest.find(left), WLTest.find(right)
    assert a is not None
    assert b is not None
    found = compared_tests(a, b)
    assert found.relation == relation
    for pair in found.witness:
        by_name = {test.name: test.refine(pair["graphs"]).separated() for test in (a, b)}
        assert by_name == {pair["told_apart_by"]: True, pair["merged_by"]: False}


def test_every_grammar_over_these_operations_is_below_4wl() -> None:
    test = WLTest("4-WL", 3)
    for name in ("r-G_L3", "PPGN", "r-G_L1"):
        for functions in (False, True):
            found = against_test(find_grammar(name), test, functions, "")
            assert found.relation == "strictly below"
            assert found.witness[0]["names"] == ["rook 4×4", "Shrikhande graph"]
    undefined = against_test(find_grammar("MPNN-2"), THREE_WL, False, "")
    assert undefined.relation == "open against"


def test_diag_is_free_beside_outer_products_and_compare_says_so() -> None:
    left, right = find_grammar("· ᵀ 1 ⊙"), find_grammar("r-G_L3")
    for mode in ("words", "with f"):
        found = compare(left, right, mode)  # type: ignore[arg-type]
        assert found.relation == "≡"
        assert "diagonals are free" in found.backward.cited[-1]
    verdict = comparison_verdict(compare(left, right))
    assert relations(verdict.statements[:1]) == {"r-G_L3": "equals"}
    assert "proved by" in verdict.statements[0].evidence[0]
    assert "by theorem" in verdict.statements[0].evidence[1]
    directed = compare(left, right, assume="none")
    assert directed.backward.status != "proved"


NETWORKS = [
    ("r-G_L3", {}, {"1-WL": "not bounded by", "3-WL": "at most"}),
    ("r-G_L1", {}, {"1-WL": "at most", "3-WL": "strictly below"}),
    ("r-G_L1", {"layers": 1}, {"1-WL": "strictly below", "3-WL": "strictly below"}),
    ("r-G_{·, Tr}", {}, {"1-WL": "not bounded by", "3-WL": "at most"}),
    (
        "r-G_{·, Tr}",
        {"readout": "grammar", "functions": "free"},
        {"1-WL": "incomparable with", "3-WL": "strictly below"},
    ),
    ("G_{·}", {"layers": 2}, {"1-WL": "not bounded by", "3-WL": "at most"}),
    ("GCN", {}, {"1-WL": "strictly below", "3-WL": "strictly below"}),
]


@pytest.mark.parametrize(("name", "options", "expected"), NETWORKS)
def test_networks_at_their_depth(
    name: str, options: dict[str, object], expected: dict[str, str]
) -> None:
    plan = plan_network(find_grammar(name), preset="paper", **options)  # type: ignore[arg-type]
    verdict = network_verdict(plan)
    own = tuple(s for s in verdict.statements if s.about.startswith("as this network"))
    assert relations(own) == expected
    assert "equals" not in expected.values()  # tests alone show no equality
    assert all("layer" in s.about and "read-out" in s.about for s in own)


def test_layers_before_the_marks_are_counted_apart() -> None:
    plan = plan_network(find_grammar("r-G_L1Σ"), layers=1, trunk=2)
    (first, _) = network_verdict(plan).of_network().statements
    assert "of unlimited width: 2 + 1 layer, read-out" in first.about


def test_a_network_stronger_than_its_words_says_so_and_why() -> None:
    plan = plan_network(find_grammar("r-G_{·, Tr}"))
    note = next(n for n in network_verdict(plan).notes if n.startswith("stronger"))
    assert "C4+K1 and K1,4, which no sentence does" in note
    assert "the MLP on M adds M → (M⊙M), its bias M → 1·1ᵀ" in note
    assert 'functions="free"' in note
    same = network_verdict(plan_network(find_grammar("r-G_L1")))
    assert not any(note.startswith("stronger") for note in same.notes)
    words = plan_network(find_grammar("r-G_{·, Tr}"), readout="grammar", functions="free")
    assert not any(note.startswith("stronger") for note in network_verdict(words).notes)


def test_networks_of_nodes_and_unknown_supports_are_not_placed() -> None:
    nodes = network_verdict(plan_network(find_grammar("r-G_L3"), task="node"))
    assert not any(s.about.startswith("as this network") for s in nodes.statements)
    assert any("outputs for nodes" in note for note in nodes.notes)
    mpnn = network_verdict(plan_network(find_grammar("MPNN-2"), supports=True))
    assert any("not placed" in note for note in mpnn.notes)


def test_models_have_it_too() -> None:
    pytest.importorskip("torch")
    from g2n2.nn.model import GrammarGNN

    model = GrammarGNN("r-G_{·, Tr}", width=4)
    assert model.power() == network_verdict(model.plan)
    assert ONE_WL.name in str(model.power(1))


def network_part(*arguments: object, **options: object) -> str:
    from g2n2 import compile

    return str(compile(*arguments, width=4, **options).power().of_network())


def test_linear_and_other_functions_together_are_only_bounded_at_a_depth() -> None:
    """With one layer there are A and A² alone, and Tr(A²) sees no triangle."""
    rules = "V → MV | (V⊙V) | 1; M → MM | A; S → Tr(M) | 1ᵀV"
    said = network_part(rules, layers=1, functions="free", readout="grammar")
    assert "tells apart C6 and 2·C3" not in said
    assert "an upper bound of it" in said
    assert "in the limit only" in said


@pytest.mark.parametrize("text", ["V → DV | 1", "C = D; V → CV | 1"])
def test_distances_are_no_words_of_a_also_inside_a_support(text: str) -> None:
    grammar = Grammar.parse(text)
    verdict = grammar_verdict(grammar) + network_verdict(plan_network(grammar))
    assert {statement.relation for statement in verdict.statements} == {"open against"}
    assert "give its values with supports=" in str(verdict)


def test_a_network_without_words_is_not_said_to_equal_them() -> None:
    said = network_part("G_{·}")
    assert "all this network sees it sees through pooling" in said
    assert "exactly what the words" not in said


def test_functions_without_exact_values_are_not_said_to_be_tested() -> None:
    relu = find_grammar("V → relu(AV) | 1; S → 1ᵀV")
    said = str(grammar_verdict(relu))
    words = said[said.index("as words") : said.index("with functions")]
    assert "no pair of" not in words
    assert "not tested" in words
    assert "applies relu, which has no exact value" in network_part(relu, functions="free")


def test_mlps_in_selectors_see_functions_of_the_inputs() -> None:
    """A PPGN of one layer with random weights tells P4+K2 from 2·P3."""
    assert "merges P4+K2" not in network_part("PPGN", preset="ppgn", layers=1)


def test_networks_that_pool_otherwise_are_bounded_and_say_how_they_pool() -> None:
    said = network_part("GNNML1", preset="paper", readout="pooled-only", pooling="mean", layers=4)
    assert "read-out 1ᵀV_c with mean in place of sums" in said
    assert "exactly what the words" not in said
    assert "an upper bound of it tells apart what 1-WL does on pairs of equal size" in said


def test_a_layer_that_is_no_round_is_placed_by_theorems_alone() -> None:
    said = network_part("r-G_L3", preset="official", layers=1)
    assert "merges" not in said
    assert "tested:" not in said


def test_operations_of_many_operands_do_not_hold_up_a_verdict() -> None:
    """Inclusions are not searched for: their words would be tried operand by operand."""
    with registered(Operation("k4e", "k4e", "ab,ac,ad,bc,bd,cd->ab")):
        said = str(grammar_verdict(Fragment("k4e Tr").exhaustive()))
    assert "tells apart rook 4×4 and Shrikhande graph, which 3-WL merges" in said
