"""Counts beyond 3-WL against a search over all sets of vertices; cells of networks with marks."""

from dataclasses import replace
from itertools import combinations

import networkx as nx
import pytest

from g2n2.graphs.families import rook_graph, shrikhande_graph
from g2n2.power.suites import Suite
from g2n2_paper.beyond import BEYOND_COUNTS, beyond_counts
from g2n2_paper.contenders import CONTENDERS, MARKED
from g2n2_paper.marked_layers import STARTS, separated_by_layer
from g2n2_paper.power import cells, class_cell
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
    assert by_name["zinc/G2N2Σ-3", 2]["marks"] == "heavy"
    assert by_name["zinc/G2N2-3", 0]["grammar"] == "r-G_L3"
    assert by_name["csl/G2N2Σ-3", 0]["grammar"] == "r-G_L3Σ"
    assert by_name["counting/beyond/G2N2-3", 0]["baseline"] == "G2N2"


@pytest.mark.slow
def test_a_small_run_of_a_network_with_marks(tmp_path):
    marked = replace(MARKED["G2N2Σ-3"], width=2, layers=1)
    cell = class_cell("csl", marked, epochs=1, folds=1, threads=1)
    metrics = cell.run(Job(tmp_path, device="cpu")).metrics
    assert 0 <= metrics["test accuracy (%)"] <= 100
    assert metrics["exact bound"] == metrics["pairs"] == 45


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
    from g2n2.nn.model import GrammarGNN
    from g2n2_paper.beyond import ZINC_WIDTH

    plain, marked = (
        GrammarGNN(name, node_features=28, edge_features=3, width=ZINC_WIDTH).parameter_count
        for name in (CONTENDERS["G2N2-3"].grammar, MARKED["G2N2Σ-3"].network)
    )
    assert abs(plain - marked) < 0.02 * plain < 0.02 * 500_000
