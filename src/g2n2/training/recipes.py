"""Recipes: how a network is trained where the settings of a run do not say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ..compiler.presets import MODERN_BEFORE
from ..errors import DataError

SMALLEST_BATCH = 8


@dataclass(frozen=True)
class Recipe:
    """How to train: optimiser, schedule and defaults.

    Attributes:
        schedule: `plateau` multiplies the rate by `factor` when validation stalls for `patience`
            epochs and stops at `least_rate`; `cosine` warms up and falls to zero.
        cpu_width: The width of a grammar with matrices on a CPU; `cpu_rate` is the learning rate of
            that narrower network.
        least_steps: Least steps of an epoch; the default batch is halved until it is reached.
        cpu_visits: Epochs times training graphs of such a run: with more graphs there are fewer
            epochs, down to `cpu_epochs`; 0 for as many epochs as elsewhere.
        warmup: Share of all steps in which the rate rises.
        clip: Largest gradient norm; 0 for none.
        normalise: Whether targets are scaled to mean 0 and deviation 1.

    The other fields are defaults of the settings of `RunConfig` with the same name.
    """

    name: str
    optimiser: Literal["adam", "adamw"] = "adam"
    rate: float = 1e-3
    schedule: Literal["plateau", "cosine"] = "plateau"
    width: int = 64
    cpu_width: int = 64
    cpu_rate: float = 1e-3
    batch: int = 32
    least_steps: int = 0
    epochs: int = 200
    cpu_visits: int = 0
    cpu_epochs: int = 1
    decay: float = 0.0
    warmup: float = 0.05
    factor: float = 0.9
    patience: int = 4
    least_rate: float = 1e-6
    ema: float = 0.0
    clip: float = 0.0
    normalise: bool = False
    dropout: float = 0.0
    distance: tuple[str, ...] = ("raw",)
    preset: str = "paper"

    def sizes(self, train: int, costly: bool) -> dict[str, Any]:
        """What a run with so many training graphs does not set; `costly`: matrices on a CPU."""
        batch, epochs = self.batch, self.epochs
        while batch > SMALLEST_BATCH and train < batch * self.least_steps:
            batch //= 2
        if costly and self.cpu_visits:
            epochs = min(epochs, max(self.cpu_epochs, round(self.cpu_visits / train)))
        width, rate = (self.cpu_width, self.cpu_rate) if costly else (self.width, self.rate)
        return {"width": width, "rate": rate, "batch": batch, "epochs": epochs}


RECIPES: dict[str, Recipe] = {
    "paper": Recipe("paper"),  # the released script's settings; the paper states none
    "modern": Recipe(
        "modern",
        optimiser="adamw",
        schedule="cosine",
        cpu_width=32,
        cpu_rate=2e-3,
        batch=128,
        least_steps=40,
        epochs=100,
        cpu_visits=48_000,
        cpu_epochs=40,
        decay=1e-4,
        ema=0.999,
        clip=1.0,
        normalise=True,
        distance=("raw", "square", "rbf16"),
        preset="modern",
    ),
}
_EARLIER = {
    MODERN_BEFORE: replace(
        RECIPES["modern"],
        name=MODERN_BEFORE,
        preset=MODERN_BEFORE,
        cpu_width=64,
        cpu_rate=1e-3,
        least_steps=16,
        cpu_visits=0,
    )
}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name, also what `modern` was before; a DataError if there is none."""
    recipes = RECIPES | _EARLIER
    if name not in recipes:
        raise DataError(f"no recipe is called {name!r}; known: {', '.join(recipes)}")
    return recipes[name]
