"""One obligation at a time: what the checker's hypotheses allow, and what they do not."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from g2n2.reduction.checker import CheckResult, check
from g2n2.reduction.invariants import Form
from reduction.forging import Claimed, changed, forge, look_up, sealed


def verdict_on(
    larger: str, smaller: str, form: Form, claimed: Claimed, **options: Any
) -> CheckResult:
    """The verdict on a certificate that lists one obligation only."""
    return check(forge(larger, smaller, form, [claimed], **options))


NO_WORD = "is no word"
NO_SENTENCE = "is no sentence"
NO_ISOMORPHISM = "the bijection is no isomorphism"
AN_M = "M → Mᵀ | A; S → Tr(M)"

# larger, smaller, form, the claim, options, the fault, and a smaller grammar or option that mends it
ONE: list[tuple[str, str, Form, Claimed, dict[str, Any], str, dict[str, Any]]] = [
    # mᵀ without the lemma
    (AN_M, "M → A; S → Tr(M)", "plain", Claimed("(s0×m0)ᵀ", "s0", "m0ᵀ"), {}, NO_WORD, {"lemma": True}),
    (AN_M, "M → A; S → Tr(M)", "shape", Claimed("(s0×m0)ᵀ", "s0", "m0ᵀ"), {}, NO_WORD, {"lemma": True}),
    (AN_M, "M → A; S → Tr(M)", "plain", Claimed("(s0×m0)ᵀ", "s0", "m0"), {}, NO_ISOMORPHISM, {}),
    # a column as a matrix, in forms that know no such thing
    ("V → AV | 1; M → V1ᵀ; S → Tr(M)", "V → AV | 1; M → A; S → Tr(M)", "plain",
     Claimed("(s0×v0)·1ᵀ", "s0", "v0·1ᵀ"), {}, NO_WORD, {"smaller": "V → AV | 1; M → A | V1ᵀ; S → Tr(M)"}),
    ("V → AV | 1; M → V1ᵀ; S → Tr(M)", "M → A; S → Tr(M)", "diagonal",
     Claimed("(s0×v0)·1ᵀ", "s0", "v0·1ᵀ"), {}, NO_WORD, {"form": "broadcast"}),
    ("V → AV | 1; M → diag(V); S → Tr(M)", "M → A; S → Tr(M)", "broadcast",
     Claimed("diag(s0×v0)", "s0", "diag(v0)"), {}, NO_WORD, {"form": "diagonal"}),
    ("V → AV | 1; S → 1ᵀV", "M → MM | A; S → 1ᵀ(M1)", "broadcast",
     Claimed("A(s0×v0)", "s0", "Av0·1ᵀ"), {}, NO_WORD, {"words": "A(v0·1ᵀ)"}),
    # a matrix word that is no column: neither constant along rows nor diagonal
    ("V → A1; S → 1ᵀV", "M → A; S → 1ᵀ(M1)", "broadcast", Claimed("A1", "", "A"), {},
     "the word is not a column times 1ᵀ", {}),
    ("V → A1; S → 1ᵀV", "M → A; S → 1ᵀ(M1)", "diagonal", Claimed("A1", "", "A"), {},
     "the word is not diagonal", {}),
    ("V → 1; S → 1ᵀV", "M → I; S → 1ᵀ(M1)", "broadcast", Claimed("1", "", "I"), {},
     "the word is not a column times 1ᵀ", {"form": "diagonal"}),
    # the action of m on a diagonal word D only
    ("M → A; V → M(A1); S → 1ᵀV", "M → A; S → 1ᵀ(M1)", "diagonal",
     Claimed("(s0×m0)(A1)", "s0", "diag(m0(A1))"), {}, NO_WORD,
     {"smaller": "M → A | diag(A1); S → 1ᵀ(M1)", "words": "diag(m0(diag(A1)1))"}),
    ("M → A; V → M(A1); S → 1ᵀV", "M → A | diag(A1); S → 1ᵀ(M1)", "shape",
     Claimed("(s0×m0)(A1)", "s0", "diag(m0(diag(A1)1))·1"), {}, NO_WORD, {}),
    # the action of m in forms that know none, and of a matrix that is not opaque
    ("M → A; V → MV | 1; S → 1ᵀV", "V → 1; S → 1ᵀV", "plain", Claimed("(s0×m0)(s1×v1)", "s0, s1", "m0v1"),
     {}, NO_WORD, {"smaller": "V → MV | 1; M → A; S → 1ᵀV"}),
    ("M → A; V → MV | 1; S → 1ᵀV", "V → 1; S → 1ᵀV", "action", Claimed("Ax", "", "Ax"), {}, NO_WORD,
     {"smaller": "V → AV | 1; S → 1ᵀV"}),
    ("M → A; V → MV | 1; S → 1ᵀV", "V → 1; S → 1ᵀV", "action", Claimed("Ax", "", "x"), {},
     NO_ISOMORPHISM, {}),
    ("M → A; S → Tr(M)", "V → AV | 1; S → 1ᵀV", "action", Claimed("Tr(m0)", "1ᵀ(m0·1)"), {},
     NO_ISOMORPHISM, {}),
    ("M → M⊙M | A; V → MV | 1; S → 1ᵀV", "V → AV | 1; S → 1ᵀV", "action",
     Claimed("(m0⊙m1)x", "", "m0(m1x)"), {}, NO_ISOMORPHISM, {}),
    # an opaque scalar is a product of sentences, not one of them
    ("V → VS | 1; S → 1ᵀV", "V → VS | 1; S → 1ᵀV", "plain", Claimed("(s0×v0)·s1", "s0", "v0s1"), {}, NO_WORD,
     {"factors": "s0, s1", "words": "v0"}),
    # a factor that is no sentence; a sentence left out; the number of vertices left out
    ("V → AV | 1; S → VᵀV", "V → AV | 1; S → 1ᵀV", "plain", Claimed("(s0×v0)ᵀ(s1×v1)", "s0, s1, v0ᵀv1"), {},
     NO_SENTENCE, {"smaller": "V → AV | 1; S → VᵀV"}),
    ("V → AV | 1; S → (1ᵀ1)×(1ᵀV)", "V → AV | 1; S → 1ᵀV", "plain", Claimed("(1ᵀ1)×(1ᵀ(s0×v0))", "s0, 1ᵀv0"),
     {}, NO_ISOMORPHISM, {"factors": "s0, 1ᵀ1, 1ᵀv0"}),
    ("V → AV | 1; S → 1ᵀV", "V → AV | 1; S → 1ᵀV", "plain", Claimed("1ᵀ(s0×v0)", "1ᵀv0"), {}, NO_ISOMORPHISM,
     {"factors": "s0, 1ᵀv0"}),
    # an outer product turned the wrong way, or with too few words
    (AN_M, "V → 1; M → A; S → Tr(M)", "shape", Claimed("(s0×(v0w0ᵀ))ᵀ", "s0", "v0, w0"), {}, NO_ISOMORPHISM,
     {"words": "w0, v0"}),
    (AN_M, "V → 1; M → A; S → Tr(M)", "shape", Claimed("(s0×(v0w0ᵀ))ᵀ", "s0", "w0"), {},
     NO_WORD, {"words": "w0, v0"}),
    # what holds for symmetric, or for 0/1 matrices only
    ("M → Aᵀ; S → Tr(M)", "M → A; S → Tr(M)", "plain", Claimed("Aᵀ", "", "A"), {"assume": "none"},
     NO_ISOMORPHISM, {"assume": "symmetric"}),
    ("M → A⊙A; S → Tr(M)", "M → A; S → Tr(M)", "plain", Claimed("A⊙A", "", "A"), {}, NO_ISOMORPHISM,
     {"assume": "simple"}),
    ("M → C⊙C; S → Tr(M)", "M → C; S → Tr(M)", "plain", Claimed("C⊙C", "", "C"), {"assume": "simple"},
     NO_ISOMORPHISM, {}),
    ("M → Cᵀ; S → Tr(M)", "M → C; S → Tr(M)", "plain", Claimed("Cᵀ", "", "C"), {"assume": "simple"},
     NO_ISOMORPHISM, {}),
    ("M → A⊙I; S → Tr(M)", "M → A⊙I; S → Tr(M)", "plain", Claimed("A⊙I", "", "A⊙I"), {"assume": "simple"},
     "a loop of A is zero", {"assume": "symmetric"}),
    # the exact form splits nothing off
    ("V → AV | 1; S → (1ᵀ1)×(1ᵀV)", "V → AV | 1; S → 1ᵀV", "exact", Claimed("(1ᵀ1)×(1ᵀv0)", "1ᵀ1, 1ᵀv0"), {},
     "no factor may be split off here", {}),
    # a function has no pattern
    ("V → f(V) | 1; S → 1ᵀV", "V → AV | 1; S → 1ᵀV", "plain", Claimed("f(s0×v0)", "s0", "f(v0)"), {}, NO_WORD, {}),
    ("V → f(V) | 1; S → 1ᵀV", "V → f(V) | 1; S → 1ᵀV", "plain", Claimed("f(s0×v0)", "s0", "f(v0)"), {},
     "is a sum or applies a function: no pattern", {}),
    ("V → V+V | 1; S → 1ᵀV", "V → V+V | 1; S → 1ᵀV", "plain", Claimed("s0×v0+s1×v1", "s0, s1", "v0+v1"), {},
     "is a sum or applies a function: no pattern", {}),
]  # fmt: skip


@pytest.mark.parametrize("case", ONE, ids=lambda c: f"{c[2]} {c[3].term}")
def test_one_false_obligation(case: tuple[Any, ...]) -> None:
    larger, smaller, form, claimed, options, fault, mended = case
    verdict = verdict_on(larger, smaller, form, claimed, **options)
    assert not verdict.valid
    assert fault in verdict.failure
    if fault == NO_ISOMORPHISM:  # whatever is written for one
        forged = forge(larger, smaller, form, [claimed], **options)
        place = ("links", 0, "proof", "obligations", 0, "bijection")
        for other in permutations(range(len(look_up(forged, place)))):
            assert NO_ISOMORPHISM in check(sealed(changed(forged, place, list(other)))).failure
    if mended:  # the fault is the only one: mended, this obligation holds and others are missing
        said = {k: v for k, v in mended.items() if k in Claimed._fields}
        more = {k: v for k, v in mended.items() if k not in said}
        call = {"larger": larger, "smaller": smaller, "form": form, **options, **more}
        better = verdict_on(claimed=claimed._replace(**said), **call)
        assert better.valid or "is missing" in better.failure, better.failure


# smaller, form, a claim of the transpose lemma, whether its own hypotheses allow it
LEMMA: list[tuple[str, Form, Claimed, bool]] = [
    ("V → MV | 1; M → diag(V) | A; S → 1ᵀV", "shape", Claimed("diag(v0)ᵀ", "", "diag(v0)"), True),
    ("V → MV | 1; M → MM | A; S → 1ᵀV", "shape", Claimed("(m0m1)ᵀ", "", "m1ᵀm0ᵀ"), True),
    ("V → 1; R → Vᵀ; M → VR; S → Tr(M)", "shape", Claimed("(v0r1)ᵀ", "", "r1ᵀv0ᵀ"), False),
    ("V → Rᵀ | 1; R → Vᵀ; M → VR; S → Tr(M)", "shape", Claimed("(v0r1)ᵀ", "", "r1ᵀv0ᵀ"), True),
    # in the lemma a column is any column of the smaller grammar, and m any matrix word of it
    ("V → 1; M → 1Vᵀ; S → Tr(M)", "broadcast", Claimed("(1v0ᵀ)ᵀ", "", "v0·1ᵀ"), False),
    ("V → 1; M → 1Vᵀ | V1ᵀ; S → Tr(M)", "broadcast", Claimed("(1v0ᵀ)ᵀ", "", "v0·1ᵀ"), True),
    ("V → 1; M → diag(V)A | AM | A; S → Tr(M)", "diagonal", Claimed("(diag(v0)A)ᵀ", "", "Adiag(v0)"), False),
    ("M → diag(M1)A | AM | I | A; S → Tr(M)", "diagonal",
     Claimed("(diag(m0·1)A)ᵀ", "", "Adiag(m0(I1))"), False),
    ("M → diag(M1)A | Adiag(M1) | A; S → Tr(M)", "diagonal",
     Claimed("(diag(m0·1)A)ᵀ", "", "Adiag(m0·1)"), True),
    ("V → 1; M → diag(MV)A | Adiag(V) | A; S → Tr(M)", "action",
     Claimed("(diag(m0v1)A)ᵀ", "", "Adiag(m0v1)"), False),
]  # fmt: skip


@pytest.mark.parametrize("case", LEMMA, ids=lambda c: f"{c[1]} {c[2].term} by {c[0]}")
def test_the_lemma_uses_no_invariant(case: tuple[str, Form, Claimed, bool]) -> None:
    smaller, form, claimed, holds = case
    verdict = verdict_on("S → 1ᵀ(A1)", smaller, form, claimed, lemma=True)
    assert not verdict.valid  # nothing is claimed for S → 1ᵀ(A1)
    assert verdict.failure.endswith("is missing" if holds else NO_WORD), verdict.failure
