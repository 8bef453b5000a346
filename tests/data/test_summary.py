"""The summary counts what networkx and plain arithmetic count, and says each thing in words."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.data.graph_set import GraphSet
from g2n2.data.reading import read_graphs
from g2n2.data.splits import split
from g2n2.data.summary import activation_bytes, graph_hashes, summarise


def told(graphs: GraphSet, parts: dict[str, Any] | None = None, batch_size: int = 2) -> str:
    """The sentences about a set, with the memory of 2 layers of width 8."""
    return "\n".join(
        summarise(graphs, parts or {}, batch_size, lambda b, n: activation_bytes(b, n, 8, 2))
    )


def test_counts_and_sentences() -> None:
    first = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 2)], y=0.5)
    first.add_node(3)
    second = nx.DiGraph([(0, 1), (1, 0)], y=float("nan"))
    graphs = read_graphs([first, second], name="two")
    text = told(graphs, {"train": np.array([0])}, batch_size=4)
    for sentence in (
        # 0-1, 1-2 and the loop; 0-1
        "Graphs have 2 to 4 nodes; 3.0 nodes and 2.0 edges on average.",
        "A batch of 4 takes about 8.00 KiB of memory at 4 nodes.",  # 4 · 1 · 16 · 8 · 8 · 2 bytes
        "two holds 2 graphs: 1 train, 1 in no part.",
        "edges are directed",
        "1 of 2 target values are missing (1 of y) and masked in the loss.",
        "There is 1 self-loop.",
        "There is 1 one-direction edge, so the graphs are directed.",
        "There is 1 node without an edge (16.7% of all).",
        "Nodes have no features: each gets a constant 1.",
    ):
        assert sentence in text


def test_an_edge_listed_twice_is_said() -> None:
    item = SimpleNamespace(num_nodes=2, edge_index=np.array([[0, 0, 1], [1, 1, 0]]))
    text = told(read_graphs([item]))
    assert "There is 1 repeated edge; weights of one edge add up." in text
    assert "Every edge is listed in both directions." in text
    assert "1.0 edges on average" in text


def test_a_clean_set_is_said_to_be_clean() -> None:
    graphs = read_graphs([nx.path_graph(n) for n in range(2, 12)])
    text = told(graphs, split(graphs))
    for sentence in (
        "There are no self-loops.",
        "Every edge is listed in both directions.",
        "There are no nodes without an edge.",
        "There are no repeated graphs",
        "No graph of validation or test is in train too",
        "There are no targets.",
    ):
        assert sentence in text


def test_class_balance() -> None:
    graphs = [nx.path_graph(2) for _ in range(4)]
    for graph, label in zip(graphs, (0, 1, 1, 1), strict=True):
        graph.graph["y"] = label
    text = told(read_graphs(graphs))
    assert "Target y has 2 classes: 0 25.0% (1), 1 75.0% (3)." in text


def test_mean_and_deviation_leave_out_missing_values() -> None:
    graphs = [nx.path_graph(2) for _ in range(3)]
    for graph, value in zip(graphs, (1.5, 4.5, float("nan")), strict=True):
        graph.graph["y"] = value
    assert "mean 3, standard deviation 1.5, from 1.5 to 4.5" in told(read_graphs(graphs))


def test_memory_is_what_the_given_function_says() -> None:
    graphs = read_graphs([nx.path_graph(3), nx.path_graph(5)])
    text = "\n".join(summarise(graphs, {}, 8, lambda batch, nodes: 100 * batch + 10 * nodes))
    assert "A batch of 8 takes about 250 B of memory at 5 nodes." in text


def test_duplicate_molecules_across_the_split(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules are read with RDKit")
    path = tmp_path / "mine.csv"
    path.write_text("smiles\nCCO\nCCC\nOCC\nCCN\n")
    graphs = read_graphs(path)
    parts = {"train": np.array([0, 1]), "validation": np.array([3]), "test": np.array([2])}
    text = told(graphs, parts)
    assert "There is 1 repeated graph, by canonical SMILES." in text
    assert "1 of the 1 graphs in test are in train too, by canonical SMILES" in text
    assert "in validation are in train too" not in text
    # SMILES follow the ids through a selection in another order.
    turned = graphs.select([1, 0, 3, 2])
    parts = {"train": np.array([1]), "test": np.array([3])}
    assert "1 of the 1 graphs in test are in train too" in told(turned, parts)


def test_a_node_with_only_a_loop_has_no_edge_to_another() -> None:
    graph = nx.Graph([(0, 1), (2, 2)])
    assert "There is 1 node without an edge (33.3% of all)." in told(read_graphs([graph]))


@pytest.mark.filterwarnings("ignore:The hashes produced")
def test_hashes_are_equal_for_relabelled_graphs_and_differ_where_1_wl_does() -> None:
    generator = np.random.default_rng(0)
    graphs = [nx.gnp_random_graph(7, 0.4, seed=k) for k in range(40)]
    moved = []
    for graph in graphs:
        order = generator.permutation(7).tolist()
        renamed = nx.relabel_nodes(graph, dict(enumerate(order)))
        shuffled = nx.Graph()
        shuffled.add_nodes_from(range(7))
        shuffled.add_edges_from(renamed.edges)
        moved.append(shuffled)
    first, second = graph_hashes(read_graphs(graphs)), graph_hashes(read_graphs(moved))
    assert np.array_equal(first, second)
    for i, j in combinations(range(40), 2):
        same = nx.weisfeiler_lehman_graph_hash(
            graphs[i], iterations=7
        ) == nx.weisfeiler_lehman_graph_hash(graphs[j], iterations=7)
        assert (first[i] == first[j]) == same


def test_hashes_see_features_weights_and_direction() -> None:
    plain = nx.path_graph(3)
    featured = nx.path_graph(3)
    nx.set_node_attributes(featured, {0: 2.0, 1: 1.0, 2: 1.0}, "x")
    nx.set_node_attributes(plain, 1.0, "x")
    turned = nx.path_graph(3)
    nx.set_node_attributes(turned, {0: 1.0, 1: 1.0, 2: 2.0}, "x")
    a, b, c = graph_hashes(read_graphs([plain, featured, turned]))
    assert a != b
    assert b == c
    weighted = nx.path_graph(3)
    weighted.edges[0, 1]["weight"] = 2.0
    one_way, other_way = nx.DiGraph([(0, 1), (0, 2)]), nx.DiGraph([(1, 0), (2, 0)])
    # Heard along the edges only, or against them only, two of these four are alike.
    apart, fork = nx.DiGraph([(0, 1), (2, 3)]), nx.DiGraph([(0, 1), (0, 3)])
    fork.add_node(2)
    hashes = graph_hashes(
        read_graphs([nx.path_graph(3), weighted, one_way, other_way, apart, fork, fork.reverse()])
    )
    assert len(set(hashes.tolist())) == 7
