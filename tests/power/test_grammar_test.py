"""The WL test of a grammar: against its naive twin, k-WL, words, and the known counts of mates."""

from __future__ import annotations

from collections import Counter
from functools import cache

import networkx as nx
import numpy as np
import pytest

from benchmark_files import real_suite
from cases import GRAPHS
from g2n2.data.suites import load_suite
from g2n2.errors import DataError, GrammarError
from g2n2.grammars.catalogue import catalogue, find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.network_rules import pooled_readout
from g2n2.grammars.rules import Rule
from g2n2.graphs import adjacency
from g2n2.language.sorts import SORTS, M, R, S, V
from g2n2.power.grammar_test import grammar_test, words_of_test
from g2n2.power.random_probes import graph_classes
from g2n2.power.refinement import refine
from g2n2.power.separation import separate
from naive_grammar_test import reference_grammar_test
from random_grammars import random_grammar


@cache
def graphs_of(nodes):
    return [adjacency(graph) for graph in nx.graph_atlas_g() if len(graph) == nodes]


SMALL = [graph for nodes in (1, 2, 3, 4) for graph in graphs_of(nodes)]


def partition(colours):
    numbers = {}
    return [numbers.setdefault(int(colour), len(numbers)) for colour in colours]


def mates(colours):
    counts = Counter(int(colour) for colour in colours)
    return sum(count for count in counts.values() if count > 1)


def by_sort(functions):
    return functions if isinstance(functions, dict) else dict.fromkeys(SORTS, functions)


def assert_equals_twin(
    grammar, graphs, rounds=2, readout="grammar", functions="any", last=None, inputs="values"
):
    found = grammar_test(
        grammar,
        graphs,
        rounds=rounds,
        readout=readout,
        functions=functions,
        last_functions=last,
        inputs=inputs,
    )
    expected = reference_grammar_test(
        grammar,
        [graph.astype(int).tolist() for graph in graphs],
        rounds,
        found.readout,
        by_sort(functions),
        by_sort(last) if last else None,
        inputs == "colours",
    )
    assert [partition(c) for c in found.graph_history] == [partition(c) for c in expected], (
        f"{grammar}, {readout}, {functions}, {last}, {inputs}"
    )


# -- the naive twin -------------------------------------------------------------------------------

MIXED = {M: "zero", V: "any", R: "homogeneous", S: "any"}


@pytest.mark.parametrize(
    "functions", ["any", "zero", "homogeneous", MIXED], ids=["any", "zero", "homogeneous", "mixed"]
)
@pytest.mark.parametrize("readout", ["grammar", "pooled"])
def test_random_grammars_agree_with_the_twin(readout, functions):
    for seed in range(1000, 1004):
        assert_equals_twin(random_grammar(seed), SMALL, 2, readout, functions)


def test_other_functions_first_and_last_agree_with_the_twin():
    for seed in range(1100, 1106):
        for last in ("homogeneous", "any"):
            assert_equals_twin(random_grammar(seed), SMALL, 2, "grammar", "zero", last, "colours")
        assert_equals_twin(random_grammar(seed), SMALL, 2, "grammar", "homogeneous", "any")
        assert_equals_twin(random_grammar(seed), SMALL, 1, "pooled", "any", None, "colours")


def test_inputs_as_colours():
    """Degrees 2, 2, 2, 2 and 1, 2, 2, 3: their sums agree, their colours do not."""
    cycle, path = nx.cycle_graph(4), nx.lollipop_graph(3, 1)
    grammar = Grammar.parse("V → A1; S → 1ᵀV")
    found = {
        inputs: grammar_test(grammar, [cycle, path], rounds=1, inputs=inputs)
        for inputs in ("values", "colours")
    }
    assert found["values"].separated_at() == 1
    assert found["colours"].separated_at() == 0


@pytest.mark.slow
def test_many_random_grammars_agree_with_the_twin():
    for seed in range(2000, 2025):
        for functions in ("any", "zero", "homogeneous", MIXED):
            assert_equals_twin(random_grammar(seed), SMALL, 2, "grammar", functions)


