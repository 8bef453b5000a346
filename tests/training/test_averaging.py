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
