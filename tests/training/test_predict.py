"""Rows of a predictions file."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from g2n2.atomic_files import HOLDER, LOCK, holder, sole_writer
from g2n2.data.graph_set import Target
from g2n2.errors import DataError
from g2n2.training.config import RunConfig, new_run_folder
from g2n2.training.evaluate import Predictions
from g2n2.training.predict import match_training_columns, prediction_rows, write_rows
from g2n2.training.run_folder import BEST
from g2n2.training.session import Watch, train_config
from g2n2.training.task import Task
from run_processes import hold, in_folder
from small_runs import SMALL, small_config, small_graphs
from small_sets import small_set


def predictions(graphs, values=None):
    rows = np.arange(len(graphs.targets))
    return Predictions(rows, graphs.targets if values is None else values, graphs.targets)


def test_records_that_were_not_read_keep_their_place(tmp_path):
    graphs = small_set(graphs=3)
    source = {"rows": (0, 2, 3), "record_ids": ("a", "b", "c", "d"), "unread": {1: "not SMILES"}}
    graphs = replace(graphs, ids=("a", "c", "d"), source=MappingProxyType(source))
    made = predictions(graphs)
    rows = prediction_rows(graphs, Task.of(graphs), made, truth=False, unread=True)
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"]
    assert rows[1] == {"id": "b", "note": "not predicted: not SMILES"}
    write_rows(tmp_path / "p.csv", rows)
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "id,t0 [bonds],note"
    assert lines[2] == "b,,not predicted: not SMILES"
    assert lines[3] == f"c,{graphs.targets[1, 0]:g},"
    own = prediction_rows(graphs, Task.of(graphs), made, truth=True, unread=False)
    assert len(own) == 3
    assert own[0]["true t0 [bonds]"] == own[0]["t0 [bonds]"]


def test_nodes_and_edges_are_counted_within_their_graph():
    graphs = small_set("node", graphs=3)
    rows = prediction_rows(graphs, Task.of(graphs), predictions(graphs), truth=False, unread=True)
    places = [(row["id"], row["node"]) for row in rows]
    assert places == [(f"g{g}", n) for g in range(3) for n in range(graphs.sizes[g])]
    graphs = small_set("edge", "binary", graphs=3)
    rows = prediction_rows(graphs, Task.of(graphs), predictions(graphs), truth=True, unread=True)
    first = graphs.edge_counts[0]
    assert [(row["source"], row["target"]) for row in rows[:first]] == list(
        zip(*graphs.edges[:, :first].tolist(), strict=True)
    )
    assert rows[first]["id"] == "g1"
    assert all(row["true t0"] == row["t0"] for row in rows)
    assert {row["true t0"] for row in rows} == {"no", "yes"}


def test_unknown_targets_are_empty():
    graphs = small_set(missing=0.5)
    rows = prediction_rows(
        graphs, Task.of(graphs), predictions(graphs, np.zeros((60, 1))), truth=True, unread=False
    )
    empty = [row["true t0 [bonds]"] == "" for row in rows]
    assert empty == np.isnan(graphs.targets[:, 0]).tolist()
    assert any(empty)


def test_ids_of_the_input_are_kept_where_they_repeat_or_are_empty():
    source = {"rows": (0, 1, 2), "record_ids": ("a", "a", ""), "unread": {}}
    graphs = replace(small_set(graphs=3), ids=("0", "1", "2"), source=MappingProxyType(source))
    rows = prediction_rows(graphs, Task.of(graphs), predictions(graphs), truth=False, unread=True)
    assert [row["id"] for row in rows] == ["a", "a", ""]


def test_energies_keep_their_digits(tmp_path):
    write_rows(tmp_path / "p.csv", [{"id": "a", "u0 [hartree]": -286.4950123}])
    assert (tmp_path / "p.csv").read_text().splitlines()[1] == "a,-286.495012"


CLASHES = [
    ("graph", ("id",), ["id", "true id", "predicted id"]),
    ("graph", ("note", "a"), ["id", "true note", "true a", "predicted note", "a"]),
    (
        "graph",
        ("a", "true a"),
        ["id", "true a", "true true a", "a", "predicted true a"],
    ),
    (
        "graph",
        ("predicted id", "id"),
        ["id", "true predicted id", "true id", "predicted id", "predicted predicted id"],
    ),
    ("graph", ("target",), ["id", "true target", "target"]),
    ("node", ("node",), ["id", "node", "true node", "predicted node"]),
    ("edge", ("target",), ["id", "source", "target", "true target", "predicted target"]),
]


@pytest.mark.parametrize(("level", "names", "header"), CLASHES)
def test_a_target_never_takes_the_place_of_another_column(level, names, header, tmp_path):
    graphs = small_set(level, graphs=3, columns=len(names))
    graphs = replace(graphs, columns=tuple(Target(name) for name in names))
    task, rows = Task.of(graphs), len(graphs.targets)
    values = graphs.targets + 100.0
    made = predictions(graphs, values)
    beside = prediction_rows(graphs, task, made, truth=True, unread=False)
    assert list(beside[0]) == header
    assert [row["id"] for row in beside[:: max(1, rows - 1)]] == ["g0", "g2"]
    told = header[-2 * len(names) :]
    for place, (true, predicted) in enumerate(
        zip(told[: len(names)], told[len(names) :], strict=True)
    ):
        assert [row[true] for row in beside] == graphs.targets[:, place].tolist()
        assert [row[predicted] for row in beside] == values[:, place].tolist()
    alone = prediction_rows(graphs, task, made, truth=False, unread=True)
    assert list(alone[0])[-len(names) :] == told[len(names) :], "the same names without the truth"


def test_a_class_of_the_target_s_own_name_keeps_its_column():
    graphs = small_set(kind="multiclass", graphs=30)
    column = replace(graphs.columns[0], name="p(few)")
    graphs = replace(graphs, columns=(column,))
    made = predictions(graphs, np.tile([0.5, 0.3, 0.2], (30, 1)))
    rows = prediction_rows(graphs, Task.of(graphs), made, truth=False, unread=False)
    assert rows[0] == {
        "id": "g0",
        "p(few)": "few",
        "predicted p(few)": 0.5,
        "p(some)": 0.3,
        "p(many)": 0.2,
    }


def described(graphs, **changes):
    return {
        "level": graphs.level,
        "node_names": list(graphs.node_names),
        "edge_names": list(graphs.edge_names),
        "node_features": graphs.node_features.shape[1],
        "edge_features": graphs.edge_features.shape[1],
        "positions": False,
        **changes,
    }


def test_features_are_put_into_the_order_of_training():
    trained = small_set()
    swapped = replace(trained, node_features=trained.node_features[:, ::-1], node_names=("b", "a"))
    made = match_training_columns(swapped, described(trained), Task.of(trained))
    assert np.array_equal(made.node_features, trained.node_features)
    assert made.node_names == ("a", "b")


def test_missing_and_unknown_features_are_named():
    trained = small_set()
    other = replace(trained, node_names=("a", "c"))
    with pytest.raises(DataError) as caught:
        match_training_columns(other, described(trained), Task.of(trained))
    assert "lacks the node feature b and has unknown to the run the node feature c" in str(
        caught.value
    )


def test_another_number_of_features_without_names_is_refused():
    trained = small_set()
    nameless = replace(trained, node_features=trained.node_features[:, :1], node_names=())
    with pytest.raises(DataError, match="has 1 node features, the run was trained on 2: a, b"):
        match_training_columns(nameless, described(trained), Task.of(trained))


def test_a_target_of_the_run_is_no_feature():
    trained = small_set("node")
    features = np.concatenate([trained.node_features, trained.targets], 1).astype(np.float32)
    more = replace(trained, node_features=features, node_names=("a", "b", "t0"))
    made = match_training_columns(more, described(trained), Task.of(trained))
    assert np.array_equal(made.node_features, trained.node_features)


def test_a_target_of_the_run_is_no_feature_where_the_run_has_none():
    trained = small_set("edge")
    bare = replace(
        trained, edge_features=np.zeros((len(trained.targets), 0), np.float32), edge_names=()
    )
    labelled = replace(
        bare, edge_features=trained.targets.astype(np.float32), edge_names=("t0",), level="graph"
    )
    made = match_training_columns(labelled, described(bare), Task.of(bare))
    assert made.edge_features.shape == bare.edge_features.shape
    other = replace(labelled, edge_names=("length",))
    with pytest.raises(DataError, match="has unknown to the run the edge feature length; give"):
        match_training_columns(other, described(bare), Task.of(bare))


def test_classes_are_matched_by_name():
    trained = small_set(kind="multiclass")
    column = Target("T0", kind="multiclass", classes=("many", "few"))
    values = np.array([[0.0], [1.0], [np.nan]] * 20)
    new = replace(trained, targets=values, columns=(column,))
    made = match_training_columns(new, described(trained), Task.of(trained))
    assert made.targets[:2, 0].tolist() == [2.0, 0.0]
    assert np.isnan(made.targets[2, 0])
    odd = replace(new, columns=(Target("t0", kind="multiclass", classes=("many", "none")),))
    with pytest.raises(
        DataError, match="class 'none', unknown to the run; it knows few, some, many"
    ):
        match_training_columns(odd, described(trained), Task.of(trained))


def test_targets_that_are_not_there_are_unknown():
    trained = small_set("edge", "binary")
    bare = replace(trained, targets=np.zeros((len(trained), 0)), columns=(), level="graph")
    made = match_training_columns(bare, described(trained), Task.of(trained))
    assert made.targets.shape == trained.targets.shape
    assert np.isnan(made.targets).all()


def test_positions_are_asked_for_where_distances_were_learned():
    trained = small_set()
    with pytest.raises(DataError, match="no positions"):
        match_training_columns(trained, described(trained, positions=True), Task.of(trained))
    placed = replace(trained, positions=np.zeros((trained.sizes.sum(), 3), dtype=np.float32))
    assert match_training_columns(placed, described(trained), Task.of(trained)).positions is None


pytest.importorskip("lightning.fabric", reason="training needs lightning")

PRELOAD = ["g2n2.cli", "g2n2.training.session", "g2n2.training.display", "lightning.fabric"]
SHORT = {**SMALL, "epochs": 1, "grammar": "GNNML1"}


@pytest.fixture(scope="module")
def processes() -> Any:
    """Processes that start in a moment: forked from one in which torch is imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOAD, "run_processes", "torch.utils.tensorboard"])
    return context