@pytest.mark.parametrize(
    "text",
    [
        "V → AV + V | 1",  # a sum of parts with different operands
        "V → 2×AV − JV | 1; S → VᵀV",  # negative constants
        "M → M⊙J + I | A; S → Tr(MM)",  # a body that is not homogeneous in its operands
        "M → (MM)⊙M | A; V → MMV | 1",
        "V → relu(AV) | 1",
        "V → MV | 1; M → relu(MM)A | A",
        "V → A relu(AV⊙V) | 1",
        "V → f(V) | AV | 1",
        "V_r → V_rA | 1ᵀ; V → V_rᵀ⊙V | 1; S → V_rV",
        "V → A1; S → 1ᵀA1 | 1ᵀ(J − A)1",  # two constants with the same sum
        "V → VS | AV | 1; S → 1ᵀV",  # scalars feed back
        "V → MV; M → MM | A",  # V stays empty: no terminal gives it a word
        "V → (MV) | M1; M → MM | A",  # V is empty before the first round
    ],
)
def test_bodies_of_every_kind_agree_with_the_twin(text):
    grammar = Grammar.of([rule for line in text.split(";") for rule in _rules(line)])
    for readout in ("grammar", "pooled"):
        assert_equals_twin(grammar, SMALL, 3, readout)
        assert_equals_twin(grammar, graphs_of(4), 2, readout, "zero")


def _rules(line):
    head, bodies = line.split("→")
    return [Rule.parse(f"{head} → {body}") for body in bodies.split("|")]


def test_directed_weighted_graphs_agree_with_the_twin():
    rng = np.random.default_rng(3)
    graphs = [rng.integers(0, 3, (n, n)).astype(float) for n in (2, 3, 3, 4, 4)]
    graphs += [graph.T for graph in graphs] + [graphs[3][::-1, ::-1]]
    for text in ("r-G_L3", "PPGN", "2-IGN", "r-G_L1", "TriMul"):
        for functions in ("any", "zero", "homogeneous"):
            assert_equals_twin(find_grammar(text), graphs, 2, "grammar", functions)


def test_entries_agree_with_their_relabelling():
    rng = np.random.default_rng(5)
    graph = adjacency(GRAPHS["decalin"])
    order = rng.permutation(len(graph))
    found = grammar_test(find_grammar("r-G_L3"), [graph, graph[np.ix_(order, order)]])
    first, second = found.pair_colours()
    assert np.array_equal(first[np.ix_(order, order)], second)
    first, second = found.node_colours()
    assert np.array_equal(first[order], second)
    assert not found.separated()


# -- k-WL -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [3, 4, 5, 6, pytest.param(7, marks=pytest.mark.slow)])
def test_reduced_grammars_are_the_wl_tests(nodes):
    graphs = graphs_of(nodes)
    wl = refine(graphs, 1)
    found = grammar_test(find_grammar("r-G_L1"), graphs)
    assert partition(found.graph_colours) == partition(wl.graph_colours)
    # Round for round: 1-WL starts from equal colours and so does the terminal 1.
    for ours, theirs in zip(found.graph_history[1:], wl.graph_history[1:], strict=False):
        assert partition(ours) == partition(theirs)
    assert partition(np.concatenate(found.node_colours())) == partition(
        np.concatenate(wl.node_colours())
    )
    folklore = refine(graphs, 2, "fwl")
    for name in ("r-G_L3", "PPGN", "G_L3", "four-rule"):
        found = grammar_test(find_grammar(name), graphs)
        assert partition(found.graph_colours) == partition(folklore.graph_colours), name
    pairs = grammar_test(find_grammar("PPGN"), graphs).pair_colours()
    assert partition(np.concatenate([c.ravel() for c in pairs])) == partition(
        np.concatenate([c.ravel() for c in folklore.pair_colours()])
    )


# -- the table of mates ---------------------------------------------------------------------------

RINGS = "V → AV | 1; S → VᵀV"
TRACES = "M → MM | A; S → Tr(M)"
TRIANGLES = "M → A; S → Tr(MMM)"
DEGREES = "V → (A⊙A)1 | 1; V_r → 1ᵀAA; S → V_rV_c"
ALL = (34, 156, 1044)
NONE = (0, 0, 0)
WL1 = (0, 8, 44)

