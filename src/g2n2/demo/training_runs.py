"""The derived network and a GIN, trained alike on the same graphs."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..data.graph_set import GraphSet
from ..described import shown_number
from ..grammars.grammar import Grammar
from ..training.config import RunConfig
from ..training.session import Watch, train_config
from ..training.task import Scores
from .settings import DERIVED_AT_LEAST, GIN_AT_MOST, TARGETS, DemoSettings

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A trained network and what it says of the test graphs."""

    name: str
    folder: Path
    scores: Scores  # by target
    truth: Values  # `[graphs, 2]` true counts
    answers: Values  # `[graphs, 2]` predicted counts
    parameters: int

    def r2(self) -> list[float]:
        """R² of each target."""
        return [self.scores[target]["r2"] for target in TARGETS]

    @property
    def spread(self) -> float:
        """The largest difference between its answers for two test graphs."""
        return float(np.ptp(self.answers, axis=0).max())


def configs(grammar: Grammar, settings: DemoSettings) -> dict[str, RunConfig]:
    """The two runs, with one budget and recipe; the grammar goes in as rules, not by name."""
    shared = {
        "dataset": "regular",
        "options": settings.data_options,
        "device": "cpu",
        "threads": 1,  # products this small gain nothing from a second one
    }
    for name in ("width", "layers", "epochs", "batch", "rate", "seed"):
        shared[name] = getattr(settings, name)
    return {
        "derived": RunConfig.from_dict({**shared, "grammar": str(grammar)}),
        "gin": RunConfig.from_dict({**shared, "baseline": "GIN"}),
    }


def train_network(
    config: RunConfig, name: str, folder: Path, graphs: GraphSet, watch: Watch
) -> TrainedNetwork:
    """Train one network, and read back what its run folder says of the test graphs."""
    result = train_config(config, folder, graphs=graphs, watch=watch)
    parameters = json.loads((folder / "result.json").read_text(encoding="utf-8"))["parameters"]
    with open(folder / "test.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    truth, answers = (
        np.array([[float(row[f"{kind}{target} [count]"]) for target in TARGETS] for row in rows])
        for kind in ("true ", "")
    )
    return TrainedNetwork(name, folder, result.scores, truth, answers, parameters)


@dataclass(frozen=True)
class R2Claim:
    """A bound on R² and whether it held."""

    text: str
    holds: bool


def claims(derived: TrainedNetwork, gin: TrainedNetwork) -> tuple[R2Claim, R2Claim]:
    """What the demonstration claims of the two, for each target."""

    def text(network: TrainedNetwork, bound: str) -> str:
        pairs = zip(network.r2(), TARGETS.values(), strict=True)
        got = ", ".join(f"{r2_text(value)} on {words}" for value, words in pairs)
        return f"{network.name}: R² {bound}; got {got}"

    return (
        R2Claim(
            text(derived, f"≥ {DERIVED_AT_LEAST:g}"),
            all(r2 >= DERIVED_AT_LEAST for r2 in derived.r2()),
        ),
        R2Claim(text(gin, f"≤ {GIN_AT_MOST:g}"), all(r2 <= GIN_AT_MOST for r2 in gin.r2())),
    )


def r2_text(value: float) -> str:
    """Three digits."""
    return shown_number(f"{value:.3f}")
