"""The average of the weights."""

import torch
from torch import nn

from g2n2.training.averaging import Average


def test_average_follows_the_formula_and_is_swapped_in_and_out():
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(0.0)
    average = Average(model, decay=0.9)
    wanted, value = 0.0, 0.0
    for step in range(1, 200):
        value += 1.0
        with torch.no_grad():
            model.weight.fill_(value)
        average.update(step)
        keep = min(0.9, (1 + step) / (10 + step))
        wanted = keep * wanted + (1 - keep) * value
    with average.applied():
        assert abs(model.weight.item() - wanted) < 1e-3
    assert model.weight.item() == value


def test_weights_come_back_after_an_error():
    model = nn.Linear(2, 2)
    average = Average(model, decay=0.5)
    with torch.no_grad():
        model.weight.add_(1.0)
    kept = model.weight.clone()
    try:
        with average.applied():
            raise RuntimeError
    except RuntimeError:
        pass
    assert torch.equal(model.weight, kept)


def test_without_decay_the_weights_are_the_average():
    model = nn.Linear(2, 2)
    average = Average(model, decay=0.0)
    kept = model.weight.clone()
    average.update(1)
    with average.applied():
        assert torch.equal(model.weight, kept)
    assert average.state() == []


def test_running_statistics_are_averaged_with_the_weights_they_belong_to():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    average = Average(model, 0.5)
    expected = model[1].running_mean.clone()
    for step in range(1, 4):
        model(10.0 * torch.randn(8, 2))
        average.update(step)
        expected += (1.0 - average.keep(step)) * (model[1].running_mean - expected)
    raw = model[1].running_mean.clone()
    with average.applied():
        assert torch.allclose(model[1].running_mean, expected)
    assert torch.equal(model[1].running_mean, raw)
    assert not torch.allclose(raw, expected)
