"""Step 3: the derived network and a GIN, trained alike on the same graphs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..data.graph_set import GraphSet
from ..grammars.grammar import Grammar
from ..training.config import RunConfig
from ..training.session import Watch, train_config
from ..training.task import Scores
from .settings import DERIVED_AT_LEAST, GIN_AT_MOST, TARGETS, DemoSettings

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A trained network.

    Attributes:
        name: What a reader calls it.
        folder: Its run folder.
        scores: On the test graphs, by target.
        truth: `[graphs, 2]` counts of the test graphs.
        answers: `[graphs, 2]` what the network says of them.
        parameters: How many weights.
        seconds: Time spent training.
    """

    name: str
    folder: Path
    scores: Scores
    truth: Values
    answers: Values
    parameters: int
    seconds: float

    def r2(self) -> list[float]:
        """R² of each target."""
        return [self.scores[target]["r2"] for target in TARGETS]

    @property
    def spread(self) -> float:
        """How far apart its answers for two test graphs are, at most."""
        return float(np.ptp(self.answers, axis=0).max())


def configs(grammar: Grammar, settings: DemoSettings) -> dict[str, RunConfig]:
    """The two runs: one budget, one recipe; the grammar goes in as its rules, not by name."""
    shared = {
        "dataset": "regular",
        "options": settings.data_options,
        "width": settings.width,
        "layers": settings.layers,
        "epochs": settings.epochs,
        "batch": settings.batch,
        "rate": settings.rate,
        "seed": settings.seed,
        "device": "cpu",
        "threads": 1,  # products this small gain nothing from a second one
    }
    return {
        "derived": RunConfig.from_dict({**shared, "grammar": str(grammar)}),
        "gin": RunConfig.from_dict({**shared, "baseline": "GIN"}),
    }


def train_network(
    config: RunConfig, name: str, folder: Path, graphs: GraphSet, watch: Watch
) -> TrainedNetwork:
    """Train one network, and read back what its run folder says of the test graphs."""
    result = train_config(config, folder, graphs=graphs, watch=watch)
    told = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    with open(folder / "test.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    truth, answers = (
        np.array([[float(row[f"{said}{target} [count]"]) for target in TARGETS] for row in rows])
        for said in ("true ", "")
    )
    return TrainedNetwork(
        name, folder, result.scores, truth, answers, told["parameters"], told["seconds"]
    )


@dataclass(frozen=True)
class R2Claim:
    """A bound on R² and whether it held."""

    text: str
    holds: bool


def claims(derived: TrainedNetwork, gin: TrainedNetwork) -> tuple[R2Claim, R2Claim]:
    """What the demonstration claims of the two, for each target."""

    def claim(
        who: TrainedNetwork, sign: str, bound: float, holds: Callable[[float], bool]
    ) -> R2Claim:
        got = ", ".join(
            f"{minus(value)} on {words}"
            for value, words in zip(who.r2(), TARGETS.values(), strict=True)
        )
        return R2Claim(f"{who.name}: R² {sign} {bound:g}; got {got}", all(map(holds, who.r2())))

    return (
        claim(derived, "≥", DERIVED_AT_LEAST, lambda r2: r2 >= DERIVED_AT_LEAST),
        claim(gin, "≤", GIN_AT_MOST, lambda r2: r2 <= GIN_AT_MOST),
    )


def minus(value: float) -> str:
    """Three digits with a proper minus sign, and no minus before zero."""
    return f"{value:.3f}".replace("-0.000", "0.000").replace("-", "\N{MINUS SIGN}")
