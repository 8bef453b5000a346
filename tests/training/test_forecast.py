"""How long a run will take: measured for every task, without a trace in the run."""

from dataclasses import replace

import pytest
import torch

from g2n2.training import display, optimiser
from g2n2.training.config import RunConfig, with_rules
from g2n2.training.display import forecast, time_sentences
from g2n2.training.setup import prepare
from small_sets import small_set

SETTINGS = {"width": 4, "layers": 1, "epochs": 2, "batch": 8}


@pytest.mark.parametrize("level", ["graph", "node", "edge"])
@pytest.mark.parametrize("change", [{}, {"baseline": "GIN"}, {"precision": "64"}])
def test_every_task_is_timed_and_draws_no_number_of_the_run(level, change):
    config = with_rules(RunConfig("small", **SETTINGS, **change))
    parts = prepare(config, small_set(level=level))
    before = torch.get_rng_state()
    assert forecast(config, parts) > 0
    assert torch.equal(before, torch.get_rng_state())


def test_what_is_timed_is_a_whole_step_of_the_weights_that_learn(monkeypatch):
    learned, stepped, real = [], [], optimiser.make_optimiser

    def watched(model, *how):
        made = real(model, *how)
        learned.extend(p for group in made.param_groups for p in group["params"])
        made.register_step_post_hook(lambda *_: stepped.append(True))
        return made

    monkeypatch.setattr(optimiser, "make_optimiser", watched)
    config = with_rules(RunConfig("small", **SETTINGS))
    parts = prepare(config, small_set())
    forecast(config, parts)
    assert len(stepped) > 1
    every = len(learned)
    learned.clear()
    forecast(replace(config, freeze=1), parts)  # its one layer and its embeddings
    assert 0 < len(learned) < every


def told(monkeypatch, step, **changes):
    """What is said where a step of a grammar takes so many seconds."""
    monkeypatch.setattr(display, "step_seconds", lambda config, _: step[config.grammar])
    config = with_rules(RunConfig("small", **{**SETTINGS, **changes}))
    return time_sentences(config, prepare(config, small_set()))


def test_more_epochs_take_longer(monkeypatch):
    monkeypatch.setattr(display, "step_seconds", lambda *_: 1.0)
    parts = prepare(RunConfig("small"), small_set())
    once, twice = (
        forecast(with_rules(RunConfig("small", **{**SETTINGS, "epochs": n})), parts)
        for n in (10, 20)
    )
    assert 1.8 < twice / once < 2


def test_predictions_on_all_marks_take_longer_than_steps_on_drawn_ones(monkeypatch):
    monkeypatch.setattr(display, "step_seconds", lambda *_: 1.0)
    parts = prepare(RunConfig("small"), small_set())
    every, drawn = (
        forecast(with_rules(RunConfig("small", grammar="r-G_L3Σ", marks=marks, **SETTINGS)), parts)
        for marks in ("all", "2")
    )
    copies = parts.graphs.select(parts.splits["train"]).sizes.mean() / 2
    # 8 graphs a second: 2 epochs of 48, then a third for 2 of 6 to validate and all 60 at the end.
    assert drawn - every == pytest.approx((copies - 1) * (12 + 60) / 8 / 3)


def test_a_cheaper_grammar_is_named_where_it_is_much_cheaper(monkeypatch):
    # A second a graph: 2 epochs of 48, and a third of it for 2 of 6 to validate and all 60 at the end.
    steps = {"r-G_L3": 8.0, "r-G_L1": 6.0}
    assert told(monkeypatch, steps) == ["This takes about 2 min 0 s on this CPU."]
    (said,) = told(monkeypatch, steps, minutes=1.0)
    assert said.endswith("on this CPU; in its 1 min the learning rate comes down earlier.")
    said = told(monkeypatch, {**steps, "r-G_L1": 2.0})[1]
    assert "would take about 30 s (--grammar r-G_L1)" in said
    assert len(told(monkeypatch, {"r-G_L3": 8.0}, baseline="GIN")) == 1


def test_what_cannot_be_measured_is_not_said(monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(display, "step_seconds", full)
    config = with_rules(RunConfig("small", **SETTINGS))
    assert time_sentences(config, prepare(config, small_set())) == []
