"""Q3: the three statistics, the folds behind them, and a cell that can be stopped."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark_files import real_file
from g2n2.experiments.cell import Slice
from g2n2.experiments.q3 import cells, folds
from g2n2.experiments.q3.cells import known_runs, run_folds
from g2n2.experiments.q3.folds import FoldRun
from g2n2.experiments.q3.settings import PLANS, SETS, Plan, run_config
from g2n2.experiments.q3.statistics import (
    best_of_each_fold,
    gin_protocol,
    metrics,
    nested_validation,
)
from g2n2.experiments.record import Record
from g2n2.experiments.shared_data import graphs_of
from made_up_records import record as made_up

CURVES = [[50.0, 80.0, 95.0], [70.0, 76.0, 45.0]]


def test_gin_takes_one_epoch_for_all_folds() -> None:
    found = gin_protocol(CURVES)  # means 60, 78, 70
    assert (found.mean, found.deviation, found.epoch) == (78.0, 2.0, 2)


def test_of_epochs_that_are_equally_good_gin_takes_the_first() -> None:
    """The means are equal but for the third decimal of what is kept, and for rounding."""
    found = gin_protocol([[0.1, 33.333, 100.0], [0.2, 66.667, 0.0], [0.3, 50.0, 50.0005]])
    assert (found.epoch, round(found.deviation, 1)) == (2, 13.6)


def test_released_code_takes_the_best_epoch_of_each_fold() -> None:
    found = best_of_each_fold(CURVES)  # 95 and 76
    assert (found.mean, found.deviation, found.epoch) == (85.5, 9.5, None)


def test_nested_validation_is_a_plain_mean() -> None:
    found = nested_validation([60.0, 80.0])
    assert (found.mean, found.deviation) == (70.0, 10.0)


def test_every_statistic_has_its_own_name() -> None:
    found = metrics(CURVES, [])
    assert found == {
        "accuracy, GIN's protocol (%)": 78.0,
        "deviation over folds, GIN's protocol (%)": 2.0,
        "accuracy, best epoch of each fold (%)": 85.5,
        "deviation over folds, best epoch of each fold (%)": 9.5,
        "accuracy, nested validation (%)": None,
        "deviation over folds, nested validation (%)": None,
        "best epoch, GIN's protocol": 2,
    }


def test_settings_are_those_of_the_paper() -> None:
    widths = {name: chosen.width for name, chosen in SETS.items()}
    assert widths == {
        "MUTAG": 16,
        "PTC": 32,
        "PROTEINS": 32,
        "NCI1": 64,
        "IMDB-BINARY": 32,
        "IMDB-MULTI": 32,
    }
    decisions = {name: chosen.decision for name, chosen in SETS.items()}
    assert decisions.pop("MUTAG") == (256, 128)
    assert decisions.pop("NCI1") == (128, 64)
    assert set(decisions.values()) == {(512, 256)}
    assert all(run_config(name, "G2N2", PLANS["full"], 0).layers == 3 for name in SETS)


def test_an_epoch_has_fifty_steps_or_more_on_every_set() -> None:
    passes = {name: run_config(name, "GIN", PLANS["full"], 0).passes for name in SETS}
    # 6, 10, 32, 116, 29 and 43 batches of 32 in nine tenths of the graphs
    assert passes == {
        "MUTAG": 9,
        "PTC": 5,
        "PROTEINS": 2,
        "NCI1": 1,
        "IMDB-BINARY": 2,
        "IMDB-MULTI": 2,
    }


def test_full_has_a_cell_for_every_set_and_model() -> None:
    names = {cell.name for cell in cells("full") if not cell.optional}
    assert len(names) == 30
    assert {"MUTAG/G2N2", "IMDB-MULTI/PPGN", "NCI1/GIN", "PTC/GNNML1", "PTC/GNNML3"} <= names
    assert PLANS["full"].folds == 10


def test_no_test_graph_has_a_say_in_a_nested_run() -> None:
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    config = run_config("MUTAG", "G2N2", PLANS["full"], 0)
    graphs = graphs_of(config, Slice(work=Path("unused"), data=data))
    test = set(graphs.splits["fold-3"].tolist())
    whole = FoldRun("whole", 3).parts(graphs, 0)
    assert set(whole["validation"].tolist()) == test
    assert set(whole["train"].tolist()) == set(range(188)) - test
    nested = FoldRun("nested", 3).parts(graphs, 0)
    assert {part: len(members) for part, members in nested.items()} == {
        "train": 152,
        "validation": 17,
        "test": 19,
    }
    everything = np.concatenate(list(nested.values()))
    assert sorted(everything.tolist()) == list(range(188))
    assert set(nested["test"].tolist()) == test
    share = graphs.targets[nested["validation"], 0].mean() - graphs.targets[:, 0].mean()
    assert abs(share) < 0.1, "the classes are balanced as in the whole set"


@pytest.mark.parametrize(("name", "graphs"), [("MUTAG", 188), ("PTC", 344), ("IMDB-MULTI", 1500)])
def test_every_graph_is_tested_once_and_every_fold_has_the_classes_of_the_set(
    name: str, graphs: int
) -> None:
    data = str(real_file("tu", f"{name}.zip").parents[1])
    given = graphs_of(
        run_config(name, "G2N2", PLANS["full"], 0), Slice(work=Path("unused"), data=data)
    )
    folds = [given.splits[f"fold-{k}"] for k in range(1, 11)]
    assert sorted(np.concatenate(folds).tolist()) == list(range(graphs))
    assert SETS[name].graphs == graphs
    whole = given.targets[:, 0].mean()
    for fold in folds:
        assert abs(given.targets[fold, 0].mean() - whole) < 0.06


PLAN = Plan(("MUTAG",), ("GNNML1",), folds=1, epochs=2, steps=1)


def finished(work: Path, data: str, **options: Any) -> Record:
    given = Slice(work=work, data=data, device="cpu", **options)
    work.mkdir(exist_ok=True)
    return run_folds("MUTAG/GNNML1", "MUTAG", "GNNML1", "smoke", PLAN, 0, given)


def test_a_cell_stopped_within_a_fold_ends_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(real_file("tu", "MUTAG.zip").parents[1])
    published: list[Record] = []
    straight = finished(tmp_path / "straight", data, publish=published.append)
    assert [record.done for record in published] == [1, 2], "one that is killed has folds to show"
    assert (straight.done, straight.planned) == (2, 2)
    curves, nested = straight.detail["test curves"], straight.detail["nested"]
    held_out = [accuracy * 17 / 100 for accuracy in straight.detail["held out"]]
    assert held_out == pytest.approx([round(held_out[0])], abs=1e-3)
    assert [len(curve) for curve in curves] == [2]
    for accuracy in (*curves[0], *nested):
        assert accuracy * 19 / 100 == pytest.approx(round(accuracy * 19 / 100), abs=1e-3)

    stopped = finished(tmp_path / "sliced", data, minutes=1e-6)
    assert (stopped.done, stopped.partial) == (0, True)
    assert list(tmp_path.glob("sliced/*/whole-1/checkpoint.pt"))
    gone_on = finished(tmp_path / "sliced", data)
    assert gone_on.metrics == straight.metrics
    assert gone_on.detail == straight.detail
    assert not list(tmp_path.glob("sliced/*/whole-1")), "weights nobody reads again are dropped"

    def refuse(*_: object) -> None:
        raise AssertionError("a finished fold is run again")

    monkeypatch.setattr(folds, "train_slice", refuse)
    assert finished(tmp_path / "sliced", data).metrics == straight.metrics
    assert finished(tmp_path / "elsewhere", data, known=(straight,)).detail == straight.detail
    with pytest.raises(AssertionError, match="run again"):
        finished(tmp_path / "other", data, known=(replace(straight, data={"MUTAG": "other"}),))


def test_what_is_known_or_kept_of_other_data_is_left_alone(tmp_path: Path) -> None:
    data, other = {"MUTAG": "abc"}, {"MUTAG": "other"}
    record = replace(made_up("q3", "MUTAG/GIN", {}), data=data, detail={"a": 1})
    farther = replace(record, data=other, done=2, detail={"a": 2})
    given = Slice(tmp_path, known=(record,))
    assert given.on(data).known_detail == {"a": 1}
    assert Slice(tmp_path, known=(farther, record)).on(data).known_detail == {"a": 1}
    assert Slice(tmp_path, known=(farther, record)).on(other).known_detail == {"a": 2}
    assert given.on(other).known_detail == {} == Slice(tmp_path).on(data).known_detail
    (given.on(data).work / "whole-1.json").write_text("[50.0]")
    assert [path.name for path in given.on(data).work.iterdir()] == ["whole-1.json"]
    assert not list(given.on(other).work.iterdir())


def test_of_a_record_only_whole_runs_are_taken() -> None:
    plan = Plan(("MUTAG",), ("GIN",), folds=3, epochs=2)
    detail = {"test curves": [[1.0, 2.0]] * 3, "nested": [3.0, 4.0], "held out": [5.0, 6.0]}
    whole = {FoldRun("whole", fold): [1.0, 2.0] for fold in (1, 2, 3)}
    nested = {FoldRun("nested", 1): [3.0, 5.0], FoldRun("nested", 2): [4.0, 6.0]}
    assert known_runs(detail, plan) == whole | nested
    assert known_runs({}, plan) == {}
    for odd in ([6.0], None, 7):
        assert known_runs({**detail, "held out": odd}, plan) == whole
        assert known_runs({**detail, "nested": odd}, plan) == whole
    assert known_runs({**detail, "test curves": None}, plan) == nested
    for curve in ([1.0], [1.0, 500.0], [1.0, math.nan], "99", None, 7, [[1.0], [2.0]]):
        curves = [[1.0, 2.0], curve]
        assert (
            known_runs({**detail, "test curves": curves}, plan)
            == {FoldRun("whole", 1): [1.0, 2.0]} | nested
        )


def test_a_cell_of_q3_goes_on_from_its_record() -> None:
    assert all(cell.goes_on for cell in cells("full"))


def test_optional_cells_have_epochs_or_degrees_as_the_gin_code() -> None:
    optional = {cell.name: cell.settings for cell in cells("full") if cell.optional}
    said = {name: (one["epochs"], one["options"].get("degree")) for name, one in optional.items()}
    assert said == {
        "MUTAG/GIN/350-epochs": (350, None),
        "IMDB-BINARY/GIN/one-hot": (30, "one-hot"),
        "IMDB-BINARY/GIN/350-epochs/one-hot": (350, "one-hot"),
        "IMDB-MULTI/GIN/one-hot": (30, "one-hot"),
        "IMDB-MULTI/GIN/350-epochs/one-hot": (350, "one-hot"),
        "IMDB-BINARY/G2N2/one-hot": (30, "one-hot"),
        "IMDB-MULTI/G2N2/one-hot": (30, "one-hot"),
        "MUTAG/G2N2/350-epochs": (350, None),
    }
    paper = {cell.name: cell.settings for cell in cells("full")}["IMDB-MULTI/GIN"]
    assert paper["options"]["degree"] == "value"
