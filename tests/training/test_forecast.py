"""How long a run will take: measured for every task, without a trace in the run."""

import pytest
import torch

from g2n2.training.config import RunConfig, with_rules
from g2n2.training.display import Forecast, forecast, time_sentences
from g2n2.training.setup import prepare
from small_sets import small_set

SETTINGS = {"width": 4, "layers": 1, "epochs": 2, "batch": 8}


@pytest.mark.parametrize("level", ["graph", "node", "edge"])
@pytest.mark.parametrize("change", [{}, {"baseline": "GIN"}, {"precision": "64"}])
def test_every_task_is_timed_and_draws_no_number_of_the_run(level, change):
    config = with_rules(RunConfig("small", **SETTINGS, **change))
    parts = prepare(config, small_set(level=level))
    before = torch.get_rng_state()
    times = forecast(config, parts)
    assert torch.equal(before, torch.get_rng_state())
    assert times.seconds > 0
    assert (times.cheaper is None) == ("baseline" in change)


def test_more_epochs_take_longer_and_what_cannot_be_measured_is_not_said(monkeypatch):
    monkeypatch.setattr("g2n2.training.display.step_seconds", lambda *_: 1.0)
    parts = prepare(RunConfig("small"), small_set())
    once, twice = (
        forecast(with_rules(RunConfig("small", **{**SETTINGS, "epochs": n})), parts).seconds
        for n in (10, 20)
    )
    assert 1.8 < twice / once < 2
    assert time_sentences(RunConfig("x"), Forecast(None, None)) == []
    (said,) = time_sentences(RunConfig("x", minutes=5.0), Forecast(600.0, 400.0))
    assert (
        said
        == "This takes about 10 min 0 s on this CPU; in its 5 min the learning rate comes down earlier."
    )
    assert "--grammar r-G_L1" in time_sentences(RunConfig("x"), Forecast(600.0, 60.0))[1]
