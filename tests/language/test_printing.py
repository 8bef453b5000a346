"""Printing: the paper's notation, and round trips of thousands of random terms."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from g2n2.language.parsing import parse, parse_body
from g2n2.language.printing import to_ascii, to_latex, to_text
from g2n2.language.terms import Term, subterms
from strategies import random_terms

ROUND_TRIPS = 2000


@pytest.fixture(scope="module")
def terms() -> list[Term]:
    """Random terms with numbers, minus, powers, functions and free variables."""
    return list(random_terms(11, ROUND_TRIPS, size=14))


@pytest.mark.parametrize(
    ("source", "text", "ascii_", "latex"),
    [
        ("1'A1", "1ᵀA1", "1^T A 1", r"\mathbf 1^{\mathsf T} A \mathbf 1"),
        (
            "1'(A^2*A)1",
            "1ᵀ(A²⊙A)1",
            "1^T (A^2 * A) 1",
            r"\mathbf 1^{\mathsf T} \left(A^{2} \odot A\right) \mathbf 1",
        ),
        ("diag(v)w", "diag(v)w", "diag(v) w", r"\mathrm{diag}\left(v\right) w"),
        ("A*(v r)", "A⊙vr", "A * v r", r"A \odot v r"),
        ("(A^2)^2", "(A²)²", "A^2^2", r"{A^{2}}^{2}"),
        ("A(AA)", "AA²", "A A^2", r"A A^{2}"),
        ("1*1", "1⊙1", "1 * 1", r"\mathbf 1 \odot \mathbf 1"),
        ("1 1'", "1·1ᵀ", "1 1^T", r"\mathbf 1 \mathbf 1^{\mathsf T}"),
        ("A + A*A", "A + A⊙A", "A + A * A", r"A + A \odot A"),
        ("A - N", "A − N", "A - N", r"A - N"),
        ("A - 1.5*N", "A − 1.5×N", "A - 1.5 * N", r"A - 1.5 \times N"),
        ("-2*A", "−2×A", "-2 * A", r"-2 \times A"),
        ("1.0*A", "1.0×A", "1.0 * A", r"1.0 \times A"),
        ("2*(A+N)", "2×(A + N)", "2 * (A + N)", r"2 \times \left(A + N\right)"),
        ("A-(N+P)", "A − (N + P)", "A - (N + P)", r"A - \left(N + P\right)"),
        ("(AN)'", "(AN)ᵀ", "(A N)^T", r"\left(A N\right)^{\mathsf T}"),
        ("A''", "Aᵀᵀ", "A^T^T", r"{A^{\mathsf T}}^{\mathsf T}"),
        ("Tr(A)*A", "Tr(A)×A", "Tr(A) * A", r"\mathrm{Tr}\left(A\right) \times A"),
        ("Tr(A).*Tr(A)", "Tr(A)⊙Tr(A)", "Tr(A) .* Tr(A)", None),
        ("inv(sqrt(A1))", "inv(sqrt(A1))", "inv(sqrt(A 1))", None),
        ("w - (1*u)", "w − 1⊙u", "w - (1 * u)", None),  # w - 1 * u would read as w − 1×u
        ("(r v 1.0)*N", "(rv1.0)×N", "(r v 1.0) * N", None),
    ],
)
def test_notation(source: str, text: str, ascii_: str, latex: str | None) -> None:
    term = parse(source)
    assert to_text(term) == text == str(term)
    assert to_ascii(term) == ascii_
    assert ascii_.isascii()
    assert parse(text) == parse(ascii_) == term
    if latex:
        assert to_latex(term) == latex
        assert term._repr_latex_() == f"${latex}$"


@pytest.mark.parametrize(
    ("body", "text", "latex"),
    [
        ("MV", "MV_c", "M V_{c}"),
        ("(V_r)(V_c)", "(V_r)(V_c)", r"\left(V_{r}\right)\left(V_{c}\right)"),
        ("C_1 V", "C_1V_c", "C_{1} V_{c}"),
        ("diag(V)V", "diag(V_c)V_c", r"\mathrm{diag}\left(V_{c}\right) V_{c}"),
    ],
)
def test_rule_bodies(body: str, text: str, latex: str) -> None:
    term = parse_body(body)
    assert to_text(term) == text
    assert to_latex(term) == latex
    assert parse_body(text) == term


def test_powers_can_be_written_out() -> None:
    assert to_text(parse("A³"), powers=False) == "AAA"
    assert to_ascii(parse("A³"), powers=False) == "A A A"


@pytest.mark.parametrize("show", [to_text, to_ascii])
@pytest.mark.parametrize("powers", [True, False])
def test_round_trips(show: object, powers: bool, terms: list[Term]) -> None:
    for term in terms:
        text = show(term, powers)  # type: ignore[operator]
        assert parse(text) == term, text


def test_the_random_terms_hold_everything(terms: list[Term]) -> None:
    """The round trips mean little if the generator left something out."""
    seen = Counter(
        getattr(t, "function", "") or getattr(t, "op", "") for x in terms for t in subterms(x)
    )
    for name in ("matmul", "transpose", "diag", "hadamard", "trace", "add", "scale", "relu", "inv"):
        assert seen[name] > 50, name
    texts = " ".join(map(to_text, terms))
    for piece in ("²", "³", " − ", "−1×", "1.5", "1.0", "12.75", "ᵀᵀ", "J", "r", "u", "N", ")²"):
        assert piece in texts, piece
    assert len(set(terms)) > ROUND_TRIPS / 2


def test_latex_is_balanced(terms: list[Term]) -> None:
    for term in terms:
        latex = to_latex(term)
        depth = 0
        for brace in re.findall(r"(?<!\\)[{}]", latex):
            depth += 1 if brace == "{" else -1
            assert depth >= 0
        assert depth == 0
        assert latex.count(r"\left(") == latex.count(r"\right)")
        assert not re.search(r"\^\{[^{}]*\}\^", latex), f"double superscript in {latex}"
        assert latex.isascii()


def test_ascii_is_ascii_and_equal_terms_only_print_alike(terms: list[Term]) -> None:
    by_text: dict[str, Term] = {}
    for term in terms:
        text = to_ascii(term)
        assert text.isascii()
        assert by_text.setdefault(text, term) == term
