"""Q3: the three statistics, the folds behind them, and a cell."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmark_files import real_file
from g2n2_paper import q3
from g2n2_paper.q3 import SETS, TuRun, fold_parts, run_folds, statistics
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
    folds = [fold_parts(given, k)[0] for k in range(1, 11)]
    assert sorted(np.concatenate(folds).tolist()) == list(range(graphs))
    assert SETS[name].graphs == graphs
    for fold in folds:
        assert abs(given.targets[fold, 0].mean() - given.targets[:, 0].mean()) < 0.06


@pytest.fixture
def splits_of_runs(monkeypatch):
    """Train nothing; note what each run would train on, by the name of its folder."""
    splits = {}

    def train_fold(config, graphs, parts, folder, job, recorded):
        splits[folder.name] = {part: set(members.tolist()) for part, members in parts.items()}
        row = {"validation accuracy": 0.25}
        return replace_run(scores={"all": {"accuracy": 0.5}}, history=[row] * config.epochs)

    def replace_run(**fields):
        from g2n2_paper.runs import Trained

        return replace(Trained(1, {}, {}, []), **fields)

    monkeypatch.setattr(q3, "train_fold", train_fold)
    return splits


def test_no_test_graph_chooses_anything_in_a_nested_run(tmp_path, splits_of_runs):
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    found = run_folds(TuRun("MUTAG", "G2N2", epochs=2, folds=2), Job(tmp_path, data=data))
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
    assert found.detail["test curves"] == [[25.0, 25.0]] * 2
    assert (found.detail["nested"], found.detail["held out"]) == ([50.0] * 2, [25.0] * 2)


def test_finished_folds_are_read_back(tmp_path, splits_of_runs):
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    (tmp_path / "whole-1.json").write_text(json.dumps([90.0, 91.0]))
    found = run_folds(TuRun("MUTAG", "GIN", epochs=2, folds=2), Job(tmp_path, data=data))
    assert sorted(splits_of_runs) == ["nested-1", "nested-2", "whole-2"]
    assert found.detail["test curves"] == [[90.0, 91.0], [25.0, 25.0]]


@pytest.mark.slow
def test_a_fold_of_mutag_is_trained(tmp_path):
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    tu = TuRun("MUTAG", "GNNML1", epochs=2, folds=1, steps=1)
    found = run_folds(tu, Job(tmp_path, data=data, device="cpu"))
    for accuracy in (*found.detail["test curves"][0], *found.detail["nested"]):
        assert accuracy * 19 / 100 == pytest.approx(round(accuracy * 19 / 100), abs=1e-3)
    assert {path.name for path in tmp_path.iterdir()} == {"whole-1.json", "nested-1.json"}
