"""Fragments: how they are named, and the rules they generate."""

from __future__ import annotations

from itertools import combinations

import pytest

from g2n2.errors import GrammarError
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.language.operations import OPERATIONS
from g2n2.language.sorts import M, R, S, V

L1 = frozenset(("matmul", "transpose", "one", "diag"))
L3 = L1 | {"hadamard"}


@pytest.mark.parametrize(
    ("text", "operations"),
    [
        ("L1", L1),
        ("l3", L3),
        ("· ᵀ 1 diag ⊙", L3),
        ("{·, ᵀ, 1, diag, ⊙}", L3),
        ("matmul,transpose,one,diag,hadamard", L3),
        ("@ ^T ones diag .*", L3),
        ("L3 + Tr", L3 | {"trace"}),
        ("L3+Tr", L3 | {"trace"}),
        ("L3 Tr", L3 | {"trace"}),
        ("L3 +", L3 | {"add"}),
        ("L3, +, ×", L3 | {"add", "scale"}),
        ("+ × f", {"add", "scale", "f_S", "f_V", "f_M"}),
        ("L1 f_V", L1 | {"f_V"}),
        ("Tr", {"trace"}),
    ],
)
def test_spellings(text: str, operations: frozenset[str]) -> None:
    assert Fragment(text).operations == operations
    assert Fragment.parse(text) == Fragment(operations)


def test_names_and_text() -> None:
    assert Fragment("diag 1 · ᵀ").name == "L1"
    assert str(Fragment("L3")) == "{·, ᵀ, 1, diag, ⊙}"
    assert Fragment("Tr ·").name == "{·, Tr}"
    assert Fragment(str(Fragment("L3 + f"))) == Fragment("L3 + f")
    assert "diag" in Fragment("L1")
    assert "hadamard" not in Fragment("L1")


@pytest.mark.parametrize(
    ("text", "grammar"),
    [
        ("· Tr", "S → Tr(M) | Tr(S) | SS; M → MM | A"),
        ("⊙", "M → M⊙M | A"),
        ("1", "V → 1; M → A"),
        ("1 diag", "V → 1; M → diag(V) | A"),
        ("ᵀ", "M → Mᵀ | A"),
        ("·", "M → MM | A"),
        ("Tr", "S → Tr(M) | Tr(S); M → A"),
        ("+ ×", "M → M + M | A"),
        ("× Tr", "S → Tr(M) | Tr(S) | S×S; M → S×M | A"),
        ("f_V f_M", "M → f(M) | A"),
        ("1 f_V", "V → f(V) | 1; M → A"),
    ],
)
def test_small_fragments_written_out(text: str, grammar: str) -> None:
    found = set(Fragment(text).exhaustive().all_rules)
    expected = Grammar.parse(grammar)
    written = {r for r in expected.all_rules if "S →" in grammar or r.head != S}
    assert found == written


def test_sorts_are_those_derivable_from_a() -> None:
    assert Fragment("⊙ · ᵀ").sorts() == {M}
    assert Fragment("1").sorts() == {M, V}
    assert Fragment("1 ᵀ").sorts() == {M, V, R}
    assert Fragment("· Tr").sorts() == {M, S}
    assert Fragment("1").sorts("full") == {M, V}
    assert Fragment("L1").sorts() == {M, V, R, S}


def test_full_typing_adds_what_the_paper_leaves_out() -> None:
    paper = set(Fragment("L3").exhaustive().all_rules)
    full = set(Fragment("L3").exhaustive("full").all_rules)
    assert {str(rule) for rule in full - paper} == {"S → Sᵀ", "S → 1.0"}
    assert paper < full


def test_every_subset_generates_only_its_own_operations() -> None:
    """All 255 subsets of the multilinear operations, + and ×: rules are typed and exhaustive."""
    names = [name for name in OPERATIONS if not name.startswith(("f_", "mark_"))]
    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            fragment = Fragment(chosen)
            grammar = fragment.exhaustive()
            assert grammar.operations <= fragment.operations
            assert grammar.unproductive() == ()
            marked = Fragment([*chosen, "Σ"])
            assert marked.exhaustive().operations <= marked.operations
            assert marked.exhaustive().unproductive() == ()
            table = fragment.table()
            ones = sum(symbol == "1" for symbol, _, _ in table)
            assert len(grammar.all_rules) == len(table) - max(ones - 1, 0) + 1  # V → 1 once, M → A


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("· Tr (", r"'\(' is never closed"),
        ("{·, Tr", "'{' is never closed"),
        ("· Tr)", r"'\)' is never opened"),
        ("{· Tr)", r"'\)' is never opened"),
    ],
)
def test_a_bracket_without_its_partner_is_refused(text: str, fault: str) -> None:
    with pytest.raises(GrammarError, match=fault):
        Fragment(text)
    assert Fragment("{·, Tr}") == Fragment("(· Tr)") == Fragment("· Tr")
