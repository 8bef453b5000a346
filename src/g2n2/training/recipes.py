"""How to train: two recipes, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import DataError


@dataclass(frozen=True)
class Recipe:
    """Optimiser, schedule and what stands around them.

    Attributes:
        name: How it is asked for.
        optimiser: Adam or AdamW.
        rate: Learning rate, the highest of the schedule.
        schedule: `plateau` multiplies by `factor` when validation stalls `patience` epochs and
            stops at `least_rate`; `cosine` warms up and falls to zero over all epochs.
        batch: Graphs in a step.
        least_steps: Steps an epoch should have; where no batch is asked for, it is halved for it.
        epochs: At most.
        decay: Weight decay of AdamW.
        warmup: Share of all steps in which the rate rises.
        ema: Decay of the averaged weights that are evaluated; 0 for none.
        clip: Largest gradient norm; 0 for none.
        normalise: Whether targets are learned with mean 0 and deviation 1.
        dropout: Share of what each decision layer reads that is left out in training.
        distance: Edge channels made of positions, where the track has them.
        preset: The network's preset where none is asked for.
    """

    name: str
    optimiser: Literal["adam", "adamw"] = "adam"
    rate: float = 1e-3
    schedule: Literal["plateau", "cosine"] = "plateau"
    batch: int = 32
    least_steps: int = 0
    epochs: int = 200
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


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        # The released script's settings; the paper states none.
        Recipe("paper"),
        Recipe(
            "modern",
            optimiser="adamw",
            schedule="cosine",
            batch=128,
            least_steps=16,
            epochs=100,
            decay=1e-4,
            ema=0.999,
            clip=1.0,
            normalise=True,
            distance=("raw", "square", "rbf16"),
            preset="modern",
        ),
    )
}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        DataError: There is none; the message lists them.
    """
    if name not in RECIPES:
        raise DataError(f"no recipe is called {name!r}; known: {', '.join(RECIPES)}")
    return RECIPES[name]
