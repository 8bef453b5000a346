"""Families of graphs: THEORY.md's anchors, and BREC by layers."""

from __future__ import annotations

import os
from functools import cache

import networkx as nx
import numpy as np
import pytest

from g2n2.data.suites import load_suite
from g2n2.errors import DataError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.layered_grammar import LayeredGrammar
from g2n2.graphs import Adjacency, adjacency
from g2n2.language.modular import PRIMES
from g2n2.power.closure import Place, close
from g2n2.power.random_probes import ProbedClasses, graph_classes, probe_graphs
from g2n2.power.refinement import refine
from g2n2.power.separation import separate
from g2n2.power.suites import Suite

MATES: dict[tuple[str, str | None], tuple[int, int, int]] = {
    ("{·,Tr}", None): (2, 10, 110),  # the known numbers of graphs with a cospectral mate
    ("{·,ᵀ,1}", None): (0, 8, 82),
    ("{·,ᵀ,1,Tr}", None): (0, 0, 40),
    ("L1", None): (0, 8, 44),
    ("r-G_L1", None): (0, 8, 44),
    ("{·,ᵀ,1,diag,Tr}", None): (0, 0, 0),
    ("L3", None): (0, 0, 0),
    ("r-G_L3", None): (0, 0, 0),
    ("r-G_L3 ∖ {M⊙M}", None): (0, 8, 44),
    ("r-G_L3 ∖ {MM}", None): (0, 8, 44),
    ("r-G_L3 ∖ {diag(V_c)}", "S → VᵀV"): (0, 0, 0),
}


@cache
def atlas(nodes: int) -> list[Adjacency]:
    return [adjacency(graph) for graph in nx.graph_atlas_g() if len(graph) == nodes]


def with_a_mate(classes: np.ndarray) -> int:
    sizes = np.unique(classes, return_counts=True)[1]
    return int(sizes[sizes > 1].sum())


@pytest.mark.parametrize("nodes", [5, 6, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "readout"), MATES)
def test_graphs_with_an_indistinguishable_mate(name: str, readout: str | None, nodes: int) -> None:
    classes = graph_classes(find_grammar(name), atlas(nodes), readout)
    assert with_a_mate(classes) == MATES[name, readout][nodes - 5]


def test_classes_of_the_1wl_grammar_are_those_of_1wl() -> None:
    graphs = atlas(6)
    found = graph_classes(find_grammar("r-G_L1"), graphs)
    colours = refine(graphs, 1).graph_colours
    assert len(set(zip(found.tolist(), colours.tolist(), strict=True))) == len(set(found.tolist()))
    assert len(set(found.tolist())) == len(set(colours.tolist()))


def test_what_mixing_leaves_together_is_split_by_the_closure() -> None:
    """With no layer at all, mixing merges everything that has as many nodes."""
    graphs = atlas(5)
    assert len(set(probe_graphs(find_grammar("r-G_L3"), graphs, 0).graph_colours.tolist())) == 1
    assert len(set(graph_classes(find_grammar("r-G_L3"), graphs, layers=0).tolist())) == 34


MERGED = {
    "G_L3": 0,
    "i-G_L3": 0,
    "r-G_L3": 0,
    "r-G_L3 ∖ {M⊙M}": 26,
    "r-G_L3 ∖ {MM}": 26,
    "r-G_L3 ∖ {diag(V_c)}": 0,
    "PPGN": 20,
}


@pytest.mark.parametrize("name", MERGED)
def test_pairs_of_the_atlas_merged_at_six_layers(name: str) -> None:
    suite = load_suite("atlas")
    mixing = probe_graphs(find_grammar(name), suite.graphs, 6)
    assert suite.merged(mixing.graph_colours.tolist()) == MERGED[name]


def test_walk_counts_leave_more_than_1wl() -> None:
    suite = load_suite("atlas")
    mixing = probe_graphs(find_grammar("V → AV | 1"), suite.graphs, 10)
    assert suite.merged(mixing.graph_colours.tolist()) == 48


# -- larger suites --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("r-G_L3", 0),
        ("r-G_L3 ∖ {M⊙M}", 312),
        ("PPGN", 553),
    ],
)
def test_graph8c(name: str, merged: int) -> None:
    suite = load_suite("graph8c")
    mixing = probe_graphs(find_grammar(name), suite.graphs, 6)
    assert suite.merged(mixing.graph_colours.tolist()) == merged


@pytest.mark.slow
def test_graph8c_walk_counts() -> None:
    suite = load_suite("graph8c")
    mixing = probe_graphs(find_grammar("V → AV | 1"), suite.graphs, 12)
    assert suite.merged(mixing.graph_colours.tolist()) == 881


