"""Patterns decide equality: against numbers on thousands of pairs, against networkx on graphs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from g2n2.errors import SortError
from g2n2.language.evaluation import evaluate
from g2n2.language.parsing import GRAMMAR_NAMES, parse
from g2n2.language.patterns import (
    ASSUMPTIONS,
    Assumption,
    equal,
    normal_form,
    pattern_of,
)
from g2n2.language.sorts import SORTS
from g2n2.language.terms import Term
from rewriting import edited, rewritten
from strategies import (
    ALL_TERMS,
    LINEAR_TERMS,
    MULTILINEAR_TERMS,
    find_difference,
    random_inputs,
    random_term,
)

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


def pairs(seed: int, count: int, assume: str) -> Iterator[tuple[str, Term, Term]]:
    """Half equal by rewriting, a quarter one edit away from that, the rest independent."""
    rng = Random(seed)
    for number in range(count):
        words = LINEAR_TERMS if rng.random() < 0.4 else MULTILINEAR_TERMS
        term = random_term(rng, rng.choice(SORTS), rng.randint(1, 8), words)
        if number % 4 < 2:
            yield "rewritten", term, rewritten(rng, term, rng.randint(2, 12), assume)
        elif number % 4 == 2:
            other = edited(rng, term, words)
            yield "edited", term, rewritten(rng, other, rng.randint(0, 8), assume)
        else:
            yield "random", term, random_term(rng, term.sort, rng.randint(1, 6), words)


def check_pairs(seed: int, count: int, assume: Assumption) -> None:
    rng = Random(seed)
    kinds = {"rewritten": [0, 0], "edited": [0, 0], "random": [0, 0]}
    for kind, left, right in pairs(seed, count, assume):
        claimed = equal(left, right, assume)
        differ = find_difference(left, right, assume, rng, tries=3 if claimed else 80)
        assert claimed != differ, f"{left}   {right}   (seed {seed})"
        assert claimed or kind != "rewritten", f"{left}   {right}   (seed {seed})"
        kinds[kind][claimed] += 1
    assert kinds["rewritten"][True] == count // 2
    assert kinds["edited"][False] > count / 8
    assert kinds["random"][False] > count / 5


@pytest.mark.parametrize("assume", ASSUMPTIONS)
def test_equality_agrees_with_numbers(assume: Assumption) -> None:
    """1,500 pairs over the three assumptions, exact modulo a prime."""
    check_pairs(20, 500, assume)


@pytest.mark.slow
@pytest.mark.parametrize("assume", ASSUMPTIONS)
def test_equality_agrees_with_numbers_on_3_000_pairs(assume: Assumption) -> None:
    check_pairs(21, 1000, assume)


def test_rewriting_really_changes_terms() -> None:
    changed = [a != b for kind, a, b in pairs(3, 400, "none") if kind == "rewritten"]
    assert sum(changed) > 0.95 * len(changed)


def test_equal_terms_with_functions_have_equal_values() -> None:
    """With f the procedure is sound, not complete: only claimed equalities are checked."""
    rng = Random(8)
    functions = {
        name: (lambda x, k=k: np.sin((k + 1.5) * x + k))
        for k, name in enumerate(ALL_TERMS.functions)
    }
    with_function = 0
    for _ in range(250):
        term = random_term(rng, rng.choice(SORTS), rng.randint(2, 7), ALL_TERMS)
        other = rewritten(rng, term, rng.randint(2, 8), "symmetric")
        assert equal(term, other), f"{term}   {other}"
        with_function += "[" in str(normal_form(term))
        a, values = random_inputs(rng, 4, "symmetric")
        small = {name: value / 1e6 for name, value in values.items()}
        one = evaluate(term, a / 1e6, small, functions)
        two = evaluate(other, a / 1e6, small, functions)
        assert np.allclose(one, two, rtol=1e-6, atol=1e-8 * (1 + np.abs(one).max()))
    assert with_function > 80


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
