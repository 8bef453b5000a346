"""Patterns decide equality: against numbers on thousands of pairs, against networkx on graphs."""

from __future__ import annotations

import time
from collections import defaultdict
from random import Random

import numpy as np
import pytest

from g2n2.errors import SortError
from g2n2.language.evaluation import evaluate, evaluate_mod
from g2n2.language.operations import POINTWISE
from g2n2.language.parsing import GRAMMAR_NAMES, parse
from g2n2.language.patterns import (
    ASSUMPTIONS,
    Assumption,
    equal,
    normal_form,
    pattern_of,
)
from g2n2.language.sorts import SORTS
from g2n2.language.terms import FREE_VARIABLES, HOLLOW, IDENTITY, ONE, A, Term
from strategies import LINEAR, NUMBERS, Vocabulary, random_inputs, random_term

EQUAL_FOR_EVERY_MATRIX = [
    ("(MN)P", "M(NP)"),
    ("(MN)ᵀ", "NᵀMᵀ"),
    ("(M⊙N)ᵀ", "Mᵀ⊙Nᵀ"),
    ("Mᵀᵀ", "M"),
    ("diag(v)ᵀ", "diag(v)"),
    ("diag(v)w", "v⊙w"),
    ("diag(v)diag(w)", "diag(v⊙w)"),
    ("diag(1)", "I"),
    ("M⊙vr", "diag(v)Mdiag(rᵀ)"),
    ("vr⊙wuᵀ", "(v⊙w)(r⊙uᵀ)"),
    ("rv", "vᵀrᵀ"),
    ("rv", "Tr(vr)"),
    ("Tr(MN)", "Tr(NM)"),
    ("Tr(MN)", "1ᵀ(M⊙Nᵀ)1"),
    ("Tr(M)", "1ᵀ(M⊙I)1"),
    ("(rv)×w", "w(rv)"),
    ("v(rw)", "(vr)w"),
    ("Tr(J)", "0×(1ᵀ1)"),
    ("J + I", "1·1ᵀ"),
    ("J⊙J", "J"),
    ("J⊙I", "0×M"),
    ("M + M", "2×M"),
    ("M − M", "0×N"),
    ("(M + N)P", "MP + NP"),
    ("(M + N)⊙(M − N)", "M⊙M − N⊙N"),
    ("0.5×M + 0.5×M", "M"),
    ("f(Mᵀ)", "f(M)ᵀ"),
    ("f(M + N)", "f(N + M)"),
    ("f(diag(v)w)", "f(v⊙w)"),
    ("f(vᵀ)", "f(v)ᵀ"),
    ("f(f(MN)P)", "f(f(MN)(Pᵀ)ᵀ)"),
]

DIFFERENT = [
    ("MN", "NM"),
    ("M", "Mᵀ"),
    ("M⊙N", "MN"),
    ("v", "w"),
    ("1ᵀ1×M", "M"),
    ("(1ᵀ1)(1ᵀ1)", "1ᵀ1"),
    ("I", "J"),
    ("Tr(M)", "1ᵀM1"),
    ("A⊙A", "A"),
    ("1ᵀA²1", "Tr(A²)"),
    ("1ᵀ(A³⊙A)1", "1ᵀ(A²⊙A²⊙I)1"),
    ("Tr(A³)Tr(A³)", "Tr(A⁶)"),
    ("2×M", "3×M"),
    ("f(M)", "relu(M)"),
    ("f(M)", "f(Mᵀ)"),
    ("f(M + N)", "f(M) + f(N)"),
    ("f(2×M)", "2×f(M)"),
]


@pytest.mark.parametrize(("left", "right"), EQUAL_FOR_EVERY_MATRIX)
def test_laws(left: str, right: str) -> None:
    for assume in ASSUMPTIONS:
        assert equal(parse(left), parse(right), assume), assume


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_differences(left: str, right: str) -> None:
    assert not equal(parse(left), parse(right), "none")
    assert not equal(parse(left), parse(right), "symmetric")


@pytest.mark.parametrize(
    ("left", "right", "holds_for"),
    [
        ("A", "Aᵀ", {"symmetric", "simple"}),
        ("A²", "AAᵀ", {"symmetric", "simple"}),
        ("Tr(A²A)", "Tr(AᵀAA)", {"symmetric", "simple"}),
        ("f(A)", "f(A)ᵀ", {"symmetric", "simple"}),
        ("f(AN)", "f(AᵀN)", {"symmetric", "simple"}),
        ("A⊙A", "A", {"simple"}),
        ("A⊙Aᵀ", "A", {"simple"}),
        ("A⊙I", "0×A", {"simple"}),
        ("Tr(A)", "0×(1ᵀ1)", {"simple"}),
        ("A⊙J", "A", {"simple"}),
        ("A²⊙I", "diag(A1)", {"simple"}),
        ("f(A⊙A)", "f(A)", {"simple"}),
        ("Tr(A³)", "1ᵀ(A²⊙A)1", {"symmetric", "simple"}),
        ("AN", "NA", set()),
        ("A²", "A", set()),
        ("N", "Nᵀ", set()),
        ("N⊙N", "N", set()),
    ],
)
def test_what_is_assumed_of_a_matters(left: str, right: str, holds_for: set[str]) -> None:
    for assume in ASSUMPTIONS:
        assert equal(parse(left), parse(right), assume) == (assume in holds_for), assume


