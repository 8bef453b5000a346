"""Many processes that start at once, in one folder of runs, in one run folder, on one file."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from g2n2.errors import DataError
from g2n2.locks import HOLDER, LOCK, holder, sole_writer
from g2n2.training.config import RunConfig
from g2n2.training.run_folder import BEST
from g2n2.training.session import Watch, train_config
from g2n2.training.settings import new_run_folder
from run_processes import hold, in_folder
from small_runs import SMALL, small_config, small_graphs

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
