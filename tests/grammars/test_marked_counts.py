"""Subgraph counts with one mark, against brute force; what is out of reach, with its image."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import TypeGuard

import networkx as nx
import pytest
from networkx.algorithms.isomorphism import GraphMatcher

from g2n2.errors import LoweringError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.complete_images import has_complete_image
from g2n2.grammars.derivations import derive_word
from g2n2.grammars.subgraph_counts import (
    formula,
    homomorphisms,
    images,
    marked_homomorphisms,
    subgraph_count,
)
from g2n2.graphs.names import graph_of_name
from g2n2.language.exact_values import exact_value
from g2n2.language.operations import BINDERS
from g2n2.language.terms import Apply, Term, operators

GRAPHS = [nx.gnp_random_graph(9, 0.5, seed=3), nx.gnp_random_graph(8, 0.8, seed=4)]
FOUR = [graph for graph in nx.graph_atlas_g() if 1 <= len(graph) <= 4 and nx.is_connected(graph)]


def value(term: Term, graph: nx.Graph) -> object:
    return exact_value(term, nx.to_numpy_array(graph), {}, 0, 0)


def homomorphism_count(pattern: nx.Graph, graph: nx.Graph) -> int:
    """Maps of the vertices that keep edges, extended vertex by vertex."""
    order = list(nx.dfs_preorder_nodes(pattern))

    def extended(images: dict[int, int]) -> int:
        if len(images) == len(order):
            return 1
        vertex = order[len(images)]
        near = [images[u] for u in pattern[vertex] if u in images]
        options = set(graph) if not near else set.intersection(*(set(graph[x]) for x in near))
        return sum(extended({**images, vertex: x}) for x in options)

    return extended({})


def cycles(graph: nx.Graph, length: int) -> int:
    return sum(len(cycle) == length for cycle in nx.simple_cycles(graph, length_bound=length))


def paths(graph: nx.Graph, vertices: int) -> int:
    """Paths of so many vertices, each once: half of all walks without a repeated vertex."""

    def extended(path: tuple[int, ...]) -> int:
        if len(path) == vertices:
            return 1
        return sum(extended((*path, x)) for x in graph[path[-1]] if x not in path)

    return sum(extended((v,)) for v in graph) // 2


def test_k4() -> None:
    assert "mark_S" in operators(formula("K4"))
    for graph in GRAPHS:
        cliques = sum(len(c) == 4 for c in nx.enumerate_all_cliques(graph))
        assert value(formula("K4"), graph) == cliques


@pytest.mark.parametrize("length", [8, pytest.param(9, marks=pytest.mark.slow)])
def test_cycles(length: int) -> None:
    graph = nx.gnp_random_graph(10, 0.5, seed=3)
    assert value(formula(f"C{length}"), graph) == cycles(graph, length) > 0


@pytest.mark.parametrize("vertices", [8, pytest.param(10, marks=pytest.mark.slow)])
def test_paths(vertices: int) -> None:
    graph = nx.gnp_random_graph(10, 0.3, seed=5)
    assert value(formula(f"P{vertices}"), graph) == paths(graph, vertices) > 0


@pytest.mark.parametrize("pattern", FOUR, ids=lambda g: f"{len(g)}-{g.number_of_edges()}")
def test_all_induced_counts_up_to_four_vertices(pattern: nx.Graph) -> None:
    term = subgraph_count(pattern, induced=True)
    for graph in GRAPHS:
        wanted = sum(
            nx.is_isomorphic(graph.subgraph(chosen), pattern)
            for chosen in combinations(graph, len(pattern))
        )
        assert value(term, graph) == wanted


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("bull", nx.bull_graph()),
        ("K2,3", nx.complete_bipartite_graph(2, 3)),
        ("Diamond", nx.diamond_graph()),
        ("C_4", nx.cycle_graph(4)),
        ("wheel over C4", nx.wheel_graph(5)),
        ("spider(1,1,2)", nx.Graph([(0, 1), (0, 2), (0, 3), (3, 4)])),
        ("P1", nx.path_graph(1)),
    ],
)
def test_graphs_with_a_name_are_counted(name: str, pattern: nx.Graph) -> None:
    copies = GraphMatcher(pattern, pattern).isomorphisms_iter()
    symmetries = sum(1 for _ in copies)
    for graph in GRAPHS:
        found = sum(1 for _ in GraphMatcher(graph, pattern).subgraph_monomorphisms_iter())
        assert value(formula(name), graph) == found / symmetries
    assert found > 0


def test_induced_counts_of_named_graphs() -> None:
    for name in ("induced diamond", "Induced K4-e"):
        for graph in GRAPHS:
            wanted = sum(
                nx.is_isomorphic(graph.subgraph(chosen), nx.diamond_graph())
                for chosen in combinations(graph, 4)
            )
            assert value(formula(name), graph) == wanted
    with pytest.raises(LoweringError, match=r"known: C3, .* gem, .* bull, "):
        formula("induced gnu")


def test_induced_triangles_are_triangles() -> None:
    assert formula("induced triangle") == formula("triangle") == formula("C3")


def test_equal_images_of_an_induced_count_are_one_summand() -> None:
    def summands(term: Term) -> list[str]:
        return [x for t in term.args for x in summands(t)] if is_sum(term) else [str(term)]

    def is_sum(term: Term) -> TypeGuard[Apply]:
        return isinstance(term, Apply) and term.op == "add"

    bodies = [text.partition("×")[2] for text in summands(formula("induced C4"))]
    assert len(bodies) == len(set(bodies)) == 6


def test_homomorphisms_of_patterns_with_an_apex() -> None:
    """Wheels, K4 and two K4 at a vertex, whose rest has two parts."""
    bow = nx.Graph([*combinations((0, 1, 2, 3), 2), *combinations((0, 4, 5, 6), 2)])
    prism = nx.circular_ladder_graph(3)
    for pattern in (nx.complete_graph(4), nx.wheel_graph(6), bow, prism, nx.path_graph(3)):
        term = marked_homomorphisms(pattern)
        assert term is not None
        derive_word(find_grammar("r-G_L3Σ"), term)
        for graph in GRAPHS:
            assert value(term, graph) == homomorphism_count(pattern, graph)


@pytest.mark.parametrize("name", ["K5", pytest.param("C10", marks=pytest.mark.slow)])
def test_beyond_one_mark_is_refused_with_its_image(name: str) -> None:
    with pytest.raises(LoweringError, match=r"treewidth 4 or more \(K5\)") as caught:
        formula(name)
    assert "no sentence with one mark" in str(caught.value)


@pytest.mark.parametrize("name", ["P11", "P12", "P40", "C11", "C12", "C13", "C30"])
def test_patterns_too_large_to_list_their_images_are_refused_with_one(name: str) -> None:
    with pytest.raises(LoweringError, match=r"treewidth 4 or more \(one with K5 as a minor\)"):
        formula(name)


@pytest.mark.parametrize("name", ["star 12", "K2,9", "induced K12"])
def test_no_such_image_is_claimed_where_there_is_none(name: str) -> None:
    """All images of a star are stars; K12 is induced wherever it is."""
    with pytest.raises(LoweringError) as refused:
        formula(name)
    assert "K5 as a minor" not in str(refused.value)


def test_a_complete_image_that_is_found_is_there() -> None:
    """Treewidth 3 is a minor K4: a listed image without a column of treewidth 2."""
    drawn = [nx.gnm_random_graph(n, n, seed=seed) for n in (6, 7, 8) for seed in range(12)]
    connected = [graph for graph in drawn if nx.is_connected(graph)]
    found = [has_complete_image(graph, 4) for graph in connected]
    listed = [any(homomorphisms(g) is None for g, _ in images((1, graph))) for graph in connected]
    assert all(there or not said for said, there in zip(found, listed, strict=True))
    assert {*found} == {True, False}


def test_an_image_that_is_not_complete_is_given_by_its_edges() -> None:
    with pytest.raises(LoweringError, match=r"4 or more \(6 vertices, 12 edges: 0–1, .*, 4–5\)"):
        formula("octahedron")


SMALL = [nx.gnp_random_graph(8, 0.7, seed=seed) for seed in (5, 6)]
FIVE = [graph for graph in nx.graph_atlas_g() if len(graph) == 5]


@pytest.mark.parametrize(
    "pattern",
    [
        *(g for g in nx.graph_atlas_g() if 1 <= len(g) <= 4 and not nx.is_connected(g)),
        *(pytest.param(g, marks=pytest.mark.slow) for g in FIVE if not nx.is_connected(g)),
    ],
    ids=lambda g: f"{len(g)}-{g.number_of_edges()}",
)
def test_induced_counts_in_several_parts_are_products_of_sentences(pattern: nx.Graph) -> None:
    term = subgraph_count(pattern, induced=True, marks=max(1, len(pattern) - 3))
    for graph in SMALL:
        wanted = sum(
            nx.is_isomorphic(graph.subgraph(chosen), pattern)
            for chosen in combinations(graph, len(pattern))
        )
        assert value(term, graph) == wanted


@pytest.mark.parametrize("name", ["2K2", "3K1", "K1+K3", "P3+K1", "2·C3"])
def test_subgraphs_in_several_parts(name: str) -> None:
    pattern = nx.from_numpy_array(graph_of_name(name))
    symmetries = sum(1 for _ in GraphMatcher(pattern, pattern).isomorphisms_iter())
    for graph in SMALL:
        found = sum(1 for _ in GraphMatcher(graph, pattern).subgraph_monomorphisms_iter())
        assert value(formula(name), graph) == found / symmetries


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern", [g for g in FIVE if nx.is_connected(g)], ids=lambda g: str(g.number_of_edges())
)
def test_two_marks_give_all_induced_counts_of_five_vertices(pattern: nx.Graph) -> None:
    term = subgraph_count(pattern, induced=True, marks=2)
    for graph in SMALL:
        subsets = combinations(graph, 5)
        assert value(term, graph) == sum(
            nx.is_isomorphic(graph.subgraph(chosen), pattern) for chosen in subsets
        )


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        ("r-G_L3ΣΣ", nx.complete_graph(5)),
        ("r-G_L3ΣΣ", nx.octahedral_graph()),
        ("r-G_L3ΣΣ", nx.cubical_graph()),
        ("r-G_L1ΣΣ", nx.complete_graph(4)),
        ("r-G_L1ΣΣ", nx.wheel_graph(6)),
        ("r-G_L1ΣΣ", nx.cycle_graph(5)),
        ("r-G_L1Σ", nx.complete_graph(3)),
        ("r-G_L1Σ", nx.cycle_graph(5)),
        ("r-G_L1", nx.star_graph(3)),
    ],
)
def test_homomorphisms_as_other_grammars_have_them(grammar: str, pattern: nx.Graph) -> None:
    """With the grammar's marks, and without a product of matrices where it has none."""
    chosen = find_grammar(grammar)
    marks, width = chosen.scope, 1 if "L1" in grammar else 2
    term = marked_homomorphisms(pattern, marks, width)
    assert term is not None
    derive_word(chosen, term)
    assert marked_homomorphisms(nx.complete_graph(marks + width + 2), marks, width) is None
    for graph in SMALL:
        assert value(term, graph) == homomorphism_count(pattern, graph)


