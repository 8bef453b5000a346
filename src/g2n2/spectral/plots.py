"""Spectral responses and filters as figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError
from ..graphs import GraphLike
from ..power.plot import check_plot

if TYPE_CHECKING:
    from ..nn.model import GrammarGNN
    from .filters import PolynomialFilter
    from .response import SpectralResponse


def draw_response(response: SpectralResponse, path: str | Path) -> Path:
    """One line for each matrix over the eigenvalues."""
    figure, axis = _axes(path, response.laplacian)
    for name, values in zip(response.names, response.responses.T, strict=True):
        axis.plot(response.eigenvalues, values, marker="o", markersize=3, label=name)
    return _saved(figure, axis, path, legend=len(response.names) <= 8)


def draw_filter(
    fitted: PolynomialFilter,
    path: str | Path,
    graph: GraphLike | None = None,
    network: GrammarGNN | None = None,
) -> Path:
    """The filter, its polynomial, and the response of the network that computes it on a graph."""
    figure, axis = _axes(path, fitted.laplacian)
    points = np.linspace(*fitted.interval, 400)
    wanted = np.broadcast_to(fitted.filter(points), points.shape)
    axis.plot(points, wanted, color="0.6", linewidth=3, label=fitted.name)
    axis.plot(points, fitted(points), label=f"polynomial of degree {fitted.degree}")
    if network is not None:
        if graph is None:
            raise DataError("a network's response needs a graph to run on: give graph=")
        from .response import output_response

        found = output_response(network, graph, fitted.laplacian)
        axis.plot(found.eigenvalues, found.responses[:, 0], "o", markersize=4, label="network")
    return _saved(figure, axis, path, legend=True)


def _axes(path: str | Path, laplacian: str) -> tuple[Any, Any]:
    check_plot(Path(path))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    axis.set(xlabel=f"eigenvalue λ of the {laplacian} Laplacian", ylabel="response φ(λ)")
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis


def _saved(figure: Any, axis: Any, path: str | Path, legend: bool) -> Path:
    if legend:
        axis.legend(fontsize=8, frameon=False)
    target = Path(path)
    try:
        figure.savefig(target)
    except (OSError, ValueError) as fault:
        raise DataError(f"cannot write {target}: {fault}") from None
    return target
