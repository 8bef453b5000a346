"""Grammars against each other: what is proved both ways, one way, with f, and what stays open."""

from __future__ import annotations

from functools import cache

import pytest

from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar
from g2n2.language.patterns import Assumption
from g2n2.pipeline import compare as refuting_compare
from g2n2.reduction.certificates import certificate, digest
from g2n2.reduction.checker import CheckResult, check
from g2n2.reduction.compare import Comparison, Inclusion, Mode, compare, with_functions

WALKS = "V → AV | 1"


@cache
def compared(
    left: str, right: str, mode: Mode = "words", assume: Assumption = "symmetric"
) -> Comparison:
    return compare(find_grammar(left), find_grammar(right), mode, assume)


def assert_accepted(inclusion: Inclusion) -> None:
    """The proof is of the grammar that was written out, and its certificate holds."""
    proof = inclusion.proof
    assert proof is not None
    assert (inclusion.status, inclusion.reason) == ("proved", "")
    assert proof.claim.larger == inclusion.larger
    content = certificate(proof.claim.larger, proof.claim.smaller, [proof])
    verdict = check(content)
    assert verdict.valid, verdict.failure
    assert verdict.checked == len(proof.witnesses) > 0
    used = [text.split(" = ")[0] for text in inclusion.cited if text.startswith("functions of")]
    assert list(verdict.cited) == used
    content["links"][0]["proof"]["obligations"].pop()
    assert not check({**content, "digest": digest(content)}).valid


def assert_open(inclusion: Inclusion) -> None:
    """Not proved; the separation half may have refuted it, or it is open with a reason."""
    assert inclusion.status in ("open", "separated")
    assert inclusion.proof is None
    assert inclusion.reason


EQUAL: list[tuple[str, str, Mode, Assumption]] = [
    ("GNNML1", "r-G_L1", "words", "symmetric"),
    ("G_L1", "r-G_L1", "words", "symmetric"),
    ("i-G_L3", "r-G_L3", "words", "symmetric"),
    ("G_L3", "r-G_L3", "words", "symmetric"),
    ("G_L3", "i-G_L3", "words", "symmetric"),
    ("r-G_L3 ∪ {Mᵀ}", "r-G_L3", "words", "symmetric"),
    ("PPGN", "r-G_L3", "with f", "symmetric"),
    ("four-rule", "r-G_L3", "words", "simple"),
    ("four-rule", "PPGN", "with f", "symmetric"),
    (WALKS, "r-G_L1", "with f", "symmetric"),
    (WALKS, "GNNML1", "with f", "symmetric"),
    ("r-G_L1", "r-G_L1", "words", "none"),
]


@pytest.mark.parametrize(("left", "right", "mode", "assume"), EQUAL)
def test_equal(left: str, right: str, mode: Mode, assume: Assumption) -> None:
    for a, b in ((left, right), (right, left)):
        result = compared(a, b, mode, assume)
        assert result.relation == "≡"
        assert_accepted(result.forward)
        assert_accepted(result.backward)
        assert (result.mode, result.assume) == (mode, assume)


INCLUDED: list[tuple[str, str, Mode, Assumption]] = [
    ("PPGN", "r-G_L3", "words", "symmetric"),
    ("PPGN", "r-G_L3", "words", "none"),
    ("four-rule", "r-G_L3", "words", "symmetric"),
    (WALKS, "r-G_L1", "words", "symmetric"),
    ("GCN", "r-G_L1", "words", "symmetric"),
    ("GCN", "r-G_L1", "with f", "symmetric"),
    ("GCN", "r-G_L3", "words", "symmetric"),
    ("2-IGN", "r-G_L3", "words", "symmetric"),
    ("2-IGN", "r-G_L3", "with f", "symmetric"),
    ("2-IGN (as printed)", "2-IGN", "words", "symmetric"),
    ("TriMul", "r-G_L3", "words", "symmetric"),
    ("r-G_L1", "r-G_L3", "words", "symmetric"),
    ("r-G_L1", "r-G_L3", "with f", "symmetric"),
    ("G_L1", "G_L3", "words", "none"),
    ("r-G_L3 ∖ {M⊙M}", "r-G_L3", "words", "symmetric"),
    ("r-G_L3 ∖ {MM}", "r-G_L3", "words", "symmetric"),
    ("r-G_L3 ∖ {diag(V_c)}", "r-G_L3", "words", "symmetric"),
    ("r-G_L3 ∖ {MV_c}", "r-G_L3", "words", "symmetric"),
    ("r-G_L3", "r-G_L3 ∪ {Mᵀ}", "words", "none"),
]


