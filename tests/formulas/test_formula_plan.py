"""Schedules of formulas: depths, widths, refusals; and the ready formulas against brute force."""

from __future__ import annotations

from itertools import combinations, permutations
from math import comb

import networkx as nx
import numpy as np
import pytest

from g2n2.errors import LoweringError
from g2n2.formulas.formula_plan import requirements
from g2n2.formulas.piecewise_linear import relu_units
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.subgraph_counts import FORMULAS, formula, laplacian_power, subgraph_count
from g2n2.language.evaluation import evaluate
from g2n2.language.parsing import parse

G2N2 = find_grammar("r-G_L3")
RANDOM = [nx.gnp_random_graph(n, p, seed=n) for n, p in ((1, 0.5), (2, 1.0), (6, 0.7), (8, 0.5))]
GRAPHS = [*RANDOM, nx.petersen_graph(), nx.complete_graph(7), nx.path_graph(7)]


def copies(pattern: nx.Graph, graph: nx.Graph) -> int:
    """Subgraphs isomorphic to a pattern: injective maps that keep edges, by their edge sets."""
    found = set()
    for places in permutations(graph, len(pattern)):
        image = {frozenset((places[a], places[b])) for a, b in pattern.edges}
        if all(graph.has_edge(*edge) for edge in image):
            found.add((frozenset(places), frozenset(image)))
    return len(found)


def pattern(name: str) -> nx.Graph:
    if name == "tailed triangle":
        return nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    if name == "chordal cycle":
        return nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    maker = {"C": nx.cycle_graph, "P": nx.path_graph, "s": nx.star_graph}[name[0]]
    return maker(int(name.removeprefix("star ").lstrip("CP")))


COUNTS = [name for name in FORMULAS if "Laplacian" not in name]


@pytest.mark.parametrize("name", [n for n in COUNTS if n not in ("C6", "C7", "P6", "P7", "star 6")])
def test_count_against_brute_force(name: str) -> None:
    for graph in (RANDOM[0], RANDOM[1], RANDOM[2], nx.complete_graph(5)):
        value = evaluate(formula(name), graph)[0, 0]
        assert value == pytest.approx(copies(pattern(name), graph), abs=1e-9)


@pytest.mark.parametrize("k", range(3, 8))
def test_cycles_against_networkx(k: int) -> None:
    for graph in GRAPHS:
        cycles = sum(len(c) == k for c in nx.simple_cycles(graph, length_bound=k))
        assert evaluate(formula(f"C{k}"), graph)[0, 0] == pytest.approx(cycles, abs=1e-6)


@pytest.mark.parametrize("k", range(2, 8))
def test_paths_against_networkx(k: int) -> None:
    for graph in (*RANDOM, nx.petersen_graph(), nx.complete_graph(6)):
        ends = combinations(graph, 2)
        paths = sum(
            len(path) == k
            for a, b in ends
            for path in nx.all_simple_paths(graph, a, b, cutoff=k - 1)
        )
        assert evaluate(formula(f"P{k}"), graph)[0, 0] == pytest.approx(paths, abs=1e-6)


@pytest.mark.parametrize("k", range(2, 7))
def test_stars_are_choices_of_neighbours(k: int) -> None:
    for graph in GRAPHS:
        stars = sum(comb(degree, k) for _, degree in graph.degree)
        assert evaluate(formula(f"star {k}"), graph)[0, 0] == pytest.approx(stars, abs=1e-6)


@pytest.mark.parametrize("name", ["K4", "C8", "P8", pytest.param("P10", marks=pytest.mark.slow)])
def test_sums_over_marks_need_a_grammar_with_a_mark(name: str) -> None:
    with pytest.raises(LoweringError, match="sums over marks"):
        requirements("r-G_L3", formula(name))
    assert requirements("r-G_L3Σ", formula(name)).depth >= 4


def test_induced_counts() -> None:
    with pytest.raises(LoweringError, match="induced counts subtract"):
        subgraph_count(nx.path_graph(5), induced=True)
    wedge = subgraph_count(nx.path_graph(3), induced=True)
    for graph in GRAPHS:
        alone = sum(graph.subgraph(c).number_of_edges() == 2 for c in combinations(graph, 3))
        assert evaluate(wedge, graph)[0, 0] == pytest.approx(alone)


