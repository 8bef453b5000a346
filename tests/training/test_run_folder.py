"""The files of a run."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import g2n2
from g2n2.errors import DataError
from g2n2.training import run_folder as provenance_module
from g2n2.training.config import RunConfig, with_rules
from g2n2.training.run_folder import RunFolder, checksum, commit, provenance
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


def test_machine_and_versions_are_named():
    found = provenance(torch.device("cpu"))
    assert found["torch"] == torch.__version__
    assert found["g2n2"] == g2n2.__version__
    assert found["device"] == "cpu"
    assert found["cpu"]
    assert found["threads"] == torch.get_num_threads()


def test_the_commit_is_git_s():
    source = Path(g2n2.__file__).parent
    told = subprocess.run(
        ["git", "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    if told.returncode:
        pytest.skip("g2n2 does not run from a git checkout here")
    found = commit()
    assert found is not None
    assert found.split(" with changes")[0] == told.stdout.strip()


def test_outside_git_there_is_no_commit(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit() is None


def test_the_source_is_known_by_its_content(monkeypatch, tmp_path):
    package = tmp_path / "g2n2"
    (package / "training").mkdir(parents=True)
    (package / "training" / "provenance.py").write_text("a = 1\n")
    monkeypatch.setattr(provenance_module, "__file__", str(package / "training" / "provenance.py"))
    first = provenance_module.source_digest()
    assert first == provenance_module.source_digest()
    (package / "training" / "provenance.py").write_text("a = 2\n")
    assert provenance_module.source_digest() != first
