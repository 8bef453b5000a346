"""Errica's splits: who may choose what."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.errors import DataError
from g2n2_paper import errica
from g2n2_paper.errica import ErricaRun, read_splits, run_folds
from g2n2_paper.runner import Job
from g2n2_paper.runs import Trained


@pytest.mark.parametrize("name", errica.SETS)
def test_the_test_graphs_of_ten_folds_are_all_graphs_once(name: str):
    path = real_file("tu/errica_splits", f"{name}.json")
    content = json.loads(path.read_text())
    graphs = sum(len(fold["test"]) for fold in content)
    splits = read_splits(path, graphs)
    assert len(splits) == errica.FOLDS
    tested = np.concatenate([fold["test"] for fold in splits])
    assert np.array_equal(np.sort(tested), np.arange(graphs))


def test_each_fold_is_scored_on_its_test_graphs_by_the_run_its_validation_graphs_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen = []

    def train_fold(config, graphs, parts, folder, job, recorded):
        seen.append({part: len(members) for part, members in parts.items()})
        rows = [{"validation accuracy": share} for share in (0.5, 0.75, 0.25)]
        return Trained(1, {"all": {"accuracy": 0.5 + 0.25 * (len(seen) - 1)}}, {}, rows)

    monkeypatch.setattr(errica, "train_fold", train_fold)
    data = str(real_file("tu/errica_splits", "IMDB-BINARY.json").parents[2])
    found = run_folds(ErricaRun("IMDB-BINARY", 0, folds=2), Job(tmp_path, data=data))
    assert seen == [{"test": 100, "train": 810, "validation": 90}] * 2
    assert found.detail["test"] == [50.0, 75.0]
    assert found.detail["validation"] == [75.0, 75.0]
    assert (found.metrics[errica.ACCURACY], found.metrics[errica.DEVIATION]) == (62.5, 12.5)


def test_a_graph_in_two_parts_is_refused(tmp_path: Path):
    path = tmp_path / "SET.json"
    inner = {"train": [1, 2], "validation": [3]}
    path.write_text(json.dumps([{"test": [0, 1], "model_selection": [inner]}]))
    with pytest.raises(DataError, match="all graphs once"):
        read_splits(path, 4)
