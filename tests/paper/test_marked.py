"""Counts beyond 3-WL against a search over all sets of vertices; cells of networks with marks."""

from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from g2n2 import GrammarGNN
from g2n2.data.graph_set import Target, plain_graphs
from g2n2.data.suites import load_suite
from g2n2.errors import DataError
from g2n2.graphs.families import rook_graph, shrikhande_graph
from g2n2.power.suites import Suite
from g2n2_paper import counting
from g2n2_paper.classes import ClassTraining, calibrated_cell
from g2n2_paper.contenders import CONTENDERS, MARKED, word_classes
from g2n2_paper.counting import BEYOND_COUNTS, NORMALISED, WRITTEN, beyond_counts, written_cell
from g2n2_paper.power import STARTS, cells, separated_by_layer
from g2n2_paper.runner import Job

INDUCED = {
    "K4": nx.complete_graph(4),
    "induced_path": nx.path_graph(4),
    "induced_claw": nx.star_graph(3),
    "induced_cycle": nx.cycle_graph(4),
    "induced_paw": nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3)]),
    "induced_diamond": nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)]),
}


def test_counts_are_those_of_a_search():
    graphs = [nx.gnp_random_graph(n, p, seed=n) for n, p in ((8, 0.7), (9, 0.5), (10, 0.4))]
    found = beyond_counts([nx.to_numpy_array(graph) for graph in graphs])
    assert set(found) == set(BEYOND_COUNTS)
    for index, graph in enumerate(graphs):
        fours = [graph.subgraph(chosen) for chosen in combinations(graph, 4)]
        for name, pattern in INDUCED.items():
            assert found[name][index] == sum(nx.is_isomorphic(f, pattern) for f in fours)
        for length in (7, 8):
            cycles = [c for c in nx.simple_cycles(graph, length) if len(c) == length]
            assert found[f"{length}_cycle"][index] == len(cycles)
    assert all(values.any() for values in found.values()), "no count is zero throughout"


def test_cells_name_the_marks():
    by_name = {(cell.name, cell.seed): cell.settings for cell in cells()}
    assert by_name["zinc/G2N2-3", 0]["grammar"] == "r-G_L3"
    for name, marks, trunk in (("zinc", "heavy", 2), ("exp", "4", 4)):
        found = by_name[f"{name}/G2N2Σ-{trunk}+1", 0]
        wanted = {"grammar": "r-G_L3Σ", "marks": marks, "trunk": trunk, "layers": 1}
        assert {key: found[key] for key in wanted} == wanted
    plain, marked = (by_name[f"counting/beyond/G2N2{name}", 0] for name in ("-3", "Σ-3"))
    assert plain["baseline"] == "G2N2"
    assert (marked["grammar"], marked["marks"]) == ("r-G_L3Σ", "all")
    for alike in ("epochs", "layers", "width", "recipe"):
        assert plain[alike] == marked[alike], alike


def test_the_network_with_a_mark_learns_exp_longer_and_on_all_folds():
    by_name, name = {cell.name: cell for cell in cells()}, "G2N2Σ-4+1"
    marked, plain = by_name[f"exp/{name}"], by_name["exp/G2N2-5"]
    for alike in ("recipe", "decay", "dropout", "width", "split", "seed", "folds"):
        assert marked.settings[alike] == plain.settings[alike], alike
    assert (marked.parts, marked.settings["folds"]) == (10, 10)
    assert (marked.settings["epochs"], plain.settings["epochs"]) == (120, 40)
    assert MARKED[name].config("exp").effective_recipe().schedule == "cosine"


def test_words_of_three_layers_are_the_first_to_tell_pairs_of_exp_apart():
    """A network has as many with those before its marks: 2 + 1 none to spare, 4 + 1 two."""
    try:
        suite = load_suite("exp")
    except DataError as error:
        pytest.skip(f"no data: {error}")
    first, second = suite.pairs[0]
    pair = Suite("exp", (suite.graphs[first], suite.graphs[second]), ((0, 1),))
    classes = [word_classes(replace(CONTENDERS["G2N2-3"], layers=n), pair) for n in (1, 2, 3)]
    assert [len(set(found or ())) for found in classes] == [1, 1, 2]


@pytest.mark.parametrize("count", sorted(WRITTEN))
def test_written_counts_are_exact_and_stay_so(count, monkeypatch, tmp_path):
    drawn = [nx.gnp_random_graph(8, 0.7, seed=seed) for seed in range(4)]
    matrices = [nx.to_numpy_array(graph) for graph in drawn]
    few = plain_graphs(
        "counting",
        matrices,
        targets=beyond_counts(matrices)[count][:, None],
        columns=(Target(count, unit="count"),),
        splits={"train": np.arange(3), "test": np.arange(1, 4)},
    )
    monkeypatch.setattr(counting, "beyond_graphs", lambda data: few)
    found = written_cell(count, epochs=2).run(Job(tmp_path, device="cpu"))
    assert found.done == 2
    assert few.targets.all()
    name = NORMALISED.format(count)
    names = (f"{name}, written", f"{name}, trained", "gradient")
    assert [found.metrics[name] for name in names] == [0.0, 0.0, 0.0]
    # the same weights, judged by another count: nothing is 0 any more
    others = replace(few, targets=few.targets + 1.0)
    monkeypatch.setattr(counting, "beyond_graphs", lambda data: others)
    wrong = written_cell(count, epochs=1).run(Job(tmp_path, device="cpu"))
    assert all(wrong.metrics[name] for name in names)


def test_classes_are_learned_from_a_calibrated_start(tmp_path):
    """Two graphs that 3-WL merges; relabelings that were not trained on are recognised."""
    suite = Suite("sr25", (rook_graph(4), shrikhande_graph()), ((0, 1),))
    small = replace(MARKED["G2N2Σ-3"], width=4)
    cell = calibrated_cell("sr25", small, ClassTraining(copies=1, test_copies=2), suite)
    found = cell.run(Job(tmp_path, device="cpu"))
    assert found.metrics["test accuracy (%)"] == 100.0
    assert found.metrics["exact bound"] == found.metrics["pairs"] == 1
    assert len(found.detail["loss"]) < ClassTraining().epochs, "it stops once it is learned"


def test_layers_needed_are_those_of_rook_and_shrikhande():
    """Five with the pooled read-out and none of the seeds' words; six read out by 1ᵀV′ alone."""
    suite = Suite("s", (rook_graph(4), shrikhande_graph()), ((0, 1),))
    found = {start: separated_by_layer(start, suite, [(0, 1)]) for start in STARTS}
    assert {start: counts.index(1) for start, counts in found.items()} == {
        "plain": 6,
        "plain, network": 5,
        "seeded, network": 3,
    }


def test_networks_on_zinc_have_equal_parameters():
    settings = {c.name: c.settings for c in cells() if c.name.startswith("zinc/")}
    sizes = []
    for config in settings.values():
        shape = {name: config[name] for name in ("grammar", "width", "layers", "trunk", "decision")}
        shape |= {"node_features": 28, "edge_features": 3}  # of this set
        sizes.append(GrammarGNN(**shape).parameter_count)
    assert max(sizes) < 1.001 * min(sizes) < 500_000
    assert len({config["epochs"] for config in settings.values()}) == 1
