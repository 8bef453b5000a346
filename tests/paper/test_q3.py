"""Q3: the three statistics, the folds behind them, and a cell."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.errors import DataError
from g2n2_paper import q3, runs
from g2n2_paper.q3 import (
    SETS,
    TuRun,
    errica_cell,
    read_errica_splits,
    statistics,
    tu_cell,
    whole_split,
)
from g2n2_paper.runner import Job
from g2n2_paper.runs import load

CURVES = [[50.0, 80.0, 95.0], [70.0, 76.0, 45.0]]


def test_each_statistic_by_hand():
    assert statistics(CURVES, [60.0, 80.0]) == {
        "accuracy, GIN's protocol (%)": 78.0,  # means 60, 78, 70
        "deviation over folds, GIN's protocol (%)": 2.0,
        "accuracy, best epoch of each fold (%)": 85.5,  # 95 and 76
        "deviation over folds, best epoch of each fold (%)": 9.5,
        "accuracy, nested validation (%)": 70.0,
        "deviation over folds, nested validation (%)": 10.0,
        "best epoch, GIN's protocol": 2,
    }


def test_of_epochs_that_are_equally_good_gin_takes_the_first():
    """The means are equal but for the third decimal of what is kept, and for rounding."""
    curves = [[0.1, 33.333, 100.0], [0.2, 66.667, 0.0], [0.3, 50.0, 50.0005]]
    assert statistics(curves, [1.0])["best epoch, GIN's protocol"] == 2


def test_settings_are_those_of_the_papers_table():
    assert {name: (s.width, s.decision) for name, s in SETS.items()} == {
        "MUTAG": (16, (256, 128)),
        "PTC": (32, (512, 256)),
        "PROTEINS": (32, (512, 256)),
        "NCI1": (64, (128, 64)),
        "IMDB-BINARY": (32, (512, 256)),
        "IMDB-MULTI": (32, (512, 256)),
    }
    configs = {name: TuRun(name, "GIN").config() for name in SETS}
    assert {config.layers for config in configs.values()} == {3}
    assert configs["IMDB-MULTI"].options["degree"] == "value"
    assert TuRun("IMDB-MULTI", "GIN", one_hot=True).config().options["degree"] == "one-hot"
    # 6, 10, 32, 116, 29 and 43 batches of 32 in nine tenths of the graphs, and 50 steps or more
    assert [config.passes for config in configs.values()] == [9, 5, 2, 1, 2, 2]


@pytest.mark.parametrize(("name", "graphs"), [("MUTAG", 188), ("PTC", 344), ("IMDB-MULTI", 1500)])
def test_every_graph_is_tested_once_and_folds_are_stratified(name, graphs):
    data = str(real_file("tu", f"{name}.zip").parents[1])
    given = load(TuRun(name, "G2N2").config(), Job(Path("unused"), data=data))
    folds = [whole_split(given, k)["validation"] for k in range(1, 11)]
    assert sorted(np.concatenate(folds).tolist()) == list(range(graphs))
    assert SETS[name].graphs == graphs
    for fold in folds:
        assert abs(given.targets[fold, 0].mean() - given.targets[:, 0].mean()) < 0.06


@pytest.fixture
def splits_of_runs(monkeypatch):
    """Train nothing; note what each run would train on, by the name of its folder."""
    splits = {}

    def train(config, folder, job, graphs, recorded):
        folder.mkdir()
        splits[folder.name] = {
            part: set(members.tolist()) for part, members in graphs.splits.items()
        }
        tested = {"all": {"accuracy": 0.5}} if "test" in graphs.splits else {}
        rows = [{"validation accuracy": share} for share in (0.25, 0.75, 0.5)]
        return SimpleNamespace(scores=tested, history=rows[: config.epochs])

    monkeypatch.setattr(runs, "train", train)
    return splits


def test_no_test_graph_chooses_anything_in_a_nested_run(tmp_path, splits_of_runs):
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    found = tu_cell(TuRun("MUTAG", "G2N2", epochs=2, folds=2)).run(Job(tmp_path, data=data))
    graphs = load(TuRun("MUTAG", "G2N2").config(), Job(tmp_path, data=data))
    for fold in (1, 2):
        test = set(graphs.splits[f"fold-{fold}"].tolist())
        rest = set(range(188)) - test
        assert splits_of_runs[f"whole-{fold}"] == {"train": rest, "validation": test}
        nested = splits_of_runs[f"nested-{fold}"]
        assert nested["test"] == test
        assert nested["train"] | nested["validation"] == rest
        assert not nested["train"] & nested["validation"]
        assert len(nested["validation"]) == 17
    assert found.detail["test curves"] == [[25.0, 75.0]] * 2
    assert (found.detail["nested"], found.detail["held out"]) == ([50.0] * 2, [75.0] * 2)
    assert not list(tmp_path.glob("*/")), "weights that nobody reads again are removed"


def test_finished_folds_are_read_back(tmp_path, splits_of_runs):
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    (tmp_path / "whole-1.json").write_text(json.dumps({"curve": [90.0, 91.0]}))
    found = tu_cell(TuRun("MUTAG", "GIN", epochs=2, folds=2)).run(Job(tmp_path, data=data))
    assert sorted(splits_of_runs) == ["nested-1", "nested-2", "whole-2"]
    assert found.detail["test curves"] == [[90.0, 91.0], [25.0, 75.0]]


@pytest.mark.parametrize("name", q3.ERRICA_SETS)
def test_the_test_graphs_of_ten_folds_are_all_graphs_once(name: str):
    path = real_file("tu/errica_splits", f"{name}.json")
    content = json.loads(path.read_text())
    graphs = sum(len(fold["test"]) for fold in content)
    splits = read_errica_splits(path, graphs)
    assert len(splits) == q3.FOLDS
    tested = np.concatenate([fold["test"] for fold in splits])
    assert np.array_equal(np.sort(tested), np.arange(graphs))


def test_each_fold_of_errica_is_scored_on_its_test_graphs(tmp_path, splits_of_runs):
    """By the epoch that its validation graphs chose."""
    data = str(real_file("tu/errica_splits", "IMDB-BINARY.json").parents[2])
    found = errica_cell("IMDB-BINARY", 0, epochs=3, folds=2).run(Job(tmp_path, data=data))
    sizes = [{part: len(rows) for part, rows in parts.items()} for parts in splits_of_runs.values()]
    assert sizes == [{"test": 100, "train": 810, "validation": 90}] * 2
    assert found.detail["test"] == [50.0, 50.0]
    assert found.detail["validation"] == [75.0, 75.0]
    assert found.metrics == {
        "test accuracy, mean of folds (%)": 50.0,
        "validation accuracy, mean of folds (%)": 75.0,
        "deviation over folds (%)": 0.0,
    }


def test_a_graph_in_two_parts_is_refused(tmp_path: Path):
    path = tmp_path / "SET.json"
    inner = {"train": [1, 2], "validation": [3]}
    path.write_text(json.dumps([{"test": [0, 1], "model_selection": [inner]}]))
    with pytest.raises(DataError, match="all graphs once"):
        read_errica_splits(path, 4)


@pytest.mark.slow
def test_a_fold_of_mutag_is_trained(tmp_path):
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    tu = TuRun("MUTAG", "GNNML1", epochs=2, folds=1, steps=1)
    found = tu_cell(tu).run(Job(tmp_path, data=data, device="cpu"))
    for accuracy in (*found.detail["test curves"][0], *found.detail["nested"]):
        assert accuracy * 19 / 100 == pytest.approx(round(accuracy * 19 / 100), abs=1e-3)
    assert {path.name for path in tmp_path.iterdir()} == {"whole-1.json", "nested-1.json"}
