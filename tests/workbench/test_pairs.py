"""Two graphs: colours against the library's refinement, places against brute force."""

from collections import Counter
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from g2n2 import adjacency, parse, refine
from g2n2.errors import DataError
from g2n2.grammars.catalogue import find_grammar
from g2n2.graphs.layout import stress_layout
from g2n2.workbench import views
from g2n2.workbench.pairs import (
    GALLERY,
    MOST_NODES,
    compare_pair,
    counted_pattern,
    drawn_graph,
    graph6_of_edges,
    pattern_places,
    wl_rounds,
)

RANDOM = [
    tuple(nx.gnp_random_graph(n, p, seed=100 * n + k + 7 * side) for side in (0, 1))
    for n in (5, 7, 9)
    for k, p in enumerate((0.2, 0.3, 0.4, 0.5, 0.6, 0.7))
]


def quiet(share, text):
    """No progress."""


@pytest.mark.parametrize("pair", [*GALLERY.values(), *RANDOM, ("C6", "P7")])
def test_rounds_are_the_librarys(pair):
    graphs = [adjacency(graph) for graph in pair]
    for rounds, k, variant in ((wl_rounds(graphs, 1), 1, "wl"), (wl_rounds(graphs, 2), 2, "fwl")):
        found = refine(graphs, k, variant)
        assert rounds.separated_at == found.separated_at()
        assert len(rounds.colours) == len(found.graph_history)
        ours, theirs = (
            [tuple(c) for c in rounds.colours[-1]],
            [tuple(c.tolist()) for c in found.node_colours()],
        )
        matched = set(zip(sum(ours, ()), sum(theirs, ()), strict=True))
        assert len(matched) == len(set(sum(ours, ()))) == len(set(sum(theirs, ())))


def test_a_class_that_splits_keeps_its_colour_in_its_largest_part():
    rounds = wl_rounds([adjacency(nx.star_graph(4)), adjacency(nx.star_graph(4))], 1)
    first, second = rounds.colours[:2]
    assert set(first[0]) == {0}
    assert Counter(second[0]) == {0: 4, 1: 1}


@pytest.mark.parametrize("sentence", ["1ᵀ(A²⊙A)1", "1ᵀA²1", "1ᵀ(A²⊙A²)1", "Tr(A⁴)"])
def test_places_are_all_images_of_the_pattern(sentence):
    graph = adjacency(nx.gnp_random_graph(6, 0.5, seed=4))
    pattern = counted_pattern(parse(sentence))
    images = set()
    for vertices in product(range(6), repeat=pattern.vertices):
        ends = [(vertices[e.ends[0]], vertices[e.ends[1]]) for e in pattern.edges]
        if all(graph[a, b] for a, b in ends):
            images.add(tuple(sorted({(min(e), max(e)) for e in ends})))
    found = pattern_places(pattern, graph)
    assert set(found) == images
    assert [len(place) for place in found] == sorted(map(len, found), reverse=True)


def test_a_pair_told_apart_and_one_that_is_not():
    grammar = find_grammar("r-G_L3")
    report = compare_pair(grammar, 3, ("C6", "2·C3"), quiet)
    assert (report.sentence, report.values, report.shortest) == ("1ᵀ(A²⊙A)1", ("0", "12"), True)
    assert [len(places) for places in report.places] == [0, 2]
    said = {outcome.name: outcome.different for outcome in report.outcomes}
    assert all(said[name] for name in ("r-G_L3", "PPGN", "3-WL", "its network, 3 layers"))
    assert not any(said[name] for name in ("r-G_L1", "GNNML1", "1-WL"))
    report = compare_pair(grammar, 2, GALLERY["rook 4×4 / Shrikhande"], quiet)
    assert not report.sentence
    assert [o.name for o in report.outcomes if o.different] == ["4-WL"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("K100", "100 nodes"), ("", "draw the graph"), ("&AG", "simple"), ("q" * 999, "longer")],
)
def test_a_text_that_is_no_graph_here_is_explained(text, message):
    assert message in drawn_graph(text).fault


def test_a_drawing_becomes_text():
    square = [[0, 1], [1, 2], [2, 3], [3, 0], [1, 1]]
    assert drawn_graph(graph6_of_edges(4, square)).name == "C4"
    for nodes, edges in ((0, []), (MOST_NODES + 1, []), (3, [[0, 7]]), (3, [[0, "x"]])):
        with pytest.raises(DataError):
            graph6_of_edges(nodes, edges)


def test_a_layout_keeps_cycles_round_and_vertices_apart():
    points = np.array(stress_layout(6, nx.cycle_graph(6).edges))
    assert np.allclose(np.linalg.norm(points, axis=1), np.linalg.norm(points[0]), rtol=0.05)
    for graph in (nx.petersen_graph(), nx.star_graph(9), nx.complete_graph(8), nx.path_graph(12)):
        points = np.array(stress_layout(len(graph), graph.edges))
        assert np.abs(points).max() <= 1 + 1e-9
        between = np.linalg.norm(points[:, None] - points[None, :], axis=2)
        assert between[np.triu_indices(len(graph), 1)].min() > 0.1


@pytest.mark.parametrize(
    ("text", "nodes"), [("2·C3", [3] * 2), ("3·K2", [2] * 3), ("5·K2", [2] * 5)]
)
def test_components_are_drawn_beside_each_other_within_the_square(text, nodes):
    points = np.array(drawn_graph(text).points)
    assert points.min() >= 0
    assert points.max() <= 1
    parts = np.split(points, np.cumsum(nodes)[:-1])
    for one, other in combinations(parts, 2):
        beside = (one.max(0) < other.min(0)) | (other.max(0) < one.min(0))
        assert beside.any()


@pytest.mark.parametrize(
    ("texts", "isomorphic"),
    [(("CCO", "P3"), True), (("rook 4×4", "Shrikhande graph"), False), (("C6", "2·C3"), False)],
)
def test_isomorphic_graphs_are_called_so(texts, isomorphic):
    pytest.importorskip("rdkit")
    report = compare_pair(find_grammar("r-G_L3"), 1, texts, quiet)
    assert report.isomorphic is isomorphic
    assert ("isomorphic" in views.pair(report, 0)) is isomorphic


def test_a_mark_tells_rook_and_shrikhande_apart():
    report = compare_pair(find_grammar("r-G_L3Σ"), 3, ("rook4x4", "shrikhande"), quiet)
    answers = {answer.name: answer.different for answer in report.outcomes}
    assert answers["r-G_L3Σ"] is answers["its network, 3 layers"] is True
    assert answers["3-WL"] is answers["r-G_L3"] is False
    assert report.values == ("192", "0"), "24 times the number of K4"
    assert [len(places) for places in report.places] == [8, 0]
