"""Laplacians and their polynomials as words, against networkx and numpy."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from numpy.polynomial import chebyshev as series

from cases import GRAPHS
from g2n2.errors import GrammarError
from g2n2.language.evaluation import evaluate
from g2n2.language.terms import Apply, Term
from g2n2.spectral.laplacians import chebyshev, laplacian

NETWORKX = {
    "combinatorial": nx.laplacian_matrix,
    "normalised": nx.normalized_laplacian_matrix,
}


def weighted(seed: int) -> nx.Graph:
    graph = nx.gnp_random_graph(9, 0.3, seed=seed)
    rng = np.random.default_rng(seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(0.2, 3.0))
    graph.add_node("alone")
    return graph


def products_in_a_row(term: Term, base: Term) -> int:
    """How many matrix products stand one inside the other above `base`."""
    if term == base or not isinstance(term, Apply):
        return 0
    return (term.op == "matmul") + max(products_in_a_row(arg, base) for arg in term.args)


@pytest.mark.parametrize("kind", NETWORKX)
@pytest.mark.parametrize("name", GRAPHS)
def test_laplacian_is_the_one_of_networkx(kind: str, name: str) -> None:
    graph = GRAPHS[name]
    expected = NETWORKX[kind](graph).toarray()
    assert np.allclose(evaluate(laplacian(kind), graph), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", NETWORKX)
@pytest.mark.parametrize("seed", range(5))
def test_weights_and_isolated_nodes(kind: str, seed: int) -> None:
    graph = weighted(seed)
    value = evaluate(laplacian(kind), graph)
    assert np.allclose(value, NETWORKX[kind](graph).toarray(), rtol=0, atol=1e-14)
    assert not value[-1].any()


def test_an_unknown_laplacian_is_refused() -> None:
    with pytest.raises(GrammarError, match=r"'random walk'.*normalised or combinatorial"):
        laplacian("random walk")  # type: ignore[arg-type]


@pytest.mark.parametrize("degree", range(18))
def test_chebyshev_series_takes_log_many_products(degree: int) -> None:
    coefficients = np.random.default_rng(degree).normal(size=degree + 1).tolist()
    values, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(GRAPHS["random 9"]).toarray())
    expected = (vectors * series.chebval(values, coefficients)) @ vectors.T
    base = laplacian("normalised")
    term = chebyshev(base, coefficients)
    scale = np.abs(expected).max()
    assert np.allclose(evaluate(term, GRAPHS["random 9"]), expected, rtol=0, atol=1e-11 * scale)
    assert products_in_a_row(term, base) == (max(degree, 1) - 1).bit_length()


def test_zero_coefficients() -> None:
    base = laplacian("combinatorial")
    assert not evaluate(chebyshev(base, [0.0]), GRAPHS["bull"]).any()
    assert chebyshev(base, [0.0, 1.0]) == base
    assert chebyshev(base, [0, 1.0, 0.0]).operations <= base.operations + 4