def at_once(processes: Any, folder: Path, commands: list[list[str]]) -> list[tuple[int, str]]:
    """How each of some commands ended that were started at the same time, and what it said."""
    logs = [folder / f"{number}.log" for number in range(len(commands))]
    started = [
        processes.Process(target=in_folder, args=(folder, words, log), daemon=True)
        for words, log in zip(commands, logs, strict=True)
    ]
    for process in started:
        process.start()
    (folder / "go").touch()
    for process in started:
        process.join()
    return [(p.exitcode, log.read_text()) for p, log in zip(started, logs, strict=True)]


def seeded(folder: Path, count: int) -> list[list[str]]:
    (folder / "settings.json").write_text(json.dumps(SHORT))
    return [["train", "--config", "settings.json", "--seed", str(seed)] for seed in range(count)]


def test_runs_started_at_once_have_a_folder_each(processes: Any, tmp_path: Path) -> None:
    count = 12  # `make torture` starts 100
    ended = at_once(processes, tmp_path, seeded(tmp_path, count))
    assert [code for code, _ in ended] == [0] * count, ended
    folders = sorted((tmp_path / "runs").iterdir())
    assert len(folders) == count
    seeds = set()
    for folder in folders:
        config = json.loads((folder / "config.json").read_text())
        result = json.loads((folder / "result.json").read_text())
        assert result["config"] == config, folder
        assert (folder / BEST).is_file()
        (told,) = (text for _, text in ended if f"run folder: runs/{folder.name} " in text)
        assert f"seed {config['seed']}." in told
        seeds.add(config["seed"])
    assert seeds == set(range(count))


