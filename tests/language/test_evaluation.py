"""Reference evaluation against counts made outside it, and its conventions."""

from __future__ import annotations

import math
import re
from random import Random

import networkx as nx
import numpy as np
import pytest

from cases import CASES, GRAPHS
from g2n2.errors import DataError, SortError
from g2n2.language.evaluation import PRIME, evaluate, evaluate_mod
from g2n2.language.parsing import GRAMMAR_NAMES, parse
from strategies import FREE, LINEAR_TERMS, random_terms


@pytest.mark.parametrize("text", dict.fromkeys(case.term for case in CASES))
def test_terms_count_what_networkx_counts(text: str) -> None:
    term = parse(text)
    for case in (case for case in CASES if case.term == text):
        graph = GRAPHS[case.graph]
        value = evaluate(term, graph)
        assert value.dtype == np.float64
        assert value.shape == case.value.shape
        assert np.array_equal(value, case.value), case
        exact = evaluate_mod(term, graph)
        assert exact.shape == case.value.shape
        assert np.array_equal(exact, case.value % PRIME), case


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("relu", -2.0, 0.0),
        ("relu", 3.0, 3.0),
        ("exp", 1.0, math.e),
        ("log", math.e, 1.0),
        ("log", 0.0, 0.0),
        ("log", -1.0, 0.0),
        ("sqrt", 4.0, 2.0),
        ("sqrt", -4.0, 0.0),
        ("inv", 4.0, 0.25),
        ("inv", 0.0, 0.0),
        ("abs", -3.0, 3.0),
        ("sin", math.pi / 6, 0.5),
        ("cos", math.pi / 3, 0.5),
        ("tanh", math.atanh(0.5), 0.5),
        ("sigmoid", math.log(3), 0.75),
        ("sigmoid", -1000.0, 0.0),
    ],
)
def test_named_functions_are_total_and_entrywise(name: str, at: float, value: float) -> None:
    matrix = np.array([[at, 0.0], [0.0, at]])
    result = evaluate(parse(f"{name}(A)"), matrix)
    assert result[0, 0] == pytest.approx(value, abs=1e-12)
    assert result[1, 1] == result[0, 0]
    assert np.isfinite(result).all()


def test_exact_and_float_values_agree() -> None:
    rng = Random(3)
    for term in random_terms(3, 400, LINEAR_TERMS, size=6):
        n = rng.randint(1, 4)
        matrix = np.array([[rng.randint(-2, 2) for _ in range(n)] for _ in range(n)])
        shapes = {"M": (n, n), "V": (n, 1), "R": (1, n)}
        values = {
            x.name: np.array([rng.randint(-2, 2) for _ in range(math.prod(shapes[x.sort.letter]))])
            for x in FREE
        }
        real = evaluate(term, matrix, values)
        exact = evaluate_mod(term, matrix, variables=values)
        scale = 4**8  # clears every denominator of six factors of 1.5, 0.25 and 12.75
        scaled = np.rint(real * scale).astype(object)
        assert np.abs(real).max() < 2**50 / scale
        assert np.array_equal(
            [int(x) % PRIME for x in scaled.ravel()], (exact * scale % PRIME).ravel()
        )


def test_residues_are_exact_where_floats_are_not() -> None:
    """The number of walks of length 100 on K4 is 4·3¹⁰⁰, far beyond 2⁵³."""
    assert evaluate_mod(parse("1ᵀA^100 1"), nx.complete_graph(4))[0, 0] == 4 * 3**100 % PRIME
    assert evaluate_mod(parse("1ᵀA^100 1"), nx.complete_graph(4), prime=101)[0, 0] == 4 % 101


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("relu(A)", {}, SortError, "no exact value modulo a prime"),
        ("f(A1)", {}, SortError, "no exact value modulo a prime"),
        ("N1", {}, DataError, "N has no value here"),
        ("v", {"variables": {"v": [1, 2, 3]}}, DataError, "v has shape (3,)"),
        ("N1", {"variables": {"N": [[0.5, 0], [0, 0]]}}, DataError, "not integers"),
    ],
)
def test_what_exact_evaluation_refuses(
    text: str, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        evaluate_mod(parse(text), np.eye(2), **options)  # type: ignore[arg-type]


def test_float_evaluation_names_what_is_missing() -> None:
    with pytest.raises(SortError, match="no meaning is given for the function f"):
        evaluate(parse("f(A)"), "A_")
    with pytest.raises(SortError, match="grammar variable"):
        evaluate(parse("MV_c", GRAMMAR_NAMES), "A_")
    with pytest.raises(DataError, match="not integers"):
        evaluate_mod(parse("A"), [[0, 0.5], [0.5, 0]])
