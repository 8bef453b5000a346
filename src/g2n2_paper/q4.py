"""Q4: can a network learn spectral filters? TwoDGrid30, R² on the mask of the test image.

Cells are `FILTER/NETWORK/layers-L`, ten runs each, and `ceilings` (see `filter_ceilings`). A run's
weights are those that are best on the validation image. The detail has `runs` (seed, steps, R² of
all three images) and `response`, the spectral response of the median run beside the true one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.resources import files
from statistics import median, median_low
from typing import Any

from g2n2.data.catalogue import load_dataset
from g2n2.training.trained_on import checksum

from .filter_ceilings import SETTINGS, ceilings
from .filter_images import Images, band_response
from .filter_runs import FilterNetwork, FilterPlan, one_run
from .runner import Cell, Job, Measurement

FILTERS = ("band", "high", "low")
"""The hardest first."""
DATA = "filtering"
MEDIAN = "test R² (median of runs)"
WORST = "test R² (worst run)"
BEST = "test R² (best run)"

Run = dict[str, Any]


_TEXT = files(__package__).joinpath("q4.toml").read_text(encoding="utf-8")
NETWORKS = tuple(FilterNetwork(**row) for row in tomllib.loads(_TEXT)["networks"])
CHEBYSHEV = NETWORKS[0]
SMOKE = (
    FilterNetwork("ChebNet", baseline="ChebNet", width=8, options={"order": 5}),
    replace(CHEBYSHEV, layers=2, width=4, matrix_width=4),
)


def cells(smoke: bool = False) -> list[Cell]:
    """The ceilings, then network by network."""
    plan = FilterPlan(runs=1, steps=2, every=1) if smoke else FilterPlan()
    return [
        Cell("q4", "ceilings", _ceilings, SETTINGS),
        *(
            filter_cell(name, network, plan.of(network))
            for network in (SMOKE if smoke else NETWORKS)
            for name in (("low",) if smoke else FILTERS)
        ),
    ]


def filter_cell(name: str, network: FilterNetwork, plan: FilterPlan) -> Cell:
    """A network on one filter."""
    settings = {**asdict(network), "filter": name, "steps": plan.steps, "patience": plan.patience}

    def run(job: Job) -> Measurement:
        graphs = load_dataset(DATA, job.data)
        images = Images(graphs, name, job.torch_device(), network.contrast)
        parts = {f"run-{seed}": (images, network, plan, seed) for seed in range(plan.runs)}
        runs = job.kept_parts(parts, one_run)
        true = band_response(images, "test", images.target("test"))
        return Measurement(
            plan.runs,
            "runs",
            metrics(runs),
            data={DATA: checksum(graphs)},
            detail=detail(true, runs),
        )

    cell, defaults = f"{name}/{network.name}/layers-{network.layers}", asdict(FilterNetwork(""))
    return Cell("q4", cell, run, settings, defaults=defaults, parts=plan.runs)


def metrics(runs: list[Run]) -> dict[str, float | None]:
    test = [run["scores"]["test"] for run in runs]
    return {
        MEDIAN: median(test),
        WORST: min(test),
        BEST: max(test),
        "validation R² (median of runs)": median(run["scores"]["validation"] for run in runs),
        "parameters": runs[0]["parameters"],
    }


def detail(true: Mapping[str, list[float]], runs: list[Run]) -> dict[str, Any]:
    """Every run, and the response of the median one beside the true one."""
    middle = median_low(run["scores"]["test"] for run in runs)
    chosen = next(run for run in runs if run["scores"]["test"] == middle)
    return {"runs": runs, "response": {**true, "learned": chosen["learned"]}}


def _ceilings(job: Job) -> Measurement:
    graphs = load_dataset(DATA, job.data)
    values, by_degree = ceilings(graphs)
    return Measurement(1, "fits", values, {DATA: checksum(graphs)}, detail=by_degree)
