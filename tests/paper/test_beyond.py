"""Counts beyond 3-WL against a search over all sets of vertices; cells of networks with marks."""

from dataclasses import replace
from itertools import combinations

import networkx as nx
import torch

from g2n2 import GrammarGNN, GraphBatch, formula, requirements, write_formula
from g2n2.graphs.families import rook_graph, shrikhande_graph
from g2n2.power.suites import Suite
from g2n2_paper import power
from g2n2_paper.beyond import BEYOND_COUNTS, beyond_counts
from g2n2_paper.calibrated_classes import ClassTraining, calibrated_cell
from g2n2_paper.contenders import CONTENDERS, MARKED
from g2n2_paper.marked_layers import STARTS, separated_by_layer
from g2n2_paper.power import cells
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


def test_a_formula_of_k4_is_exact_before_and_after_training():
    graphs = [nx.gnp_random_graph(8, 0.7, seed=seed) for seed in range(4)]
    counts = torch.tensor(beyond_counts([nx.to_numpy_array(graph) for graph in graphs])["K4"])
    needed = requirements("r-G_L3Σ", formula("K4"))
    sizes = {"width": dict(needed.width), "layers": needed.depth, "preset": "paper"}
    model = GrammarGNN("r-G_L3Σ", **sizes).double()
    write_formula(model, formula("K4"))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    batch = GraphBatch.of(graphs, dtype=torch.float64)
    for _ in range(3):
        loss = (model(batch)[:, 0] - counts).square().mean()
        assert counts.any()
        assert loss.item() == 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_cells_name_the_marks():
    by_name = {(cell.name, cell.seed): cell.settings for cell in cells()}
    assert by_name["zinc/G2N2Σ-3", 2]["marks"] == "heavy"
    assert by_name["zinc/G2N2-3", 0]["grammar"] == "r-G_L3"
    assert by_name["exp/G2N2Σ-3", 0]["grammar"] == "r-G_L3Σ"
    assert by_name["counting/beyond/G2N2-3", 0]["baseline"] == "G2N2"


def test_classes_are_learned_from_a_calibrated_start(monkeypatch, tmp_path):
    """Two graphs that 3-WL merges; relabelings that were not trained on are recognised."""
    suite = Suite("sr25", (rook_graph(4), shrikhande_graph()), ((0, 1),))
    monkeypatch.setattr(power, "class_suite", lambda name, data: suite)
    small = replace(MARKED["G2N2Σ-3"], width=4)
    cell = calibrated_cell("sr25", small, ClassTraining(copies=1, test_copies=2))
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
    from g2n2_paper.beyond import ZINC_WIDTH

    plain, marked = (
        GrammarGNN(name, node_features=28, edge_features=3, width=ZINC_WIDTH).parameter_count
        for name in (CONTENDERS["G2N2-3"].grammar, MARKED["G2N2Σ-3"].network)
    )
    assert abs(plain - marked) < 0.02 * plain < 0.02 * 500_000
