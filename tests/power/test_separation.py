"""What `separate` says: verdicts, sentences, values, notes, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import networkx as nx
import numpy as np
import pytest

from cases import GRAPHS
from g2n2.errors import DataError, GrammarError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.layered_grammar import LayeredGrammar
from g2n2.grammars.words import enumerate_words
from g2n2.graphs import GraphLike, adjacency
from g2n2.graphs.families import cfi
from g2n2.language.evaluation import evaluate, evaluate_mod
from g2n2.language.exact_values import exact_value
from g2n2.language.modular import PRIMES
from g2n2.language.parsing import parse
from g2n2.language.terms import Term, operation_count, substitute
from g2n2.power.closure import Place
from g2n2.power.random_probes import graph_classes
from g2n2.power.separation import (
    Engine,
    Separation,
    check_closure_memory,
    separate,
    with_shared_subterms,
)
from g2n2.power.shortest import shortest_sentence
from g2n2.reduction.compare import with_functions

C6, TRIANGLES = GRAPHS["C6"], GRAPHS["2·C3"]
STAR, SQUARE = GRAPHS["K1,4"], GRAPHS["C4 + K1"]
DECALIN, BICYCLOPENTYL = GRAPHS["decalin"], GRAPHS["bicyclopentyl"]
ROOK, SHRIKHANDE = GRAPHS["rook 4×4"], GRAPHS["Shrikhande"]


def check_sentence(found: Separation, g: GraphLike, h: GraphLike) -> None:
    """The reference interpreter must agree with what was reported, and see a difference."""
    assert found.sentence is not None
    assert found.values is not None
    assert found.values[0] != found.values[1]
    modulus = found.modulus or 2**61 - 1
    values = [int(evaluate_mod(found.sentence, graph, modulus)[0, 0]) for graph in (g, h)]
    assert values == [value % modulus for value in found.values]


def mates(grammar: Grammar, nodes: int) -> int:
    """How many graphs of that size are merged with another one."""
    graphs = [graph for graph in nx.graph_atlas_g() if len(graph) == nodes]
    sizes = np.unique(graph_classes(grammar, graphs), return_counts=True)[1]
    return int(sizes[sizes > 1].sum())


# -- the columns of THEORY.md's anchor table ------------------------------------------------------

COLUMNS = {
    "C6": (C6, TRIANGLES),
    "stars": (STAR, SQUARE),
    "rings": (DECALIN, BICYCLOPENTYL),
    "srg": (ROOK, SHRIKHANDE),
}
SAME, ANY = "same", "different"
ANCHORS: dict[tuple[str, str | None], tuple[str, str, str, str]] = {
    ("{·,Tr}", None): ("Tr(A³)", SAME, "Tr(A⁵)", SAME),
    ("{·,ᵀ,1}", None): (SAME, ANY, SAME, SAME),
    ("{·,ᵀ,1,Tr}", None): ("Tr(A³)", ANY, "Tr(A⁵)", SAME),
    ("L1", None): (SAME, ANY, SAME, SAME),
    ("r-G_L1", None): (SAME, ANY, SAME, SAME),
    ("{·,ᵀ,1,diag,Tr}", None): (ANY, ANY, ANY, SAME),
    ("L3", None): ("1ᵀ(A²⊙A)1", ANY, ANY, SAME),
    ("r-G_L3", None): ("1ᵀ(A²⊙A)1", ANY, ANY, SAME),
    ("r-G_L3 ∖ {M⊙M}", None): (SAME, ANY, SAME, SAME),
    ("r-G_L3 ∖ {MM}", None): (SAME, ANY, SAME, SAME),
    ("r-G_L3 ∖ {diag(V_c)}", "S → VᵀV"): (ANY, ANY, ANY, SAME),
}
BOUNDED_BY_1WL = ("{·,ᵀ,1}", "L1", "r-G_L1", "r-G_L3 ∖ {M⊙M}")


@pytest.mark.parametrize("engine", ["closure", "random_probes"])
@pytest.mark.parametrize(("name", "readout"), ANCHORS)
def test_columns_of_the_anchor_table(name: str, readout: str | None, engine: str) -> None:
    for pair, expected in zip(COLUMNS, ANCHORS[name, readout], strict=True):
        g, h = COLUMNS[pair]
        found = separate(find_grammar(name), g, h, engine, readout=readout)
        assert found.engine == engine
        if expected == SAME:
            # What the test that bounds it tells apart, mixing cannot call the same for good.
            merged = pair == "srg" or name in BOUNDED_BY_1WL
            assert found.verdict == (
                SAME if engine == "closure" or merged else "same up to 8 layers"
            )
            assert found.primes == PRIMES[:2]
            assert found.sentence is None
            continue
        assert found.verdict == "different"
        assert found.shortest
        if expected != ANY:
            assert str(found.sentence) == expected
        check_sentence(found, g, h)


def test_decalin_needs_seven_operations() -> None:
    """THEORY.md's 1ᵀ(A³⊙A²)1 is one of the shortest: the one found has as many operations."""
    found = separate(find_grammar("r-G_L3"), DECALIN, BICYCLOPENTYL)
    assert found.sentence is not None
    assert operation_count(found.sentence) == operation_count(parse("1ᵀ(A³⊙A²)1")) == 7
    assert (found.depth, found.sentence_depth) == (4, 4)


