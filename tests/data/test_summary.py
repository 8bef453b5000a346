"""The summary counts what networkx and plain arithmetic count, and says each thing in words."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from g2n2.data.batching import ordered_batches, padding_waste
from g2n2.data.reading import read_graphs
from g2n2.data.splits import graph_hashes, split
from g2n2.data.summary import summarise


def test_counts_and_sentences() -> None:
    first = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 2)], y=0.5)
    first.add_node(3)
    second = nx.DiGraph([(0, 1), (1, 0)], y=float("nan"))
    graphs = read_graphs([first, second], name="two")
    summary = summarise(graphs, {"train": np.array([0])}, batch_size=4, width=8, layers=2)
    assert summary.sizes == (2, 3.0, 4)
    assert summary.edges == (3 + 1) / 2  # 0-1, 1-2 and the loop; 0-1
    assert (summary.self_loops, summary.one_way, summary.isolated) == (1, 1, 1)
    assert summary.missing == {"y": 1}
    assert summary.batch_bytes == 4 * 1 * 16 * 8 * 8 * 2
    text = str(summary)
    for sentence in (
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
    summary = summarise(read_graphs([item]), {}, 2, 8, 2)
    assert (summary.parallel, summary.one_way, summary.edges) == (1, 0, 1)
    assert "There is 1 repeated edge; weights of one edge add up." in str(summary)


def test_a_clean_set_is_said_to_be_clean() -> None:
    graphs = read_graphs([nx.path_graph(n) for n in range(2, 12)])
    text = str(summarise(graphs, split(graphs), 4, 8, 2))
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
    text = str(summarise(read_graphs(graphs), {}, 2, 8, 2))
    assert "Target y has 2 classes: 0 25.0% (1), 1 75.0% (3)." in text


def test_mean_and_deviation_leave_out_missing_values() -> None:
    graphs = [nx.path_graph(2) for _ in range(3)]
    for graph, value in zip(graphs, (1.5, 4.5, float("nan")), strict=True):
        graph.graph["y"] = value
    assert "mean 3, standard deviation 1.5, from 1.5 to 4.5" in str(
        summarise(read_graphs(graphs), {}, 2, 8, 2)
    )


def test_padding_waste_by_hand() -> None:
    # Batches [1, 2] and [3, 4]: 1 + 4 of 8 entries and 9 + 16 of 32.
    for sizes, waste in (([4, 1, 3, 2], 1 - 30 / 40), ([5, 5, 5], 0)):
        counts = np.array(sizes)
        assert padding_waste(counts, ordered_batches(counts, 2)) == pytest.approx(waste)


def test_memory_is_what_the_given_function_says() -> None:
    graphs = read_graphs([nx.path_graph(3), nx.path_graph(5)])
    summary = summarise(
        graphs, {}, 8, 16, 3, bytes_of=lambda b, n, w, k: 1000 * b + 100 * n + 10 * w + k
    )
    assert summary.batch_bytes == 2000 + 500 + 160 + 3


def test_duplicate_molecules_across_the_split(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules are read with RDKit")
    path = tmp_path / "mine.csv"
    path.write_text("smiles\nCCO\nCCC\nOCC\nCCN\n")
    graphs = read_graphs(path)
    parts = {"train": np.array([0, 1]), "validation": np.array([3]), "test": np.array([2])}
    summary = summarise(graphs, parts, 2, 8, 2)
    assert summary.repeated == 1
    assert summary.shared == {"validation": 0, "test": 1}
    assert "1 of the 1 graphs in test are in train too, by canonical SMILES" in str(summary)
    # SMILES follow the ids through a selection in another order.
    turned = graphs.select([1, 0, 3, 2])
    parts = {"train": np.array([1]), "test": np.array([3])}
    assert summarise(turned, parts, 2, 8, 2).shared == {"test": 1}


def test_a_node_with_only_a_loop_has_no_edge_to_another() -> None:
    graph = nx.Graph([(0, 1), (2, 2)])
    assert summarise(read_graphs([graph]), {}, 2, 8, 2).isolated == 1


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
    found = graph_hashes(
        read_graphs([nx.path_graph(3), weighted, one_way, other_way, apart, fork, fork.reverse()])
    )
    assert len(set(found.tolist())) == 7
