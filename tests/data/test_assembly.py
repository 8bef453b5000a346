"""The pieces every reader uses."""

import networkx as nx
import numpy as np
import pytest

from g2n2.data.assembly import one_hot, plain_graphs, stratified_folds
from g2n2.errors import DataError
from g2n2.graphs import adjacency


def test_plain_graphs_hold_the_graphs_given() -> None:
    graphs = [nx.path_graph(3), nx.empty_graph(2), nx.star_graph(3)]
    data = plain_graphs("mine", [adjacency(graph) for graph in graphs]).check()
    assert data.sizes.tolist() == [3, 2, 4]
    assert data.edge_counts.tolist() == [4, 0, 6]
    for index, graph in enumerate(graphs):
        assert data.adjacency(index).tolist() == nx.to_numpy_array(graph).tolist()
    assert data.node_features.tolist() == [[1.0]] * 9
    assert data.targets.shape == (3, 0)


def test_one_hot() -> None:
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("folds", [5, 10])
def test_stratified_folds_are_those_of_scikit_learn(folds: int, seed: int) -> None:
    selection = pytest.importorskip("sklearn.model_selection", reason="needs g2n2[train]")
    labels = np.random.default_rng(seed).choice([7, -1, 3], p=[0.6, 0.3, 0.1], size=237)
    split = selection.StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels, labels)
    got = stratified_folds(labels, folds, seed)
    assert list(got) == [f"fold-{k + 1}" for k in range(folds)]
    for ours, (_, theirs) in zip(got.values(), split, strict=True):
        assert ours.tolist() == theirs.tolist()


def test_more_folds_than_graphs_are_refused() -> None:
    with pytest.raises(DataError, match="the largest has 4"):
        stratified_folds(np.array([0, 0, 0, 0, 1]), 5)
