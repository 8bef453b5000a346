"""Trained power: calibrated weights, verdicts on pairs, and what is written down of them."""

import json
from dataclasses import asdict, replace
from itertools import combinations
from math import comb
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn

from g2n2.data.benchmarks.expressivity import load_csl
from g2n2.errors import DataError
from g2n2.experiments import running
from g2n2.experiments.cell import Slice
from g2n2.experiments.record import Record
from g2n2.experiments.running import Settings, run_cell
from g2n2.experiments.trained import (
    brec_cells,
    cells,
    class_cells,
    counting_cells,
    counting_exact,
    graph8c_cells,
)
from g2n2.experiments.trained.brec import (
    Ledger,
    PairVerdict,
    Protocol,
    clearest_gap,
    judge,
    sample,
)
from g2n2.experiments.trained.calibration import Standardise, calibrate
from g2n2.experiments.trained.class_cells import SETS, class_cell, parts
from g2n2.experiments.trained.contenders import ALIKE, CONTENDERS
from g2n2.experiments.trained.exact import exact_power, some_pairs
from g2n2.experiments.trained.graph8c_cells import close_pairs, graph8c
from g2n2.experiments.trained.siamese import plain_embedding
from g2n2.graphs import adjacency
from g2n2.power.suites import Suite, load_suite
from g2n2.power.trials.brec_training import Training
from g2n2.training.config import RunConfig
from g2n2.training.setup import make_model, prepare

CPU = torch.device("cpu")
QUICK = Training(epochs=1)


def srg_pair() -> tuple[nx.Graph, nx.Graph]:
    """The rook's graph and Shrikhande's: both SR(16, 6, 2, 2), which 3-WL merges."""
    rook = nx.convert_node_labels_to_integers(nx.line_graph(nx.complete_bipartite_graph(4, 4)))
    shrikhande = nx.Graph()
    for x in range(4):
        for y in range(4):
            for dx, dy in ((0, 1), (1, 0), (1, 1)):
                shrikhande.add_edge(4 * x + y, 4 * ((x + dx) % 4) + (y + dy) % 4)
    return rook, shrikhande


@pytest.fixture(scope="module")
def small_suite() -> Suite:
    """C6 and two triangles, which two products tell apart; and a pair 3-WL merges."""
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    graphs = (nx.cycle_graph(6), triangles, *srg_pair())
    return Suite(
        "brec", tuple(adjacency(g) for g in graphs), ((0, 1), (2, 3)), ("cycles", "regular")
    )


def protocol(name: str = "G2N2-3", **fields) -> Protocol:
    return replace(Protocol(replace(CONTENDERS[name], width=8), 0, QUICK), **fields)


@pytest.fixture(scope="module")
def verdicts(small_suite) -> list[PairVerdict]:
    return [judge(protocol(), small_suite, index, CPU) for index in (0, 1)]


def test_a_network_tells_apart_what_its_grammar_does_and_no_more(verdicts):
    cycles, regular = verdicts
    assert (cycles.released, cycles.hotelling, cycles.clear) == ("separated", "separated", True)
    assert regular.released != "separated"
    assert not regular.clear
    assert (cycles.category, regular.pair) == ("cycles", 1)


def test_gin_tells_neither_pair_apart(small_suite):
    for index in (0, 1):
        found = judge(protocol("GIN"), small_suite, index, CPU)
        assert found.released != "separated"
        assert not found.clear


def test_exact_power_is_that_of_words_and_of_colours(small_suite, tmp_path):
    strong = exact_power(CONTENDERS["G2N2-3"], small_suite, tmp_path / "strong.json")
    weak = exact_power(CONTENDERS["GIN"], small_suite, tmp_path / "weak.json")
    spectral = exact_power(CONTENDERS["GNNML3"], small_suite, tmp_path / "spectral.json")
    assert (strong.separated, strong.bound, strong.beyond) == (1, 1, (1,))
    assert (weak.separated, weak.bound, weak.beyond) == (0, 0, (0, 1))
    assert (spectral.separated, spectral.bound) == (None, 1)
    assert strong.categories == {"cycles": 1, "regular": 0}
    without_graphs = SimpleNamespace(pairs=small_suite.pairs)
    again = exact_power(CONTENDERS["G2N2-3"], without_graphs, tmp_path / "strong.json")
    assert again == strong, "kept, not measured again"


