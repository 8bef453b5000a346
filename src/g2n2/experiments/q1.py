"""Q1: is the reduction relevant and optimal?

QM9's R² with distances, width 32, the same epochs and recipe for every grammar, three seeds; beside
it the exact power of each grammar on BREC, with its own read-out and with the network's.

Cells are `train/GRAMMAR`, with the metrics of `training_cells`, and `exact/GRAMMAR/READOUT`, with
those of `exact_cells`. GRAMMAR is a key of `GRAMMARS`, READOUT one of `READOUTS`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..training.config import RunConfig
from .cell import Cell
from .exact_cells import exact_cell
from .training_cells import SMALL_BATCH, training_cell

GRAMMARS: dict[str, str] = {
    "r-G_L3": "r-G_L3",
    "G_L3": "G_L3",
    "i-G_L3": "i-G_L3",
    "r-G_L3+transpose": "r-G_L3 ∪ {Mᵀ}",
    "r-G_L3-hadamard": "r-G_L3 ∖ {M⊙M}",
    "r-G_L3-product": "r-G_L3 ∖ {MM}",
    "r-G_L3-diagonal": "r-G_L3 ∖ {diag(V_c)}",
    "r-G_L3-vector": "r-G_L3 ∖ {MV_c}",
    "four-rule": "four-rule",
}
"""Name in a cell to the grammar's own."""

READOUTS: dict[str, str | None] = {"own": None, "network": "network"}
"""Every sentence of the grammar, or the pooling a network has."""


@dataclass(frozen=True)
class Budget:
    """What every grammar gets.

    Attributes:
        epochs: Of training.
        seeds: One run for each.
        suite: Pairs the exact power is measured on.
        grammars: Which of them.
        width: Of every memory.
        limit: Molecules; 0 for all. A few are for a CPU, on one thread and in small batches.
    """

    epochs: int
    seeds: tuple[int, ...] = (0, 1, 2)
    suite: str = "brec"
    grammars: tuple[str, ...] = tuple(GRAMMARS)
    width: int = 32
    limit: int = 0


BUDGETS = {
    "smoke": Budget(2, (0,), "csl", ("r-G_L3", "four-rule"), width=8, limit=150),
    "short": Budget(8),
    "full": Budget(12),
}


def config(grammar: str, seed: int, budget: Budget) -> RunConfig:
    """The run of one grammar."""
    return RunConfig(
        "qm9",
        target=("r2",),
        options={"track": "distance", "features": "ppgn"},
        grammar=GRAMMARS[grammar],
        width=budget.width,
        readout="pooled-only" if grammar == "G_L3" else None,  # the paper's, without rules of S
        epochs=budget.epochs,
        limit=budget.limit,
        batch=SMALL_BATCH if budget.limit else None,
        threads=1 if budget.limit else 0,
        references=True,
        seed=seed,
        precision="tf32",  # an error of a thousandth of R²'s spread is below bf16's own
    )


def cells(budget: str) -> list[Cell]:
    """First one seed of every grammar, then the others; the exact rows, which need no GPU, last."""
    asked = BUDGETS[budget]
    trained = [
        training_cell("q1", f"train/{name}", budget, config(name, seed, asked))
        for seed in asked.seeds
        for name in asked.grammars
    ]
    exact = [
        exact_cell("q1", f"exact/{name}/{said}", budget, GRAMMARS[name], asked.suite, readout)
        for name in asked.grammars
        for said, readout in READOUTS.items()
    ]
    return trained + exact
