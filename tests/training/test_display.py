"""What a person reads: durations, scores with units, lines of progress."""

import io

import pytest
from rich.console import Console

from g2n2.training.config import RunConfig
from g2n2.training.display import Display, duration, reliability_sentences, score_table
from g2n2.training.session import train_config
from g2n2.training.task import Task
from small_sets import small_set


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (61, "1 min 1 s"), (3599.9, "1 h 0 min"), (7800, "2 h 10 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def shown(table):
    console = Console(file=io.StringIO(), width=100)
    console.print(table)
    return console.file.getvalue()


def test_scores_have_units_and_what_is_unknown_a_dash():
    task = Task.of(small_set(columns=2))
    row = {"mae": 0.12345, "rmse": 2.0, "r2": float("nan")}
    scores = {"t0": row, "t1": {**row, "r2": 0.25}, "all": row}
    text = shown(score_table(task, scores, {"all": row}))
    assert "0.1235 bonds" in text
    assert "0.25" in text
    assert "0.25 bonds" not in text
    assert "–" in text
    assert "mean" in text
    assert "guessing the mean" in text


def test_probabilities_without_a_fitted_temperature_are_not_called_calibrated():
    task = Task.of(small_set(kind="binary"))
    row = {"rows": 7, "temperature": 1.0, "nll": 0.6, "nll_before": 0.6, "ece": 0.1}
    (said,) = reliability_sentences(task, {"t0": {**row, "ece_before": 0.1}}, "test graph")
    assert "calibrated" not in said
    (alone,) = reliability_sentences(task, {"t0": {**row, "rows": 1}}, "test graph")
    assert "on 1 test graph the" in alone
    assert "on 7 test graphs the negative log-likelihood is 0.6, " in said


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_is_shown(tmp_path, terminal):
    console = Console(file=io.StringIO(), width=140, force_terminal=terminal, highlight=False)
    config = RunConfig("small", width=4, layers=1, batch=16, epochs=2, threads=1, device="cpu")
    with pytest.MonkeyPatch.context() as patch, Display(console) as display:
        patch.setattr("g2n2.training.session.draw", lambda *_: [])
        train_config(config, tmp_path / "run", graphs=small_set(), watch=display.watch())
    text = console.file.getvalue()
    assert "small holds 60 graphs: 48 train, 6 validation, 6 test." in text
    assert "of memory at 8 nodes" in text
    assert "has 1 layer of width 4" in text
    assert "epoch 2/2" in text
    assert "graphs/s" in text
    assert "validation MAE" in text
    assert "bonds" in text
    assert 'pip install "g2n2[plot]"' in text
    assert (
        "an interval of 90 % for t0 needs 9 validation rows with a known value, and the run had 6"
        in text
    )