def test_depth_and_read_out() -> None:
    grammar = find_grammar("r-G_L3")
    own = separate(grammar, C6, TRIANGLES)
    assert (own.depth, own.readout) == (3, "1ᵀV_c")
    network = separate(grammar, C6, TRIANGLES, readout="network")
    assert (network.depth, network.readout) == (2, "1ᵀV_c | Tr(M) | 1ᵀM1")
    assert str(network.sentence) == "Tr(A³)"
    given = separate(grammar, C6, TRIANGLES, readout="S → 1ᵀM1")
    assert (given.depth, given.readout) == (2, "1ᵀM1")
    check_sentence(given, C6, TRIANGLES)


def test_the_shortest_sentence_may_be_deeper_than_need_be() -> None:
    """Tr(A³) takes AM twice; with the wide rule one layer is enough, at more operations."""
    grammar = find_grammar("M → AM | (AMA)⊙(1·1ᵀ) | A; S → Tr(M)")
    found = separate(grammar, C6, TRIANGLES)
    assert (str(found.sentence), found.shortest) == ("Tr(A³)", True)
    assert (found.depth, found.sentence_depth) == (1, 2)
    blind = separate(grammar, C6, TRIANGLES, max_size=2)
    assert (str(blind.sentence), blind.shortest) == ("Tr(A³⊙1·1ᵀ)", False)
    assert blind.sentence_depth == blind.depth == 1
    shallow = separate(grammar, C6, TRIANGLES, layers=1)
    assert (str(shallow.sentence), shallow.sentence_depth) == ("Tr(A³⊙1·1ᵀ)", 1)
    assert not shallow.shortest


def test_of_equally_short_sentences_the_shallowest_is_taken() -> None:
    """1ᵀA²1 as 1ᵀ(A(A1)) takes two layers, as 1ᵀ(AA)1 one."""
    grammar = find_grammar("V → AV | 1; M → MM | A; S → 1ᵀV | 1ᵀM1")
    found = separate(grammar, STAR, SQUARE)
    assert (str(found.sentence), found.sentence_depth, found.depth) == ("1ᵀA²1", 1, 1)


# -- shortest, by exhaustive check ----------------------------------------------------------------


def fewest_operations(grammar: Grammar, g: GraphLike, h: GraphLike, most: int) -> int | None:
    """By going through all sentences, equal only if their patterns are, with the interpreter."""
    for word in enumerate_words(grammar, max_size=most):
        values = [int(evaluate_mod(word.term, graph)[0, 0]) for graph in (g, h)]
        if values[0] != values[1]:
            return word.size
    return None


