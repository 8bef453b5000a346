"""Q4: can a network learn spectral filters? TwoDGrid30, R² on the mask of the test image.

Cells are `FILTER/NETWORK/layers-L`, ten runs each. A run's weights are those that are best on the
validation image. The detail has `runs` (seed, steps, R² of all three images) and `response`, the
spectral response of the median run beside the true one.

`ceilings` has what linear filters of the crop reach: polynomials of degree 30 of the normalised
Laplacian, of D − A and of A (the words of PPGN), fitted on the training image or, as an upper bound
for that degree, on the test image; and, with scale and offset fitted, the true filter with the
border repeated, and the image itself. The detail has all `degrees` and the R² of each.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.resources import files
from statistics import median, median_low
from typing import Any

import numpy as np

from g2n2.data.catalogue import load_dataset
from g2n2.spectral.laplacians import Laplacian
from g2n2.spectral.response import Spectrum, spectrum
from g2n2.training.trained_on import checksum

from .filter_images import Array, Images, band_response, r_squared
from .filter_runs import FilterNetwork, FilterPlan, one_run
from .runner import Cell, Job, Measurement

FILTERS = ("band", "high", "low")
"""The hardest first."""
DATA = "filtering"
MEDIAN = "test R² (median of runs)"
WORST = "test R² (worst run)"
BEST = "test R² (best run)"

Run = dict[str, Any]

DEGREES = (5, 10, 15, 20, 25, 30, 40)
SHOWN = 30
LARGEST: dict[Laplacian, float] = {"normalised": 2.0, "combinatorial": 8.0}
"""The end of the spectrum on any grid."""
NAMES = {
    "normalised": "polynomial of the normalised Laplacian",
    "combinatorial": "polynomial of D − A",
    "adjacency": "polynomial of A",
}
PADDING, SIDE, PICTURE = 32, 30, 95
SETTINGS = {
    "degrees": list(DEGREES),
    "degree of the table": SHOWN,
    "fit": "least squares in Chebyshev polynomials with an offset, on the mask, no ridge",
    "pixels the border is repeated by": PADDING,
}
"""What the numbers depend on."""


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
        Cell("q4", "ceilings", ceilings, SETTINGS),
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


def ceilings(job: Job) -> Measurement:
    graphs = load_dataset(DATA, job.data)
    metrics: dict[str, float] = {}
    detail: dict[str, list[float]] = {"degrees": list(DEGREES)}
    grid = graphs.adjacency(0)
    spectra = {kind: spectrum(grid, kind) for kind in LARGEST} | {"adjacency": of_adjacency(grid)}
    for name in FILTERS:
        images = Images(graphs, name)
        for kind, text in NAMES.items():
            for part, tail in (("train", ""), ("test", " fitted on the test image")):
                scores = [polynomial_ceiling(images, spectra[kind], d, part) for d in DEGREES]
                key = f"{name}: {text}, test R²{tail}"
                metrics[key], detail[key] = scores[DEGREES.index(SHOWN)], scores
        metrics[f"{name}: true filter with the border repeated, test R²"] = repeated_ceiling(images)
        unfiltered = polynomial_ceiling(images, spectra["normalised"], 0, "train")
        metrics[f"{name}: image itself, test R²"] = unfiltered
    return Measurement(1, "fits", metrics, {DATA: checksum(graphs)}, detail=detail)


def polynomial_ceiling(images: Images, frequencies: Spectrum, degree: int, fitted_on: str) -> float:
    """Test R² of the least-squares polynomial of a Laplacian, with an offset."""
    columns = {part: _powers(images, frequencies, degree, part) for part in (fitted_on, "test")}
    truth = images.target(fitted_on)[images.mask]
    weights = np.linalg.lstsq(columns[fitted_on], truth, rcond=None)[0]
    return r_squared(columns["test"] @ weights, images.target("test")[images.mask])


def of_adjacency(grid: Array) -> Spectrum:
    """Of 4I − A: its polynomials are those of A, its spectrum ends where that of D − A does."""
    return Spectrum(*np.linalg.eigh(4.0 * np.eye(len(grid)) - grid), "combinatorial")


def repeated_ceiling(images: Images) -> float:
    """Test R² of the true filter on the crop, its border pixels repeated outwards."""
    filtered = {part: _true_filter(images, part)[images.mask] for part in ("train", "test")}
    slope, offset = np.polyfit(filtered["train"], images.target("train")[images.mask], 1)
    return r_squared(slope * filtered["test"] + offset, images.target("test")[images.mask])


def _powers(images: Images, frequencies: Spectrum, degree: int, part: str) -> Array:
    """`[m, degree + 2]` Chebyshev polynomials of L on the input, and 1, on the mask."""
    unit = 2.0 * frequencies.eigenvalues / LARGEST[frequencies.laplacian] - 1.0
    table = np.polynomial.chebyshev.chebvander(unit, degree)
    spectral = frequencies.vectors.T @ images.input(part)
    values = frequencies.vectors @ (table * spectral[:, None])
    return np.column_stack([values, np.ones(len(values))])[images.mask]


def _true_filter(images: Images, part: str) -> Array:
    """The padded crop under the Fourier filter of the whole picture, `[n]`."""
    crop = images.input(part).reshape(SIDE, SIDE)
    padded = np.pad(crop, PADDING, mode="edge")
    if images.filter == "low":  # the only one made in space: a pixel and its four neighbours
        parts = [padded, *(np.roll(padded, step, axis) for step in (1, -1) for axis in (0, 1))]
        filtered = np.sum(parts, axis=0)
    else:
        # The set counts frequencies from −½ to ½ in steps of 1/94 on a picture of 95 pixels.
        frequency = np.fft.fftfreq(len(padded)) * PICTURE / (PICTURE - 1)
        rho = np.hypot(frequency[:, None], frequency)
        band = np.exp(-1000.0 * (rho - 0.25) ** 2)
        passed = band if images.filter == "band" else 1.0 - np.exp(-10.0 * rho**2)
        filtered = np.fft.ifft2(np.fft.fft2(padded) * passed).real
    return np.asarray(filtered[PADDING:-PADDING, PADDING:-PADDING]).ravel()
