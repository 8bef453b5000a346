"""The cells of Q3: a set and a model, done fold by fold."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..cell import Cell, Slice
from ..kept import keep
from ..machines import machine
from ..record import Record
from ..training_cells import run_config_said, run_settings
from .settings import PLANS, SETS, Plan, run_config

if TYPE_CHECKING:
    from .folds import Protocol

PROTOCOLS: tuple[Protocol, ...] = ("whole", "nested")
CURVES, NESTED, HELD_OUT = "test curves", "nested", "held out"


def cells(budget: str) -> list[Cell]:
    """All cells of a budget: G²N² on every set first, then the other networks."""
    plan = PLANS[budget]
    return [_cell(name, model, budget, plan) for model in plan.models for name in plan.sets]


def _cell(name: str, model: str, budget: str, plan: Plan, seed: int = 0) -> Cell:
    assert name in SETS, f"{name} is in no table of settings"

    def run(given: Slice) -> Record:
        return run_folds(name, model, budget, plan, seed, given)

    settings = run_settings(run_config(name, model, plan, seed))
    return Cell(
        "q3", f"{name}/{model}", seed, budget, run, (name,), settings=settings, restore=restore
    )


def run_folds(name: str, model: str, budget: str, plan: Plan, seed: int, given: Slice) -> Record:
    """Do as many runs as the slice allows, an epoch at least, and sum up what there is.

    Runs on whole training folds come first: two of the three statistics need nothing else.
    """
    from ...training.graphed import Recorded
    from ...training.run_folder import checksum
    from ..shared_data import graphs_of
    from .folds import FoldRun, run_fold
    from .statistics import metrics

    begun = time.monotonic()
    config = run_config(name, model, plan, seed)
    graphs, recorded = graphs_of(config, given), Recorded()
    runs = [FoldRun(kind, fold) for kind in PROTOCOLS for fold in range(1, plan.folds + 1)]
    found: dict[str, list[list[float]]] = {kind: [] for kind in PROTOCOLS}

    def summed_up() -> Record:
        nested = [scores[0] for scores in found["nested"]]
        return Record(
            question="q3",
            cell=f"{name}/{model}",
            seed=seed,
            budget=budget,
            done=sum(map(len, found.values())),
            planned=len(runs),
            unit="runs of folds",
            metrics=metrics(found["whole"], nested),
            config={**run_config_said(config), "model": model, "folds": plan.folds},
            data={name: checksum(graphs)},
            provenance=machine(given.device),
            seconds=given.seconds(begun),
            detail={CURVES: found["whole"], NESTED: nested, HELD_OUT: _second(found["nested"])},
        )

    for number, fold_run in enumerate(runs):

        def tell(sentence: str, epoch: int, _: int, at: int = number) -> None:
            given.tell(f"{runs[at].name} epoch {epoch}, {sentence}", at, len(runs))

        told = replace(given, tell=tell)
        scores = run_fold(config, fold_run, graphs, told, begun, recorded)
        if scores is None:
            break
        found[fold_run.protocol].append(scores)
        given.publish(summed_up())
    return summed_up()


def restore(record: Record, work: Path) -> None:
    """Lay the runs that a record knows of where a cell finds them."""
    from .folds import FoldRun, kept_at

    nested, held_out = record.detail[NESTED], record.detail[HELD_OUT]
    pairs = [list(pair) for pair in zip(nested, held_out, strict=False)]
    for protocol, runs in zip(PROTOCOLS, (record.detail[CURVES], pairs), strict=True):
        for fold, accuracies in enumerate(runs, start=1):
            keep(kept_at(work, FoldRun(protocol, fold)), accuracies)


def _second(pairs: list[list[float]]) -> list[float]:
    """Accuracies of the held-out graphs; none of a run from before they were kept."""
    return [scores[1] for scores in pairs if len(scores) > 1]