@pytest.mark.parametrize("name", ["r-G_L3", "r-G_L1", "PPGN", "{·,Tr}", "GNNML1", "four-rule"])
def test_sentences_called_shortest_are(name: str) -> None:
    grammar = find_grammar(name)
    pairs = [(C6, TRIANGLES), (STAR, SQUARE)]
    for seed in range(4):
        tree = nx.random_labeled_tree(6, seed=seed)
        pairs.append((tree, nx.random_labeled_tree(6, seed=seed + 50)))
    seen = set()
    for g, h in pairs:
        expected = fewest_operations(grammar, g, h, 6)
        found = separate(grammar, g, h)
        if expected is None:
            assert found.sentence is None or operation_count(found.sentence) > 6
            continue
        assert found.shortest
        assert found.sentence is not None
        assert operation_count(found.sentence) == found.searched == expected
        check_sentence(found, g, h)
        seen.add(expected)
    assert seen


def test_a_search_that_is_cut_short_claims_nothing() -> None:
    found = separate(find_grammar("r-G_L3"), DECALIN, BICYCLOPENTYL, max_size=6)
    assert found.verdict == "different"
    assert not found.shortest
    assert found.searched == 6
    assert found.sentence is not None
    assert operation_count(found.sentence) >= 7
    check_sentence(found, DECALIN, BICYCLOPENTYL)
    assert "not proved shortest" in str(found)


def test_a_spent_budget_claims_only_the_sizes_it_went_through() -> None:
    graphs = (adjacency(DECALIN), adjacency(BICYCLOPENTYL))
    layered = LayeredGrammar.of(find_grammar("r-G_L3"))
    nothing = shortest_sentence(layered, graphs, (Place(0), Place(1)), budget=0)
    assert nothing.searched == 1  # no sentence of 1ᵀV has fewer than two operations
    reached = [
        shortest_sentence(layered, graphs, (Place(0), Place(1)), budget=2**k).searched
        for k in range(9, 18)
    ]
    assert reached == sorted(reached)
    assert reached[-1] == 7 > reached[0]
    spent = separate(find_grammar("r-G_L3"), *graphs, max_size=-1)
    assert spent.searched is None
    check_sentence(spent, *graphs)


# -- shared parts ---------------------------------------------------------------------------------


def spelled_out(found: list[tuple[str, Term]]) -> Term:
    """The last definition with all names replaced, innermost last."""
    terms: dict[str, Term] = {}
    for name, term in found:
        terms[name] = substitute(term, terms)
    return terms[found[-1][0]]


def test_shared_parts_are_named_once() -> None:
    part = parse("A²⊙A")
    whole = (part @ part) * part
    found = with_shared_subterms(whole)
    assert [str(definition) for definition in found] == ["M1 = A²⊙A", "M = M1²⊙M1"]
    assert spelled_out(found) == whole


def test_parts_inside_shared_parts_are_not_named_again() -> None:
    inner = parse("diag(A1)A")
    outer = inner * inner.T
    found = with_shared_subterms(parse("1ᵀ") @ (outer @ outer) @ parse("1"))
    assert [definition.name for definition in found] == ["M1", "M2", "s"]
    small = with_shared_subterms(parse("1ᵀ(A²⊙A²)1"))  # A² is shorter than a name for it
    assert [str(definition) for definition in small] == ["s = 1ᵀ(A²⊙A²)1"]
    assert [str(d) for d in with_shared_subterms(parse("A"))] == ["M = A"]


def test_a_deep_sentence_is_printed_by_its_parts() -> None:
    """A CFI pair over a ladder, which needs eight layers: its sentence repeats itself."""
    g, h = cfi(nx.ladder_graph(5))
    found = separate(find_grammar("r-G_L3"), g, h, max_size=2)
    assert (found.verdict, found.depth, found.sentence_depth) == ("different", 8, 8)
    assert not found.shortest
    definitions = found.definitions()
    value = [evaluate(spelled_out(definitions), graph)[0, 0] for graph in (g, h)]
    assert value[0] != value[1]
    check_sentence(found, g, h)
    lines = str(found).splitlines()
    assert lines[0] == "different"
    assert len(definitions) > 1
    assert f"  {definitions[0]}" in lines


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["1ᵀA⁹1", "Tr(A − A²)", "0.5×(1ᵀA1) + 1ᵀ1", "1ᵀ(A²⊙J)1 − 0.125×Tr(A)"]
)
@pytest.mark.parametrize("weight", [1, -3])
def test_exact_values_agree_with_floats(text: str, weight: int) -> None:
    graph = weight * adjacency(nx.bull_graph())
    value = exact_value(parse(text), graph, {}, 0, 0)
    assert value is not None
    assert float(value) == evaluate(parse(text), graph)[0, 0]


