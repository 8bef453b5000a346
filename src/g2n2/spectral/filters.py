"""Filters of the spectrum as polynomials of the Laplacian, as words and as networks (Theorem 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import chebyshev as series
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError
from ..graphs import GraphLike
from ..language.terms import IDENTITY, Term
from .laplacians import Laplacian, chebyshev, combination, laplacian
from .response import SAME_EIGENVALUE, output_response, save_figure, spectrum, spectrum_axes

if TYPE_CHECKING:
    from ..nn.model import GrammarGNN

Array = NDArray[np.float64]
Filter = Callable[[Array], Any]

FILTERS: dict[str, Filter] = {
    "low-pass": lambda share: np.exp(-100.0 * (share / 2) ** 2),
    "high-pass": lambda share: 1.0 - np.exp(-10.0 * (share / 2) ** 2),
    "band-pass": lambda share: np.exp(-1000.0 * (share / 2 - 0.25) ** 2),
}
"""The filters of Balcilar et al. (2021), over a share of the spectrum from 0 to 1.

They are given there over Fourier radii from 0 to ½, the frequencies along one axis of an image."""

POINTS = 2001
"""Where an interval is sampled to measure an error."""


@dataclass(frozen=True)
class PolynomialFilter:
    """A polynomial of a Laplacian that comes closest to a filter.

    Attributes:
        name: The filter's name.
        filter: The filter itself, a function of eigenvalues `[k]`.
        coefficients: In the Chebyshev basis of the interval, degree 0 first.
        interval: Where the eigenvalues are.
        laplacian: Which Laplacian.
        error: The largest distance from the filter, on the interval or on the graph's eigenvalues.
    """

    name: str
    filter: Filter
    coefficients: tuple[float, ...]
    interval: tuple[float, float]
    laplacian: Laplacian
    error: float

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    def __call__(self, eigenvalues: ArrayLike) -> Array:
        """The polynomial's value at eigenvalues."""
        points = np.asarray(eigenvalues, dtype=np.float64)
        value: Array = np.asarray(series.chebval(_unit(points, self.interval), self.coefficients))
        return value

    def matrix(self, graph: GraphLike) -> Array:
        """`[n, n]` the filter's matrix on a graph, through its eigendecomposition."""
        frequencies = spectrum(graph, self.laplacian)
        return frequencies.filter(self(frequencies.eigenvalues))

    def term(self) -> Term:
        """The matrix word with its numbers: degree 2^l takes l products on top of L.

        Raises:
            SortError: The word is larger than the language allows (normalised: degrees beyond 24).
        """
        low, high = self.interval
        unit = combination(
            [
                (2 / (high - low), laplacian(self.laplacian)),
                (-(high + low) / (high - low), IDENTITY),
            ]
        )
        return chebyshev(unit, self.coefficients)

    def network(self, max_degree: int | None = None, grammar: str = "r-G_L3") -> GrammarGNN:
        """The network whose edge-level output is the filter's matrix, exactly (Theorem 5).

        It has the preset `paper`, float64, and the fewest layers and channels that will do: with
        r-G_L3 and degree 2^l, 2 + l layers for the combinatorial and 4 + l for the normalised
        Laplacian.

        Args:
            max_degree: The largest degree it will see; the normalised Laplacian needs it, because
                1/√d is written as straight lines between the integers (so A must hold integers).
            grammar: Any grammar that can make the word.

        Raises:
            DataError: The normalised Laplacian without `max_degree`.
            LoweringError: The grammar cannot make the word.
        """
        from ..formulas.formula_plan import requirements
        from ..formulas.writing import write_formula
        from ..grammars.catalogue import find_grammar
        from ..nn.model import GrammarGNN

        if self.laplacian == "normalised" and max_degree is None:
            raise DataError(
                "the normalised Laplacian takes 1/√d, which a network holds for the degrees it is "
                "told of: give max_degree="
            )
        domain = None if max_degree is None else range(max_degree + 1)
        chosen, term = find_grammar(grammar), self.term()
        needed = requirements(chosen, term, domain=domain)
        model = GrammarGNN(
            chosen,
            width=dict(needed.width),
            layers=needed.depth,
            task="edge",
            preset="paper",
            decision=(),
        ).double()
        write_formula(model, term, domain=domain)
        return model

    def plot(
        self,
        path: str | Path,
        graph: GraphLike | None = None,
        network: GrammarGNN | None = None,
    ) -> Path:
        """Draw filter and polynomial, and what a network of `.network()` does on a graph."""
        figure, axis = spectrum_axes(path, self.laplacian)
        points = np.linspace(*self.interval, 400)
        wanted = np.broadcast_to(self.filter(points), points.shape)
        axis.plot(points, wanted, color="0.6", linewidth=3, label=self.name)
        axis.plot(points, self(points), label=f"polynomial of degree {self.degree}")
        if network is not None:
            if graph is None:
                raise DataError("a network's response needs a graph to run on: give graph=")
            shown = output_response(network, graph, self.laplacian)
            axis.plot(shown.eigenvalues, shown.responses[:, 0], "o", markersize=4, label="network")
        return save_figure(figure, axis, path, legend=True)


