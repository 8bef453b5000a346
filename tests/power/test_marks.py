"""WL tests and words with marks: against labelled copies, on the pairs that order them, on BREC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import networkx as nx
import numpy as np
import pytest

from benchmark_files import real_suite
from g2n2.errors import DataError, GrammarError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar, Rule
from g2n2.graphs import Adjacency, adjacency
from g2n2.graphs.families import cfi, rook_graph, shrikhande_graph
from g2n2.language.evaluation import evaluate
from g2n2.language.parsing import parse
from g2n2.pipeline import compare
from g2n2.placement import proved_above
from g2n2.power.grammar_test import grammar_test
from g2n2.power.marked_refinement import Pooling, refine_marked
from g2n2.power.refinement import refine
from g2n2.power.separation import separate
from g2n2.power.suites import Suite, atlas
from g2n2.power.table import power_row, wl_row
from g2n2.power.witnesses import marked_pairs, needed, pair_of_rings
from g2n2.power.wl_tests import WLTest, same_power, upper_bound
from g2n2.reduction.theorems import within_3wl

ROOK, SHRIKHANDE = rook_graph(4), shrikhande_graph()
SMALL = [graph for graph in atlas().graphs if len(graph) == 5]


def naive_classes(
    graphs: Sequence[Adjacency], k: int, marks: int, pooling: Pooling
) -> list[Hashable]:
    """The plain test on every graph with marks as node labels, then multisets over the marks."""
    copies, labels, owners = [], [], []
    for number, graph in enumerate(graphs):
        n = len(graph)
        for chosen in np.ndindex(*(n,) * marks):
            label = np.zeros((n, marks), dtype=int)
            for at, node in enumerate(chosen):
                label[node, at] = 1
            copies.append(graph)
            labels.append(label)
            owners.append((number, *chosen))
    found = refine(copies, k, "wl" if k == 1 else "fwl", node_labels=labels).graph_colours.tolist()
    colour = dict(zip(owners, found, strict=True))
    classes: list[Hashable] = []
    for number, graph in enumerate(graphs):
        n = len(graph)
        if marks == 1:
            multiset: Counter[Hashable] = Counter(colour[number, v] for v in range(n))
        elif pooling == "flat":
            multiset = Counter(colour[number, u, v] for u in range(n) for v in range(n))
        else:
            rows = ([colour[number, u, v] for v in range(n)] for u in range(n))
            multiset = Counter(frozenset(Counter(row).items()) for row in rows)
        classes.append(frozenset(multiset.items()))
    return classes


def partition(classes: Sequence[Hashable]) -> list[int]:
    first: dict[Hashable, int] = {}
    return [first.setdefault(key, len(first)) for key in classes]


@pytest.mark.parametrize(("k", "marks"), [(1, 1), (2, 1), (1, 2)])
def test_against_the_plain_test_on_labelled_copies(k: int, marks: int) -> None:
    hard = [ROOK, SHRIKHANDE] if marks == 1 else []
    for graphs in ([*SMALL], hard):
        for pooling in ("nested", "flat") if graphs else ():
            found = refine_marked(graphs, k, marks, pooling).graph_colours.tolist()
            assert partition(found) == partition(naive_classes(graphs, k, marks, pooling))


@pytest.mark.parametrize(
    ("test", "different"),
    [("Σ1-WL", False), ("Σ2-FWL", True), ("ΣΣ1-WL", True), ("Σ2-FWL (full)", True)],
)
def test_rook_and_shrikhande(test: str, different: bool) -> None:
    found = WLTest.find(test)
    assert found is not None
    assert found.refine([ROOK, SHRIKHANDE]).separated() == different
    assert separate(test, ROOK, SHRIKHANDE).different == different


def test_the_sentence_that_counts_k4() -> None:
    found = separate("r-G_L3Σ", ROOK, SHRIKHANDE)
    assert found.different
    assert found.values == (192, 0)
    assert found.sentence is not None
    assert found.sentence.sort == parse("1ᵀ1").sort
    # On the complete graph of 4 it is 24 too: it counts each K4 as often as it has automorphisms.
    assert evaluate(found.sentence, nx.complete_graph(4)) == 24


def gadgets(parities: Sequence[str]) -> Adjacency:
    """Hubs joined to three centres each, and each centre to C6 (0) or two triangles (1)."""
    kinds = {"0": nx.cycle_graph(6), "1": nx.disjoint_union_all([nx.cycle_graph(3)] * 2)}
    graph = nx.Graph()
    for part, parity in enumerate(parities):
        for at, letter in enumerate(parity):
            centre = (part, at, "centre")
            graph.add_edge((part, "hub"), centre)
            inner = kinds[letter]
            graph.add_edges_from(((part, at, a), (part, at, b)) for a, b in inner.edges)
            graph.add_edges_from((centre, (part, at, a)) for a in inner)
    return adjacency(nx.convert_node_labels_to_integers(graph))


@pytest.mark.slow
def test_nested_pools_see_more_than_flat_ones() -> None:
    """Why S′ → S′S′ stays with two marks: even against odd parity, 88 nodes."""
    even, odd = gadgets(["000", "011", "101", "110"]), gadgets(["111", "100", "010", "001"])
    assert len(even) == len(odd) == 88
    assert refine_marked([even, odd], 1, 2, "nested").separated()
    assert not refine_marked([even, odd], 1, 2, "flat").separated()


def test_full_marks_see_more_than_pooled_and_less_than_3fwl() -> None:
    rings = pair_of_rings()
    assert len(rings[0]) == len(rings[1]) == 68
    assert not refine_marked(rings, 2, 1, "nested").separated()
    assert refine_marked(rings, 2, 1, "full").separated()
    brec = marked_pairs().graphs[:2]
    assert len(brec[0]) == 32
    assert not refine_marked(brec, 2, 1, "full").separated()
    assert refine(brec, 3, "fwl").separated()


def test_orbits_leave_the_verdict_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from g2n2.power import marked_refinement

    pair = [adjacency(nx.circular_ladder_graph(5)), adjacency(nx.petersen_graph())]
    everywhere = refine_marked(pair)
    monkeypatch.setattr(marked_refinement, "_LEAST_FOR_ORBITS", 1)
    by_orbits = refine_marked(pair)
    assert by_orbits.separated_at() == everywhere.separated_at()
    # Rings of two lengths in both: only how many nodes are in each tells them apart.
    three, six = nx.cycle_graph(3), nx.cycle_graph(6)
    rings = [[three, three, three, six], [three, six, six]]
    assert refine_marked(
        [adjacency(nx.disjoint_union_all(parts)) for parts in rings], 1
    ).separated()


def test_bounds_of_grammars() -> None:
    names = {"r-G_L3": "2-FWL", "r-G_L3Σ": "Σ2-FWL", "r-G_L1ΣΣ": "ΣΣ2-FWL"}
    names["L3Σ (full)"] = "Σ2-FWL (full)"
    for name, test in names.items():
        bound = upper_bound(find_grammar(name))
        assert bound is not None
        assert bound.name == test
    assert same_power(find_grammar("L1ΣΣ")) == WLTest.find("ΣΣ1-WL")
    assert same_power(find_grammar("r-G_L3")) is None
    assert not within_3wl(find_grammar("r-G_L3Σ").operations)


def test_names_of_tests_with_marks() -> None:
    assert WLTest.find("mark 3-wl") == WLTest("Σ3-WL", 2, 1)
    assert WLTest.find("ΣΣ1WL") == WLTest("ΣΣ1-WL", 1, 2)
    assert WLTest.find("Σ") is None
    for text in ("Σ4-WL", "ΣΣΣ1-WL", "Σ1-WL (full)"):
        with pytest.raises(GrammarError, match="cannot be run"):
            WLTest.find(text)
    with pytest.raises(DataError, match="no test with 3 marks"):
        refine_marked([ROOK], 1, 3)


def test_the_wl_test_of_a_grammar_reads_marks() -> None:
    graphs = [ROOK, SHRIKHANDE]
    assert grammar_test(find_grammar("r-G_L3Σ"), graphs).separated()
    assert not grammar_test(find_grammar("r-G_L1Σ"), graphs).separated()
    nested = grammar_test(find_grammar("r-G_L1ΣΣ"), graphs)
    assert nested.separated()
    assert {sort.variable for sort in nested.memories} == {"V_c″", "S′"}


@pytest.mark.parametrize("name", ["r-G_L1Σ", "r-G_L3Σ", "r-G_L1ΣΣ"])
def test_the_wl_test_of_a_grammar_is_that_with_marks(name: str) -> None:
    grammar = find_grammar(name)
    test = same_power(grammar)
    assert test is not None
    found = grammar_test(grammar, SMALL).graph_colours.tolist()
    assert partition(found) == partition(test.refine(SMALL).graph_colours.tolist())


@pytest.mark.parametrize("rule", ["V′ → v", "M′ → M′⊙M′", "M′ → M′M′", "M′ → diag(V′)"])
def test_rules_that_rook_and_shrikhande_need(rule: str) -> None:
    found = needed(find_grammar("r-G_L3Σ"), Rule.parse(rule))
    assert found is not None
    assert found.separation.values == (192, 0)


def test_power_of_a_grammar_with_marks() -> None:
    row = power_row(find_grammar("r-G_L3Σ"), atlas())
    assert row.exact
    assert row.separated == row.pairs


@pytest.mark.slow
def test_the_ladder_of_marks() -> None:
    """r-G_L3 < pooled < full, each step by a proof and by a pair."""
    assert compare("r-G_L3", "r-G_L3Σ").relation == "⊊"
    full = compare("r-G_L3Σ", "L3Σ (full)")
    assert full.relation == "⊊"
    assert full.backward.witness is not None


def test_each_mark_costs_an_index() -> None:
    four = WLTest.find("4-WL")
    assert four is not None
    for name in ("r-G_L1Σ", "r-G_L3Σ", "L3Σ (full)"):
        assert proved_above(find_grammar(name), four)
    over_l1 = proved_above(find_grammar("r-G_L1ΣΣ"), four)
    assert over_l1 is not None
    assert "an index of a matrix" in over_l1.evidence
    assert proved_above(find_grammar("r-G_L3ΣΣ"), four) is None


@pytest.mark.slow
def test_strongly_regular_graphs_of_25_nodes() -> None:
    suite = real_suite("sr25")
    for name in ("r-G_L3Σ", "r-G_L1ΣΣ"):
        assert power_row(find_grammar(name), suite).separated == 105


@pytest.mark.slow
@pytest.mark.parametrize("test", ["Σ2-FWL", "ΣΣ1-WL"])
def test_brec(test: str) -> None:
    """Of all 400 the last two and the CFI pairs beyond 4-WL stay together; here every tenth."""
    whole = real_suite("brec")
    numbers = [*range(0, 398, 10), 398, 399]
    graphs = tuple(whole.graphs[i] for number in numbers for i in whole.pairs[number])
    pairs = tuple((2 * k, 2 * k + 1) for k in range(len(numbers)))
    found = WLTest.find(test)
    assert found is not None
    row = wl_row(found, Suite("brec", graphs, pairs))
    assert [numbers[pair.pair or 0] for pair in row.merged] == [340, 350, 398, 399]


def test_a_pattern_counted_by_a_mark_is_a_matrix_to_start_from() -> None:
    """K4 on each edge helps where K4 does, and nowhere else: CFI graphs of K3,3 have no K4."""
    grammar = Grammar.parse(
        "V → MV | 1; M → M⊙M | MM | diag(V) | A | C; S → 1ᵀV\nC = Σv. A⊙((Av)(Av)ᵀ)⊙(A·diag(Av)·A)"
    )
    assert separate(grammar, rook_graph(4), shrikhande_graph()).different
    assert not separate(grammar, *cfi(nx.complete_bipartite_graph(3, 3))).different