def test_exact_values_are_exact_beyond_floats() -> None:
    graph = adjacency(nx.complete_graph(5))
    assert exact_value(parse("Tr(A⁶⁰)"), graph, {}, 0, 0) == 4**60 + 4
    # K5 has the eigenvalues 4, -1, -1, -1, -1.
    assert exact_value(parse("0.125×Tr(A²)"), graph, {}, 0, 0) == Fraction(20, 8)
    two = adjacency(nx.empty_graph(2))  # 2 * 2 + 1 would be a multiple of the denominator
    assert exact_value(parse("0.2×(1ᵀ1)"), two, {}, 0, 0) == Fraction(2, 5)


def test_values_that_would_take_too_long_are_residues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("g2n2.language.exact_values.MAX_STEPS", 10)
    found = separate(find_grammar("r-G_L3"), C6, TRIANGLES, max_size=0)
    assert found.modulus == PRIMES[0]
    check_sentence(found, C6, TRIANGLES)
    assert f"(modulo {PRIMES[0]})" in str(found)
    shortest = separate(find_grammar("r-G_L3"), C6, TRIANGLES)
    assert shortest.modulus == PRIMES[0]
    check_sentence(shortest, C6, TRIANGLES)


# -- primes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["closure", "random_probes"])
def test_same_is_said_only_after_the_second_prime(engine: str) -> None:
    """Weights vanish modulo the first prime; a difference names the prime it was found with."""
    heavy, empty = np.array([[0.0, PRIMES[0]], [PRIMES[0], 0.0]]), np.zeros((2, 2))
    found = separate(find_grammar("r-G_L3"), heavy, empty, engine)  # type: ignore[arg-type]
    assert found.verdict == "different"
    assert found.primes == (PRIMES[1],)
    assert found.values is not None
    assert str(found.sentence) == "1ᵀA1"
    assert found.values == (2 * PRIMES[0], 0)


# -- sizes, directions, functions -----------------------------------------------------------------


def test_graphs_of_different_size() -> None:
    found = separate(find_grammar("r-G_L3"), nx.cycle_graph(5), nx.cycle_graph(6))
    assert (found.verdict, str(found.sentence), found.values) == ("different", "1ᵀ1", (5, 6))
    assert found.depth == 0
    assert found.note == "the graphs have 5 and 6 nodes"
    blind = separate(find_grammar("{·,Tr}"), nx.empty_graph(2), nx.empty_graph(3))
    assert blind.verdict == "same"
    assert blind.note == "the graphs have 2 and 3 nodes, which no sentence here sees"
    trace = separate(find_grammar("{·,Tr}"), nx.path_graph(3), nx.path_graph(4))
    assert (str(trace.sentence), trace.values) == ("Tr(A²)", (4, 6))


def digraphs(nodes: int) -> list[np.ndarray]:
    """All digraphs without loops, one of each isomorphism class, by brute force."""
    arcs = list(permutations(range(nodes), 2))
    orders = [list(order) for order in permutations(range(nodes))]
    found: dict[bytes, np.ndarray] = {}
    for chosen in product((0.0, 1.0), repeat=len(arcs)):
        matrix = np.zeros((nodes, nodes))
        for (i, j), weight in zip(arcs, chosen, strict=True):
            matrix[i, j] = weight
        found.setdefault(min(matrix[o][:, o].tobytes() for o in orders), matrix)
    return list(found.values())


def arcs(*pairs: tuple[int, int]) -> np.ndarray:
    matrix = np.zeros((4, 4))
    for i, j in pairs:
        matrix[i, j] = 1.0
    return matrix


