"""The notation: what binds how, every spelling, and what happens to text that is not a term."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from g2n2.errors import G2N2Error, ParseError, SortError
from g2n2.language.parsing import parse, parse_body
from g2n2.language.printing import to_text
from g2n2.language.sorts import M, R, S, V
from g2n2.language.terms import HOLLOW, IDENTITY, ONE, A, Hole, Leaf, Number, Term, apply, call

N, P = Leaf("N", M), Leaf("P", M)
v, w, r = Leaf("v", V), Leaf("w", V), Leaf("r", R)


def dot(*factors: Term) -> Term:
    """A product nested to the left."""
    total = factors[0]
    for factor in factors[1:]:
        total = apply("matmul", total, factor)
    return total


def had(a: Term, b: Term) -> Term:
    return apply("hadamard", a, b)


def times(number: str | Term, x: Term) -> Term:
    return apply("scale", Number(Fraction(number)) if isinstance(number, str) else number, x)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("A", A),
        ("1", ONE),
        ("one(A)", ONE),
        ("ones(A1)", ONE),
        ("one(r)", Number(Fraction(1))),
        ("1.0", Number(Fraction(1))),
        ("I", IDENTITY),
        ("J", HOLLOW),
        ("1ᵀA1", dot(ONE.T, A, ONE)),
        ("1^T A 1", dot(ONE.T, A, ONE)),
        ("1'A1", dot(ONE.T, A, ONE)),
        ("1^{T}·A@1", dot(ONE.T, A, ONE)),
        ("1ᵀ(A²⊙A)1", dot(ONE.T, had(dot(A, A), A), ONE)),
        ("1^T (A^2 * A) 1", dot(ONE.T, had(dot(A, A), A), ONE)),
        ("1^T (A^{2} .* A) 1", dot(ONE.T, had(dot(A, A), A), ONE)),
        ("A³", dot(A, A, A)),
        ("A²ᵀ", dot(A, A).T),
        ("Aᵀ²", dot(A.T, A.T)),
        ("(A²)²", dot(dot(A, A), dot(A, A))),
        ("A^2^2", dot(dot(A, A), dot(A, A))),
        ("A¹", A),
        ("NAᵀ", dot(N, A.T)),
        ("(NA)ᵀ", dot(N, A).T),
        ("NA⊙P", had(dot(N, A), P)),
        ("N⊙AP", had(N, dot(A, P))),
        ("N⊙A + P", apply("add", had(N, A), P)),
        ("N + A⊙P", apply("add", N, had(A, P))),
        ("N⊙A⊙P", had(had(N, A), P)),
        ("N(AP)", dot(N, dot(A, P))),
        ("A + N − P", apply("add", apply("add", A, N), times("-1", P))),
        ("A - N - P", apply("add", apply("add", A, times("-1", N)), times("-1", P))),
        ("−A", times("-1", A)),
        ("−A⊙N", times("-1", had(A, N))),
        ("2×A", times("2", A)),
        ("2*A", times("2", A)),
        ("−2×A", times("-2", A)),
        ("-1.5*A", times("-1.5", A)),
        ("1.0×A", times("1", A)),
        ("2×AN", dot(times("2", A), N)),
        ("2*A N", times("2", dot(A, N))),
        ("2×3×A", times("2", times("3", A))),
        ("N − 2×A", apply("add", N, times("-2", A))),
        ("N⊙2×A", had(N, times("2", A))),
        ("N * 2 * A", had(N, times("2", A))),
        ("1*v", had(ONE, v)),
        ("v*w", had(v, w)),
        ("(rv)*w", times(dot(r, v), w)),
        ("rv*w", times(dot(r, v), w)),
        ("rv×w", times(dot(r, v), w)),
        ("rv⊙rw", had(dot(r, v), dot(r, w))),
        ("rv .* rw", had(dot(r, v), dot(r, w))),
        ("Tr(A)*A", times(apply("trace", A), A)),
        ("tr(A)×A", times(apply("trace", A), A)),
        ("vr", dot(v, r)),
        ("diag(v)w", dot(apply("diag", v), w)),
        ("diag (v) w", dot(apply("diag", v), w)),
        ("transpose(A)", A.T),
        ("relu(A)", call("relu", A)),
        ("Arelu(A)A", dot(A, call("relu", A), A)),
        ("f(A1)", call("f", dot(A, ONE))),
        ("inv(sqrt(A1))", call("inv", call("sqrt", dot(A, ONE)))),
        ("  A \t\n A ", dot(A, A)),
    ],
)
def test_notation(text: str, term: Term) -> None:
    assert parse(text) == term


@pytest.mark.parametrize(
    ("text", "sort"),
    [("M", M), ("N", M), ("P", M), ("u", V), ("v", V), ("w", V), ("r", R), ("rv", S), ("vr", M)],
)
def test_free_variables_have_the_sort_of_their_letter(text: str, sort: object) -> None:
    assert parse(text).sort == sort


def test_grammar_variables_are_holes_only_in_rule_bodies() -> None:
    assert parse_body("MV_c") == dot(Hole(M), Hole(V))
    assert parse_body("M V") == parse_body("MVc") == parse_body("MV_c")
    assert parse_body("(V_r)(V_c)") == dot(Hole(R), Hole(V))
    assert parse("M") == Leaf("M", M)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("C_1V", dot(Leaf("C_1", M), Hole(V))),
        ("C₂V", dot(Leaf("C_2", M), Hole(V))),
        ("C_{12}V", dot(Leaf("C_12", M), Hole(V))),
        ("C1", dot(Leaf("C", M), ONE)),  # 1 is always the ones vector
        ("C²V", dot(Leaf("C", M), Leaf("C", M), Hole(V))),
    ],
)
def test_supports_are_numbered_below_the_line(text: str, term: Term) -> None:
    assert parse_body(text) == term


@pytest.mark.parametrize(
    ("text", "caret", "expected"),
    [
        ("1ᵀ(A1", 2, ")"),
        ("A1)", 2, "⊙"),
        ("A⊙", 2, "a name"),
        ("A + + A", 4, "diag("),
        ("A?A", 1, "a name"),
        ("A 2", 3, "×"),
        ("(A,A)", 2, ")"),
    ],
)
def test_a_parse_error_points_at_the_fault(text: str, caret: int, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.position == caret
    assert expected in caught.value.expected
    _, shown, pointer, last = str(caught.value).splitlines()
    assert shown == "  " + text
    assert pointer.index("^") == 2 + caret
    assert last.startswith("expected ")


def test_a_sort_error_points_at_the_operation() -> None:
    with pytest.raises(SortError) as caught:
        parse("1ᵀA + A1")
    first, shown, pointer = str(caught.value).splitlines()
    assert "1ᵀA is a row vector (1,n) and A1 is a column vector (n,1)" in first
    assert shown[pointer.index("^")] == "+"


HOSTILE = {
    "open brackets": "(" * 5000,
    "brackets": "(" * 5000 + "A" + ")" * 5000,
    "long product": "A" * 10_000,
    "too long": "A" * 30_000,
    "huge power": "A^" + "9" * 1000,
    "powers of powers": "A" + "^2" * 50,
    "minus signs": "−" * 1000,
    "minus signs before A": "-" * 1000 + "A",
    "quotes": "1'" + "'" * 5000,
    "nested diag": "diag(" * 3000 + "1" + ")" * 3000,
    "nested functions": "relu(" * 3000 + "A" + ")" * 3000,
    "stars": "2*" * 5000 + "A",
    "signed stars": "-2*" * 5000 + "A",
    "times": "2×" * 5000 + "A",
    "sum": "A+" * 5000 + "A",
    "difference": "A-" * 5000 + "A",
    "hadamard": "A⊙" * 5000 + "A",
    "ones": "1" * 5000,
    "supports": "C_1" * 6000,
    "digits": "9" * 15_000 + "×A",
    "letters before a bracket": "a" * 15_000 + "(A)",
    "spaces": " " * 15_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("read", [parse, parse_body])
def test_hostile_text_gets_a_message_at_once(read: object, text: str) -> None:
    start = time.process_time()
    with pytest.raises(G2N2Error) as caught:
        read(text)  # type: ignore[operator]
    assert time.process_time() - start < 1.0
    assert len(str(caught.value)) < 1000


def test_the_largest_terms_allowed_can_be_used() -> None:
    for text in ("A^200", "A" * 200, "A" + "+A" * 199, "A" + "ᵀ" * 199, "f(" * 59 + "A" + ")" * 59):
        term = parse(text)
        assert term.depth <= 200
        assert parse(to_text(term)) == term
        assert hash(term) == hash(parse(text))
        assert repr(term)


def test_nesting_and_size_limits_are_named() -> None:
    with pytest.raises(ParseError, match="nested more than 60 deep"):
        parse("(" * 61 + "A" + ")" * 61)
    with pytest.raises(SortError, match=r"depth 201 \(limit 200\)"):
        parse("A" * 202)
    with pytest.raises(ParseError, match="30001 characters; the limit is 20000"):
        parse("A" * 30_001)
    with pytest.raises(ParseError, match="the power 201 is outside 1 to 200"):
        parse("A^201")
    with pytest.raises(ParseError, match="X⁰ is written I"):
        parse("A⁰")
    with pytest.raises(ParseError, match="more than 2000 nodes"):
        parse("(A^100)^100")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1ᵀBᵀ1", "unknown 'B'; the names here are A, I, J"),
        ("1ᵀB²1", "unknown 'B'; the names here are A, I, J"),
        ("Tr A", r"unknown 'Tr'; what it is applied to stands in brackets: Tr\(…\)"),
        ("Ab", "unknown 'b'; the names here are A, I, J"),
        ("deg", "unknown 'deg'; the names here are A, .*, and functions are written with brackets"),
    ],
)
def test_an_unknown_name_is_named_by_itself_with_what_is_known(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)
