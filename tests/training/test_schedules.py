"""Learning rates against torch's own schedulers."""

import random

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau

from g2n2.training.recipes import Recipe
from g2n2.training.schedules import cosine_rate, plateau_rate


def optimiser(rate):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)


@pytest.mark.parametrize("higher", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_plateau_is_torch_s(higher, seed):
    recipe = Recipe("r", rate=1e-3, factor=0.9, patience=4)
    theirs = optimiser(recipe.rate)
    mode = "max" if higher else "min"
    scheduler = ReduceLROnPlateau(theirs, mode, factor=0.9, patience=4, threshold=1e-4, eps=0)
    draw = random.Random(seed)
    history = []
    for epoch in range(60):
        history.append(draw.uniform(0.5, 1.0) / (1 + epoch // 20))
        scheduler.step(history[-1])
        assert plateau_rate(recipe, history, higher) == pytest.approx(
            theirs.param_groups[0]["lr"], rel=1e-12
        )
    assert theirs.param_groups[0]["lr"] < recipe.rate


def test_cosine_after_the_warm_up_is_torch_s():
    recipe = Recipe("r", rate=0.02, schedule="cosine", warmup=0.1)
    theirs = optimiser(recipe.rate)
    scheduler = CosineAnnealingLR(theirs, T_max=90)
    for step in range(10, 101):
        assert cosine_rate(recipe, step, 100) == pytest.approx(
            theirs.param_groups[0]["lr"], abs=1e-12
        )
        theirs.step()
        scheduler.step()


def test_warm_up_rises_in_equal_steps_to_the_full_rate():
    recipe = Recipe("r", rate=0.02, schedule="cosine", warmup=0.1)
    assert [cosine_rate(recipe, step, 100) for step in (0, 4, 9)] == pytest.approx(
        [0.002, 0.010, 0.020]
    )
    assert cosine_rate(recipe, 100, 100) == pytest.approx(0.0)
    assert cosine_rate(recipe, 500, 100) == pytest.approx(0.0)