def test_digraphs_need_the_transpose() -> None:
    """THEORY.md §4b: r-G_L3 merges these two; with Aᵀ it tells all 218 of four nodes apart."""
    g, h = arcs((2, 1), (3, 1)), arcs((2, 1), (3, 0))
    grammar = find_grammar("r-G_L3")
    with pytest.raises(DataError, match=r"directed: A\[1, 2\] = 0 and A\[2, 1\] = 1"):
        separate(grammar, g, h)
    assert separate(grammar, g, h, directed=True).verdict == "same"
    with_transpose = grammar | "M → Aᵀ"
    found = separate(with_transpose, g, h, directed=True)
    assert found.verdict == "different"
    check_sentence(found, g, h)
    every = digraphs(4)
    assert len(every) == 218
    assert len(set(graph_classes(with_transpose, every).tolist())) == 218
    assert len(set(graph_classes(grammar, every).tolist())) < 218


def test_functions_are_not_free() -> None:
    """THEORY.md §1: L1 with sums and functions of matrices separates C6 from two triangles."""
    grammar = find_grammar("L1")
    assert separate(grammar, C6, TRIANGLES).verdict == "same"
    found = separate(with_functions(grammar), C6, TRIANGLES)
    assert found.verdict == "different"
    check_sentence(found, C6, TRIANGLES)
    walks = find_grammar("V → AV | 1")
    # With functions, sums over neighbours are GIN, hence 1-WL; without, they count walks.
    assert [mates(grammar, 7) for grammar in (walks, with_functions(walks))] == [82, 44]


@pytest.mark.parametrize("engine", ["auto", "closure", "random_probes"])
def test_functions_are_refused_with_the_rule_that_applies_them(engine: str) -> None:
    with pytest.raises(GrammarError, match="the support C = "):
        separate(find_grammar("GCN"), C6, TRIANGLES, engine)  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match=r"V⊙V \| 1 and M → M⊙M"):
        separate(find_grammar("{·,ᵀ,1,f}"), C6, TRIANGLES, engine)  # type: ignore[arg-type]


# -- engines and bad input ------------------------------------------------------------------------


def padded(name: str) -> nx.Graph:
    """A graph of 16 nodes beside a path, 36 nodes in all."""
    return nx.disjoint_union(nx.from_numpy_array(adjacency(name)), nx.path_graph(20))


@pytest.mark.parametrize(
    ("grammar", "pair", "directed", "note"),
    [
        ("r-G_L1", ("C6", "2·C3"), False, "1-WL merges them too"),
        ("G_L1", ("C6", "2·C3"), False, "1-WL merges them too"),
        ("V → AV + A1 | 1", ("C6", "2·C3"), False, "1-WL merges them too"),
        ("V → AV | 1", ("C6", "2·C3"), True, "1-WL merges them too"),
        ("M → MM | A; S → Tr(M)", ("C6", "2·C3"), False, "2-FWL tells them apart; more layers"),
    ],
)
def test_without_a_closure_the_least_test_that_bounds_the_words_decides(
    grammar: str, pair: tuple[str, str], directed: bool, note: str
) -> None:
    found = separate(
        find_grammar(grammar), *pair, engine="random_probes", layers=1, directed=directed
    )
    assert note in found.note
    assert found.verdict == ("same" if "1-WL" in note else "same up to 1 layer")


def test_auto_takes_the_closure_for_small_graphs_and_random_probes_for_large_ones() -> None:
    grammar = find_grammar("r-G_L3")
    assert separate(grammar, nx.path_graph(35), nx.path_graph(35)).engine == "closure"
    large = separate(grammar, *(padded(name) for name in ("rook 4×4", "Shrikhande graph")))
    assert (large.engine, large.verdict) == ("random_probes", "same")
    assert "2-FWL merges them too" in large.note
    vectors = separate(find_grammar("r-G_L1"), nx.cycle_graph(90), nx.cycle_graph(90))
    assert (vectors.engine, vectors.verdict) == ("closure", "same")


