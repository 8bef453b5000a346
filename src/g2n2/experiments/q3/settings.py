"""The paper's settings for each TU set (its appendix C), and the networks compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...training.config import RunConfig


@dataclass(frozen=True)
class SetSettings:
    """One column of the paper's table.

    Attributes:
        graphs: How many the set has.
        width: Channels of every memory.
        decision: Hidden widths after the read-out.
        options: Of the data set's loader; IMDB has one node feature, the degree.
    """

    graphs: int
    width: int
    decision: tuple[int, int]
    options: Mapping[str, Any] = field(default_factory=dict)


DEGREE = {"degree": "value"}
ONE_HOT = {"degree": "one-hot"}
FOLDS = {"folds": "gin"}
"""Those of the GIN code are stratified; index files that come with some sets are not, and leave out
up to eight graphs."""
SETS: dict[str, SetSettings] = {
    "MUTAG": SetSettings(188, 16, (256, 128)),
    "PTC": SetSettings(344, 32, (512, 256)),
    "PROTEINS": SetSettings(1113, 32, (512, 256)),
    "NCI1": SetSettings(4110, 64, (128, 64)),
    "IMDB-BINARY": SetSettings(1000, 32, (512, 256), DEGREE),
    "IMDB-MULTI": SetSettings(1500, 32, (512, 256), DEGREE),
}
BATCH = 32
MODELS = ("G2N2", "PPGN", "GIN", "GNNML1", "GNNML3")
LAYERS = 3
TRAINED = 0.9
"""Share of a set that a fold trains on."""


@dataclass(frozen=True)
class Variant:
    """A set and a model with something as the GIN code has it.

    Attributes:
        set_name: In `SETS`.
        model: In `MODELS`.
        longer: Whether it has as many epochs.
        one_hot: Whether degrees are classes and not one number.
    """

    set_name: str
    model: str
    longer: bool = False
    one_hot: bool = False

    @property
    def name(self) -> str:
        """`GIN/350-epochs/one-hot`: what stands for a model in the name of its cell."""
        tail = (f"/{LONGER}-epochs" if self.longer else "") + ("/one-hot" if self.one_hot else "")
        return f"{self.model}{tail}"


@dataclass(frozen=True)
class Plan:
    """What a budget asks for.

    Attributes:
        sets: Names in `SETS`.
        models: Names in `MODELS`.
        folds: How many of the ten.
        epochs: Of each run.
        steps: Of an epoch, at least; a small set is passed through several times for them. The GIN
            code has 50 on every set.
        one_hot: Whether degrees are classes, whatever the table of settings says.
        variants: Run besides, as optional cells.
    """

    sets: tuple[str, ...]
    models: tuple[str, ...]
    folds: int
    epochs: int
    steps: int = 50
    one_hot: bool = False
    variants: tuple[Variant, ...] = ()


LONGER = 350
"""Epochs of the GIN code: what choosing among so many gives."""

PLANS: dict[str, Plan] = {
    "smoke": Plan(("MUTAG",), ("G2N2",), folds=2, epochs=2, steps=1),
    "short": Plan(("MUTAG", "PTC"), MODELS, folds=10, epochs=10),
    "full": Plan(
        tuple(SETS),
        MODELS,
        folds=10,
        epochs=30,
        variants=(
            Variant("MUTAG", "GIN", longer=True),
            Variant("IMDB-BINARY", "GIN", one_hot=True),
            Variant("IMDB-BINARY", "GIN", longer=True, one_hot=True),
            Variant("IMDB-MULTI", "GIN", one_hot=True),
            Variant("IMDB-MULTI", "GIN", longer=True, one_hot=True),
            Variant("IMDB-BINARY", "G2N2", one_hot=True),
            Variant("IMDB-MULTI", "G2N2", one_hot=True),
            Variant("MUTAG", "G2N2", longer=True),
        ),
    ),
}


def run_config(name: str, model: str, plan: Plan, seed: int) -> RunConfig:
    """The settings of each of a cell's runs.

    The recipe is `modern` for all networks: its learning rate follows a cosine, so that no test
    graph has a say in it. (The released code lowers its rate when the test loss stalls.) Weights
    are not averaged, and batches have 32 graphs: each epoch is judged as in the published rows.
    """
    chosen = SETS[name]
    pass_steps = math.ceil(TRAINED * chosen.graphs / BATCH)
    return RunConfig(
        dataset=name,
        options={**FOLDS, **(ONE_HOT if plan.one_hot else chosen.options)},
        split="stored",
        baseline=None if model == "G2N2" else model,
        width=chosen.width,
        layers=LAYERS,
        decision=chosen.decision,
        batch=BATCH,
        epochs=plan.epochs,
        passes=math.ceil(plan.steps / pass_steps),
        window=1,  # by chance, as everybody's
        ema=0.0,
        seed=seed,
        precision="tf32",
        threads=1,  # graphs of thirty nodes: more cores serve better as more cells at a time
    )
