"""The networks of Q4 and what each budget gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

FILTERS = ("band", "high", "low")
"""In the order they are run: the hardest first."""


@dataclass(frozen=True)
class Network:
    """One row of the table.

    Attributes:
        name: In the cell.
        layers: How many.
        baseline: A network of `g2n2.nn.baselines`; r-G_L3 where None.
        preset: Of r-G_L3.
        width: Channels of H, and of C where `matrix_width` is 0.
        matrix_width: Channels of C.
        hidden: Width of the first of two decision layers.
        corner: Start with Chebyshev polynomials, see `chebyshev_start`; an ordinary start if None.
        hold: Of that start.
        solved: Start the read-out at the least-squares fit to the training image, random layers
            below it.
        rate: Highest learning rate of Adam.
        tf32: Whether a GPU takes its products in tf32: powers of a Laplacian need more digits.
        options: Of the baseline, or of the preset where there is none.
        longer: How many times the budget's steps and patience it has: cheap networks learn slowly
            here, and should not lose for want of steps.
    """

    name: str
    layers: int = 3
    baseline: str | None = None
    preset: str = "modern"
    width: int = 32
    matrix_width: int = 0
    hidden: int = 32
    corner: float | None = None
    hold: float = 1.0
    solved: bool = False
    rate: float = 5e-3
    tf32: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    longer: int = 1


@dataclass(frozen=True)
class Budget:
    """What every network gets.

    Attributes:
        networks: In the order they are run.
        runs: Seeds 0, 1, …; the median is reported.
        steps: At most.
        patience: Steps without a better validation R² after which a run ends.
        every: Steps between two looks at the validation image.
        filters: Of `FILTERS`.
    """

    networks: tuple[Network, ...]
    runs: int = 10
    steps: int = 1000
    patience: int = 300
    every: int = 10
    filters: tuple[str, ...] = FILTERS

    def of(self, network: Network) -> Budget:
        """What one network gets."""
        return replace(
            self, steps=self.steps * network.longer, patience=self.patience * network.longer
        )


# Of corner ¼ and ½ and of hold 0, ¼, ½, ¾, 1¼ and 1½, the pair that is best on the validation image
# with six layers, for the band-pass filter, before training.
CHEBYSHEV = Network(
    "G2N2-chebyshev",
    preset="paper",
    matrix_width=8,
    corner=0.25,
    hold=0.25,
    rate=3e-6,
    tf32=False,
)
NETWORKS = (
    replace(CHEBYSHEV, layers=6),
    replace(CHEBYSHEV, layers=5),
    *(Network("G2N2", layers) for layers in (3, 5, 6)),
    # At the script's rate most deep runs diverge: once more with a fifth of it.
    Network("G2N2-slow", layers=5, rate=1e-3, longer=2),
    # Random layers under a solved read-out pass low frequencies in full before any training, and
    # high ones nearly; where all starts at random, training loses that.
    Network("G2N2-solved", layers=5, matrix_width=8, solved=True, rate=3e-5),
    # As in the released script, which is another network than the paper's text says.
    Network(
        "G2N2-released",
        layers=5,
        preset="official",
        width=2,
        matrix_width=4,
        options={"between": False, "decision": [128, 64]},
        longer=5,
    ),
    # Order, supports, rate and steps of the script these were published with.
    Network("ChebNet", baseline="ChebNet", options={"order": 7}, rate=1e-3, longer=5),
    Network("GCN", baseline="GCN", rate=1e-3, longer=5),
    Network(
        "GNNML3",
        baseline="GNNML3",
        options={"supports": 11, "bandwidth": 10.0, "receptive_field": 5, "learned": False},
        rate=1e-3,
        longer=5,
    ),
    Network("PPGN", baseline="PPGN", rate=1e-3, longer=2),
    # The grammar of PPGN in the blocks of G²N²: whether a grammar fails or what stands around it.
    Network("PPGN-alike", baseline="PPGN", options={"preset": "modern", "typical_size": 900.0}),
    Network("G2N2-paper", preset="paper", rate=1e-3),
    replace(CHEBYSHEV, layers=3),
)
SMOKE = (
    Network("ChebNet", baseline="ChebNet", width=8, options={"order": 5}),
    replace(CHEBYSHEV, layers=2, width=4, matrix_width=4),
)
BUDGETS: dict[str, Budget] = {
    "smoke": Budget(SMOKE, runs=1, steps=2, every=1, filters=("low",)),
    "short": Budget(NETWORKS, runs=3, steps=100),
    "full": Budget(NETWORKS, steps=400, patience=150),
}
