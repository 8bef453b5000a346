"""The cells of Q3: a set and a model, done fold by fold."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..cell import Cell, Slice
from ..kept import NOT_UNDERSTOOD, percentages
from ..machines import machine
from ..record import Record
from ..training_cells import run_config_said, run_settings
from .settings import LONGER, PLANS, SETS, Plan, Variant, run_config

if TYPE_CHECKING:
    from .folds import FoldRun, Protocol

PROTOCOLS: tuple[Protocol, ...] = ("whole", "nested")
CURVES, NESTED_ACCURACIES, HELD_OUT = "test curves", "nested", "held out"
"""What a record's detail calls them."""


def cells(budget: str) -> list[Cell]:
    """All cells of a budget: G²N² on every set first, then the other networks."""
    plan = PLANS[budget]
    asked = [_cell(name, model, budget, plan) for model in plan.models for name in plan.sets]
    return asked + [_variant_cell(one, budget, plan) for one in plan.variants]


def _variant_cell(one: Variant, budget: str, plan: Plan) -> Cell:
    epochs = LONGER if one.longer else plan.epochs
    plan = replace(plan, epochs=epochs, one_hot=one.one_hot)
    return _cell(one.set_name, one.model, budget, plan, variant=one.name)


def _cell(name: str, model: str, budget: str, plan: Plan, variant: str = "") -> Cell:
    """A set and a model; one that is called otherwise than its model is optional."""
    assert name in SETS, f"{name} is in no table of settings"
    seed = 0
    called = f"{name}/{variant or model}"

    def run(given: Slice) -> Record:
        return run_folds(called, name, model, budget, plan, seed, given)

    settings = {**run_settings(run_config(name, model, plan, seed)), "folds": plan.folds}
    return Cell(
        "q3", called, seed, budget, run, (name,), bool(variant), settings=settings, goes_on=True
    )


def run_folds(
    called: str, name: str, model: str, budget: str, plan: Plan, seed: int, given: Slice
) -> Record:
    """Do as many runs as the slice allows, an epoch at least, and sum up what there is.

    Runs on whole training folds come first: two of the three statistics need nothing else.
    """
    from ...training.cuda_graphs import Recorded
    from ...training.run_folder import checksum
    from ..shared_data import graphs_of
    from .folds import FoldRun, run_fold
    from .statistics import metrics

    begun = time.monotonic()
    config = run_config(name, model, plan, seed)
    graphs, recorded = graphs_of(config, given), Recorded()
    data, here = {name: checksum(graphs)}, machine(given.device)
    runs = [FoldRun(kind, fold) for kind in PROTOCOLS for fold in range(1, plan.folds + 1)]
    given = given.on(data)
    known = known_runs(given.known_detail, plan)
    found: dict[str, list[list[float]]] = {kind: [] for kind in PROTOCOLS}

    def summed_up() -> Record:
        nested, held_out = ([scores[i] for scores in found["nested"]] for i in range(2))
        return Record(
            question="q3",
            cell=called,
            seed=seed,
            budget=budget,
            done=sum(map(len, found.values())),
            planned=len(runs),
            unit="runs of folds",
            metrics=metrics(found["whole"], nested),
            config={**run_config_said(config), "model": model, "folds": plan.folds},
            data=data,
            provenance=here,
            seconds=given.seconds(begun),
            detail={CURVES: found["whole"], NESTED_ACCURACIES: nested, HELD_OUT: held_out},
        )

    for number, fold_run in enumerate(runs):
        scores = known.get(fold_run)
        if scores is None:

            def tell(sentence: str, epoch: int, _: int, at: int = number) -> None:
                given.tell(f"{runs[at].name} epoch {epoch}, {sentence}", at, len(runs))

            told = replace(given, tell=tell)
            scores = run_fold(config, fold_run, graphs, told, begun, recorded)
        if scores is None:
            break
        found[fold_run.protocol].append(scores)
        if fold_run not in known:
            given.publish(summed_up())
    return summed_up()


def known_runs(detail: Mapping[str, Any], plan: Plan) -> dict[FoldRun, list[float]]:
    """What a record's detail holds of each run, as `run_fold` gives it."""
    from .folds import FoldRun

    kept: dict[Protocol, list[Any]] = {"whole": [], "nested": []}
    with suppress(*NOT_UNDERSTOOD):
        kept["whole"] = list(detail[CURVES])
    with suppress(*NOT_UNDERSTOOD):
        kept["nested"] = list(zip(detail[NESTED_ACCURACIES], detail[HELD_OUT], strict=True))
    found: dict[FoldRun, list[float]] = {}
    for protocol, runs in kept.items():
        count = 2 if protocol == "nested" else plan.epochs
        for fold, values in enumerate(runs, start=1):
            with suppress(*NOT_UNDERSTOOD):
                found[FoldRun(protocol, fold)] = percentages(list(values), count)
    return found
