"""Nodes and pairs of nodes: a reduction may keep the graph level and lose these."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar, Level
from g2n2.grammars.layered_grammar import LayeredGrammar
from g2n2.graphs import Adjacency, GraphLike, adjacency
from g2n2.language.evaluation import evaluate
from g2n2.language.modular import PRIMES
from g2n2.power.closure import close
from g2n2.power.refinement import refine
from g2n2.power.separation import separate, separate_nodes, separate_pairs

K1_K2 = nx.disjoint_union(nx.empty_graph(1), nx.complete_graph(2))
THREE_K1 = nx.empty_graph(3)
ATLAS = [adjacency(graph) for graph in nx.graph_atlas_g() if len(graph) >= 3]


def partition(colours: np.ndarray) -> list[int]:
    """The classes numbered by first appearance, so that two partitions compare."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(colour, len(numbers)) for colour in colours.ravel().tolist()]


def entry_classes(grammar: Grammar, graphs: list[GraphLike], level: Level) -> list[np.ndarray]:
    """Classes of nodes `[n, 1]` or pairs `[n, n]` that no word tells apart, modulo two primes."""
    layered = LayeredGrammar.of(grammar, level=level)
    sort = layered.sentences[0].head
    closures = [close(layered, [adjacency(g) for g in graphs], prime=p) for p in PRIMES[:2]]
    tables = [
        np.concatenate(
            [c.memory.values(sort)[c.graphs[at][0]][:, c.graphs[at][1]] for c in closures]
        )
        for at in range(len(graphs))
    ]
    joint = np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)
    numbers = np.unique(joint, axis=1, return_inverse=True)[1].ravel()
    parts = np.split(numbers, np.cumsum([table[0].size for table in tables])[:-1])
    return [part.reshape(table.shape[1:]) for part, table in zip(parts, tables, strict=True)]


def losing_pairs(name: str, graphs: list[Adjacency]) -> list[bool]:
    """Whether the words of M split the pairs of each graph otherwise than 2-FWL."""
    grammar = find_grammar(name)
    return [
        partition(entry_classes(grammar, [graph], "pair")[0])
        != partition(refine([graph], 2, "fwl").colours[0])
        for graph in graphs
    ]


def colours_between_components(graph: Adjacency) -> int:
    """How many 2-FWL colours the pairs between components have; words of r-G_L3 are all 0 there."""
    colours = refine([graph], 2, "fwl").colours[0]
    parts = list(nx.connected_components(nx.from_numpy_array(graph)))
    return len({int(colours[i, j]) for a in parts for b in parts if a != b for i in a for j in b})


# -- THEORY.md §4b --------------------------------------------------------------------------------


def test_the_isolated_node_of_two_graphs() -> None:
    """G_L3 tells them apart by s·v, r-G_L3 never: node words see their own component only."""
    found = separate_nodes(find_grammar("G_L3"), K1_K2, 0, THREE_K1, 0)
    assert (found.verdict, found.level) == ("different", "node")
    assert found.sentence is not None
    values = [evaluate(found.sentence, graph)[0, 0] for graph in (K1_K2, THREE_K1)]
    assert found.values == tuple(values) == (2, 0)
    assert separate_nodes(find_grammar("r-G_L3"), K1_K2, 0, THREE_K1, 0).verdict == "same"
    assert separate(find_grammar("r-G_L3"), K1_K2, THREE_K1).verdict == "different"
    mixed = separate_nodes(find_grammar("r-G_L3"), K1_K2, 0, THREE_K1, 0, "random_probes")
    assert mixed.verdict == "same up to 8 layers"


def test_the_reduced_grammar_loses_pairs_between_components_only() -> None:
    small = [graph for graph in ATLAS if len(graph) <= 5]
    losing = losing_pairs("r-G_L3", small)
    assert losing == [colours_between_components(graph) > 1 for graph in small]
    assert sum(losing) > 10
    assert not any(losing_pairs("G_L3", small))