def test_unknown_patterns_and_products_are_refused() -> None:
    with pytest.raises(LoweringError, match=r"\(1ᵀA1\)² multiplies sentences"):
        requirements("r-G_L3", formula("2K2"))
    assert "S → SS" in requirements("G_L3", formula("2K2")).copies
    with pytest.raises(LoweringError, match="in several parts has 1 to 9 vertices, got 10"):
        subgraph_count(nx.empty_graph(10))
    with pytest.raises(LoweringError, match="known: C3, C4"):
        formula("C2")
    with pytest.raises(LoweringError, match="1 to 10 vertices, got 12: larger ones"):
        formula("star 11")


@pytest.mark.parametrize("k", [1, 2, 3])
def test_laplacian_powers_against_networkx(k: int) -> None:
    for graph in [*GRAPHS, nx.disjoint_union(nx.path_graph(3), nx.empty_graph(2))]:
        plain = np.linalg.matrix_power(nx.laplacian_matrix(graph).toarray().astype(float), k)
        np.testing.assert_allclose(evaluate(laplacian_power(k), graph), plain)
        degrees = np.array([d for _, d in graph.degree], dtype=float)
        roots = np.diag([d**-0.5 if d else 0.0 for d in degrees])
        normalised = np.linalg.matrix_power(roots @ nx.laplacian_matrix(graph).toarray() @ roots, k)
        value = evaluate(formula(f"normalised Laplacian^{k}"), graph)
        np.testing.assert_allclose(value, normalised, atol=1e-12)


@pytest.mark.parametrize(
    ("term", "depth", "width"),
    [
        ("A⁴", 2, 1),
        ("A⁸", 3, 1),
        ("A⁵", 3, 2),
        ("A²⊙A", 2, 2),
        ("A + A²", 1, 1),
        ("1ᵀ(A²⊙A)1", 2, 2),
        ("Tr(A⁴)", 2, 1),
        ("diag(A1)A", 3, 2),
    ],
)
def test_depth_and_width_by_hand(term: str, depth: int, width: int) -> None:
    needed = requirements(G2N2, term)
    assert (needed.depth, needed.width["M"]) == (depth, width)


def test_sums_and_numbers_are_free_and_equal_parts_shared() -> None:
    assert requirements(G2N2, "A² + 3×A − A²").copies == {}
    assert requirements(G2N2, ["A³", "A²⊙A", "A⁴"]).copies["M → MM"] == 2
    assert str(requirements(G2N2, "A²")) == "depth 1; width V 1, M 1; rules M → MM ×1"


def test_sum_by_rules_takes_a_layer() -> None:
    grammar = find_grammar("· + Tr")
    assert requirements(grammar, "A + A²").copies == {"M → MM": 1}
    assert requirements(grammar, "A + A²", by_rules=True).depth == 2


@pytest.mark.parametrize(
    ("grammar", "term", "message"),
    [
        ("r-G_L1", "(A²⊙A)1", "nothing makes (A²⊙A)1"),
        ("r-G_L3 ∖ {M⊙M}", "A(A²⊙A)", "nothing makes A²⊙A"),
        ("r-G_L3", "1ᵀM1", "nothing makes"),
        ("r-G_L3", "(A1)(A1)ᵀ", "the rules are M → (M⊙M) | MM | diag(V_c) | A"),
        ("2-IGN (as printed)", "A²", "nothing makes A²"),
        (
            "GNNML1",
            "A²",
            "A² cannot be written into a network of GNNML1: nothing makes A²; M has no",
        ),
        ("r-G_L3", "inv(A1)", "domain=range(0, max_degree + 1)"),
    ],
)
def test_out_of_reach(grammar: str, term: str, message: str) -> None:
    with pytest.raises(LoweringError) as caught:
        requirements(find_grammar(grammar), term)
    assert message in str(caught.value)


def test_row_sums_of_the_read_out_stand_in_for_a_product_with_ones() -> None:
    """A1 is no word of the four rules, but the read-out of nodes sums rows."""
    assert requirements(find_grammar("four-rule"), "A1").depth == 1


def test_hinges_meet_every_integer_of_the_domain() -> None:
    units, start = relu_units(("sqrt", "inv"), range(0, 30))
    for x in range(30):
        value = start + sum(w * max(a * x + b, 0.0) for a, b, w in units)
        assert value == pytest.approx(0.0 if x == 0 else x**-0.5, abs=1e-13)


@pytest.mark.parametrize("name", [n for n in FORMULAS if "Laplacian" not in n])
def test_ready_formulas_survive_their_text(name):
    assert parse(str(formula(name))) == formula(name)
