"""EXP, CSL, BREC, SR25 and graph8c as sets to train on."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.data.benchmarks.expressivity import load_brec, load_csl, load_exp

SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)


def test_exp() -> None:
    path = real_file("expressivity", "exp_graphsat.npz")
    data = load_exp()
    assert (len(data), int(data.sizes.sum()), int(data.edge_counts.sum())) == (1200, 53336, 132260)
    with np.load(path) as stored:
        assert (data.targets[:, 0] == stored["y"]).all()
        assert (data.node_features.argmax(1) == stored["x"]).all()
    assert (data.node_features.sum(1) == 1).all()
    assert data.sizes.mean() == pytest.approx(44.45, abs=0.005)
    assert data.columns[0].kind == "binary"
    assert data.ids[3] == "pair 1 graph 1"


def test_csl_is_generated() -> None:
    data = load_csl()
    assert (len(data), set(data.sizes.tolist()), set(data.edge_counts.tolist())) == (
        150,
        {41},
        {164},
    )
    assert Counter(data.targets[:, 0].tolist()) == dict.fromkeys(map(float, range(10)), 15)
    assert data.columns[0].classes == tuple(f"skip {skip}" for skip in SKIPS)
    for index in (0, 14, 15, 77, 149):
        skip = SKIPS[int(data.targets[index, 0])]
        expected = nx.circulant_graph(41, [1, skip])
        assert nx.is_isomorphic(nx.from_numpy_array(data.adjacency(index)), expected)
    assert (data.adjacency(0) != data.adjacency(1)).any()
    assert list(data.splits) == [f"fold-{k}" for k in range(1, 6)]
    for indices in data.splits.values():
        assert Counter(data.targets[indices, 0].tolist()) == dict.fromkeys(map(float, range(10)), 3)
    assert (load_csl(seed=1).edges != data.edges).any()
    assert (load_csl(seed=0).edges == data.edges).all()


def test_brec() -> None:
    real_file("expressivity", "brec_v3_pairs.g6.gz")
    data = load_brec()
    assert (len(data), data.targets.shape) == (800, (800, 0))
    assert (data.sizes[::2] == data.sizes[1::2]).all()
    assert (data.edge_counts[::2] == data.edge_counts[1::2]).all()
    assert data.sizes[520:720].mean() == pytest.approx(81.7, abs=0.05)
    assert (data.ids[0], data.ids[521], data.ids[799]) == (
        "Basic 0 a",
        "CFI 260 b",
        "Distance_Regular 399 b",
    )
