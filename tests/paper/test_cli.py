"""g2n2-paper on the command line: lists, exit codes, what is refused."""

import json
import signal
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from g2n2.errors import DataError
from g2n2_paper import runner
from g2n2_paper.cli import app
from g2n2_paper.runner import CellOutcome

ROOT = Path(__file__).parents[2]


def run(*words: str):
    return CliRunner().invoke(app, list(words))


def test_the_list_says_which_cells_have_a_record(tmp_path):
    found = run("q4", "--list")
    assert found.exit_code == 0
    lines = {line.split()[-1]: line.split()[0] for line in found.output.splitlines()}
    assert lines["band/G2N2-slow/layers-5"] == "done"
    assert lines["low/G2N2-slow/layers-5"] == "–"
    partial = run("power", "--list", "--only", "brec/L1ΣΣ-9").output
    record = (ROOT / "results" / "power" / "brec-L1ΣΣ-9.s0.json").read_text(encoding="utf-8")
    assert f"{len(json.loads(record)['detail']['pairs'])} of 400" in partial
    elsewhere = run("q4", "--list", "--only", "ceilings", "--results", str(tmp_path))
    assert elsewhere.output.splitlines()[1].split() == ["–", "0", "ceilings"]


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["done", "kept"], 0),
        (["done", "failed"], 1),
    ],
)
def test_exit_codes_say_what_became_of_the_cells(monkeypatch, tmp_path, states, code):
    def run_cells(cells, job, jobs, tell):
        outcomes = [CellOutcome(f"cell {n}", state, "why") for n, state in enumerate(states)]
        for outcome in outcomes:
            tell(outcome)
        return outcomes

    monkeypatch.setattr(runner, "run_cells", run_cells)
    found = run("q4", "--results", str(tmp_path))
    assert found.exit_code == code
    assert found.output.splitlines() == [f"cell {n}: {s}, why" for n, s in enumerate(states)]


def test_a_stop_by_a_scheduler_is_a_ctrl_c(monkeypatch, tmp_path):
    before = signal.getsignal(signal.SIGTERM)

    def stopped(*_):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(runner, "run_cells", stopped)
    found = run("q4", "--results", str(tmp_path))
    assert found.exit_code == 130
    assert "the same command continues" in found.output
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("q1", "--only", "G_L4"), "no cell has the part 'G_L4'"),
        (("q1", "--seed", "9"), "no chosen cell has the seed 9"),
        (("q1", "--smoke"), "name another folder by --results"),
        (("bench", "--case", "trainig", "--device", "cpu"), "did you mean training?"),
        (("bench", "--cache", "nowhere.cache", "--device", "cpu"), "there is no such file"),
        (("report", "--results", "nowhere"), "no folder nowhere"),
    ],
)
def test_bad_input_is_answered_in_words(words, said):
    found = run(*words)
    assert isinstance(found.exception, DataError)
    assert said in str(found.exception)


def test_a_gpu_that_is_not_there():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    for command in ("q2", "bench"):
        assert "there is no GPU here" in str(run(command, "--device", "cuda").exception)


def test_the_cases_are_listed_with_their_floors():
    found = run("bench", "--list")
    assert found.exit_code == 0
    assert "train-32-bf16-modern" in found.output
    assert "≥ 60,000 graphs/s" in found.output
