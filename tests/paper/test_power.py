"""Trained power: parts of the sets, counting, graph8c."""

import json
from dataclasses import replace
from itertools import combinations
from math import comb
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from g2n2.data.suites import load_csl, load_suite
from g2n2.errors import DataError
from g2n2.training.setup import make_model, prepare
from g2n2_paper import counting
from g2n2_paper.classes import FOLDS, class_cell, class_graphs, fold_parts
from g2n2_paper.contenders import CONTENDERS, PPGN_ALIKE, exact_power, plain_embedding
from g2n2_paper.counting import exact_cell, normalised_errors
from g2n2_paper.graph8c import close_pairs, graph8c, graph8c_cell
from g2n2_paper.runner import Job


def test_exact_power_counts_the_layers():
    # The last pair of the suite has a base of treewidth 3; 1 layer reads out walks of one step.
    suite = load_suite("cfi")
    deep = exact_power(CONTENDERS["G2N2-8"], suite).metrics
    shallow = exact_power(replace(CONTENDERS["G2N2-8"], layers=1), suite).metrics
    assert (deep["exact separated"], deep["exact bound"]) == (3, 3)
    assert shallow["exact separated"] == 0


def test_close_pairs_are_those_of_a_search_over_all():
    values = np.random.default_rng(0).integers(0, 4, (60, 3)) * 1.0
    tolerance = np.array([0.5, 1.0, 0.25])
    expected = {
        (i, j)
        for i, j in combinations(range(60), 2)
        if (np.abs(values[i] - values[j]) <= tolerance).all()
    }
    found = close_pairs(values, tolerance)
    assert {tuple(pair) for pair in found.tolist()} == expected
    assert len(found) == len(expected)
    assert close_pairs(np.array([[0.0], [1.0], [3.0]]), np.ones(1)).tolist() == [[0, 1]]
    fewer = close_pairs(values, np.zeros(3), found)
    assert {tuple(p) for p in fewer.tolist()} == {
        (i, j) for i, j in expected if (values[i] == values[j]).all()
    }


def test_folds_of_csl_are_three_to_one_to_one():
    graphs = class_graphs("csl", None)
    tested = []
    for fold in range(1, 6):
        parts = fold_parts(graphs, fold)
        assert [len(parts[part]) for part in ("train", "validation", "test")] == [90, 30, 30]
        assert len(set(np.concatenate(list(parts.values())).tolist())) == 150
        assert np.bincount(graphs.targets[parts["test"], 0].astype(int)).tolist() == [3] * 10
        tested += parts["test"].tolist()
    assert sorted(tested) == list(range(150))


@pytest.mark.parametrize(("name", "sizes"), [("exp", (960, 120, 120)), ("sr25", (120, 30, 60))])
def test_parts_of_sets_read_from_files(name, sizes):
    try:
        graphs = class_graphs(name, None)
    except DataError as error:
        pytest.skip(f"no data: {error}")
    parts = fold_parts(graphs, FOLDS[name])
    assert tuple(len(parts[part]) for part in ("train", "validation", "test")) == sizes
    assert len(set(np.concatenate(list(parts.values())).tolist())) == sum(sizes)
    assert len(set(np.bincount(graphs.targets[parts["test"], 0].astype(int)).tolist())) == 1


