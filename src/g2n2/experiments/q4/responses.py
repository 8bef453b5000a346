"""How strongly a network passes each frequency, beside what the true filter does.

A network need not be linear, so its response is what a line through its outputs says: in a narrow
band of eigenvalues of D − A, the slope of the output's components over those of the input. The
scored nodes alone count, so the eigenvectors are those of their own grid; each image is taken less
its mean.
"""

from __future__ import annotations

import numpy as np

from ...spectral.response import spectrum
from .images import Array, Images

BANDS = 40


def band_response(images: Images, part: str, values: Array) -> dict[str, list[float]]:
    """Slopes of `values` `[n]` and of the truth over the input, for each band that is not empty.

    Returns:
        `eigenvalues` (middles of bands), `learned` and `truth`.
    """
    inner = images.mask
    frequencies = spectrum(images.adjacency[np.ix_(inner, inner)], "combinatorial")
    edges = np.linspace(0.0, float(frequencies.eigenvalues[-1]), BANDS + 1)
    band = np.clip(np.digitize(frequencies.eigenvalues, edges) - 1, 0, BANDS - 1)

    def components(image: Array) -> Array:
        made: Array = frequencies.vectors.T @ (image[inner] - image[inner].mean())
        return made

    entering = components(images.input(part))
    power = np.bincount(band, entering**2, BANDS)
    filled = np.flatnonzero(power > 0)

    def slopes(image: Array) -> list[float]:
        passed = np.bincount(band, entering * components(image), BANDS)
        return [round(float(value), 6) for value in passed[filled] / power[filled]]

    middles = (edges[:-1] + edges[1:])[filled] / 2
    return {
        "eigenvalues": [round(float(value), 6) for value in middles],
        "learned": slopes(values),
        "truth": slopes(images.target(part)),
    }
