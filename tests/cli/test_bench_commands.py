"""bench on the command line: tables, exit codes, what is kept and what is refused."""

import json

import pytest
from test_commands import run

from g2n2.bench import cases
from g2n2.bench.cases import Case
from g2n2.ops.mixing import plain

TINY = Case(
    "tiny", "batch", batch=2, width=4, layers=1, precision="32", batches=1, devices=("cpu",)
)
ON_CPU = ("--device", "cpu", "--threads", "1")


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(cases, "CASES", (TINY,))
    monkeypatch.setattr(cases, "GROUPS", ("batch",))


def test_the_list_names_cases_floors_and_devices():
    code, printed = run("bench", "--list")
    assert code == 0
    assert "train-32-bf16" in printed
    assert "≥ 50,000 graphs/s" in printed
    assert "large-900" in printed


@pytest.mark.usefixtures("tiny")
def test_quick_shows_the_table_and_keeps_nothing(tmp_path):
    code, printed = run("bench", "--quick", *ON_CPU, "--out", str(tmp_path / "kept"))
    assert code == 0
    assert "graphs/s" in printed
    assert "%" in printed
    assert "these figures say nothing" in printed
    assert not (tmp_path / "kept").exists()


@pytest.mark.usefixtures("tiny")
def test_a_run_is_kept_with_its_hardware_and_goes_into_a_page(tmp_path, monkeypatch):
    from g2n2.bench import running
    from g2n2.bench.timing import Effort

    monkeypatch.setattr(running, "Effort", lambda **_: Effort(repeats=1, seconds=0.0))
    monkeypatch.setattr(running, "peak_tflops", lambda *_: 0.1)
    monkeypatch.setattr(running, "bandwidth", lambda *_: 1e10)
    code, printed = run("bench", *ON_CPU, "--out", str(tmp_path))
    assert code == 0, printed
    (kept,) = json.loads((tmp_path / "batch.cpu.json").read_text())
    assert kept["case"] == "tiny"
    assert {"cpu", "torch", "commit", "peak_tflops", "threads"} <= set(kept["made_with"])
    assert kept["check"]["outputs"] <= kept["check"]["outputs_allowed"]
    page = tmp_path / "performance.md"
    page.write_text("<!-- bench:batch -->\n<!-- /bench -->\n")
    code, _ = run("bench", "--page", str(page), "--out", str(tmp_path))
    assert code == 0
    assert "| batch | graphs/s |" in page.read_text()


@pytest.mark.usefixtures("tiny")
def test_other_numbers_end_with_1_and_show_no_speed(monkeypatch):
    real = plain.mix
    monkeypatch.setattr(plain, "mix", lambda *a, **k: 1.5 * real(*a, **k))
    code, printed = run("bench", "--quick", *ON_CPU)
    assert code == 1
    assert "differs from the reference" in " ".join(printed.split())
    assert "%" not in printed, "a share of the peak is a speed"


@pytest.mark.usefixtures("tiny")
def test_no_case_is_begun_once_the_time_is_over():
    code, printed = run("bench", "--quick", *ON_CPU, "--seconds", "-1")
    assert code == 0
    assert "1 cases were not begun" in printed


@pytest.mark.usefixtures("tiny")
def test_where_nothing_was_measured_nothing_was_kept(tmp_path):
    code, printed = run("bench", *ON_CPU, "--seconds", "-1", "--out", str(tmp_path))
    assert code == 0
    assert "nothing was measured" in printed
    assert "kept in" not in printed
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("tiny")
def test_a_folder_that_cannot_be_is_refused_before_measuring(tmp_path, monkeypatch):
    from g2n2.bench.running import Bench

    monkeypatch.setattr(Bench, "run", lambda *_: pytest.fail("it was measured"))
    (tmp_path / "file").touch()
    code, printed = run("bench", *ON_CPU, "--out", str(tmp_path / "file" / "below"))
    assert code == 2
    assert "cannot write" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--case", "trainig"), "did you mean training?"),
        (("--case", "qm9-epoch", "--device", "cpu"), "qm9-epoch runs on cuda, and this is cpu"),
        (("--option", "cache"), "should read KEY=VALUE"),
        (("--option", "cache=nowhere.cache"), "nowhere.cache: there is no such file"),
        (("--option", "track=distance"), "no option 'track'; the only one: cache=PATH"),
        (("--page", "nowhere.md"), "cannot read 'nowhere.md'"),
    ],
)
def test_bad_input_is_answered_in_words(words, said):
    code, printed = run("bench", "--quick", *words)
    assert code == 2
    assert said in printed


def test_a_gpu_that_is_not_there():
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    code, printed = run("bench", "--device", "cuda")
    assert code == 2
    assert "there is none here; leave --device out" in printed
