"""Families of graphs: THEORY.md's anchors, and BREC by layers."""

from __future__ import annotations

from functools import cache

import networkx as nx
import pytest

from benchmark_files import real_suite
from g2n2.data.suites import load_suite
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.layered_grammar import LayeredGrammar
from g2n2.graphs import Adjacency, adjacency
from g2n2.language.modular import PRIMES
from g2n2.power.closure import Place, close
from g2n2.power.random_probes import ProbedClasses, graph_classes, probe_graphs
from g2n2.power.separation import separate
from g2n2.power.suites import Suite


@cache
def atlas(nodes: int) -> list[Adjacency]:
    return [adjacency(graph) for graph in nx.graph_atlas_g() if len(graph) == nodes]


def test_what_mixing_leaves_together_is_split_by_the_closure() -> None:
    """With no layer at all, mixing merges everything that has as many nodes."""
    graphs = atlas(5)
    assert len(set(probe_graphs(find_grammar("r-G_L3"), graphs, 0).graph_colours.tolist())) == 1
    assert len(set(graph_classes(find_grammar("r-G_L3"), graphs, layers=0).tolist())) == 34


MERGED = {"i-G_L3": 0, "r-G_L3 ∖ {M⊙M}": 26, "r-G_L3 ∖ {diag(V_c)}": 0, "PPGN": 20}


@pytest.mark.parametrize("name", MERGED)
def test_pairs_of_the_atlas_merged_at_six_layers(name: str) -> None:
    suite = load_suite("atlas")
    mixing = probe_graphs(find_grammar(name), suite.graphs, 6)
    assert suite.merged(mixing.graph_colours.tolist()) == MERGED[name]


# -- larger suites --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "layers", "merged"),
    [("r-G_L3", 6, 0), ("r-G_L3 ∖ {M⊙M}", 6, 312), ("PPGN", 6, 553), ("V → AV | 1", 12, 881)],
)
def test_graph8c(name: str, layers: int, merged: int) -> None:
    suite = load_suite("graph8c")
    mixing = probe_graphs(find_grammar(name), suite.graphs, layers)
    assert suite.merged(mixing.graph_colours.tolist()) == merged


def separated_by_layer(probed: ProbedClasses, suite: Suite) -> list[int]:
    """How many pairs of a suite are told apart at layers 0, 1, 2 …"""
    total = len(suite.pairs)
    return [total - suite.merged(classes.tolist()) for classes in probed.graph_history]


@pytest.mark.slow
def test_exp_is_told_apart() -> None:
    suite = real_suite("exp")
    mixing = probe_graphs(find_grammar("r-G_L3"), suite.graphs, 4)
    assert separated_by_layer(mixing, suite)[-1] == len(suite.pairs) == 600


# -- BREC -----------------------------------------------------------------------------------------

BY_LAYER: dict[tuple[str, str | None], list[int]] = {
    ("r-G_L3", "network"): [0, 189, 209, 212, 222, 253, 268, 270],
    ("r-G_L3 ∖ {M⊙M}", "network"): [0, 189, 209, 212, 213, 213],
    ("r-G_L3 ∖ {MM}", None): [0] * 6,
    ("r-G_L3 ∖ {diag(V_c)}", None): [0, 0, 191, 209, 212, 227, 257, 268, 270],
    ("PPGN", "network"): [0, 189, 208, 211, 212, 212],
}


@cache
def probed_brec(name: str, readout: str | None) -> ProbedClasses:
    layers = len(BY_LAYER[name, readout])
    return probe_graphs(find_grammar(name), real_suite("brec").graphs, layers, readout)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "readout"), BY_LAYER)
def test_brec_by_layers(name: str, readout: str | None) -> None:
    expected = BY_LAYER[name, readout]
    assert separated_by_layer(probed_brec(name, readout), real_suite("brec"))[1:] == expected


@pytest.mark.slow
def test_both_engines_agree_on_brec_up_to_35_nodes() -> None:
    suite, grammar = real_suite("brec"), find_grammar("r-G_L3")
    layered = LayeredGrammar.of(grammar, None)
    pairs = [(i, j) for i, j in suite.pairs[::3] if len(suite.graphs[i]) <= 35]
    assert len(pairs) > 65
    graphs = [suite.graphs[index] for pair in pairs for index in pair]
    mixing = probe_graphs(grammar, graphs, 9, None)
    for number, (i, j) in enumerate(pairs):
        pair = (suite.graphs[i], suite.graphs[j])
        found = close(layered, pair, (Place(0), Place(1)), PRIMES[1]).difference
        separated = mixing.separated_at(2 * number, 2 * number + 1)
        assert separated == (found and found.layer), (i, j)


@pytest.mark.slow
def test_sentences_of_large_brec_pairs_really_differ() -> None:
    """The interpreter of the language is the judge, on one pair of each depth."""
    from g2n2.language.evaluation import evaluate_mod

    suite = real_suite("brec")
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
