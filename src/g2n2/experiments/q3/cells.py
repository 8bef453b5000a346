"""The cells of Q3: a set and a model, done fold by fold."""

from __future__ import annotations

import time
from dataclasses import replace

from ..cell import Cell, Slice
from ..machines import machine
from ..record import Record
from ..training_cells import run_config_said, run_settings
from .settings import PLANS, SETS, Plan, run_config


def cells(budget: str) -> list[Cell]:
    """All cells of a budget: G²N² on every set first, then the other networks."""
    plan = PLANS[budget]
    return [_cell(name, model, budget, plan) for model in plan.models for name in plan.sets]


def _cell(name: str, model: str, budget: str, plan: Plan, seed: int = 0) -> Cell:
    assert name in SETS, f"{name} is in no table of settings"

    def run(given: Slice) -> Record:
        return run_folds(name, model, budget, plan, seed, given)

    settings = run_settings(run_config(name, model, plan, seed))
    return Cell("q3", f"{name}/{model}", seed, budget, run, (name,), settings=settings)


def run_folds(name: str, model: str, budget: str, plan: Plan, seed: int, given: Slice) -> Record:
    """Do as many runs as the slice allows, an epoch at least, and sum up what there is.

    Runs on whole training folds come first: two of the three statistics need nothing else.
    """
    from ...training.graphed import Recorded
    from ...training.run_folder import checksum
    from ..shared_data import graphs_of
    from .folds import FoldRun, Protocol, run_fold
    from .statistics import metrics

    begun = time.monotonic()
    config = run_config(name, model, plan, seed)
    graphs, recorded = graphs_of(config, given), Recorded()
    protocols: tuple[Protocol, ...] = ("whole", "nested")
    runs = [FoldRun(kind, fold) for kind in protocols for fold in range(1, plan.folds + 1)]
    found: dict[str, list[list[float]]] = {kind: [] for kind in protocols}
    done = 0
    for number, fold_run in enumerate(runs):

        def tell(sentence: str, epoch: int, _: int, at: int = number) -> None:
            given.tell(f"{runs[at].name} epoch {epoch}, {sentence}", at, len(runs))

        told = replace(given, tell=tell)
        scores = run_fold(config, fold_run, graphs, told, begun, recorded)
        if scores is None:
            break
        found[fold_run.protocol].append(scores)
        done += 1
    nested, held_out = [scores[0] for scores in found["nested"]], _second(found["nested"])
    return Record(
        question="q3",
        cell=f"{name}/{model}",
        seed=seed,
        budget=budget,
        done=done,
        planned=len(runs),
        unit="runs of folds",
        metrics=metrics(found["whole"], nested),
        config={**run_config_said(config), "model": model, "folds": plan.folds},
        data={name: checksum(graphs)},
        provenance=machine(given.device),
        seconds=given.seconds(begun),
        detail={"test curves": found["whole"], "nested": nested, "held out": held_out},
    )


def _second(pairs: list[list[float]]) -> list[float]:
    """Accuracies of the held-out graphs; none of a run from before they were kept."""
    return [scores[1] for scores in pairs if len(scores) > 1]
