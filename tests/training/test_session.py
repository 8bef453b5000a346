"""Runs from data to scores: every kind of task, the run folder, repeatability."""

import csv
import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

import g2n2
from benchmark_files import real_file
from g2n2.errors import DataError, G2N2Error
from g2n2.training.config import RunConfig
from g2n2.training.run import Run
from g2n2.training.session import Watch, train_config
from small_sets import small_set

SMALL = RunConfig(
    "small", width=8, layers=2, batch=8, epochs=12, rate=5e-3, threads=1, device="cpu"
)
TASKS = [
    ("graph", "regression", 1, 0.0),
    ("graph", "multiclass", 1, 0.0),
    ("graph", "binary", 2, 0.3),
    ("node", "multiclass", 1, 0.2),
    ("edge", "binary", 1, 0.0),
]


@pytest.fixture(autouse=True, scope="module")
def no_pictures():
    """Drawing takes longer than these runs; test_plots draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("g2n2.training.session.draw", lambda *_: ["picture"])
        yield


def case_name(case):
    level, kind, columns, missing = case
    several = "multi-label " if columns > 1 else ""
    return f"{level} {several}{kind}{' with missing values' if missing else ''}"


@pytest.mark.parametrize("case", TASKS, ids=case_name)
def test_every_task_is_learned(case, tmp_path):
    level, kind, columns, missing = case
    graphs = small_set(level, kind, graphs=100, columns=columns, missing=missing)
    config = replace(SMALL, layers=1, batch=16, epochs=15, rate=1e-2)
    result = train_config(config, tmp_path / "run", graphs=graphs)
    losses = [row["loss"] for row in result.history]
    assert losses[-1] < 0.8 * losses[0]
    score, guess = result.scores["all"], result.guesses["all"]
    if kind == "regression":
        assert score["mae"] < 0.6 * guess["mae"]
    else:
        assert score["accuracy"] > guess["accuracy"] + 0.1
    outcome = Run(tmp_path / "run", "cpu").evaluate("test", graphs)
    assert outcome.scores["all"] == pytest.approx(score)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short finished run and its result."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    config = replace(SMALL, epochs=3)
    return folder, config, train_config(config, folder, graphs=small_set(missing=0.1))


def test_a_run_in_full_precision_is_not_in_that_of_the_run_before(tmp_path):
    seen = []
    watch = Watch(start=lambda _: seen.append(torch.get_float32_matmul_precision()))
    before = torch.get_float32_matmul_precision()
    for precision in ("bf16", "tf32", "32"):
        config = replace(SMALL, epochs=1, precision=precision)
        train_config(config, tmp_path / precision, graphs=small_set(), watch=watch)
        assert torch.get_float32_matmul_precision() == before
    assert seen == ["high", "high", "highest"]


def test_the_folder_tells_everything(run):
    folder, _, result = run
    told = json.loads((folder / "result.json").read_text())
    assert told["test"] == result.scores
    assert told["test_of_constant_guess"] == result.guesses
    assert told["config"]["width"] == 8
    assert told["graphs"] == {"train": 48, "validation": 6, "test": 6}
    assert told["data_sha256"] == json.loads((folder / "data.json").read_text())["sha256"]
    assert told["best_epoch"] == result.best_epoch
    assert told["epochs"] == 3
    assert {"cpu", "torch", "python", "g2n2", "device", "commit"} <= told["made_with"].keys()
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert float(rows[1]["validation mae"]) == pytest.approx(
        result.history[1]["validation mae"], rel=1e-9
    )


def test_predictions_of_the_test_graphs_are_kept(run):
    folder, _, result = run
    graphs = result.parts.graphs
    with (folder / "test.csv").open() as file:
        rows = list(csv.DictReader(file))
    test = result.parts.splits["test"]
    assert [row["id"] for row in rows] == [f"g{i}" for i in test]
    truth = [float(row["true t0 [bonds]"] or "nan") for row in rows]
    assert np.array_equal(truth, graphs.targets[test, 0], equal_nan=True)
    known = [row for row in rows if row["true t0 [bonds]"]]
    errors = [abs(float(r["true t0 [bonds]"]) - float(r["t0 [bonds]"])) for r in known]
    assert np.mean(errors) == pytest.approx(result.scores["t0"]["mae"], rel=1e-5)


def test_the_mean_predictor_is_the_mean_of_the_training_graphs(run):
    _, _, result = run
    parts = result.parts
    mean = np.nanmean(parts.graphs.targets[parts.splits["train"]])
    truth = parts.graphs.targets[parts.splits["test"]]
    assert result.guesses["t0"]["mae"] == pytest.approx(np.nanmean(abs(truth - mean)))


@pytest.mark.parametrize("baseline", ["GIN", "PPGN"])
def test_baselines_train_and_come_back(baseline, tmp_path):
    if baseline == "GIN":
        pytest.importorskip("torch_geometric", reason="GIN is made of PyG's layers")
    config = replace(SMALL, baseline=baseline, epochs=2, precision="64")
    result = train_config(config, tmp_path / "run", graphs=small_set())
    outcome = Run(tmp_path / "run", "cpu").evaluate("test", small_set())
    assert outcome.scores == result.scores


@pytest.mark.slow
def test_filters_are_learned_node_by_node(tmp_path):
    """TwoDGrid30: one image to learn from, another to test on, border pixels masked."""
    real_file("filtering", "TwoDGrid30.mat")
    pytest.importorskip("scipy", reason="the .mat file is read with scipy")
    config = replace(SMALL, dataset="filtering", target=("low",), grammar="GNNML1", epochs=15)
    result = train_config(config, tmp_path / "run")
    assert result.parts.graphs.level == "node"
    assert result.scores["low"]["r2"] > 0.8


def test_distances_need_positions(tmp_path):
    with pytest.raises(DataError, match="small has no positions"):
        train_config(replace(SMALL, distance=("raw",)), tmp_path / "a", graphs=small_set())


def test_a_run_that_fails_before_its_first_step_leaves_no_folder(tmp_path):
    def fail(*_):
        raise DataError("no")

    for watch in (Watch(start=fail), Watch(step=fail)):
        with pytest.raises(DataError, match="no"):
            train_config(SMALL, tmp_path / "run", graphs=small_set(), watch=watch)
        begun = watch.start is not fail
        assert (tmp_path / "run").exists() == begun


def test_an_unknown_grammar_is_refused_before_graphs_in_memory_are_converted():
    class Untouched(list):
        def __iter__(self):
            raise AssertionError("the graphs were read")

    with pytest.raises(G2N2Error, match="no grammar is called 'nope'"):
        g2n2.train(Untouched([nx.path_graph(3)]), grammar="nope")


ROWS = ["m,CC,1.5", "m,CCO,2.5", "k,not a molecule,0.5", ",CCC,3.5", "k,CCCC,1.0", "k,CCN,2.0"]


@pytest.mark.slow
def test_r2_of_600_molecules_is_learned(tmp_path, some_qm9):
    """The error on unseen molecules is below a third of what guessing the mean gives."""
    config = RunConfig(
        "qm9",
        target=("r2",),
        options={"track": "distance", "cache": str(some_qm9)},
        limit=600,
        width=16,
        layers=1,
        batch=32,
        epochs=8,
        rate=5e-3,
        threads=1,  # a second thread gains little here and loses much on a busy machine
        device="cpu",
    )
    result = train_config(config, tmp_path / "run")
    error, guess = result.scores["r2"]["mae"], result.guesses["r2"]["mae"]
    print(f"R² of QM9: MAE {error:.1f} a₀², guessing the mean {guess:.1f} a₀²")
    assert len(result.parts.graphs) == 600
    assert result.parts.graphs.name == "QM9 (distance)"
    assert guess > 150  # the spread of R² over QM9 is about 280 a₀²
    assert error < guess / 3
