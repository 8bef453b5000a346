"""The learning rate as a pure function of where a run is, so that resuming needs no state."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .recipes import Recipe

THRESHOLD = 1e-4
"""Relative improvement of the validation metric that counts as one."""


def cosine_rate(recipe: Recipe, step: int, steps: int) -> float:
    """Rise over the warm-up, then half a cosine down to zero at the last of all steps."""
    warm = max(1, round(recipe.warmup * steps))
    if step < warm:
        return recipe.rate * (step + 1) / warm
    share = (step - warm) / max(1, steps - warm)
    return recipe.rate * 0.5 * (1.0 + math.cos(math.pi * min(share, 1.0)))


def plateau_rate(recipe: Recipe, history: Sequence[float], higher_is_better: bool) -> float:
    """The rate after these validation results: lowered each time more than `patience` stall."""
    rate, stalled = recipe.rate, 0
    best = -math.inf if higher_is_better else math.inf
    for value in history:
        margin = THRESHOLD * abs(best) if math.isfinite(best) else 0.0
        improved = value > best + margin if higher_is_better else value < best - margin
        if improved:
            best, stalled = value, 0
        else:
            stalled += 1
        if stalled > recipe.patience:
            rate, stalled = rate * recipe.factor, 0
    return rate
