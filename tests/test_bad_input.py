"""What a user gets wrong, and what is said: one table of (input, part of the message)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from g2n2.errors import DataError, G2N2Error, GrammarError, ParseError, ReductionError, SortError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.language.parsing import parse

TERMS: list[tuple[str, type[G2N2Error], str]] = [
    ("", ParseError, "the text is empty; write a term such as 1ᵀA1"),
    ("1ᵀ(A1", ParseError, "this bracket is never closed"),
    ("1ᵀA1)", ParseError, "this bracket closes nothing"),
    ("(A", ParseError, "expected )"),
    ("A⊙", ParseError, "the text ends where a term should be"),
    ("A ⊙ ⊙ A", ParseError, "'⊙' cannot stand where a term should be"),
    ("()", ParseError, "')' cannot stand where a term should be"),
    ("A, A", ParseError, "',' cannot stand here"),
    ("A # A", ParseError, "unknown '#'; the names here are A, I, J, M"),
    ("Q1", ParseError, "unknown 'Q1'; the names here are"),
    ("softmax(A)", ParseError, "unknown 'softmax'; known here are Tr, abs"),
    ("2A", ParseError, "the number 2 must stand left of × or *; the ones vector is 1"),
    ("1.5", ParseError, "the number 1.5 must stand left of × or *"),
    ("A^0", ParseError, "the power 0 is outside 1 to 200; X⁰ is written I"),
    ("A^-1", ParseError, "unknown '^'; after it stands T or a power from 1 to 200"),
    ("A1 + A", SortError, "A1 is a column vector (n,1) and A is a matrix (n,n); both sides"),
    ("A⊙1", SortError, "both sides must have the same sort"),
    ("1A", SortError, "1 is a column vector (n,1) and A is a matrix (n,n); the inner sizes"),
    ("(1ᵀA1)A", SortError, "the inner sizes must agree; for a scalar write ×"),
    ("diag(1ᵀ)", SortError, "diag takes a column vector or a scalar; transpose a row first"),
    ("diag(A)", SortError, "diag takes a column vector or a scalar"),
    ("Tr(1)", SortError, "Tr takes a matrix"),
    ("1×A", SortError, "the left side of × must be a scalar; the number one is written 1.0"),
    ("A×A", SortError, "the left side of × must be a scalar"),
    ("(A1)²", SortError, "A1 is a column vector (n,1) and A1 is a column vector (n,1)"),
]

FRAGMENTS: list[tuple[str, type[G2N2Error], str]] = [
    ("", GrammarError, "the fragment is empty; name operations, for instance L3"),
    ("{ }", GrammarError, "the fragment is empty"),
    ("matmul,transpos", GrammarError, "unknown operation 'transpos'"),
    ("matmul,transpos", GrammarError, "did you mean transpose?"),
    ("M → MM | A", GrammarError, "'M → MM | A' is a grammar's rules; expected operations"),
    ("· ÷", GrammarError, "unknown operation '÷' in '· ÷'"),
    ("L2", GrammarError, "known: L1, L3, · (matmul), ᵀ (transpose)"),
]

GRAMMARS: list[tuple[str, type[G2N2Error], str]] = [
    ("nonsense", GrammarError, "no grammar is called 'nonsense'"),
    ("r-G_L4", GrammarError, "did you mean r-G_L"),
    ("", GrammarError, "no grammar is named"),
    ("V → AV", GrammarError, "V_c never becomes a word: every rule of it needs a variable that"),
    ("V → AV", GrammarError, "add a rule such as V_c → 1"),
    (
        "V → MV | 1",
        GrammarError,
        "M never becomes a word: it has no rule; add a rule such as M → A",
    ),
    ("S → 1ᵀV", GrammarError, "V_c never becomes a word: it has no rule"),
    ("V → V", GrammarError, "V_c → V_c applies no operation; leave it out"),
    ("V → 1 |", GrammarError, "an alternative is empty in 'V → 1 |'"),
    ("V → AM | 1", GrammarError, "AM is a matrix, but V_c is a column vector"),
    ("Q → 1", GrammarError, "'Q' is not a variable; the variables are S, V_c, V_r and M"),
    ("V → A⊙1 | 1", SortError, "both sides must have the same sort"),
    ("V → A(V | 1", ParseError, "this bracket is never closed"),
    ("V → CV | 1; C = A1", GrammarError, "C must be a matrix made of A, 1, I, J and D"),
    ("V → CV | 1; C = N", GrammarError, "C must be a matrix made of A, 1, I, J and D"),
    ("r-G_L3 - M → Mᵀ", GrammarError, "M → Mᵀ is not a rule of r-G_L3"),
    ("r-G_L1 ∖ {V → 1}", GrammarError, "V_c never becomes a word"),
    ("x" * 5000, GrammarError, "no grammar is called"),
    ("\0", GrammarError, "no grammar is called"),
    ("MPNN-0", GrammarError, "MPNN-k takes 1 to 99 supports, got 0"),
]

TABLE = [
    *((parse, *row) for row in TERMS),
    *((Fragment, *row) for row in FRAGMENTS),
    *((find_grammar, *row) for row in GRAMMARS),
    (Grammar.parse, "M MM", GrammarError, "no arrow in 'M MM'; write for instance `M → MM | A`"),
    (Grammar.parse, "# only a comment", GrammarError, "the grammar has no rule"),
]


@pytest.mark.parametrize(("read", "text", "error", "message"), TABLE)
def test_message(
    read: Callable[[str], object], text: str, error: type[G2N2Error], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        read(text)


def test_every_error_is_ours_and_the_builtin_a_caller_would_catch() -> None:
    for error in (ParseError, GrammarError, ReductionError, DataError):
        assert issubclass(error, G2N2Error)
        assert issubclass(error, ValueError)
    assert issubclass(SortError, G2N2Error)
    assert issubclass(SortError, TypeError)