@pytest.mark.slow
def test_pairs_of_the_reduced_grammar_on_an_eighth_of_the_atlas() -> None:
    graphs = ATLAS[::8]
    losing = losing_pairs("r-G_L3", graphs)
    assert losing == [colours_between_components(graph) > 1 for graph in graphs]
    assert sum(losing) > 20
    assert not any(losing_pairs("G_L3", graphs))


# -- classes --------------------------------------------------------------------------------------


def test_nodes_of_the_1wl_grammar_are_the_colours_of_1wl() -> None:
    graphs = [graph for graph in ATLAS if len(graph) == 6][::7]
    for graph in graphs:
        expected = partition(refine([graph], 1).colours[0])
        assert partition(entry_classes(find_grammar("r-G_L1"), [graph], "node")[0]) == expected


def test_pair_classes_tell_directions_and_the_diagonal_apart() -> None:
    (found,) = entry_classes(find_grammar("r-G_L3"), [nx.path_graph(3)], "pair")
    assert found.shape == (3, 3)
    # Edges out of the middle and into it differ: diag(A1)A is not symmetric.
    assert found[0, 1] == found[2, 1] != found[1, 0] == found[1, 2]
    assert found[0, 0] == found[2, 2] != found[1, 1]
    assert found[0, 2] == found[2, 0]
    assert len(np.unique(found)) == 5


# -- separate at the two levels -------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["closure", "random_probes"])
def test_separation_at_a_place_agrees_with_the_classes(engine: str) -> None:
    graphs = [adjacency(nx.lollipop_graph(3, 2)), adjacency(nx.bull_graph())]
    grammar = find_grammar("r-G_L3")
    nodes = entry_classes(grammar, graphs, "node")
    pairs = entry_classes(grammar, graphs, "pair")
    for i in range(5):
        for j in range(5):
            found = separate_nodes(grammar, graphs[0], i, graphs[1], j, engine)  # type: ignore[arg-type]
            assert found.different == (nodes[0][i, 0] != nodes[1][j, 0])
            if found.sentence is not None:
                values = tuple(
                    evaluate(found.sentence, graph)[at, 0]
                    for graph, at in zip(graphs, (i, j), strict=True)
                )
                assert values == found.values
                assert values[0] != values[1]
            other = ((i + 2) % 5, j)
            pair = separate_pairs(grammar, graphs[0], (i, j), graphs[1], other, engine)  # type: ignore[arg-type]
            assert pair.different == (pairs[0][i, j] != pairs[1][other])
            if pair.sentence is not None:
                entry = evaluate(pair.sentence, graphs[0])[i, j]
                assert pair.values == (entry, evaluate(pair.sentence, graphs[1])[other])


def test_two_nodes_of_one_graph() -> None:
    path = nx.path_graph(5)
    grammar = find_grammar("r-G_L1")
    assert separate_nodes(grammar, path, 0, path, 4).verdict == "same"
    found = separate_nodes(grammar, path, 1, path, 2)
    # Both have two neighbours; only those of the middle node have two each.
    assert (str(found.sentence), found.values, found.depth) == ("A²1", (3, 4), 2)
    assert found.shortest


def test_a_same_at_node_level_can_rest_on_2fwl() -> None:
    cycle = nx.cycle_graph(60)
    found = separate_nodes(find_grammar("r-G_L3"), cycle, 3, cycle, 40)
    assert (found.engine, found.verdict) == ("random_probes", "same")
    edges = separate_pairs(find_grammar("r-G_L3"), cycle, (0, 1), cycle, (7, 6))
    assert (edges.engine, edges.verdict) == ("random_probes", "same")
    apart = separate_pairs(find_grammar("r-G_L3"), cycle, (0, 1), cycle, (0, 2))
    assert (str(apart.sentence), apart.values) == ("A", (1, 0))