def test_exact_power_counts_the_layers(tmp_path):
    # The last pair of the suite has a base of treewidth 3; 1 layer reads out walks of one step.
    suite = load_suite("cfi")
    deep = exact_power(CONTENDERS["G2N2-8"], suite, tmp_path / "deep.json")
    flat = replace(CONTENDERS["G2N2-8"], layers=1)
    shallow = exact_power(flat, suite, tmp_path / "shallow.json")
    assert (deep.separated, shallow.separated, deep.bound) == (3, 0, 3)


def watched_judge(monkeypatch) -> list[int]:
    """The pairs that are judged from now on."""
    judged: list[int] = []

    def watched(asked, suite, index, device):
        judged.append(index)
        return judge(asked, suite, index, device)

    monkeypatch.setattr(brec_cells, "judge", watched)
    return judged


def test_a_cell_is_done_pair_by_pair_with_those_beyond_hope_last(
    small_suite, tmp_path, monkeypatch
):
    small_suite = replace(small_suite, pairs=((2, 3), (0, 1)), categories=("regular", "cycles"))
    monkeypatch.setattr(brec_cells, "_brec", lambda data: small_suite)
    monkeypatch.setattr(brec_cells, "_some", lambda data, chosen: some_pairs(small_suite, chosen))
    judged = watched_judge(monkeypatch)
    cell = brec_cells.brec_cell("smoke", protocol(), 0)
    given = Slice(tmp_path / "work", minutes=1e-9, device="cpu")
    given.work.mkdir()
    first, second, third = (cell.run(given) for _ in range(3))
    assert (first.done, first.planned, second.done) == (1, 2, 2)
    assert judged == [1, 0]
    assert dict(second.metrics) == dict(third.metrics)
    assert second.metrics["trained separated"] == second.metrics["exact separated"] == 1
    assert second.metrics["separated beyond the bound"] == 0
    assert second.metrics["trained separated, regular"] == 0
    kept = Record.read(second.write(tmp_path)).detail["pairs"]
    assert [pair["pair"] for pair in kept] == [0, 1], "listed in the suite's order"
    assert kept[1]["released"] == "separated"


def test_a_partial_record_is_gone_on_with_where_its_work_folder_is_gone(
    small_suite, tmp_path, monkeypatch
):
    monkeypatch.setattr(brec_cells, "_brec", lambda data: small_suite)
    monkeypatch.setattr(brec_cells, "_some", lambda data, chosen: some_pairs(small_suite, chosen))
    monkeypatch.setattr(running, "absent", lambda *_: "")
    cell = brec_cells.brec_cell("smoke", protocol(), 0)
    settings = Settings(results=tmp_path / "results", work=tmp_path / "first", device="cpu")
    assert run_cell(cell, settings, 1e-9, lambda *_: None).done == 1
    before = Record.read(cell.path(settings.results))
    judged = watched_judge(monkeypatch)
    settings = replace(settings, work=tmp_path / "second")
    assert run_cell(cell, settings, 1e-9, lambda *_: None).done == 2
    record = Record.read(cell.path(settings.results))
    assert judged == [1], "the pair that the record knows is not judged again"
    assert (cell.folder(settings.work) / "places.json").is_file()
    assert record.detail["pairs"][0] == before.detail["pairs"][0]
    assert record.seconds > before.seconds
    slow = replace(before, detail={"pairs": [{**before.detail["pairs"][0], "seconds": 7e3}]})
    slow.write(settings.results)
    run_cell(cell, replace(settings, work=tmp_path / "slow"), 1e-9, lambda *_: None)
    assert Record.read(cell.path(settings.results)).seconds > 7e3, "no less than its pairs took"
    judged.clear()
    replace(before, data={"brec": "other"}).write(settings.results)
    run_cell(cell, replace(settings, work=tmp_path / "third"), 1e-9, lambda *_: None)
    assert judged == [0], "a pair of other data is judged again"


def test_of_a_record_only_whole_verdicts_are_taken(verdicts):
    said = [asdict(verdict) for verdict in verdicts]
    known = brec_cells.known_verdicts({"pairs": said})
    assert known == {verdict.pair: verdict for verdict in verdicts}
    for nothing in ({}, {"pairs": None}, {"pairs": 7}):
        assert brec_cells.known_verdicts(nothing) == {}
    for odd in (
        {"pair": [1]},
        {"clear": "no"},
        {"gap": "wide"},
        {"gap": float("nan")},
        {"seconds": None},
        {"more": 1},
        {"category": None},
    ):
        changed = {"pairs": [{**said[0], **odd}, said[1]]}
        assert list(brec_cells.known_verdicts(changed)) == [verdicts[1].pair]


