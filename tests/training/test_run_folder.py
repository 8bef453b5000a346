"""The files of a run: what is read back, what is refused, and who may write."""

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import g2n2
from forked import PROCESSES
from g2n2.atomic_files import HOLDER, LOCK, holder, sole_writer
from g2n2.errors import DataError
from g2n2.training import run_folder
from g2n2.training.checkpoint import MANIFEST
from g2n2.training.config import RunConfig, with_rules
from g2n2.training.run import Run
from g2n2.training.run_folder import BEST, RunFolder, commit, new_run_folder, provenance
from g2n2.training.session import Watch, train_config
from g2n2.training.setup import prepare
from g2n2.training.trained_on import TrainedOn, checksum
from run_processes import hold, in_folder
from small_runs import SMALL, no_pictures, small_config, small_graphs
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
    assert files.trained_on == TrainedOn.of(CONFIG, parts)
    assert files.trained_on.scaling == parts.scaling
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
    files.trained_on.refuse_other(small_set(), files.path)
    renamed = replace(small_set(), ids=tuple(f"other {k}" for k in range(60)))
    for other, what in ((small_set(seed=1), "data"), (renamed, "ids")):
        with pytest.raises(DataError, match=f"the {what} of .* restore it, or start a new run"):
            files.trained_on.refuse_other(other, files.path)


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
    with pytest.raises(DataError, match="is no run folder") as of_folder:
        RunFolder.existing(tmp_path / "elsewhere")
    with pytest.raises(DataError) as of_run:
        Run(tmp_path / "elsewhere")
    assert str(of_run.value) == f"{of_folder.value}; by name there is qm9"


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
    monkeypatch.setattr(run_folder, "__file__", str(package / "training" / "provenance.py"))
    first = run_folder.source_digest()
    assert first == run_folder.source_digest()
    (package / "training" / "provenance.py").write_text("a = 2\n")
    assert run_folder.source_digest() != first


GRAPHS = small_graphs()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A finished run without checksums."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    with no_pictures():
        train_config(small_config(grammar="GNNML1", epochs=1), folder, graphs=GRAPHS)
    (folder / MANIFEST).unlink()
    return folder


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


CASES = [
    ("data.json", ("scaling", "mean"), ["x", "y"], r"data\.scaling\.mean\[0\] should be a finite"),
    ("data.json", ("scaling", "deviation"), [0, 1], "a deviation other than 0"),
    ("data.json", ("scaling", "mean"), [1.0], "for each of 2 columns"),
    ("data.json", ("scaling",), None, r"data\.scaling should be a table, got None"),
    ("data.json", ("columns",), [], "there are no columns"),
    ("data.json", ("columns",), [{"unit": "y"}], r"data\.columns\[0\] has no name"),
    ("data.json", ("level",), "graf", r"data\.level should be graph or node or edge, got 'graf'"),
    ("data.json", ("node_names",), 3, r"data\.node_names should be a list, got 3"),
    ("split.json", ("test",), [10**6], r"split\.test\[0\] should be a whole number from 0 to 49"),
    ("split.json", ("test",), [-1], r"split\.test\[0\] should be a whole number from 0 to 49"),
    ("split.json", ("train",), "all", r"split\.train should be a list, got 'all'"),
    ("config.json", ("seed",), 2**64, "seed must be at most"),
    ("config.json", ("layers",), 10**6, "layers must be at most 256"),
    ("config.json", (), [1], "config should be a table, got"),
]


def put(folder: Path, name: str, keys: tuple[str, ...], value: Any) -> None:
    path = folder / name
    said = json.loads(path.read_text())
    if not keys:
        path.write_text(json.dumps(value))
        return
    place = said
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(said))


def use(folder: Path) -> None:
    """Everything that reads the files."""
    run = Run(folder, "cpu")
    str(run)
    run.predict(GRAPHS)
    run.evaluate("test", GRAPHS)


@pytest.mark.parametrize(("name", "keys", "value", "message"), CASES)
def test_the_field_is_named_and_what_is_allowed(name, keys, value, message, folder):
    put(folder, name, keys, value)
    with pytest.raises(DataError, match=message):
        use(folder)


SHORT = {**SMALL, "epochs": 1, "grammar": "GNNML1"}


def at_once(folder: Path, commands: list[list[str]]) -> list[tuple[int, str]]:
    """How each of some commands ended that were started at the same time, and what it said."""
    logs = [folder / f"{number}.log" for number in range(len(commands))]
    started = [
        PROCESSES.Process(target=in_folder, args=(folder, words, log), daemon=True)
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


def test_runs_started_at_once_have_a_folder_each(tmp_path: Path) -> None:
    count = 2  # `make torture` starts 100
    ended = at_once(tmp_path, seeded(tmp_path, count))
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


def test_of_runs_started_in_one_folder_one_is_left_alone(tmp_path: Path) -> None:
    commands = [[*words, "--out", "run"] for words in seeded(tmp_path, 3)]
    ended = at_once(tmp_path, commands)
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


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    process = PROCESSES.Process(target=hold, args=(tmp_path,), daemon=True)
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