# Grammar, mates by words at n = 5, 6, 7, by the test with the own read-out, by the test with
# pooling, and the most rounds either needs.
TABLE = [
    ("r-G_L1", WL1, WL1, WL1, 4),
    ("GNNML1", WL1, WL1, WL1, 4),
    (RINGS, (0, 8, 82), WL1, WL1, 4),
    ("2-IGN", WL1, WL1, WL1, 4),
    ("2-IGN (as printed)", WL1, WL1, WL1, 4),
    ("GCN", None, (11, 35, 121), (11, 35, 121), 3),
    ("G_L1", WL1, NONE, NONE, 2),
    ("r-G_L3", NONE, NONE, NONE, 2),
    ("i-G_L3", NONE, NONE, NONE, 2),
    ("G_L3", NONE, NONE, NONE, 2),
    ("r-G_L3 ∪ {Mᵀ}", NONE, NONE, NONE, 2),
    ("four-rule", NONE, NONE, NONE, 2),
    ("r-G_L3 ∖ {diag(V_c)}", NONE, NONE, NONE, 2),
    ("r-G_L3 ∖ {diag(V_c)} ∪ {I}", NONE, NONE, NONE, 2),
    ("r-G_L3 ∖ {M⊙M}", WL1, NONE, NONE, 2),
    ("r-G_L3 ∖ {MM}", WL1, WL1, WL1, 4),
    ("r-G_L3 ∖ {MV_c}", ALL, ALL, NONE, 2),
    ("PPGN", (0, 0, 40), NONE, NONE, 2),
    ("TriMul", (0, 0, 40), NONE, NONE, 2),
    ("V → MV | 1; M → MM | A; S → Tr(M) | VᵀV", (0, 0, 40), NONE, NONE, 2),
    ("V → MV | 1; M → MM | diag(V) | A; S → Tr(M)", NONE, NONE, NONE, 2),
    (TRACES, (2, 10, 110), NONE, NONE, 2),
    (TRIANGLES, (31, 150, 1039), (4, 78, 854), (30, 152, 1040), 1),
    (DEGREES, (0, 37, 670), (0, 8, 172), (0, 10, 182), 1),
]


def rounds_needed(colours):
    """The first round after which graphs are told apart as in the last."""
    counts = [len(set(now.tolist())) for now in colours.graph_history]
    return counts.index(counts[-1])


