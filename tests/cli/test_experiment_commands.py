"""The experiment command as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
import torch
from test_commands import run

from g2n2.experiments import running
from made_up_records import record, write


def test_the_cells_of_a_question_are_listed_with_what_is_done(tmp_path):
    code, text = run("experiment", "q2", "--list", "--only", "r2", "--results", str(tmp_path))
    assert code == 0
    assert "single/r2/distance/G2N2/modern" in text
    assert "optional" in text
    assert "single/u0" not in text


def test_the_list_says_which_records_are_of_other_settings(tmp_path):
    cell = "single/r2/distance/G2N2/modern"
    write(tmp_path, "q2", cell, {}, budget="short", done=9, planned=9, config={"rate": 0.7})
    code, text = run("experiment", "q2", "--list", "--only", cell, "--results", str(tmp_path))
    assert code == 0
    assert "9 of 9 epochs, other settings" in " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "r3"), "no cell fits --only 'r3'"),
        (("--seeds", "one"), "--seeds is a list of numbers as 0,1,2; got 'one'"),
        (("--seeds", ","), "--seeds is a list of numbers as 0,1,2; got ','"),
        (("--option", "cache"), "should read KEY=VALUE"),
        (("--option", "track=bonds"), "--option track: what is read is fixed by each cell"),
        (("--seeds", "0,99"), "no cell has the seed 99; seeds of these cells: 0"),
        (("--data", "nowhere"), "--data nowhere: there is no such folder"),
    ],
)
def test_a_mistake_is_named(words, said):
    code, text = run("experiment", "q2", "--budget", "smoke", *words)
    assert code == 2
    assert said in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_gpu_that_is_not_there_is_not_a_cpu(tmp_path):
    words = ("--only", "exact/four-rule/own", "--device", "cuda", "--results", str(tmp_path))
    code, text = run("experiment", "q1", "--budget", "smoke", *words)
    assert (code, "no GPU is seen here" in text) == (2, True)
    assert not any(tmp_path.iterdir())


def test_a_damaged_record_is_listed_as_one(tmp_path):
    (tmp_path / "q1").mkdir()
    (tmp_path / "q1" / "exact-four-rule-own.s0.smoke.json").write_text("{")
    words = ("--budget", "smoke", "--only", "exact", "--results", str(tmp_path))
    code, text = run("experiment", "q1", "--list", *words)
    assert code == 0
    assert text.count("damaged record") == 1


def test_the_record_of_another_cell_is_listed_as_one(tmp_path):
    path = record("q1", "exact/G_L3/own", {}, budget="smoke").write(tmp_path)
    path.rename(path.with_name("exact-four-rule-own.s0.smoke.json"))
    words = ("--budget", "smoke", "--only", "exact", "--results", str(tmp_path))
    _, text = run("experiment", "q1", "--list", *words)
    assert text.count("record of q1 exact/G_L3/own") == 1


def test_nothing_but_cells_left_out_is_no_success(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "absent", lambda name, *_: f"{name} is not here")
    places = ("--results", str(tmp_path / "results"), "--work", str(tmp_path / "work"))
    code, text = run("experiment", "q4", "--budget", "full", "--only", "ceilings", *places)
    assert code == 1, text
    assert "is not here" in text
    assert "1 of 1 cells were left out" in text


def test_a_cell_is_run_once_and_its_record_kept(tmp_path):
    words = ("experiment", "q1", "--budget", "smoke", "--only", "exact/four-rule")
    places = ("--results", str(tmp_path / "results"), "--work", str(tmp_path / "work"))
    code, text = run(*words, *places)
    assert code == 0, text
    assert "q1 exact/four-rule/own, seed 0: complete, 45 of 45 pairs" in text
    files = sorted(path.name for path in (tmp_path / "results" / "q1").iterdir())
    assert files == [f"exact-four-rule-{r}.s0.smoke.json" for r in ("network", "own")]
    content = json.loads((tmp_path / "results" / "q1" / files[0]).read_text())
    assert content["metrics"]["pairs separated"] == 45  # as 2-FWL on circular skip links
    code, text = run(*words, *places)
    assert code == 0
    assert text.count("kept, 45 of 45 pairs, from before") == 2


def test_a_failure_is_told_and_the_command_says_so_to_a_script(tmp_path):
    """The speed was not measured, so equal time cannot be given."""
    words = ("--only", "equal-time", "--option", f"cache={tmp_path / 'none'}")
    (tmp_path / "none").write_text("no cache")
    code, text = run(
        *("experiment", "q2", "--budget", "smoke", *words),
        *("--results", str(tmp_path / "results"), "--work", str(tmp_path / "work")),
    )
    assert code == 1
    assert "1 of 1 cells failed" in text
    assert "--only speed/joint-width32/bonds" in text


@pytest.fixture
def started():
    """Starts processes as a terminal does; none outlives its test."""
    processes = []

    def start(folder, *words):
        processes.append(_started(folder, *words))
        return processes[-1]

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _started(folder, *words):
    """A process group of its own, which hears Ctrl-C even where the tests run in the background."""
    places = ("--results", str(folder / "results"), "--work", str(folder / "work"))
    fixed = ("--budget", "short", "--device", "cpu", *places)
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "g2n2", "experiment", "power", *words, *fixed],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize("seconds", [0.3, 1.0])
def test_ctrl_c_while_workers_start_is_no_traceback(started, tmp_path, seconds):
    process = started(tmp_path, "--only", "csl/G2N2-8", "--only", "csl/G2N2-5", "--jobs", "2")
    assert "2 cells, 2 at a time" in process.stdout.readline()
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Traceback" not in said


def test_a_schedulers_stop_is_a_ctrl_c(started, tmp_path):
    """SIGTERM is told of, and what was begun can go on."""
    process = started(tmp_path, "--only", "csl/G2N2-8", "--jobs", "1")
    until = time.monotonic() + 120
    while not list((tmp_path).glob("work/power/*.lock")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "the same command goes on" in said
    assert "Traceback" not in said