def test_of_runs_started_in_one_folder_one_is_left_alone(processes: Any, tmp_path: Path) -> None:
    commands = [[*words, "--out", "run"] for words in seeded(tmp_path, 8)]
    ended = at_once(processes, tmp_path, commands)
    winners = [seed for seed, (code, _) in enumerate(ended) if code == 0]
    assert len(winners) == 1, ended
    for seed, (code, said) in enumerate(ended):
        if seed not in winners:
            assert code == 2
            assert "Traceback" not in said
            assert "is being written by" in said or "holds a run already" in said
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["config"]["seed"] == winners[0]
    assert result["config"] == json.loads((tmp_path / "run" / "config.json").read_text())


def test_a_run_is_taken_up_by_one_process_and_the_other_is_told_by_whom(tmp_path: Path) -> None:
    said = []

    def second(_loop: object) -> None:
        with pytest.raises(DataError) as refusal:
            train_config(small_config(), tmp_path, graphs=small_graphs(), resume=True)
        said.append(str(refusal.value))

    config = small_config(epochs=1)
    train_config(config, tmp_path, graphs=small_graphs(), watch=Watch(epoch=second))
    assert said
    assert f"is being written by process {os.getpid()} on " in said[0]
    assert "wait for it to end, or name another folder" in said[0]
    assert not (tmp_path / HOLDER).exists()
    train_config(config, tmp_path, graphs=small_graphs(), resume=True)


def test_the_lock_of_a_killed_process_is_taken_over(processes: Any, tmp_path: Path) -> None:
    process = processes.Process(target=hold, args=(tmp_path,), daemon=True)
    process.start()
    while not (tmp_path / "held").exists():
        assert process.is_alive()
        time.sleep(0.001)
    with pytest.raises(DataError, match=rf"process {process.pid} on .*; go away"):
        sole_writer(tmp_path, "go away").__enter__()
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with sole_writer(tmp_path, ""):
        assert f"process {os.getpid()} " in holder(tmp_path / HOLDER)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write in .*file .*: check that the folder can be"):
        sole_writer(tmp_path / "file", "").__enter__()
    with pytest.raises(DataError, match="is no folder"):
        new_run_folder(RunConfig("mutag"), tmp_path / "file")


def test_a_run_that_never_began_leaves_no_folder(tmp_path: Path) -> None:
    folder = new_run_folder(RunConfig("mutag"), tmp_path)
    assert folder.is_dir()
    with pytest.raises(DataError, match="has no target"):
        train_config(small_config(target=("nope",), options={"nodes": 8}), folder)
    assert not folder.exists()
    assert not (folder / LOCK).exists()