@pytest.mark.parametrize(("text", "words", "own", "pooled", "rounds"), TABLE)
@pytest.mark.parametrize("column", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_table_of_mates(text, words, own, pooled, rounds, column):
    grammar, graphs = find_grammar(text), graphs_of(5 + column)
    by_own = grammar_test(grammar, graphs)
    by_pooling = grammar_test(grammar, graphs, readout="pooled")
    assert mates(by_own.graph_colours) == own[column]
    assert mates(by_pooling.graph_colours) == pooled[column]
    needed = max(map(rounds_needed, (by_own, by_pooling)))
    assert needed == rounds if column == 2 else needed <= rounds
    if words is not None:
        assert mates(graph_classes(grammar, graphs)) == words[column]
        linear = grammar_test(grammar, graphs, functions="linear")
        assert mates(linear.graph_colours) == words[column]


def test_a_fragment_without_sentences_is_read_out_by_pooling_only():
    grammar = Fragment.parse("·").exhaustive()
    with pytest.raises(GrammarError, match="pooled"):
        grammar_test(grammar, graphs_of(5))
    for nodes in (5, 6):
        assert mates(grammar_test(grammar, graphs_of(nodes), readout="pooled").graph_colours) == 0


def gaussian_filters(graph):
    """Three bands of the Laplacian's spectrum, as GNNML3 designs its supports."""
    laplacian = np.diag(graph.sum(0)) - graph
    values, vectors = np.linalg.eigh(laplacian)
    return [vectors @ np.diag(np.exp(-((values - b) ** 2))) @ vectors.T for b in (0.0, 1.5, 4.0)]


def test_spectral_supports_given_as_values():
    rng = np.random.default_rng(0)
    for nodes in (5, 6):
        graphs = list(graphs_of(nodes))
        orders = [rng.permutation(nodes) for _ in graphs]
        copies = [graph[np.ix_(o, o)] for graph, o in zip(graphs, orders, strict=True)]
        filters = [gaussian_filters(graph) for graph in graphs + copies]
        supports = {f"C_{k + 1}": [each[k] for each in filters] for k in range(3)}
        found = grammar_test(find_grammar("GNNML3-3"), graphs + copies, supports=supports, rounds=1)
        assert found.bound
        assert not found.exact
        first, second = np.split(found.graph_colours, 2)
        assert np.array_equal(first, second)
        assert mates(first) == 0


# -- functions with f(0) = 0, functions free on rays, words ----------------------------------------


def test_without_pair_biases_triangle_counts_stay_what_their_words_are():
    for nodes, count in ((5, 31), (6, 150)):
        for functions in ("zero", "homogeneous"):
            found = grammar_test(
                Grammar.parse(TRIANGLES), graphs_of(nodes), functions={M: functions}
            )
            assert mates(found.graph_colours) == count


def test_pair_biases_cost_nothing_on_small_graphs_round_for_round():
    for text, *_ in TABLE:
        if text == TRIANGLES:
            continue
        for readout in ("grammar", "pooled"):
            biased, bias_free = (
                grammar_test(
                    find_grammar(text), graphs_of(5), readout=readout, functions={M: f}, rounds=3
                )
                for f in ("any", "zero")
            )
            for one, other in zip(biased.graph_history, bias_free.graph_history, strict=True):
                assert partition(one) == partition(other), text


def test_a_trace_of_powers_free_on_rays_merges_the_star_and_the_square_again():
    counts = [
        mates(
            grammar_test(Grammar.parse(TRACES), graphs_of(n), functions="homogeneous").graph_colours
        )
        for n in (5, 6)
    ]
    assert counts == [2, 2]
    star_and_square = [GRAPHS["K1,4"], GRAPHS["C4 + K1"]]
    assert not grammar_test(
        Grammar.parse(TRACES), star_and_square, functions={M: "homogeneous"}
    ).separated()
    assert grammar_test(Grammar.parse(TRACES), star_and_square, functions={M: "zero"}).separated()


def test_long_trees_take_one_round_more_without_pair_biases():
    trees = list(nx.nonisomorphic_trees(10))
    classes = {
        f: [
            len(set(colours.tolist()))
            for colours in grammar_test(
                find_grammar("PPGN"), trees, functions={M: f}, rounds=3
            ).graph_history
        ]
        for f in ("any", "zero")
    }
    assert classes["any"][2:] == [106, 106]
    assert classes["zero"][2:] == [104, 106]


def test_functions_of_the_last_round_only_concern_what_is_read_out():
    grammar = find_grammar("PPGN")
    graphs = graphs_of(6)
    zero = grammar_test(grammar, graphs, functions="zero", rounds=2)
    rays = grammar_test(grammar, graphs, functions="homogeneous", rounds=2)
    last = grammar_test(grammar, graphs, functions="zero", last_functions="homogeneous", rounds=2)
    assert partition(last.graph_history[1]) == partition(rays.graph_history[1])
    assert partition(last.graph_history[1]) != partition(zero.graph_history[1])
    assert partition(last.graph_history[2]) == partition(zero.graph_history[2])


def test_words_of_the_test_tell_apart_what_it_does():
    nodes = 5
    grammars = [find_grammar(text) for text, *_ in TABLE if text != "GCN"]
    grammars += [random_grammar(seed) for seed in range(300, 304)]
    for grammar in grammars:
        for functions in ("any", {M: "any", V: "zero"}):
            found = grammar_test(grammar, graphs_of(nodes), functions=functions)
            words = graph_classes(words_of_test(grammar, functions), graphs_of(nodes))
            assert partition(found.graph_colours) == partition(words), f"{grammar}, {functions}"


def test_a_sentence_for_what_functions_see():
    """G_L1 merges C6 and 2·C3 as words; its networks do not, and a sentence says why."""
    graphs = GRAPHS["C6"], GRAPHS["2·C3"]
    grammar = find_grammar("G_L1")
    assert not separate(grammar, *graphs).different
    assert grammar_test(grammar, graphs).separated()
    assert separate(words_of_test(grammar), *graphs).different
    assert not separate(words_of_test(grammar, "linear"), *graphs).different


def test_linear_mixing_of_pairs_only():
    """Functions on nodes do not make up for missing ones on pairs: {·, Tr} stays as it is."""
    grammar = Grammar.parse("V → AV | 1; M → MM | A; S → Tr(M)")
    for functions, count in (({M: "linear"}, 2), ("any", 0)):
        found = grammar_test(grammar, graphs_of(5), functions=functions)
        assert mates(found.graph_colours) == count
        assert found.exact
    bounded = grammar_test(grammar, graphs_of(5), functions={M: "linear"}, rounds=1)
    assert bounded.bound
    assert not bounded.exact


def test_linear_mixing_by_layers():
    found = grammar_test(find_grammar("r-G_L3"), graphs_of(5), functions="linear", rounds=3)
    assert len(found.graph_history) == 4
    assert not found.exact
    whole = grammar_test(find_grammar("r-G_L3"), graphs_of(5), functions="linear")
    assert whole.exact
    assert mates(whole.graph_colours) == 0


# -- traps ----------------------------------------------------------------------------------------


def test_constants_are_summed_and_not_collected():
    """C·1 = 1 on every regular graph: the pairs (C_ij, c_j) differ, their sum does not."""
    cycle, clique = nx.cycle_graph(4), nx.complete_graph(4)
    found = grammar_test(find_grammar("GCN"), [cycle, clique])
    assert not found.separated()
    assert found.exact
    # Roots of 2, 3, 5 and 7 at once, and of products of them.
    stars = [nx.star_graph(k) for k in range(1, 9)]
    assert len(set(grammar_test(find_grammar("GCN"), stars).graph_colours.tolist())) == 8


def test_size_is_no_colour_of_its_own():
    pair = [nx.path_graph(2), nx.disjoint_union(nx.path_graph(2), nx.empty_graph(1))]
    assert not grammar_test(Grammar.parse("M → A; S → Tr(M)"), pair, functions="zero").separated()
    assert grammar_test(Grammar.parse("M → A; S → Tr(M)"), pair, functions="any").separated()
    assert not grammar_test(Grammar.parse("M → A; S → 1ᵀM1"), pair, functions="zero").separated()


def test_the_first_round_reads_values():
    """Weights 1 and -1 around a cycle cancel in M1 before any function has told them apart."""
    cycle = np.array([[0, 1, 0, -1], [1, 0, -1, 0], [0, -1, 0, 1], [-1, 0, 1, 0]])
    grammar = Grammar.parse("M → A; V → M1; S → 1ᵀV")
    found = grammar_test(grammar, [cycle, 2 * cycle])
    assert found.separated_at() == 2
    assert_equals_twin(grammar, [cycle, 2 * cycle], 3)


def test_functions_inside_bodies_make_a_bound():
    assert grammar_test(Grammar.parse("V → relu(AV) | 1"), graphs_of(4)).bound
    assert grammar_test(Grammar.parse("V → f(V) | AV | 1"), graphs_of(4)).exact
    assert grammar_test(Grammar.parse("V → AV | A inv(A1)"), graphs_of(4)).exact


def test_strongly_regular_graphs_and_cfi_pairs_stay_merged():
    for name in ("r-G_L3", "PPGN", "G_L3"):
        assert not grammar_test(
            find_grammar(name), [GRAPHS["rook 4×4"], GRAPHS["Shrikhande"]]
        ).separated()
    cfi = load_suite("cfi")
    found = grammar_test(find_grammar("r-G_L3"), cfi.graphs)
    assert [found.separated(i, j) for i, j in cfi.pairs] == [True, True, True, False]
    csl = load_suite("csl")
    assert csl.merged(grammar_test(find_grammar("r-G_L3"), csl.graphs).graph_colours.tolist()) == 0


# -- BREC ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "readout", "functions", "counts"),
    [
        ("PPGN", "pooled", "any", [193, 209, 217, 264, 270, 270]),
        ("r-G_L3", "grammar", "any", [0, 193, 209, 222, 266, 270]),
        ("PPGN", "pooled", "homogeneous", [156, 209]),
    ],
)
def test_brec(name, readout, functions, counts):
    suite = real_suite("brec")
    found = grammar_test(
        find_grammar(name),
        suite.graphs,
        readout=readout,
        functions={M: functions},
        rounds=len(counts),
    )
    told_apart = [len(suite.pairs) - suite.merged(c.tolist()) for c in found.graph_history[1:]]
    assert told_apart == counts


