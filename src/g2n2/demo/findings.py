"""What a demonstration is made of: its settings, what WL tests see, two networks, and claims."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.graph_set import GraphSet
from ..described import shown_number
from ..grammars.derivations import derive_word
from ..grammars.grammar import Grammar
from ..language.evaluation import evaluate
from ..language.parsing import parse
from ..power.refinement import refine
from ..training.config import RunConfig
from ..training.session import Watch, train_config
from ..training.task import Scores

Values = NDArray[np.float64]
FRAGMENT = "L3"
DEGREE = 3
TARGETS: Mapping[str, str] = {"triangle": "triangles", "4_cycle": "4-cycles"}
"""What is counted: columns of the data set, and what a reader calls them."""

DERIVED_AT_LEAST = 0.95
GIN_AT_MOST = 0.05
"""Bounds on R² over test graphs, for each target."""


@dataclass(frozen=True)
class DemoSettings:
    """One demonstration; width, layers, epochs, batch and rate hold for both networks."""

    graphs: int = 1000  # 60 % to train, 20 % to choose the best epoch, 20 % to test
    # There are 510,489 connected 3-regular graphs of 20 nodes, so test graphs are new; of 12 nodes
    # there are 85, and a test would only ask for what was seen.
    nodes: int = 20
    width: int = 8
    layers: int = 2
    epochs: int = 30
    batch: int = 20
    rate: float = 5e-3
    seed: int = 0
    claims: bool = True  # whether it trains for long enough to be held to its claims

    @property
    def data_options(self) -> dict[str, Any]:
        """Options of the data set `regular`."""
        return {"count": self.graphs, "nodes": self.nodes, "degree": DEGREE, "seed": self.seed}


FULL = DemoSettings()
QUICK = DemoSettings(graphs=60, nodes=10, width=4, epochs=2, claims=False)


@dataclass(frozen=True)
class CountingSentence:
    """A sentence of the grammar whose value is a count."""

    text: str
    tree: str  # how the grammar derives it
    formula: str  # its value, as a formula of the count
    graphs: int  # on how many of the graphs that is so, by exact evaluation


@dataclass(frozen=True)
class WlView:
    """How many colours each test gives to all graphs, and a sentence for each target."""

    one_wl: int  # 1-WL bounds GIN
    three_wl: int  # the derived grammar reaches 3-WL (2-FWL)
    seen_before: int  # test graphs that 3-WL cannot tell from a training graph, mostly copies
    sentences: tuple[CountingSentence, ...]


def compare_tests(graphs: GraphSet, grammar: Grammar) -> WlView:
    """Colour all graphs, and evaluate the sentences on each of them."""
    matrices = [graphs.adjacency(index) for index in range(len(graphs))]
    low = refine(matrices).graph_colours
    high = refine(matrices, k=2, variant="fwl").graph_colours
    trained = high[graphs.splits["train"]]
    # Closed walks of four steps that go round no cycle, of all nodes.
    walks = (2 * DEGREE**2 - DEGREE) * int(graphs.sizes[0])
    columns = [column.name for column in graphs.columns]
    sentences = []
    for text, target, factor, rest, formula in (
        ("1ᵀ(A²⊙A)1", "triangle", 6, 0, "6 × triangles"),
        ("1ᵀ(A²⊙A²)1", "4_cycle", 8, walks, f"8 × 4-cycles + {walks}"),
    ):
        term = parse(text)
        values = np.array([evaluate(term, matrix).item() for matrix in matrices])
        right = values == factor * graphs.targets[:, columns.index(target)] + rest
        tree = str(derive_word(grammar, term))
        sentences.append(CountingSentence(text, tree, formula, int(right.sum())))
    return WlView(
        len(np.unique(low)),
        len(np.unique(high)),
        int(np.isin(high[graphs.splits["test"]], trained).sum()),
        tuple(sentences),
    )


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