def test_circular_skip_links_are_all_told_apart() -> None:
    suite = load_suite("csl")
    mixing = probe_graphs(find_grammar("r-G_L3"), suite.graphs, 4)
    assert suite.merged(mixing.graph_colours.tolist()) == 0
    weaker = probe_graphs(find_grammar("r-G_L3 ∖ {M⊙M}"), suite.graphs, 6)
    assert suite.merged(weaker.graph_colours.tolist()) == 45


@pytest.mark.parametrize(
    ("name", "apart"),
    [
        ("G_L3", [True, True, True, False]),
        ("r-G_L3", [True, True, True, False]),
        ("r-G_L3 ∖ {M⊙M}", [False] * 4),
        ("PPGN", [True, False, False, False]),
    ],
)
def test_cfi_over_treewidth_two_and_three(name: str, apart: list[bool]) -> None:
    suite = load_suite("cfi")
    found = [
        separate(find_grammar(name), suite.graphs[i], suite.graphs[j]).different
        for i, j in suite.pairs
    ]
    assert found == apart


def read(name: str) -> Suite:
    """A suite read from files; a skip names the folder they are sought in."""
    try:
        return load_suite(name)
    except DataError as error:
        folder = os.environ.get("G2N2_DATA", "unset")
        pytest.skip(f"needs the {name} files in $G2N2_DATA ({folder}): {error}")


@pytest.mark.slow
def test_sr25_stays_merged() -> None:
    suite = read("sr25")
    classes = graph_classes(find_grammar("r-G_L3"), suite.graphs, "network")
    assert suite.merged(classes.tolist()) == len(suite.pairs) == 105


def separated_by_layer(probed: ProbedClasses, suite: Suite) -> list[int]:
    """How many pairs of a suite are told apart at layers 0, 1, 2 …"""
    total = len(suite.pairs)
    return [total - suite.merged(classes.tolist()) for classes in probed.graph_history]


@pytest.mark.slow
def test_exp_is_told_apart() -> None:
    suite = read("exp")
    mixing = probe_graphs(find_grammar("r-G_L3"), suite.graphs, 4)
    assert separated_by_layer(mixing, suite)[-1] == len(suite.pairs) == 600


# -- BREC -----------------------------------------------------------------------------------------

BY_LAYER: dict[tuple[str, str | None], list[int]] = {
    ("r-G_L3", "network"): [0, 189, 209, 212, 222, 253, 268, 270],
    ("r-G_L3", None): [0, 0, 191, 209, 212, 227, 257, 268, 270],
    ("r-G_L3 ∖ {M⊙M}", "network"): [0, 189, 209, 212, 213, 213],
    ("r-G_L3 ∖ {MM}", None): [0] * 6,
    ("r-G_L3 ∖ {diag(V_c)}", None): [0, 0, 191, 209, 212, 227, 257, 268, 270],
    ("PPGN", "network"): [0, 189, 208, 211, 212, 212],
}


@cache
def probed_brec(name: str, readout: str | None) -> ProbedClasses:
    layers = len(BY_LAYER[name, readout])
    return probe_graphs(find_grammar(name), read("brec").graphs, layers, readout)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "readout"), BY_LAYER)
def test_brec_by_layers(name: str, readout: str | None) -> None:
    expected = BY_LAYER[name, readout]
    assert separated_by_layer(probed_brec(name, readout), read("brec"))[1:] == expected


@pytest.mark.slow
def test_both_engines_agree_on_brec_up_to_35_nodes() -> None:
    suite, readout = read("brec"), None
    grammar = find_grammar("r-G_L3")
    layered = LayeredGrammar.of(grammar, readout)
    mixing = probed_brec("r-G_L3", readout)
    compared = 0
    for i, j in suite.pairs[::3]:
        if len(suite.graphs[i]) > 35:
            continue
        pair = (suite.graphs[i], suite.graphs[j])
        found = close(layered, pair, (Place(0), Place(1)), PRIMES[1]).difference
        assert mixing.separated_at(i, j) == (found and found.layer), (i, j)
        compared += 1
    assert compared > 65


@pytest.mark.slow
def test_sentences_of_large_brec_pairs_really_differ() -> None:
    """The interpreter of the language is the judge, on one pair of each depth."""
    from g2n2.language.evaluation import evaluate_mod

    suite = read("brec")
    grammar = find_grammar("r-G_L3")
    mixing = probed_brec("r-G_L3", "network")
    checked = set()
    for i, j in suite.pairs:
        depth = mixing.separated_at(i, j)
        if depth is None or depth in checked or len(suite.graphs[i]) > 80:
            continue
        checked.add(depth)
        pair = (suite.graphs[i], suite.graphs[j])
        found = separate(grammar, *pair, readout="network")
        assert found.depth == depth
        assert found.sentence is not None
        assert found.values is not None
        modulus = found.modulus or 2**127 - 1
        values = [int(evaluate_mod(found.sentence, graph, modulus)[0, 0]) for graph in pair]
        assert values[0] != values[1]
        assert values == [value % modulus for value in found.values]
    assert checked >= {2, 3, 4, 5, 6, 7}