@pytest.mark.parametrize(("left", "right", "mode", "assume"), INCLUDED)
def test_proved_one_way_only(left: str, right: str, mode: Mode, assume: Assumption) -> None:
    result = compared(left, right, mode, assume)
    assert result.relation in ("⊆", "⊊")
    assert_accepted(result.forward)
    assert_open(result.backward)
    turned = compared(right, left, mode, assume)
    assert turned.relation in ("⊇", "⊋")
    assert_accepted(turned.backward)


def test_the_reason_names_a_word_that_is_missing() -> None:
    backward = compared(WALKS, "r-G_L1").backward
    assert backward.reason == "no word for V_c → diag(V_c)V_c: diag(s0×v0)(s1×v1)"
    assert "Aᵀ" in compared("r-G_L3 ∪ {Mᵀ}", "r-G_L3", "words", "none").forward.reason


def test_mpnn_is_open_until_its_supports_are_defined() -> None:
    for mode in ("words", "with f"):
        result = compared("MPNN-3", "r-G_L1", mode)  # type: ignore[arg-type]
        assert result.relation == "open"
        assert result.forward.reason.startswith("C_1, C_2, C_3 are not defined; add a line such as")
        assert_open(result.backward)
        stated = compared("MPNN-3", "L1", mode)  # type: ignore[arg-type]
        assert stated.relation == "⊆"
        assert any(x.startswith("if C_1, C_2, C_3 are matrix words") for x in stated.forward.cited)
    defined = find_grammar("V → C_1V | C_2V | 1\nC_1 = A\nC_2 = AA")
    result = compare(defined, find_grammar("r-G_L1"))
    assert result.forward.status == "proved"
    assert_accepted(result.forward)
    assert compare(defined, find_grammar("r-G_L1"), "with f").relation == "≡"


def test_gcn_cites_that_its_degree_functions_are_free() -> None:
    forward = compared("GCN", "r-G_L1").forward
    assert "functions of columns are free: u0 = inv(sqrt((A + I)1))" in forward.cited
    assert any("sum" in text for text in forward.cited)
    walks = compared("GCN", WALKS).forward
    assert walks.status == "open"
    assert "functions" in walks.reason


@pytest.mark.parametrize(("count", "status"), [(10, "proved"), (11, "open")])
def test_more_functions_than_a_certificate_can_name_stay_open(count: int, status: str) -> None:
    nested = ["A1"]
    while len(nested) <= count:
        nested.append(f"inv({nested[-1]})")
    bodies = " | ".join(f"diag({column})V_c" for column in nested[1:])
    grammar = find_grammar(f"V_c → {bodies} | AV_c | 1")
    found = compare(grammar, find_grammar("r-G_L3")).forward
    assert found.status == status
    assert ("a certificate names 10 at most" in found.reason) == (status == "open")


def test_functions_need_their_constant_term() -> None:
    """Powers without 1 cannot count isolated nodes, a constant function can."""
    result = compare(find_grammar("GCN"), Grammar.parse("V → V⊙V | AV | A1"))
    assert result.forward.status == "open"


# a grammar without sentences; one with them
SILENT = [
    ("· 1", WALKS),
    ("·", "M → MM | A"),
    ("· ⊙", "· ⊙ Tr"),
    ("· 1", "GCN"),
    ("· 1 f_V", "r-G_L3"),
    ("· 1 diag", "MPNN-3"),
]


