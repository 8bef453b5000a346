"""What linear filters of the crop reach: references for the networks of Q4.

They are polynomials of degree 30 of the normalised Laplacian, of D − A and of A (the words of
PPGN), fitted on the training image or, as an upper bound for that degree, on the test image; and,
with scale and offset fitted, the true filter with the border repeated, and the image itself. The
detail has all `degrees` and the R² of each.
"""

from __future__ import annotations

import numpy as np

from g2n2.data.benchmarks import FILTERS
from g2n2.data.graph_set import GraphSet
from g2n2.spectral.laplacians import Laplacian
from g2n2.spectral.response import Spectrum, spectrum

from .filter_images import Array, Images, r_squared

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


def ceilings(graphs: GraphSet) -> tuple[dict[str, float], dict[str, list[float]]]:
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
    return metrics, detail


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
