"""Q4: can a network learn spectral filters? TwoDGrid30, R² on the mask of the test image.

Cells are `FILTER/NETWORK/layers-L`, ten runs each, and `ceilings` (see `filter_ceilings`). Metrics:

    test R² (median of runs)          a run's weights are those that are best on the validation
    test R² (worst run), (best run)   image
    validation R² (median of runs)
    parameters

The detail has `runs` (seed, steps, R² of all three images) and `response`, the spectral response of
the median run beside the true one (see `filter_runs`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from statistics import median, median_low
from typing import Any

from .runner import Cell, Job, Measurement

FILTERS = ("band", "high", "low")
"""The hardest first."""
DATA = "filtering"
MEDIAN = "test R² (median of runs)"
WORST = "test R² (worst run)"
BEST = "test R² (best run)"
VALIDATION = "validation R² (median of runs)"

Run = dict[str, Any]


@dataclass(frozen=True)
class FilterNetwork:
    """One row of the table.

    Attributes:
        name: In the cell.
        layers: How many.
        baseline: A network of `g2n2.nn.baselines`; None for r-G_L3.
        preset: Of r-G_L3.
        width: Channels of H, and of C if `matrix_width` is 0.
        matrix_width: Channels of C.
        hidden: Width of the first of two decision layers.
        corner: Parameter of the start with Chebyshev polynomials; None for a random start.
        hold: Second parameter of that start.
        solved: Start the read-out at the least-squares fit to the training image, above random
            layers.
        rate: Highest learning rate of Adam.
        tf32: Whether a GPU multiplies in tf32. Powers of a Laplacian need more digits.
        options: Of the baseline, or of the preset.
        longer: Factor on steps and patience. Cheap networks learn slowly here and should not lose
            for lack of steps.
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
class FilterPlan:
    """What every network gets.

    Attributes:
        runs: Seeds 0, 1, …; the median is reported.
        steps: At most.
        patience: A run ends after so many steps without a better validation R².
        every: Steps between two evaluations of the validation image.
    """

    runs: int = 10
    steps: int = 400
    patience: int = 150
    every: int = 10

    def of(self, network: FilterNetwork) -> FilterPlan:
        steps, patience = (network.longer * n for n in (self.steps, self.patience))
        return replace(self, steps=steps, patience=patience)


def _read_networks() -> tuple[FilterNetwork, ...]:
    content = files(__package__).joinpath("q4.toml").read_text(encoding="utf-8")
    return tuple(FilterNetwork(**row) for row in tomllib.loads(content)["networks"])


NETWORKS = _read_networks()
CHEBYSHEV = NETWORKS[0]
SMOKE = (
    FilterNetwork("ChebNet", baseline="ChebNet", width=8, options={"order": 5}),
    replace(CHEBYSHEV, layers=2, width=4, matrix_width=4),
)


def cells(smoke: bool = False) -> list[Cell]:
    """The ceilings, then network by network."""
    plan = FilterPlan(runs=1, steps=2, every=1) if smoke else FilterPlan()
    return [
        Cell("q4", "ceilings", _ceilings, {}, needs=(DATA,)),
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
        from g2n2.data.catalogue import load_dataset
        from g2n2.training.run_folder import checksum

        from .filter_runs import Images, band_response, one_run

        graphs = load_dataset(DATA, job.data)
        images = Images(graphs, name, job.torch_device())
        runs = [
            job.kept(f"run-{seed}", one_run, images, network, plan, seed)
            for seed in range(plan.runs)
        ]
        true = band_response(images, "test", images.target("test"))
        return Measurement(
            done=plan.runs,
            unit="runs",
            metrics=metrics(runs),
            config=settings,
            data={DATA: checksum(graphs)},
            detail=detail(true, runs),
        )

    return Cell(
        "q4", f"{name}/{network.name}/layers-{network.layers}", run, settings, needs=(DATA,)
    )


def metrics(runs: list[Run]) -> dict[str, float | None]:
    test = [run["scores"]["test"] for run in runs]
    return {
        MEDIAN: median(test),
        WORST: min(test),
        BEST: max(test),
        VALIDATION: median(run["scores"]["validation"] for run in runs),
        "parameters": runs[0]["parameters"],
    }


def detail(true: Mapping[str, list[float]], runs: list[Run]) -> dict[str, Any]:
    """Every run, and the response of the median one beside the true one."""
    middle = median_low(run["scores"]["test"] for run in runs)
    chosen = next(run for run in runs if run["scores"]["test"] == middle)
    return {"runs": runs, "response": {**true, "learned": chosen["learned"]}}


def _ceilings(job: Job) -> Measurement:
    from g2n2.data.catalogue import load_dataset
    from g2n2.training.run_folder import checksum

    from .filter_ceilings import SETTINGS, ceilings

    graphs = load_dataset(DATA, job.data)
    values, by_degree = ceilings(graphs)
    data = {DATA: checksum(graphs)}
    return Measurement(1, "fits", values, SETTINGS, data, by_degree)