def test_mixing_does_not_call_the_same_what_it_has_not_proved() -> None:
    found = separate(find_grammar("r-G_L3"), C6, TRIANGLES, "random_probes", layers=2)
    assert found.verdict == "same up to 2 layers"
    assert found.note.startswith("2-FWL tells them apart")
    assert not found.different
    deeper = separate(find_grammar("r-G_L3"), C6, TRIANGLES, "random_probes", layers=3)
    assert deeper.verdict == "different"


@pytest.mark.parametrize("engine", ["closure", "random_probes"])
def test_layers_bound_every_engine(engine: Engine) -> None:
    grammar = find_grammar("r-G_L3")
    for layers in (0, 1, 2):
        found = separate(grammar, C6, TRIANGLES, engine, layers=layers)
        shown = "1 layer" if layers == 1 else f"{layers} layers"
        assert (found.verdict, found.depth) == (f"same up to {shown}", None)
    found = separate(grammar, C6, TRIANGLES, engine, layers=3)
    assert (found.verdict, found.depth, found.sentence_depth) == ("different", 3, 3)
    merged = separate("r-G_L1", C6, TRIANGLES, "closure", layers=9)
    assert merged.verdict == "same"  # the closure is complete before


def test_the_read_out_of_a_network_with_a_mark_sums_over_it() -> None:
    found = separate("r-G_L3Σ", "rook 4×4", "Shrikhande graph", readout="network")
    assert found.different
    assert found.readout == "Σv. 1ᵀV_c′ | Σv. Tr(M′) | Σv. 1ᵀM′1"
    assert separate("r-G_L1Σ", C6, TRIANGLES, readout="network").readout == "Σv. 1ᵀV_c′"
    with pytest.raises(GrammarError, match="r-G_L1ΣΣ has 2 marks, whose sums"):
        separate("r-G_L1ΣΣ", C6, TRIANGLES, readout="network")


def test_a_graph_too_large_for_the_closure_is_refused_at_once() -> None:
    huge = np.broadcast_to(0.0, (5000, 5000))  # takes no memory
    layered = LayeredGrammar.of(find_grammar("r-G_L3"))
    with pytest.raises(DataError, match=r"5,000 and 5,000 nodes .* GiB.* engine='random_probes'"):
        check_closure_memory(layered, (huge, huge), 8 * 2**30)
    check_closure_memory(LayeredGrammar.of(find_grammar("r-G_L1")), (huge, huge), 8 * 2**30)
    with pytest.raises(DataError, match="engine 'random_probes' with 8 layers"):
        separate(find_grammar("r-G_L3"), np.zeros((80, 80)), np.ones((80, 80)), memory_limit=2**22)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"engine": "magic"},
            "engine: got 'magic', expected one of 'auto', 'closure', 'random_probes'",
        ),
        ({"level": "nodes"}, "level: got 'nodes'.*did you mean node"),
        ({"at": (0, 1)}, "level='node'"),
        ({"level": "node"}, r"pass at=\(i, j\)"),
        ({"level": "node", "at": (0, 6)}, "6 is not in graph 2: its nodes are 0 to 5"),
        ({"level": "node", "at": (-1, 0)}, "-1 is not in graph 1"),
        ({"level": "node", "at": ((0, 1), (0, 1))}, r"\(0, 1\) is no node"),
        ({"level": "pair", "at": (0, 1)}, "0 is no pair"),
        ({"level": "pair", "at": ((0, 1), (2, 9))}, r"\(2, 9\) is not in graph 2"),
    ],
)
def test_bad_arguments(options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        separate(find_grammar("r-G_L3"), C6, TRIANGLES, **options)  # type: ignore[arg-type]


def test_weights_must_be_integers() -> None:
    half = np.array([[0.0, 0.5], [0.5, 0.0]])
    with pytest.raises(DataError, match=r"entry \(0, 1\) of A is 0.5"):
        separate(find_grammar("r-G_L3"), half, half)


def test_result_is_a_value() -> None:
    first, second = (separate(find_grammar("r-G_L3"), C6, TRIANGLES) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert separate(find_grammar("r-G_L3"), C6, C6).definitions() == []
