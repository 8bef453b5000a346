"""An optimiser step on flat weights against PyTorch's AdamW in float64."""

import math
import os

import pytest
import torch

from kernel_checks import DEVICE

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops import adam
from g2n2.ops.adam import FlatState, step

BETAS, SMALL = (0.9, 0.999), 1e-8
SHAPES = [(1, 0), (0, 1), (7, 29), (3000, 17), (5, 2500), (2048, 2048)]


def state(weights, halves, half, averaged=True):
    """All of a state, in tensors of their own."""
    total = len(weights)
    decay = torch.where(torch.arange(total) % 3 == 0, 0.3, 0.0).to(DEVICE)
    return FlatState(
        weights=weights.float(),
        mean=torch.zeros(total, device=DEVICE),
        square=torch.zeros(total, device=DEVICE),
        shadow=weights.float().clone() if averaged else torch.zeros(0, device=DEVICE),
        copy=weights[:halves].to(half),
        decay=decay,
        rate=torch.tensor(0.01, device=DEVICE),
        steps=torch.zeros(1, device=DEVICE),
        share=torch.tensor(0.25, device=DEVICE),
        norm=torch.tensor(torch.nan, device=DEVICE),
    )


class Expected:
    """The same in float64 by PyTorch: two groups, clipping, a step, a moving average."""

    def __init__(self, weights, decay):
        self.weights = weights.double().clone()
        self.parts = [self.weights[decay > 0].clone(), self.weights[decay == 0].clone()]
        self.chosen = decay > 0
        groups = [
            {"params": [part.requires_grad_()], "weight_decay": d}
            for part, d in zip(self.parts, (0.3, 0.0), strict=True)
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=0.01, betas=BETAS, eps=SMALL)
        self.shadow = self.weights.clone()

    def step(self, gradient, clip):
        norm = gradient.norm()
        scaled = gradient * min(1.0, clip / (float(norm) + 1e-6)) if clip else gradient
        self.parts[0].grad, self.parts[1].grad = scaled[self.chosen], scaled[~self.chosen]
        self.optimiser.step()
        self.weights[self.chosen] = self.parts[0].detach()
        self.weights[~self.chosen] = self.parts[1].detach()
        self.shadow += 0.25 * (self.weights - self.shadow)
        return norm


def assert_rounded(copy, weights):
    """A copy holds the nearest numbers; Triton's interpreter cuts bfloat16 off instead."""
    if copy.dtype == torch.bfloat16 and os.environ.get("TRITON_INTERPRET") == "1":
        bits = weights.view(torch.int32) & ~0xFFFF
        assert torch.equal(copy.float(), bits.view(torch.float32))
    else:
        assert torch.equal(copy, weights.to(copy.dtype))


def check(halves, others, half, clip, averaged=True):
    torch.manual_seed(halves + others)
    weights = torch.randn(halves + others, device=DEVICE)
    mine = state(weights.clone(), halves, half, averaged)
    expected = Expected(weights, mine.decay)
    for number in range(1, 5):
        mine.steps.fill_(float(number))
        first = torch.randn(halves, device=DEVICE).to(half)
        rest = torch.randn(others, device=DEVICE)
        step(mine, first, rest, clip, BETAS, SMALL)
        norm = expected.step(torch.cat([first.double(), rest.double()]), clip)
        assert float(mine.norm) == pytest.approx(float(norm), rel=1e-5)
        near = {"rtol": 1e-5, "atol": 5e-6, "check_dtype": False}
        torch.testing.assert_close(mine.weights, expected.weights, **near)
        if averaged:
            torch.testing.assert_close(mine.shadow, expected.shadow, **near)
        assert_rounded(mine.copy, mine.weights[:halves])


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize(("halves", "others"), SHAPES)
def test_steps_are_those_of_adamw(halves, others, half, launches, poisoned):
    check(halves, others, half, clip=1.0)
    assert launches == {"adam.squares_kernel": 4, "adam.step_kernel": 4}


@pytest.mark.parametrize("clip", [0.0, 1e-3, 1e6])
def test_clipping(clip, poisoned):
    check(7, 29, torch.bfloat16, clip)


def test_without_an_average(poisoned):
    check(7, 29, torch.bfloat16, 1.0, averaged=False)


def test_the_norm_runs_over_many_blocks(monkeypatch, poisoned):
    monkeypatch.setattr(adam, "BLOCK", 16)
    check(83, 70, torch.bfloat16, 1.0)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_gradient_that_is_not_finite_shows_in_the_norm():
    mine = state(torch.zeros(4, device=DEVICE), 2, torch.bfloat16)
    mine.steps.fill_(1.0)
    rest = torch.tensor([1.0, math.inf], device=DEVICE)
    step(mine, torch.ones(2, device=DEVICE, dtype=torch.bfloat16), rest, 1.0, BETAS, SMALL)
    assert not math.isfinite(float(mine.norm))


@pytest.mark.gpu
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float32], ids=str)
def test_half_a_million_weights_on_a_gpu(half, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    check(400_001, 99_999, half, clip=1.0)
    assert sum(launches.values()) == 8