def test_a_set_of_classes_goes_on_from_its_record(tmp_path, monkeypatch):
    """CSL is generated: two of its folds, an epoch each."""
    cell = class_cell("csl", CONTENDERS["GIN"], "smoke", epochs=1, folds=2, threads=1)
    settings = Settings(tmp_path / "results", tmp_path / "first", device="cpu")
    shown = []

    def stop_after_one(given):
        def published(record):
            given.publish(record)
            shown.append(record.done)
            raise KeyboardInterrupt

        return cell.run(replace(given, publish=published))

    with pytest.raises(KeyboardInterrupt):
        run_cell(replace(cell, run=stop_after_one), settings, 0.0, lambda *_: None)
    first = Record.read(cell.path(settings.results))
    assert (shown, first.done, first.planned) == ([1], 1, 2)
    trained = []
    train = class_cells.train_slice
    monkeypatch.setattr(
        class_cells, "train_slice", lambda config, folder, *rest: (
            trained.append(folder.name) or train(config, folder, *rest)
        )
    )  # fmt: skip
    run_cell(cell, replace(settings, work=tmp_path / "second"), 0.0, lambda *_: None)
    whole = Record.read(cell.path(settings.results))
    assert (trained, whole.done) == (["fold-2"], 2)
    (folder,) = cell.folder(tmp_path / "second").glob("data-*")
    assert (folder / "fold-2.json").is_file(), "what is kept is kept by its data"
    assert (cell.folder(tmp_path / "second") / "places.json").is_file(), "training keeps something"
    assert whole.detail["accuracies"][:1] == first.detail["accuracies"]
    for odd in ([50.0, 500.0], "99", None, [[1.0]]):
        assert class_cells.known_accuracies({"accuracies": odd}) == []
    assert class_cells.known_accuracies({}) == []


def test_what_is_separated_beyond_the_bound_is_counted(verdicts, small_suite, tmp_path):
    exact = exact_power(CONTENDERS["G2N2-3"], small_suite, tmp_path / "exact.json")
    for released, hotelling in (("separated", "merged"), ("merged", "separated")):
        wrong = replace(verdicts[1], released=released, hotelling=hotelling)
        found = brec_cells.metrics([verdicts[0], wrong], exact, {1})
        assert found["separated beyond the bound"] == (released == "separated")
        assert found["separated beyond the bound, Hotelling's T²"] == (hotelling == "separated")


@pytest.mark.parametrize(
    "odd", [{"pairs": "x"}, {"pairs": 3}, {"bound": float("nan")}, {"beyond": [9999]}, {"more": 1}]
)
def test_exact_power_that_was_kept_wrong_is_measured_again(small_suite, tmp_path, odd):
    kept = tmp_path / "exact.json"
    found = exact_power(CONTENDERS["G2N2-3"], small_suite, kept)
    kept.write_text(json.dumps({**json.loads(kept.read_text()), **odd}))
    assert exact_power(CONTENDERS["G2N2-3"], small_suite, kept) == found


def test_a_ledger_survives_a_torn_line_and_keeps_settings_apart(tmp_path, verdicts):
    ledger = Ledger(tmp_path, protocol())
    ledger.add(verdicts[0])
    whole = ledger.path.read_text()
    ledger.path.write_text(whole + "\n" + whole[: len(whole) // 2])
    ledger.add(verdicts[1])
    assert ledger.read() == {0: verdicts[0], 1: verdicts[1]}
    assert Ledger(tmp_path, protocol(seed=1)).read() == {}


def test_a_sample_has_pairs_of_every_category():
    matrix = adjacency(nx.path_graph(3))
    large = adjacency(nx.path_graph(9))
    pairs = tuple((i, i + 1) for i in range(0, 20, 2))
    suite = Suite("s", (matrix,) * 18 + (large,) * 2, pairs, ("a",) * 4 + ("b",) * 6)
    assert sample(suite, 2) == (0, 3, 4, 9)
    assert sample(suite, 2, nodes=5) == (0, 3, 4, 8)
    assert sample(suite, 0) == tuple(range(10))
    assert sample(suite, 5) == (0, 1, 2, 3, 4, 5, 6, 8, 9)


def test_a_gap_is_measured_by_the_spread_of_relabelings():
    first = np.array([[0.0, 5.0], [1.0, 5.0]])
    second = np.array([[10.0, 5.0], [12.0, 5.0]])
    assert clearest_gap(first, second) == pytest.approx(10.5 / 2.0)
    exact = np.array([[3.0], [3.0]])
    assert clearest_gap(exact, exact) == 0.0
    assert clearest_gap(exact, exact + 1.0) > 1e9
    assert clearest_gap(exact, exact * (1 + 1e-15)) < 1.0
    assert np.isnan(clearest_gap(first, second * np.nan))


def test_calibrated_maps_give_values_of_size_one():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4, bias=False)).double()
    rows = torch.randn(2, 50, 3, dtype=torch.float64) * torch.tensor([1e-6, 1.0, 1e4]) + 7.0
    calibrate(model, lambda: model(rows))
    hidden = model[0](rows).flatten(0, 1)
    assert hidden.mean(0).abs().max() < 1e-6
    assert (hidden.std(0, correction=0) - 1).abs().max() < 1e-6
    assert (model(rows).flatten(0, 1).std(0, correction=0) - 1).abs().max() < 1e-6
    # Columns of any size weigh the same.
    per_column = model[0].weight * rows.flatten(0, 1).std(0)
    assert per_column.norm(dim=0).max() < 20 * per_column.norm(dim=0).min()


