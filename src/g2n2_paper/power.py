"""Power, trained: what networks tell apart and count, beside the exact power of their grammars.

brec/CONTENDER                        see `brec`
layers/…                              see `marked_layers`
csl/…, exp/…, sr25/CONTENDER          see `classes`
graph8c/CONTENDER                     see `graph8c`
counting/…/CONTENDER                  see `counting`
zinc/CONTENDER                        penalised logP, resampled training set, equal parameters
"""

from __future__ import annotations

from dataclasses import replace

from g2n2.training.config import RunConfig

from .brec import BrecTraining, brec_cell
from .classes import EPOCHS, calibrated_cell, class_cell
from .contenders import CONTENDERS, MARKED, PPGN_ALIKE, Contender
from .counting import WRITTEN, beyond_cell, counting_cell, exact_cell, written_cell
from .graph8c import graph8c_cell
from .marked_layers import STARTS, layers_cell
from .runner import Cell
from .runs import training_cell

MARKED_FOLDS = 4
"""Of EXP for the network with marks, which takes a minute of an H200 for each."""
RANDOM_NETWORKS = 10
SMOKE_PAIRS = (0, 60, 160)
"""Pairs of small graphs of BREC."""
ZINC_DECISION = {"r-G_L3": (480,), "r-G_L3Σ": (256,)}
"""Hidden units of the decision layers that make both networks equally large."""


def cells(smoke: bool = False) -> list[Cell]:
    """BREC first, then classes, graph8c and counting, then networks with marks."""
    if smoke:
        small = CONTENDERS["G2N2-3"]
        return [
            brec_cell(small, SMOKE_PAIRS, BrecTraining(epochs=2)),
            class_cell("csl", small, epochs=1, folds=1, threads=1),
            graph8c_cell(small, networks=1, limit=200),
            exact_cell(small, limit=200),
            counting_cell(small, epochs=1, limit=150, threads=1),
        ]
    published = list(CONTENDERS.values())
    trained = [*published, PPGN_ALIKE]
    plain, marked, late = CONTENDERS["G2N2-3"], MARKED["G2N2Σ-3"], MARKED["G2N2Σ-2+1"]
    return [
        *map(brec_cell, trained),
        *(class_cell(name, contender) for name in EPOCHS for contender in trained),
        *(graph8c_cell(contender, RANDOM_NETWORKS) for contender in published),
        *(exact_cell(contender) for contender in trained if contender.grammar),
        *map(counting_cell, trained),
        *(brec_cell(MARKED[name]) for name in ("G2N2Σ-5", "L1ΣΣ-9")),
        class_cell("exp", late, folds=MARKED_FOLDS),
        *(calibrated_cell(name, marked) for name in ("csl", "sr25")),
        *map(layers_cell, STARTS),
        *map(beyond_cell, (plain, marked)),
        *map(written_cell, WRITTEN),
        *(zinc_cell(c, s) for c in (replace(plain, network="r-G_L3"), late) for s in (0, 1, 2)),
    ]


def zinc_cell(contender: Contender, seed: int) -> Cell:
    """A contender on ZINC; bonds are all it reads, so that marks on inner atoms lose nothing.

    Its training set is a resampled one: other molecules of the pool ZINC-12k was drawn from.
    """
    config = RunConfig(
        "zinc",
        grammar=contender.network,
        marks="heavy" if contender.options.get("marks") else "all",
        trunk=contender.options.get("trunk", 0),
        width=48,
        decision=ZINC_DECISION[contender.network],
        layers=contender.layers,
        batch=64,
        epochs=24,
        precision="tf32",
        seed=seed,
    )
    return training_cell("power", f"zinc/{contender.name}", config)
