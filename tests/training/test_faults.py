"""Runs that are killed, interrupted or run out of disk, as real processes."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from g2n2.training.checkpoints import NAME, load_checkpoint
from small_runs import SMALL, Moment, command_line, learned_state, same_bytes

pytestmark = pytest.mark.slow

PART = f".{NAME}.part"
PRELOAD = ["g2n2.cli", "g2n2.training.session", "g2n2.training.display", "lightning.fabric"]


@pytest.fixture(scope="module")
def processes() -> Any:
    """Processes that start in a moment: forked from one in which torch is imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOAD, "small_runs", "torch.utils.tensorboard"])
    return context


def settings(folder: Path, epochs: int) -> list[str]:
    """Words for a run of 4 steps an epoch that saves after every one."""
    path = folder / "settings.json"
    path.write_text(json.dumps({**SMALL, "epochs": epochs, "checkpoint_seconds": 0.0}))
    return ["train", "--config", str(path)]


def started(
    processes: Any,
    words: list[str],
    log: Path,
    moment: Moment | None = None,
    largest_file: int = 0,
) -> Any:
    process = processes.Process(
        target=command_line, args=(words, log, moment, largest_file), daemon=True
    )
    process.start()
    return process


def finished(process: Any) -> int:
    process.join(600)
    assert process.exitcode is not None, "still running"
    code: int = process.exitcode
    return code


def test_twenty_kills_leave_the_same_bytes(processes: Any, tmp_path: Path) -> None:
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    words = settings(tmp_path, 50)
    reference = subprocess.Popen(
        [sys.executable, "-m", "g2n2", *words, "--out", str(calm)], stdout=subprocess.DEVNULL
    )
    chance = random.Random(0)
    during_write = 0
    for number in range(20):
        resumed = ["train", "--resume", str(killed)]
        there = (killed / "config.json").exists()
        when = ("step", 1) if number % 5 == 4 else ("step", chance.randint(2, 10))
        if number % 2:
            when = ("write", chance.randint(1, 9))
        process = started(
            processes,
            resumed if there else [*words, "--out", str(killed)],
            tmp_path / "log",
            (*when, signal.SIGKILL),
        )
        assert finished(process) == -signal.SIGKILL, (tmp_path / "log").read_text()
        during_write += (killed / PART).exists()
    assert during_write == 10
    done = learned_state(killed)["progress"]["steps"]
    assert 15 < done < 200, "the kills fell between the first step and the last"
    last = started(processes, ["train", "--resume", str(killed)], tmp_path / "log")
    assert finished(last) == 0, (tmp_path / "log").read_text()
    assert reference.wait(600) == 0
    assert same_bytes(learned_state(calm), learned_state(killed))
    for name in ("metrics.csv", "test.csv"):
        assert (calm / name).read_bytes() == (killed / name).read_bytes(), name
    best, again = (load_file(folder / "best.safetensors") for folder in (calm, killed))
    assert same_bytes(best, again)
    left = {path.name for path in killed.iterdir()} - {path.name for path in calm.iterdir()}
    assert not left, "files of killed processes pile up"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_a_checkpoint_and_a_short_message(
    processes: Any, tmp_path: Path, number: signal.Signals
) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"
    words = [*settings(tmp_path, 10), "--out", str(folder)]
    process = started(processes, words, log, ("step", 6, number))
    assert finished(process) == 130
    said = log.read_text()
    assert "Traceback" not in said
    assert said.rstrip().endswith(f"g2n2 train --resume {folder}")
    assert learned_state(folder)["progress"]["steps"] in (5, 6)
    again = started(processes, ["train", "--resume", str(folder)], log)
    assert finished(again) == 0, log.read_text()
    assert learned_state(folder)["progress"]["steps"] == 40


def test_a_file_too_large_for_the_disk_leaves_the_last_checkpoint(
    processes: Any, tmp_path: Path
) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"
    words = [*settings(tmp_path, 10), "--out", str(folder)]
    process = started(processes, words, log, ("step", 3, signal.SIGKILL))
    assert finished(process) == -signal.SIGKILL
    good = (folder / NAME).read_bytes()
    resume = ["train", "--resume", str(folder)]
    full = started(processes, resume, log, largest_file=len(good) // 2)
    assert finished(full) == 2
    said = log.read_text()
    assert "Traceback" not in said
    assert f"cannot write {folder / NAME} (File too large)" in said
    assert f"go on: g2n2 train --resume {folder}" in said
    assert (folder / NAME).read_bytes() == good
    assert not (folder / PART).exists(), "half a file would fill the disk for good"
    after = started(processes, resume, log)
    assert finished(after) == 0, log.read_text()
    content, troubles = load_checkpoint(folder)
    assert content is not None
    assert content["progress"]["steps"] == 40
    assert not troubles
