"""Graphs to measure with, against networkx and against what is known of QM9."""

import networkx as nx
import numpy as np
import pytest

from g2n2.bench.cases import Case
from g2n2.bench.molecules import (
    QM9_SIZES,
    drawn_molecules,
    graphs_of,
    grids,
    qm9_sizes,
    sizes_of,
    source_of,
    sparse,
)


def graph(graphs, index):
    matrix = graphs.adjacency(index)
    assert np.array_equal(matrix, matrix.T)
    return nx.from_numpy_array(matrix)


def test_the_histogram_is_that_of_qm9():
    sizes, often = np.array(list(QM9_SIZES)), np.array(list(QM9_SIZES.values()))
    assert often.sum() == 130_831
    assert (sizes.min(), sizes.max()) == (3, 29)
    assert (often @ sizes) == 2_359_210  # atoms
    assert round(often @ sizes**2 / often.sum()) == 334


def test_drawn_sizes_follow_it():
    sizes = qm9_sizes(20_000, seed=3)
    assert (sizes.astype(float) ** 2).mean() == pytest.approx(333.8, rel=0.02)
    assert set(sizes) <= set(QM9_SIZES)
    assert not np.array_equal(sizes, qm9_sizes(20_000, seed=4))


def test_drawn_molecules_are_trees_with_the_features_of_qm9():
    graphs = drawn_molecules(40, seed=1).check()
    assert not graphs.directed
    assert all(nx.is_tree(graph(graphs, i)) for i in range(40))
    assert graphs.node_features.shape[1] == 11
    assert graphs.edge_features.shape[1] == 4
    assert graphs.positions is not None


def test_grids_are_grids():
    graphs = grids(2, 27).check()
    assert graphs.sizes.tolist() == [25, 25]
    assert nx.is_isomorphic(graph(graphs, 1), nx.grid_2d_graph(5, 5))


def test_sparse_graphs_have_about_three_edges_for_each_node():
    graphs = sparse(3, 200, seed=0).check()
    assert not graphs.directed
    found = graph(graphs, 2)
    assert nx.number_of_selfloops(found) == 0
    assert 2.8 < found.number_of_edges() / 200 < 3.0
    assert set(np.unique(graphs.adjacency(0))) == {0.0, 1.0}


@pytest.mark.parametrize("nodes", [0, 36])
def test_a_case_gets_as_many_graphs_as_its_pass_needs(nodes):
    case = Case("x", "y", batch=3, batches=4, nodes=nodes, shape="grid")
    graphs = graphs_of(case)
    assert len(graphs) == 12
    assert graphs.sizes.tolist() == sizes_of(case).tolist()


def test_a_case_says_what_it_is_measured_on(tmp_path):
    molecules = Case("x", "y")
    assert source_of(molecules, None) == "drawn at QM9's sizes"
    assert source_of(molecules, tmp_path) == "QM9's own"
    assert source_of(Case("x", "y", "epoch"), None) == "QM9's own"
    assert source_of(Case("x", "y", nodes=9), tmp_path) == "random graphs"
    assert source_of(Case("x", "y", nodes=9, shape="grid"), None) == "grids"
    assert source_of(Case("x", "y", "product", nodes=9), None) == "random matrices"
