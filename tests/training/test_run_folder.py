"""The files of a run."""

import json
from dataclasses import replace

import pytest

from g2n2.errors import DataError
from g2n2.training.config import RunConfig
from g2n2.training.run_folder import RunFolder, checksum
from g2n2.training.settings import with_rules
from g2n2.training.setup import prepare
from small_sets import small_set

CONFIG = RunConfig("small", target=("t0",), width=4)


@pytest.fixture
def files(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.describe(CONFIG, prepare(CONFIG, small_set()))
    return folder


def test_what_was_written_comes_back(files):
    parts = prepare(CONFIG, small_set())
    assert files.config() == with_rules(CONFIG)
    assert files.columns() == parts.task.columns
    assert files.scaling() == parts.scaling
    assert {k: v.tolist() for k, v in files.splits().items()} == {
        k: v.tolist() for k, v in parts.splits.items()
    }
    assert sum(len(v) for v in files.splits().values()) == 60


def test_the_checksum_sees_every_array():
    graphs = small_set()
    first = checksum(graphs)
    assert checksum(small_set()) == first
    for name in ("node_features", "edges", "targets", "sizes"):
        changed = getattr(graphs, name).copy()
        changed.flat[3] += 1
        assert checksum(replace(graphs, **{name: changed})) != first, name


def test_other_data_is_refused(files):
    files.refuse_other_data(small_set())
    with pytest.raises(DataError, match="restore it, or start a new run"):
        files.refuse_other_data(small_set(seed=1))


def test_metrics_hold_no_times(files):
    history = [{"epoch": 1.0, "loss": 0.5, "seconds": 3.21, "validation mae": 1 / 3}]
    files.write_metrics(history)
    text = (files.path / "metrics.csv").read_text()
    assert text == "epoch,loss,validation mae\n1,0.5,0.3333333333\n"


def test_damaged_and_absent_files_are_said(files, tmp_path):
    (files.path / "config.json").write_text(json.dumps({"dataset": "x"})[:-4])
    with pytest.raises(DataError, match=r"config\.json is damaged"):
        files.config()
    with pytest.raises(DataError, match=r"has no result\.json"):
        files.read_json("result.json")
    with pytest.raises(DataError, match="is no run folder"):
        RunFolder.existing(tmp_path / "elsewhere")


def test_a_run_that_never_began_is_forgotten_and_nothing_else(files):
    (files.path / "tensorboard").mkdir()
    (files.path / "letter.txt").write_text("dear")
    files.forget()
    assert [path.name for path in files.path.iterdir()] == ["letter.txt"]
    (files.path / "letter.txt").unlink()
    files.forget()
    assert not files.path.exists()
    files.forget()