def test_a_formula_of_a_grammar_is_one_of_its_own_or_refused() -> None:
    for name, grammar in (("K5", "r-G_L3ΣΣ"), ("K4", "r-G_L1ΣΣ"), ("C3", "r-G_L1Σ")):
        cliques = [[len(c) for c in nx.enumerate_all_cliques(graph)] for graph in SMALL]
        counts = [sizes.count(int(name[1])) for sizes in cliques]
        assert [value(formula(name, grammar), graph) for graph in SMALL] == counts
    for name, grammar, message in (
        ("K4", "r-G_L3", r"no sentence over L3 .* treewidth 3 or more \(K4\), and 2-FWL"),
        ("C3", "r-G_L1", r"no sentence over L1 .* treewidth 2 or more \(K3\), and 1-WL"),
        ("K5", "r-G_L1ΣΣ", r"no sentence with two marks over L1 .* \(K5\), and 3-FWL"),
        ("K6", "r-G_L3ΣΣ", r"no sentence with two marks over L3 .* \(K6\), and 4-FWL"),
    ):
        with pytest.raises(LoweringError, match=message):
            formula(name, grammar)


def test_induced_counts_of_five_vertices_hold_k5() -> None:
    with pytest.raises(LoweringError, match=r"every denser pattern, among whose images .*\(K5\)"):
        subgraph_count(nx.cycle_graph(5), induced=True)
    with pytest.raises(LoweringError, match=r"every denser pattern, among whose images .*\(K10\)"):
        formula("induced Petersen graph")


def test_patterns_without_an_apex_have_no_sentence() -> None:
    joined = nx.Graph([*combinations(range(4), 2), *combinations(range(4, 8), 2), (0, 4)])
    for pattern in (nx.cubical_graph(), nx.octahedral_graph(), joined):
        assert marked_homomorphisms(pattern) is None


def test_counts_within_3wl_have_no_mark() -> None:
    for name in ("C7", "P7", "chordal cycle", "star 6"):
        assert not operators(formula(name)) & set(BINDERS), name


def test_the_brute_force_counts_of_small_graphs() -> None:
    """The oracles of this file on graphs whose counts are known."""
    five = nx.complete_graph(5)
    assert cycles(five, 5) == 12
    assert paths(five, 4) == 60
    assert homomorphism_count(nx.complete_graph(3), five) == len(list(permutations(range(5), 3)))