# -- the object, and what is refused --------------------------------------------------------------


def test_history_and_rounds():
    found = grammar_test(find_grammar("r-G_L1"), [nx.path_graph(4), nx.star_graph(3)])
    assert found.separated_at() == 1
    assert found.stable
    assert found.rounds == len(found.graph_history) - 1
    fixed = grammar_test(find_grammar("r-G_L1"), [nx.path_graph(4), nx.star_graph(3)], rounds=6)
    assert fixed.rounds == 6
    assert partition(fixed.graph_colours) == partition(found.graph_colours)
    none = grammar_test(find_grammar("r-G_L1"), [GRAPHS["C6"], GRAPHS["2·C3"]])
    assert none.separated_at() is None
    assert none.merged_pairs() == [(0, 1)]
    assert grammar_test(find_grammar("r-G_L1"), graphs_of(3), rounds=0).rounds == 0


def test_node_and_pair_colours():
    graph = nx.path_graph(3)
    by_node = grammar_test(find_grammar("r-G_L1"), [graph])
    (nodes,) = by_node.node_colours()
    assert nodes[0] == nodes[2] != nodes[1]
    with pytest.raises(GrammarError, match="no M"):
        by_node.pair_colours()
    by_pair = grammar_test(find_grammar("PPGN"), [graph])
    (diagonal,) = by_pair.node_colours()
    assert diagonal[0] == diagonal[2] != diagonal[1]