@pytest.mark.parametrize(("silent", "other"), SILENT)
@pytest.mark.parametrize("mode", ["words", "with f"])
def test_a_grammar_without_sentences_is_below_all_and_above_none(
    silent: str, other: str, mode: Mode
) -> None:
    result = compared(silent, other, mode)
    assert result.relation == "⊆"
    proof = result.forward.proof
    assert proof is not None
    assert not result.forward.cited
    content = certificate(proof.claim.larger, proof.claim.smaller, [proof])
    assert not any(rule.startswith("S →") for rule in content["from"])
    assert (check(content).valid, check(content).checked) == (True, 0)
    assert_open(result.backward)


def test_grammars_that_tell_nothing_apart_are_equal() -> None:
    assert compared("·", "· ⊙").relation == "≡"
    assert compared("S → 1.0; M → A", "·").relation == "≡"  # one sentence, a constant


def test_the_reason_names_what_the_function_is_applied_to() -> None:
    column = compared("V → relu(AV) | 1", WALKS).forward.reason
    assert column == "V_c → relu(AV_c) applies a function to a column vector; no pattern argument"
    assert "to a matrix" in compared("M → f(MM) | A", "r-G_L3").forward.reason


def test_what_functions_add() -> None:
    assert with_functions(find_grammar("PPGN")) == find_grammar("PPGN") | "M → (M⊙M) | 1·1ᵀ"
    assert with_functions(find_grammar(WALKS)) == find_grammar(WALKS) | "V → (V⊙V)"
    assert not with_functions(find_grammar("· 1")).sentence_rules
    for mode in ("words", "with f"):
        cited = compared("r-G_L1", "r-G_L3", mode).forward.cited  # type: ignore[arg-type]
        assert len(cited) == (mode == "with f")


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        # 1-WL is not below walk counts, nor 3-WL below 1-WL, nor either below words that lack a rule
        ("r-G_L1", WALKS),
        ("r-G_L3", "r-G_L1"),
        ("PPGN", "r-G_L1"),
        ("TriMul", "r-G_L1"),
        ("r-G_L3", "PPGN"),
        ("r-G_L3", "2-IGN"),
        ("r-G_L3", "TriMul"),
        ("r-G_L3", "r-G_L3 ∖ {M⊙M}"),
        ("r-G_L3", "r-G_L3 ∖ {MM}"),
    ],
)
@pytest.mark.parametrize("assume", ["none", "symmetric", "simple"])
def test_what_must_not_be_proved(larger: str, smaller: str, assume: Assumption) -> None:
    assert_open(compared(larger, smaller, "words", assume).forward)


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [("r-G_L3", "r-G_L1"), ("PPGN", "r-G_L1"), ("r-G_L3", WALKS), ("r-G_L3", "2-IGN")],
)
def test_what_must_not_be_proved_with_functions(larger: str, smaller: str) -> None:
    assert_open(compared(larger, smaller, "with f", "simple").forward)


def test_what_the_checker_refuses_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = CheckResult(valid=False, checked=0, cited=(), failure="link 1: no bijection")
    monkeypatch.setattr("g2n2.reduction.compare.check", lambda _: refused)
    found = compare(find_grammar("G_L1"), find_grammar("r-G_L1"))
    assert (found.relation, found.forward.proof, found.backward.proof) == ("open", None, None)
    assert found.forward.reason.endswith("the checker refuses it: link 1: no bijection")


def test_functions_of_rows_count_too() -> None:
    """Walk counts as rows: with functions they tell C6+K1 from a spider, as columns do."""
    rows = find_grammar("V_r → V_rA | 1ᵀ; S → V_r1")
    assert "V_r → (V_r⊙V_r)" in with_functions(rows)
    assert refuting_compare(rows, find_grammar("r-G_L1"), "with f").backward.status != "separated"
