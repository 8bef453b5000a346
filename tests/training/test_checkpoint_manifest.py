"""The files of a run belong together: one that was altered or exchanged is refused by name."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch

from g2n2.errors import DataError
from g2n2.training import checkpoint
from g2n2.training.checkpoint import (
    CHECKPOINT,
    PREVIOUS,
    load_checkpoint,
    read_manifest,
    save_checkpoint,
    with_version,
)
from g2n2.training.run import Run
from g2n2.training.run_folder import BEST, CALIBRATION, DESCRIPTION, KEYS, RunFolder
from g2n2.training.session import Watch, train_config
from small_runs import no_pictures, small_config, small_graphs

GRAPHS = small_graphs()
CONFIG = small_config(grammar="GNNML1", checkpoint_seconds=0.0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Path, Path]:
    """Two runs of the same shape."""
    first, second = (tmp_path_factory.mktemp("runs") / name for name in ("first", "second"))
    with no_pictures():
        train_config(CONFIG, first, graphs=GRAPHS)
        train_config(
            small_config(grammar="GNNML1", seed=1, checkpoint_seconds=0.0), second, graphs=GRAPHS
        )
    return first, second


@pytest.fixture
def folder(runs, tmp_path) -> Path:
    return Path(shutil.copytree(runs[0], tmp_path / "run"))


def test_a_run_as_it_was_written_predicts_and_goes_on(folder):
    assert Run(folder, "cpu").note == ""
    assert Run(folder, "cpu").evaluate("test", GRAPHS).scores
    train_config(CONFIG, folder, graphs=GRAPHS, resume=True)


def altered_scaling(folder: Path, _other: Path) -> str:
    path = folder / "data.json"
    said = json.loads(path.read_text())
    said["scaling"]["mean"][0] += 1
    path.write_text(json.dumps(said, ensure_ascii=False, indent=2))
    return path.name


def moved_test_graphs(folder: Path, _other: Path) -> str:
    path = folder / "split.json"
    said = json.loads(path.read_text())
    said["train"] += said["test"]
    path.write_text(json.dumps(said, indent=2))
    return path.name


def other_settings(folder: Path, _other: Path) -> str:
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    return path.name


def other_weights(folder: Path, other: Path) -> str:
    shutil.copy(other / BEST, folder / BEST)
    return BEST


def added_operations(folder: Path, _other: Path) -> str:
    (folder / "operations.json").write_text("[]")
    return "operations.json"


ALTERATIONS = [altered_scaling, moved_test_graphs, other_settings, other_weights, added_operations]


@pytest.mark.parametrize("alter", ALTERATIONS)
def test_what_was_altered_or_exchanged_is_refused_by_name(alter, folder, runs):
    name = alter(folder, runs[1])
    with pytest.raises(DataError, match=rf"{name} is not the file this run wrote"):
        Run(folder, "cpu").evaluate("test", GRAPHS)
    with pytest.raises(DataError, match=rf"{name} is not the file this run wrote"):
        train_config(RunFolder.existing(folder).config(), folder, graphs=GRAPHS, resume=True)


@pytest.mark.parametrize("alter", [altered_scaling, other_weights])
def test_a_folder_of_an_earlier_version_is_used_with_a_note(alter, folder, runs):
    (folder / checkpoint.MANIFEST).unlink()
    run = Run(folder, "cpu")
    assert "has no manifest.json, as those of earlier versions" in run.note
    assert run.note in str(run)
    assert len(run.predict(GRAPHS)) == len(GRAPHS)
    notes: list[str] = []
    train_config(CONFIG, folder, graphs=GRAPHS, resume=True, watch=Watch(note=notes.append))
    assert any("is not checked; from here on it is" in note for note in notes)
    name = alter(folder, runs[1])
    with pytest.raises(DataError, match=name):
        Run(folder, "cpu").evaluate("test", GRAPHS)


def test_the_manifest_itself_is_checked(folder):
    path = folder / checkpoint.MANIFEST
    whole = path.read_text()
    for text in (whole.replace('"config.json"', '"conf.json"'), whole[:-9], "[]", "{}", "7"):
        path.write_text(text)
        with pytest.raises(DataError, match=r"manifest\.json is damaged or was altered"):
            Run(folder, "cpu")
    path.write_text(whole.replace('"format": 1', '"format": 2'))
    with pytest.raises(DataError, match="newer g2n2"):
        Run(folder, "cpu")


def test_a_checkpoint_of_another_run_is_passed_over(folder, runs):
    shutil.copy(runs[1] / CHECKPOINT, folder / CHECKPOINT)
    content, troubles = load_checkpoint(folder)
    assert content is not None
    assert content["config"]["seed"] == 0
    assert troubles == [f"{CHECKPOINT} was altered or is of another run"]
    shutil.copy(runs[1] / CHECKPOINT, folder / PREVIOUS)
    with pytest.raises(DataError, match=f"{CHECKPOINT} was altered .*; {PREVIOUS} was altered"):
        load_checkpoint(folder)


@pytest.mark.parametrize("killed_at", range(6))
def test_a_kill_between_any_two_files_leaves_a_run_that_is_known(folder, monkeypatch, killed_at):
    """Three checkpoints are written over and over, the process ending before some replacement."""

    class KilledError(BaseException):
        pass

    left = [killed_at]
    real = checkpoint.replace_file

    def replaced(*arguments, **named):
        left[0] -= 1
        if left[0] < 0:
            raise KilledError
        real(*arguments, **named)

    monkeypatch.setattr(checkpoint, "replace_file", replaced)
    content, _ = load_checkpoint(folder)
    try:
        for number in range(4):
            save_checkpoint(folder, {**content, "model": {"w": torch.full((3,), float(number))}})
    except KilledError:
        pass
    content, troubles = load_checkpoint(folder)
    assert content is not None
    assert not troubles


def test_the_manifest_knows_a_bounded_number_of_versions():
    known = {}
    for number in range(100):
        known = with_version(known, BEST, bytes([number]))
    newest = [hashlib.sha256(bytes([n])).hexdigest() for n in range(99, 0, -1)]
    assert known[BEST] == newest[: checkpoint.KEPT_VERSIONS]


def test_after_its_end_a_run_knows_its_last_best_weights_only(folder):
    known = read_manifest(folder)
    assert len(known[BEST]) == 1
    assert set(known) == {*DESCRIPTION, KEYS, BEST, CALIBRATION, CHECKPOINT} - {"operations.json"}


def test_ids_that_changed_are_noticed(folder):
    from dataclasses import replace

    renamed = replace(GRAPHS, ids=tuple(f"other {i}" for i in range(len(GRAPHS))))
    with pytest.raises(DataError, match=r"the ids of .* are not what .* was started on"):
        Run(folder, "cpu").evaluate("test", renamed)
    with pytest.raises(DataError, match=r"the ids of .* are not what .* was started on"):
        train_config(CONFIG, folder, graphs=renamed, resume=True)


def test_a_checkpoint_of_another_version_is_gone_on_with_and_said(folder, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("g2n2.training.loop.__version__", "9.9")
    train_config(CONFIG, folder, graphs=GRAPHS, resume=True, watch=Watch(note=notes.append))
    assert any("this is 9.9; going on with it" in note for note in notes)


def test_lost_best_weights_are_said_with_the_next_move(folder):
    (folder / BEST).unlink()
    moves = rf"has lost {BEST}.*: restore it from a copy, or train again: g2n2 train --config"
    with pytest.raises(DataError, match=moves):
        Run(folder, "cpu").predict(GRAPHS)
    with pytest.raises(DataError, match=moves):
        train_config(CONFIG, folder, graphs=GRAPHS, resume=True)