def test_calibration_does_not_centre_a_constant_away():
    model = nn.Linear(1, 3)
    ones = torch.ones(5, 4, 1)
    calibrate(model, lambda: model(ones))
    assert torch.allclose(model(ones).abs(), torch.ones(5, 4, 3))
    assert not model._forward_pre_hooks


def test_standardised_features_make_small_differences_large():
    part = Standardise(2).double()
    rows = torch.tensor([[1.0, 3.0], [1.0 + 1e-9, 3.0 + 1e-15]], dtype=torch.float64)
    seen = part(rows)
    assert torch.allclose(seen[:, 0], torch.tensor([-1.0, 1.0]).double(), atol=1e-6)
    assert seen[:, 1].abs().max() < 0.01  # rounding stays small
    part.eval()
    assert torch.allclose(part(rows + 1e-9)[:, 0], torch.tensor([1.0, 3.0]).double(), atol=1e-5)


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
    graphs = SETS["csl"].load(None)
    tested = []
    for fold in range(1, 6):
        own = parts(graphs, fold)
        assert [len(own[part]) for part in ("train", "validation", "test")] == [90, 30, 30]
        assert len(set(np.concatenate(list(own.values())).tolist())) == 150
        assert np.bincount(graphs.targets[own["test"], 0].astype(int)).tolist() == [3] * 10
        tested += own["test"].tolist()
    assert sorted(tested) == list(range(150))


@pytest.mark.parametrize(("name", "sizes"), [("exp", (960, 120, 120)), ("sr25", (120, 30, 60))])
def test_parts_of_sets_read_from_files(name, sizes):
    try:
        graphs = SETS[name].load(None)
    except DataError as error:
        pytest.skip(f"no data: {error}")
    own = parts(graphs, SETS[name].folds)
    assert tuple(len(own[part]) for part in ("train", "validation", "test")) == sizes
    assert len(set(np.concatenate(list(own.values())).tolist())) == sum(sizes)
    counts = np.bincount(graphs.targets[own["test"], 0].astype(int))
    assert len(set(counts.tolist())) == 1


