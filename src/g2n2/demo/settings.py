"""Settings of the demonstration, and the claims it checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
