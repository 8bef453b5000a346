"""The cells of Q4: a filter and a network, done run by run; and the linear ceilings."""

from __future__ import annotations

import math
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from statistics import median, median_low
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cell import Cell, Slice
from ..kept import NOT_UNDERSTOOD, keep, read_kept
from ..machines import device_called, machine
from ..record import Record
from .settings import BUDGETS, Budget, Network

if TYPE_CHECKING:
    from ...data.graph_set import GraphSet
    from .images import Images

Run = dict[str, Any]
"""One run as it is kept and as a record's detail has it."""
DATA = "filtering"
MEDIAN = "test R² (median of runs)"
WORST = "test R² (worst run)"
BEST = "test R² (best run)"
VALIDATION = "validation R² (median of runs)"


def cells(budget: str) -> list[Cell]:
    """All cells of a budget: the ceilings, then network by network."""
    plan = BUDGETS[budget]
    listed = [Cell("q4", "ceilings", 0, budget, lambda given: _ceilings(budget, given), (DATA,))]
    for network in plan.networks:
        listed += [_cell(name, network, budget, plan.of(network)) for name in plan.filters]
    return listed


def _cell(name: str, network: Network, budget: str, plan: Budget) -> Cell:
    def run(given: Slice) -> Record:
        return run_filter(name, network, budget, plan, given)

    settings = _settings(name, network, plan)
    called = cell_name(name, network)
    return Cell(
        "q4", called, 0, budget, run, (DATA,), planned=plan.runs, settings=settings, goes_on=True
    )


def _settings(name: str, network: Network, plan: Budget) -> dict[str, Any]:
    return {**asdict(network), "filter": name, "steps": plan.steps, "patience": plan.patience}


def cell_name(name: str, network: Network) -> str:
    return f"{name}/{network.name}/layers-{network.layers}"


def run_filter(name: str, network: Network, budget: str, plan: Budget, given: Slice) -> Record:
    """Do as many runs as the slice allows, a step at least, and sum up what there is."""
    from .images import Images
    from .responses import band_response

    begun = time.monotonic()
    graphs = _graphs(given)
    images = Images(graphs, name, device_called(given.device))
    runs: list[Run] = []
    data, here = {DATA: _checksum(graphs)}, machine(given.device)
    given = given.on(data)
    true = band_response(images, "test", images.target("test"))
    bands = len(true["truth"])
    known = known_runs(given.known_detail, bands)

    def summed_up() -> Record:
        return Record(
            question="q4",
            cell=cell_name(name, network),
            seed=0,
            budget=budget,
            done=len(runs),
            planned=plan.runs,
            unit="runs",
            metrics=_metrics(runs),
            config=_settings(name, network, plan),
            data=data,
            provenance=here,
            seconds=given.seconds(begun),
            detail=_detail(true, runs),
        )

    for seed in range(plan.runs):
        given.tell(f"run {seed + 1}", seed, plan.runs)
        kept = given.work / f"run-{seed}.json"
        understood = partial(_understood, seed=seed, bands=bands)
        before = known.get(seed) or read_kept(kept, understood)
        found = before or _run(images, network, plan, seed, given, begun)
        if found is None:
            break
        runs.append(found)
        if before is None:
            keep(kept, found)
            given.publish(summed_up())
        shutil.rmtree(given.work / f"run-{seed}", ignore_errors=True)  # its checkpoint
    return summed_up()


KEPT = ("seed", "step", "best_step", "scores", "curve", "died", "parameters", "learned")


def _understood(said: Mapping[str, Any], seed: int, bands: int) -> Run:
    """The run of a seed as it was kept.

    Raises:
        ValueError: It is something else, as one that lacks a part.
    """
    scores = [said["scores"][part] for part in ("train", "validation", "test")]
    numbers = [*scores, *said["curve"], *said["learned"]]
    whole = [said["seed"], said["step"], said["best_step"], said["parameters"]]
    fits = said["seed"] == seed and max(scores) <= 1.0 and len(said["learned"]) == bands
    types = all(type(one) is int for one in whole) and type(said["died"]) is bool
    if not fits or not types or not all(map(math.isfinite, numbers)):
        raise ValueError
    return {name: said[name] for name in KEPT}


def known_runs(detail: Mapping[str, Any], bands: int) -> dict[int, Run]:
    """The runs a record's detail holds, by seed; of a seed that is there twice neither counts.

    Args:
        detail: Of the record.
        bands: In a response.
    """
    kept, found = detail.get("runs"), {}
    runs = [run for run in kept if isinstance(run, dict)] if isinstance(kept, list) else []
    times = Counter(str(run.get("seed")) for run in runs)
    for run in runs:
        with suppress(*NOT_UNDERSTOOD):
            if times[str(run["seed"])] == 1:
                found[run["seed"]] = _understood(run, run["seed"], bands)
    return found


def _run(
    images: Images, network: Network, plan: Budget, seed: int, given: Slice, begun: float
) -> Run | None:
    """One run; None where time is over."""
    from ...ops.precision import float32_products
    from .fitting import Fit, fit
    from .networks import make_network
    from .responses import band_response

    def looked(progress: Fit) -> None:
        best = f"validation {progress.scores['validation']:.4f}"
        sentence = f"run {seed + 1}, step {progress.step} of {plan.steps}, {best}"
        given.tell(sentence, seed, plan.runs)
        if folder.is_dir():  # there is a checkpoint
            given.note()

    folder = given.work / f"run-{seed}"
    with float32_products(network.tf32):
        model = make_network(network, images, seed)
        progress = fit(model, images, network, plan, folder, given.ends(begun), looked)
    given.note()  # a checkpoint where time is over
    if progress is None:
        return None
    found = {
        **asdict(progress),
        "seed": seed,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "learned": band_response(images, "test", np.array(progress.values))["learned"],
    }
    return {name: found[name] for name in KEPT}


def _metrics(runs: list[Run]) -> dict[str, float | None]:
    if not runs:
        return dict.fromkeys((MEDIAN, WORST, BEST, VALIDATION, "parameters"))
    test = [run["scores"]["test"] for run in runs]
    return {
        MEDIAN: median(test),
        WORST: min(test),
        BEST: max(test),
        VALIDATION: median(run["scores"]["validation"] for run in runs),
        "parameters": runs[0]["parameters"],
    }


def _detail(true: Mapping[str, list[float]], runs: list[Run]) -> dict[str, Any]:
    """Every run, and the response of the median one beside the true one."""
    if not runs:
        return {"runs": []}
    middle = median_low(run["scores"]["test"] for run in runs)
    chosen = next(run for run in runs if run["scores"]["test"] == middle)
    return {"runs": list(runs), "response": {**true, "learned": chosen["learned"]}}


def _ceilings(budget: str, given: Slice) -> Record:
    from .ceilings import SETTINGS, ceilings

    begun = time.monotonic()
    graphs = _graphs(given)
    metrics, detail = ceilings(graphs)
    return Record(
        question="q4",
        cell="ceilings",
        seed=0,
        budget=budget,
        done=1,
        planned=1,
        unit="fits",
        metrics=metrics,
        config=SETTINGS,
        data={DATA: _checksum(graphs)},
        provenance=machine("cpu"),
        seconds=given.seconds(begun),
        detail=detail,
    )


def _graphs(given: Slice) -> GraphSet:
    from ...data.catalogue import load_dataset

    return load_dataset(DATA, given.data)


def _checksum(graphs: GraphSet) -> str:
    from ...training.run_folder import checksum

    return checksum(graphs)
