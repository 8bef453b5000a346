"""Two processes give what one gives, and stop together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from g2n2.errors import DataError, MemoryBudgetError
from g2n2.training.loop import BAD_BATCH
from g2n2.training.processes import launch, out_of_memory
from g2n2.training.session import train_config
from small_runs import SMALL, largest_difference, learned_state, no_pictures, small_config
from two_processes import run, tied

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
PATHS = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
QUIET = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS}


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
STOPPED = "TrainingError: another process of this run stopped and says why"


def finished(words: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, env=QUIET, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which two processes have done everything in `two_processes.py`."""
    folder = tmp_path_factory.mktemp("two")
    finished([*TORCHRUN, str(TESTS / "two_processes.py"), str(folder)])
    return folder


def seen(folder: Path, rank: int) -> Any:
    return json.loads((folder / f"{rank}.json").read_text())


def assert_close(ours: Any, theirs: Any, tolerance: float) -> None:
    assert len(ours["history"]) == len(theirs["history"]) == 3
    for left, right in zip(
        [*ours["history"], ours["scores"]], [*theirs["history"], theirs["scores"]], strict=True
    ):
        for name in set(left) - {"seconds"}:
            assert left[name] == pytest.approx(right[name], rel=tolerance), name


def test_two_processes_give_what_one_gives(two: Path, tmp_path: Path) -> None:
    alone = run(tmp_path, precision="64")
    for rank in (0, 1):
        assert_close(seen(two, rank)["double"], alone, 1e-9)
    assert largest_difference(learned_state(two / "double"), learned_state(tmp_path)) < 1e-9


def test_each_process_leaves_the_others_before_it_ends(two: Path) -> None:
    assert [(two / f"{rank}.left").read_text() for rank in (0, 1)] == ["True", "True"]


def test_a_signal_to_one_process_stops_both_and_resuming_ends_the_same(two: Path) -> None:
    for rank in (0, 1):
        assert seen(two, rank)["interrupted"].startswith("KeyboardInterrupt")
        assert_close(seen(two, rank)["again"], seen(two, 0)["double"], 1e-12)


def test_two_processes_agree_which_of_tied_epochs_is_the_best(two: Path, tmp_path: Path) -> None:
    alone = tied(tmp_path)
    assert alone["best epoch"] > 1
    for rank in (0, 1):
        found = seen(two, rank)["tied"]
        assert found["best epoch"] == alone["best epoch"]
        assert found["losses"] == pytest.approx(alone["losses"], rel=1e-9)
    ours, theirs = (load_file(folder / "best.safetensors") for folder in (two / "tied", tmp_path))
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=1e-9, atol=1e-12)


def test_one_process_out_of_memory_changes_nothing(two: Path) -> None:
    for rank in (0, 1):
        assert_close(seen(two, rank)["memory"], seen(two, 0)["double"], 1e-12)


def test_a_loss_that_is_infinite_in_one_process_stops_both(two: Path) -> None:
    for rank in (0, 1):
        assert seen(two, rank)["nan"].startswith("TrainingError: the loss became NaN or infinite")
    assert (two / "nan" / BAD_BATCH).is_file()


def test_data_that_is_not_there_is_said_by_the_first_process(two: Path) -> None:
    assert "no graph with 3 nodes, all of degree 3" in seen(two, 0)["no data"]
    assert seen(two, 1)["no data"] == STOPPED


def test_a_full_disk_of_the_first_process_stops_both(two: Path) -> None:
    assert "No space left on device" in seen(two, 0)["full disk"]
    assert seen(two, 1)["full disk"] == STOPPED
    assert learned_state(two / "full")["progress"]["steps"] == 1


def test_the_command_line_starts_the_processes_itself(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({**SMALL, "epochs": 2, "precision": "64"}))
    words = [sys.executable, "-m", "g2n2", "train", "--config", str(settings)]
    said = finished([*words, "--devices", "2", "--out", str(tmp_path / "two")]).stdout
    with no_pictures():
        train_config(small_config(epochs=2, precision="64"), tmp_path / "one")
    assert said.count("run folder:") == 1, "one process speaks"
    one, two = learned_state(tmp_path / "one"), learned_state(tmp_path / "two")
    assert largest_difference(one, two) < 1e-9
    assert one["progress"]["steps"] == two["progress"]["steps"] == 8


def test_a_killed_process_ends_the_other_with_a_sentence_and_the_run_can_be_taken_up(
    tmp_path: Path,
) -> None:
    settings, run = tmp_path / "settings.json", tmp_path / "run"
    settings.write_text(json.dumps({**SMALL, "epochs": 1000, "checkpoint_seconds": 0.0}))
    words = [*TORCHRUN, str(TESTS / "numbered_process.py"), str(tmp_path), "train"]
    with open(tmp_path / "log", "w") as log:
        torchrun = subprocess.Popen(
            [*words, "--config", str(settings), "--out", str(run)],
            env=QUIET,
            stdout=log,
            stderr=log,
        )
        while not (run / "metrics.csv").exists():
            assert torchrun.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.01)
        os.kill(int((tmp_path / "0.pid").read_text()), signal.SIGKILL)
        torchrun.wait()
    said = (tmp_path / "log").read_text()
    assert said.count("another of the 2 processes of this run was killed") == 1
    assert f"g2n2 train --resume {run}" in said
    assert "gloo/" not in said
    assert "[rank" not in said, "no traceback of a process"
    steps = learned_state(run)["progress"]["steps"]
    train_config(small_config(minutes=1e-9), run, resume=True)
    assert learned_state(run)["progress"]["steps"] > steps > 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (MemoryError(), True),
        (MemoryBudgetError("8 graphs need about 3 GiB"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_out_of_memory_is_told_from_other_errors(error: Exception, expected: bool) -> None:
    assert out_of_memory(error) is expected


def test_a_cpu_says_it_in_words() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert out_of_memory(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(DataError, match="device cuda was asked for"):
        launch(small_config(device="cuda"))


def test_threads_are_those_asked_for() -> None:
    before = torch.get_num_threads()
    launch(small_config(threads=2))
    try:
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