def test_the_sort_is_part_of_the_value() -> None:
    assert not equal(parse("v"), parse("vᵀ"))
    assert not equal(parse("0×v"), parse("0×M"))


FEW = (A, ONE, IDENTITY, HOLLOW, FREE_VARIABLES["N"], FREE_VARIABLES["v"], FREE_VARIABLES["r"])
"""Few leaves, so that many random terms have one value."""
PRODUCTS = Vocabulary(leaves=FEW)
SUMS = Vocabulary(LINEAR, FEW, NUMBERS)
WITH_FUNCTIONS = Vocabulary(LINEAR | {*POINTWISE}, FEW, NUMBERS, ("f", "relu"))


@pytest.mark.parametrize("assume", ASSUMPTIONS)
def test_equality_agrees_with_numbers(assume: Assumption) -> None:
    """Of 1,500 terms, those of one value on random matrices have one form, and no others have it."""
    rng = Random(20)
    inputs = [random_inputs(rng, n, assume) for n in (4, 7)]
    groups: dict[object, dict[Term, None]] = defaultdict(dict)
    for _ in range(1500):
        words = SUMS if rng.random() < 0.4 else PRODUCTS
        term = random_term(rng, rng.choice(SORTS), rng.randint(1, 7), words)
        values = (evaluate_mod(term, a, variables=given).ravel() for a, given in inputs)
        groups[term.sort, tuple(map(tuple, values))][term] = None
    same = [(min(terms, key=str), term) for terms in groups.values() for term in terms]
    for left, right in same:
        assert equal(left, right, assume), f"{left}   {right}"
    forms: dict[object, Term] = {}
    for (sort, _), terms in groups.items():
        term = next(iter(terms))
        other = forms.setdefault((sort, frozenset(normal_form(term, assume).items())), term)
        assert other is term, f"{term}   {other}"
    assert len(same) - len(groups) > 250
    assert len(groups) > 300


def test_equal_terms_with_functions_have_equal_values() -> None:
    """With f the procedure is sound, not complete: only claimed equalities are checked."""
    rng = Random(8)
    functions = {"f": np.sin, "relu": lambda x: np.sin(2.5 * x + 1)}
    a, values = random_inputs(rng, 4, "symmetric")
    small = {name: value / 1e6 for name, value in values.items()}
    first: dict[object, Term] = {}
    checked = 0
    for _ in range(2000):
        term = random_term(rng, rng.choice(SORTS), rng.randint(2, 5), WITH_FUNCTIONS)
        form = normal_form(term)
        other = first.setdefault((term.sort, frozenset(form.items())), term)
        if other == term:
            continue
        one, two = (evaluate(x, a / 1e6, small, functions) for x in (term, other))
        assert np.allclose(one, two, rtol=1e-6, atol=1e-8), f"{term}   {other}"
        checked += "[" in str(form)
    assert checked > 50


@pytest.mark.parametrize(
    "text",
    [
        "Tr(A^3)^40",
        "Tr(A^120)",
        "(1'(A^2*A)1)^30",
        "(1'A1)^60",
        "1'diag((A^2*A)1)^25 1",
        "(A+I)^60",
    ],
)
def test_symmetric_terms_do_not_blow_up(text: str) -> None:
    start = time.process_time()
    assert equal(parse(text), parse(text))
    assert time.process_time() - start < 5


def test_one_pattern_is_refused_for_a_sum() -> None:
    assert pattern_of(parse("1ᵀA1")).vertices == 2
    with pytest.raises(SortError, match="has no single pattern"):
        pattern_of(parse("A + I"))


def test_grammar_variables_have_no_pattern() -> None:
    with pytest.raises(SortError, match="grammar variable"):
        normal_form(parse("MV_c", GRAMMAR_NAMES))


def test_an_expansion_that_is_too_large_says_so() -> None:
    many = "(A + N + P + M + Aᵀ + Nᵀ + Pᵀ + Mᵀ + I)"
    with pytest.raises(SortError, match="more than 5000 products"):
        normal_form(parse(many * 4), "none")
    with pytest.raises(SortError, match="more than 400 vertices"):
        normal_form(parse("(A^199)(A^199)(A^199)"))
