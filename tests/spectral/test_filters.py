"""Best polynomials against numpy, and their words against the eigendecomposition."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from cases import GRAPHS
from g2n2.errors import DataError, LoweringError, SortError
from g2n2.language.evaluation import evaluate
from g2n2.spectral.filters import FILTERS, best_polynomial
from g2n2.spectral.response import output_response, response

NETWORKX = {
    "combinatorial": nx.laplacian_matrix,
    "normalised": nx.normalized_laplacian_matrix,
}


def test_named_filters_over_the_normalised_spectrum() -> None:
    """Balcilar et al.: exp(−100ρ²), 1 − exp(−10ρ²), exp(−1000(ρ − ¼)²), with ρ = λ/4."""
    points = np.array([0.0, 0.4, 1.0, 2.0])
    expected = {
        "low-pass": np.exp(-6.25 * points**2),
        "high-pass": 1 - np.exp(-0.625 * points**2),
        "band-pass": np.exp(-62.5 * (points - 1) ** 2),
    }
    assert set(FILTERS) == set(expected)
    for name, values in expected.items():
        assert np.allclose(best_polynomial(name, 2).filter(points), values)


def test_a_polynomial_is_found_exactly() -> None:
    fitted = best_polynomial(lambda x: 1 - 3 * x + 0.5 * x**3, 3)
    assert fitted.error < 1e-12
    assert np.allclose(fitted([0.0, 1.0, 2.0]), [1, -1.5, -1])


@pytest.mark.parametrize("name", FILTERS)
def test_higher_degrees_come_closer(name: str) -> None:
    errors = [best_polynomial(name, degree).error for degree in (2, 4, 8, 16, 32, 64)]
    assert all(b < a for a, b in pairwise(errors) if a > 1e-12)
    assert errors[-1] < 1e-6  # Stone-Weierstrass, with the degree to show for it


def test_error_is_the_largest_distance() -> None:
    """|x − 1| on [0, 2] by a constant: least squares at Chebyshev nodes gives 2/π."""
    fitted = best_polynomial(lambda x: np.abs(x - 1), 0)
    assert np.isclose(fitted.coefficients[0], 2 / np.pi, rtol=0, atol=1e-5)
    assert np.isclose(fitted.error, 2 / np.pi, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["normalised", "combinatorial"])
@pytest.mark.parametrize("degree", [0, 1, 2, 5, 8])
def test_the_word_computes_the_filter(kind: str, degree: int) -> None:
    graph = GRAPHS["C4 + K1"]
    fitted = best_polynomial("band-pass", degree, (-1.0, 5.0), kind)
    found = response(fitted.term(), graph, kind)
    assert np.allclose(found.responses[:, 0], fitted(found.eigenvalues), rtol=0, atol=1e-12)
    assert np.allclose(evaluate(fitted.term(), graph), fitted.matrix(graph), rtol=0, atol=1e-12)
    assert found.residues[0] < 1e-12


@pytest.mark.parametrize("kind", ["normalised", "combinatorial"])
def test_fit_on_a_graphs_own_spectrum(kind: str) -> None:
    """Three eigenvalues of Petersen's graph: degree 2 passes through all of them."""
    graph = GRAPHS["Petersen"]
    fitted = best_polynomial("band-pass", 2, laplacian=kind, graph=graph)
    assert fitted.error < 1e-12
    assert best_polynomial("band-pass", 2, (0.0, 6.0), kind).error > 0.1
    more = best_polynomial("band-pass", 6, laplacian=kind, graph=graph)  # more than it can tell
    assert more.error < 1e-12


def test_a_filter_defined_from_zero_on() -> None:
    fitted = best_polynomial(np.sqrt, 2, graph=nx.path_graph(3))
    assert fitted.name == "sqrt"
    assert np.allclose(fitted([0.0, 1.0, 2.0]), [0.0, 1.0, np.sqrt(2)])


def test_the_interval_stretches_named_filters() -> None:
    fitted = best_polynomial("band-pass", 4, (0.0, 10.0), "combinatorial")
    assert np.isclose(fitted.filter(np.array([5.0]))[0], 1.0)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: best_polynomial("notch", 3), "known: low-pass, high-pass, band-pass"),
        (lambda: best_polynomial("low-pass", -1), "got -1"),
        (lambda: best_polynomial("low-pass", 3, (2.0, 2.0)), "empty"),
        (lambda: best_polynomial("low-pass", 3, laplacian="combinatorial"), r"interval=\(0, λ\)"),
        (lambda: best_polynomial("low-pass", 3, (0.0, 1.0), graph=nx.path_graph(3)), "widen"),
        (lambda: best_polynomial(lambda x: np.log(x), 3, graph=nx.path_graph(3)), "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_refusals(call: object, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        call()  # type: ignore[operator]


def test_a_word_too_large_is_refused_and_the_matrix_is_not() -> None:
    fitted = best_polynomial("low-pass", 40)
    with pytest.raises(SortError, match="too large"):
        fitted.term()
    found = response(fitted.matrix(GRAPHS["bull"]), GRAPHS["bull"])
    assert np.allclose(
        found.responses[:, 0], np.exp(-6.25 * found.eigenvalues**2), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize(
    ("kind", "degree", "layers"),
    [
        ("combinatorial", 1, 2),
        ("combinatorial", 8, 5),
        ("normalised", 1, 4),
        ("normalised", 4, 6),
        ("normalised", 16, 8),
    ],
)
def test_the_network_computes_the_filter(kind: str, degree: int, layers: int) -> None:
    """Theorem 5: L takes 2 or 4 layers, degree 2^l takes l more."""
    pytest.importorskip("torch")
    ends = (0.0, 2.0) if kind == "normalised" else (0.0, 16.0)
    fitted = best_polynomial("band-pass", degree, ends, kind)
    names = ("lollipop", "C4 + K1", "random 9", "Petersen", "K1")
    model = fitted.network(max_degree=max(d for name in names for _, d in GRAPHS[name].degree))
    assert len(model.layers) == layers
    for name in names:
        matrix = NETWORKX[kind](GRAPHS[name]).toarray().astype(float)
        values, vectors = np.linalg.eigh(matrix)
        found = output_response(model, GRAPHS[name], kind)
        assert np.allclose(found.responses[:, 0], fitted(values), rtol=0, atol=1e-12)
        assert found.residues[0] < 1e-11
        assert np.allclose((vectors * fitted(values)) @ vectors.T, fitted.matrix(GRAPHS[name]))


def test_networks_that_cannot_be() -> None:
    pytest.importorskip("torch")
    with pytest.raises(DataError, match="max_degree="):
        best_polynomial("low-pass", 2).network()
    with pytest.raises(LoweringError, match="GNNML1"):
        best_polynomial("low-pass", 2).network(4, "GNNML1")


def test_plot_with_a_network(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("torch")
    fitted = best_polynomial("low-pass", 4)
    path = fitted.plot(tmp_path / "filter.svg", GRAPHS["lollipop"], fitted.network(4))
    assert path.read_text(encoding="utf-8").count("<use") >= 7  # a marker for each eigenvalue
    with pytest.raises(DataError, match="graph="):
        fitted.plot(tmp_path / "filter.svg", network=fitted.network(4))