@pytest.mark.filterwarnings("ignore:The hashes produced for graphs without node")
def test_what_1_wl_cannot_count_and_3_wl_can(tmp_path):
    """Truth from networkx's own refinement and brute force, on a part of graph8c."""
    limit = 1000
    found = {
        name: exact_cell(CONTENDERS[name], limit).run(Job(tmp_path)).metrics
        for name in ("GIN", "G2N2-3")
    }
    graphs = [nx.from_numpy_array(matrix) for matrix in graph8c(limit).graphs]
    hashes = [nx.weisfeiler_lehman_graph_hash(graph, iterations=5) for graph in graphs]
    stars = [sum(comb(d, 3) for _, d in graph.degree()) for graph in graphs]
    triangles = [sum(nx.triangles(graph).values()) // 3 for graph in graphs]
    classes: dict[str, list[int]] = {}
    for index, colours in enumerate(hashes):
        classes.setdefault(colours, []).append(index)
    alike = [pair for members in classes.values() for pair in combinations(members, 2)]
    assert alike, "nothing to see"
    assert found["GIN"]["pairs merged"] == len(alike)
    for count, values in (("3_star", stars), ("triangle", triangles)):
        expected = sum(values[i] != values[j] for i, j in alike)
        assert found["GIN"][f"pairs merged, other {count}"] == expected
    assert found["GIN"]["pairs merged, other 3_star"] == 0
    assert found["GIN"]["pairs merged, other triangle"] > 0
    assert found["G2N2-3"]["pairs merged, other triangle"] == 0


def test_graph8c_counts_what_no_network_tells_apart(tmp_path):
    record = graph8c_cell(CONTENDERS["GIN"], networks=2, limit=60).run(Job(tmp_path, device="cpu"))
    counts = record.detail["merged after each network"]
    assert counts == sorted(counts, reverse=True)
    assert record.metrics["merged by random weights"] == counts[-1]
    assert record.metrics["separated by random weights"] + counts[-1] == comb(60, 2)
    assert counts[-1] >= comb(60, 2) - record.metrics["exact bound"], "no weights exceed the bound"


def test_counting_errors_are_divided_by_the_training_deviation(monkeypatch, tmp_path):
    split = {"train": [0, 1], "validation": [], "test": [2]}
    monkeypatch.setattr(counting, "RunFolder", lambda _: SimpleNamespace(splits=lambda: split))
    graphs = SimpleNamespace(
        columns=(SimpleNamespace(name="triangle"),),
        select=lambda chosen: SimpleNamespace(targets=np.array([[1.0], [5.0], [90.0]])[chosen]),
    )
    outcome = SimpleNamespace(graphs=graphs, scores={"triangle": {"mae": 0.5}})
    assert normalised_errors(outcome, tmp_path) == {"normalised test MAE triangle": 0.25}


def test_a_set_of_classes_is_trained_fold_by_fold(tmp_path):
    cell = class_cell("csl", CONTENDERS["GIN"], epochs=1, folds=2, threads=1)
    job = Job(tmp_path, device="cpu")
    (tmp_path / "fold-1.json").write_text('{"test": 62.5}')  # finished before
    found = cell.run(job)
    assert found.detail["accuracies"][0] == 62.5
    assert not (tmp_path / "fold-2").exists(), "weights that nobody reads again are removed"
    second = json.loads((tmp_path / "fold-2.json").read_text())["test"]
    assert found.metrics["test accuracy (%)"] == pytest.approx((62.5 + second) / 2)
    assert found.metrics["deviation over folds (%)"] == pytest.approx(abs(62.5 - second) / 2)
    assert (found.metrics["exact bound"], found.metrics["pairs"]) == (0, 45)


def test_ppgn_alike_is_its_grammar_in_the_preset_of_g2n2():
    graphs = load_csl()

    def built(contender):
        config = contender.config("csl", limit=20, device="cpu")
        return make_model(config, prepare(config, graphs))

    alike, g2n2, ppgn = map(built, (PPGN_ALIKE, CONTENDERS["G2N2-8"], CONTENDERS["PPGN"]))
    assert alike.plan.preset == g2n2.plan.preset != ppgn.plan.preset
    assert alike.plan.grammar == ppgn.plan.grammar != g2n2.plan.grammar
    assert len(alike.layers) == len(g2n2.layers) == 8
    embedded = plain_embedding(PPGN_ALIKE).network
    assert (embedded.plan.preset, embedded.plan.grammar) == (g2n2.plan.preset, ppgn.plan.grammar)