@pytest.mark.filterwarnings("ignore:The hashes produced for graphs without node")
def test_what_1_wl_cannot_count_and_3_wl_can(tmp_path):
    """Truth from networkx's own refinement and brute force, on a part of graph8c."""
    limit = 2000
    found = {
        name: counting_exact.counting_exact_cell(CONTENDERS[name], "smoke", limit)
        .run(Slice(tmp_path))
        .metrics
        for name in ("GIN", "G2N2-3")
    }
    graphs = [nx.from_numpy_array(matrix) for matrix in graph8c(limit).graphs]
    hashes = [nx.weisfeiler_lehman_graph_hash(graph, iterations=5) for graph in graphs]
    stars = [sum(comb(d, 3) for _, d in graph.degree()) for graph in graphs]
    triangles = [sum(nx.triangles(graph).values()) // 3 for graph in graphs]
    alike = [pair for pair in combinations(range(limit), 2) if hashes[pair[0]] == hashes[pair[1]]]
    assert alike, "nothing to see"
    assert found["GIN"]["pairs merged"] == len(alike)
    for count, values in (("3_star", stars), ("triangle", triangles)):
        expected = sum(values[i] != values[j] for i, j in alike)
        assert found["GIN"][f"pairs merged, other {count}"] == expected
    assert found["GIN"]["pairs merged, other 3_star"] == 0
    assert found["GIN"]["pairs merged, other triangle"] > 0
    assert found["G2N2-3"]["pairs merged, other triangle"] == 0


def test_graph8c_is_done_network_by_network(tmp_path, monkeypatch):
    cell = graph8c_cells.graph8c_cell(CONTENDERS["GIN"], "smoke", 3, 60)
    whole = tmp_path / "whole"
    whole.mkdir()
    straight = cell.run(Slice(whole, device="cpu"))
    assert (straight.done, straight.partial) == (3, False)
    begun = []
    embeddings = graph8c_cells.embeddings

    def watched(contender, graphs, seed, device):
        begun.append(seed)
        return embeddings(contender, graphs, seed, device)

    monkeypatch.setattr(graph8c_cells, "embeddings", watched)
    given = Slice(tmp_path / "parts", minutes=1e-9, device="cpu")
    given.work.mkdir()
    first = cell.run(given)
    assert (first.done, first.planned, begun) == (1, 3, [0])
    assert cell.run(given).done == 1, "nothing is begun where time is over and something is known"
    last = cell.run(replace(given, minutes=0.0))
    assert begun == [0, 1, 2]
    assert (last.metrics, last.detail) == (straight.metrics, straight.detail)
    (given.work / "networks.json").write_text('{"left": [4], "merged": []}')
    assert (
        cell.run(given).detail["merged after each network"]
        == first.detail["merged after each network"]
    ), "what cannot be is not believed"


def test_counting_errors_are_divided_by_the_training_deviation(tmp_path):
    split = {"train": [0, 1], "validation": [], "test": [2]}
    (tmp_path / "split.json").write_text(json.dumps(split))
    (tmp_path / "data.json").write_text(json.dumps({"graphs": 3}))
    graphs = SimpleNamespace(
        columns=(SimpleNamespace(name="triangle"),),
        select=lambda chosen: SimpleNamespace(targets=np.array([[1.0], [5.0], [90.0]])[chosen]),
    )
    outcome = SimpleNamespace(graphs=graphs, scores={"triangle": {"mae": 0.5}})
    found = counting_cells.normalised_errors(outcome, tmp_path)
    assert found == {"normalised test MAE triangle": 0.25}


def test_budgets_hold_every_set_and_contender():
    full = {cell.name for cell in cells("full")}
    for suite in ("brec", "exp", "csl", "sr25", "graph8c", "counting/exact", "counting/joint"):
        for name in ("G2N2-3", "G2N2-5", "G2N2-8", "PPGN", "GIN"):
            assert f"{suite}/{name}" in full
        wordless = suite == "counting/exact"  # GNNML3 rests on the spectrum
        assert (f"{suite}/GNNML3" in full) == (not wordless)
        assert (f"{suite}/PPGN-alike" in full) == (suite not in ("brec", "graph8c"))
    assert cells("full")[0].name == "brec/G2N2-8"
    assert {cell.question for cell in cells("smoke")} == {"power"}
    assert len(cells("smoke")) == 5


def test_ppgn_in_other_blocks_is_its_grammar_in_the_preset_of_g2n2():
    graphs = load_csl()

    def built(contender):
        options = {"width": 4, "layers": contender.layers, "limit": 20, "device": "cpu"}
        config = RunConfig("csl", **options, **contender.built)
        return make_model(config, prepare(config, graphs))

    alike, g2n2, ppgn = map(built, (ALIKE, CONTENDERS["G2N2-8"], CONTENDERS["PPGN"]))
    assert alike.plan.preset == g2n2.plan.preset != ppgn.plan.preset
    assert alike.plan.grammar == ppgn.plan.grammar != g2n2.plan.grammar
    assert alike.readout.unit == g2n2.readout.unit
    assert len(alike.layers) == len(g2n2.layers) == 8
    embedded = plain_embedding(ALIKE).network
    assert (embedded.plan.preset, embedded.plan.grammar) == (g2n2.plan.preset, ppgn.plan.grammar)


@pytest.mark.slow
def test_smoke_runs_on_real_data(tmp_path):
    try:
        load_suite("brec")
    except DataError as error:
        pytest.skip(f"no data: {error}")
    for cell in cells("smoke"):
        folder = tmp_path / cell.name
        folder.mkdir(parents=True)
        record = cell.run(Slice(folder, device="cpu"))
        assert not record.partial
        assert record.write(tmp_path / "results").is_file()
        if cell.name.startswith("brec"):
            assert record.metrics["trained separated"] == record.metrics["exact separated"] == 3
        if cell.name.startswith("graph8c"):
            assert record.metrics["merged by random weights"] == 0