def best_polynomial(
    filter: str | Filter,
    degree: int,
    interval: tuple[float, float] | None = None,
    laplacian: Laplacian = "normalised",
    graph: GraphLike | None = None,
) -> PolynomialFilter:
    """The polynomial of a degree nearest to a filter, by least squares in the Chebyshev basis.

    On an interval the squares are weighed as Chebyshev does (dense towards the ends), which comes
    within a small factor of the least possible largest error.

    Args:
        filter: `low-pass`, `high-pass`, `band-pass` (stretched over the interval), or a function of
            an array of eigenvalues.
        degree: Degree of the polynomial.
        interval: Where the eigenvalues are; 0 to 2 for the normalised Laplacian, 0 to the graph's
            largest for the combinatorial one.
        laplacian: `normalised` or `combinatorial`.
        graph: Fit at the eigenvalues of this graph instead of the whole interval.

    Raises:
        DataError: An unknown filter, an empty interval, values that are not finite, or eigenvalues
            outside the interval.
    """
    if degree < 0:
        raise DataError(f"the degree of a polynomial is 0 or more, got {degree}")
    eigenvalues = None if graph is None else spectrum(graph, laplacian).eigenvalues
    ends = _interval(interval, laplacian, eigenvalues)
    name, wanted = _named(filter, ends)
    if eigenvalues is None:
        nodes = series.chebpts1(max(POINTS, 8 * degree))
        points = ends[0] + (ends[1] - ends[0]) * (nodes + 1) / 2
        checked = np.linspace(*ends, POINTS)
    else:
        points = checked = eigenvalues
    basis = series.chebvander(_unit(points, ends), degree)
    coefficients = np.linalg.lstsq(basis, _values(wanted, points, name), rcond=None)[0]
    fitted = series.chebval(_unit(checked, ends), coefficients)
    error = float(np.abs(fitted - _values(wanted, checked, name)).max())
    return PolynomialFilter(
        name, wanted, tuple(float(c) for c in coefficients), ends, laplacian, error
    )


def _interval(
    asked: tuple[float, float] | None, kind: Laplacian, eigenvalues: Array | None
) -> tuple[float, float]:
    if asked is None and kind == "normalised":
        asked = (0.0, 2.0)
    if asked is None:
        if eigenvalues is None:
            raise DataError(
                "the combinatorial Laplacian has no bound of its own: give interval=(0, λ), for "
                "instance twice the largest degree, or a graph"
            )
        asked = (0.0, float(eigenvalues[-1]) or 1.0)
    low, high = float(asked[0]), float(asked[1])
    if not low < high:
        raise DataError(f"the interval from {low:g} to {high:g} is empty; give (low, high)")
    slack = SAME_EIGENVALUE * (high - low)
    if eigenvalues is not None and (eigenvalues[0] < low - slack or eigenvalues[-1] > high + slack):
        raise DataError(
            f"the graph has eigenvalues from {eigenvalues[0]:g} to {eigenvalues[-1]:g}, outside "
            f"the interval from {low:g} to {high:g}; widen it"
        )
    return low, high


def _named(filter: str | Filter, ends: tuple[float, float]) -> tuple[str, Filter]:
    if not isinstance(filter, str):
        return getattr(filter, "__name__", "filter"), filter
    if filter not in FILTERS:
        raise DataError(
            f"no filter is called {filter!r}; known: {', '.join(FILTERS)}, or give a function of "
            "eigenvalues"
        )
    shape, (low, high) = FILTERS[filter], ends
    return filter, lambda values: shape((values - low) / (high - low))


def _values(wanted: Filter, points: Array, name: str) -> Array:
    values = np.broadcast_to(np.asarray(wanted(points), dtype=np.float64), points.shape)
    if not np.isfinite(values).all():
        point = points[~np.isfinite(values)][0]
        raise DataError(f"{name} is not finite at λ = {point:g}; a filter needs a value everywhere")
    return values


def _unit(points: Array, ends: tuple[float, float]) -> Array:
    """The interval moved to −1 … 1."""
    return (2 * points - (ends[0] + ends[1])) / (ends[1] - ends[0])