def test_given_rules_of_s():
    rules = [Rule.parse("S → VᵀV")]
    found = grammar_test(find_grammar("r-G_L1"), graphs_of(4), readout=rules)
    assert found.readout == tuple(rules)
    assert pooled_readout(catalogue()["i-G_L3"]) == tuple(
        Rule.parse(f"S → {body}") for body in ("1ᵀV", "V_r1", "Tr(M)", "1ᵀ(M⊙J)1")
    )


def test_what_is_refused():
    grammar, graph = find_grammar("r-G_L1"), nx.path_graph(3)
    with pytest.raises(DataError, match="at least one graph"):
        grammar_test(grammar, [])
    with pytest.raises(DataError, match="rounds"):
        grammar_test(grammar, [graph], rounds=-1)
    with pytest.raises(GrammarError, match="'grammar', 'pooled' or rules of S"):
        grammar_test(grammar, [graph], readout="sum")
    with pytest.raises(GrammarError, match="rules of S are expected"):
        grammar_test(grammar, [graph], readout=[Rule.parse("V → AV")])
    with pytest.raises(GrammarError, match="any, zero, homogeneous, linear"):
        grammar_test(grammar, [graph], functions="smooth")
    with pytest.raises(GrammarError, match="C_1 has no definition"):
        grammar_test(find_grammar("MPNN-1"), [graph])
    with pytest.raises(DataError, match="do not fit the graphs"):
        grammar_test(find_grammar("MPNN-1"), [graph], supports={"C_1": [np.eye(4)]})
    with pytest.raises(GrammarError, match="values, colours, functions"):
        grammar_test(grammar, [graph], inputs="numbers")
    primes = [p for p in range(3, 83) if all(p % q for q in range(2, p))]
    stars = [nx.star_graph(p - 1) for p in primes]
    with pytest.raises(DataError, match="square roots of 22 different primes"):
        grammar_test(find_grammar("GCN"), stars)
    with pytest.raises(GrammarError, match="rays only"):
        words_of_test(grammar, "homogeneous")
