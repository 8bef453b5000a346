"""The fifteen operators of 2-IGN: which the paper prints right, and what its grammar can reach."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from g2n2.errors import GrammarError, SortError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.derivations import derive_word
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.words import enumerate_words
from g2n2.language.evaluation import evaluate
from g2n2.language.parsing import parse
from g2n2.language.patterns import Pattern, equal, normal_form
from g2n2.language.sorts import M
from g2n2.language.terms import A, Term, substitute
from ign_operators import CORRECTED, PARTITIONS, PRINTED, basis_term, partition_operator

Matrix = npt.NDArray[Any]
EVERY = range(1, 16)
SIZES = range(2, 7)


def samples(symmetric: bool = False) -> list[Matrix]:
    rng = np.random.default_rng(15)
    found = [rng.integers(-9, 10, (n, n)) for n in SIZES for _ in range(3)]
    return [N + N.T for N in found] if symmetric else found


def value(term: Term, N: Matrix) -> Matrix:
    return evaluate(term, np.zeros(N.shape), {"N": N})


def disagreeing(texts: dict[int, str], inputs: list[Matrix]) -> set[int]:
    """The operators whose text is no term, or a term of another value."""
    wrong = set()
    for p in EVERY:
        try:
            term = basis_term(p, texts)
        except SortError:
            wrong.add(p)
            continue
        if not all(np.array_equal(value(term, N), partition_operator(p, N)) for N in inputs):
            wrong.add(p)
    return wrong


def test_the_partitions_are_all_and_disjoint() -> None:
    """The fifteen maps add up to the map to the sum of all entries: each (i, j, k, l) is in one."""
    blocks = {frozenset(frozenset(b) for b in text.split()) for text in PARTITIONS.values()}
    assert len(blocks) == 15
    assert all(sorted("".join(text.split())) == list("ijkl") for text in PARTITIONS.values())
    for N in samples():
        assert np.array_equal(
            sum(partition_operator(p, N) for p in EVERY), np.full(N.shape, N.sum())
        )


def test_the_corrected_terms_are_the_operators() -> None:
    assert disagreeing(CORRECTED, samples()) == set()


def test_which_printed_terms_are_wrong() -> None:
    assert disagreeing(PRINTED, samples()) == {6, 7, 8, 9, 10, 11, 12, 15}
    assert disagreeing(PRINTED, samples(symmetric=True)) == {6, 7, 10, 11, 12, 15}


def test_the_printed_b6_is_not_conformable() -> None:
    with pytest.raises(SortError, match=r"1 is a column vector \(n,1\) and N⊙J is a matrix"):
        basis_term(6, PRINTED)


def test_the_printed_b7_and_b10_are_each_other() -> None:
    assert equal(basis_term(7, PRINTED), basis_term(10), "none")
    assert equal(basis_term(10, PRINTED), basis_term(7), "none")


def off(N: Matrix) -> Matrix:
    """N without its diagonal, so that a sum over l ≠ i is a plain sum."""
    return N - np.diag(np.diag(N))


CASE_FORMULAS: dict[int, Callable[[Matrix, int, int], int]] = {
    1: lambda N, i, j: N[i, i] if i == j else 0,
    2: lambda N, i, j: off(N)[i].sum() if i == j else 0,
    3: lambda N, i, j: off(N)[:, i].sum() if i == j else 0,
    4: lambda N, i, j: N[j, j] if i != j else 0,
    5: lambda N, i, j: N[i, i] if i != j else 0,
    6: lambda N, i, j: off(N).sum() - N[i].sum() - N[:, i].sum() if i == j else 0,
    7: lambda N, i, j: off(N)[i].sum() - N[i, j] if i != j else 0,
    8: lambda N, i, j: N[:, i].sum() - N[j, i] if i != j else 0,
    9: lambda N, i, j: N[j].sum() - N[j, i] - N[j, i] if i != j else 0,
    10: lambda N, i, j: N[:, j].sum() - N[i, j] if i != j else 0,
    11: lambda N, i, j: np.trace(N) - N[i, i] - N[j, j] if i != j else 0,
    12: lambda N, i, j: np.trace(N) - N[i, i] if i == j else 0,
    13: lambda N, i, j: N[i, j] if i != j else 0,
    14: lambda N, i, j: N[j, i] if i != j else 0,
    15: lambda N, i, j: (
        off(N).sum()
        - off(N)[i].sum()
        - off(N)[:, i].sum()
        - off(N)[j].sum()
        - off(N)[:, j].sum()
        - N[i, j]
        - N[j, i]
        if i != j
        else 0
    ),
}
"""Entry (i, j) of each operator as the paper's case formulas print it."""


def test_which_printed_case_formulas_are_wrong() -> None:
    wrong = set()
    for p, formula in CASE_FORMULAS.items():
        for N in samples():
            entries = [[formula(N, i, j) for j in range(len(N))] for i in range(len(N))]
            if not np.array_equal(entries, partition_operator(p, N)):
                wrong.add(p)
    assert wrong == {6, 8, 9, 10, 15}


# --- what the grammars reach ---------------------------------------------------------------------

WORDS: dict[int, list[tuple[int, str]]] = {
    1: [(1, "A⊙I")],
    2: [(1, "((A⊙J)1·1ᵀ)⊙I")],
    3: [(1, "((A⊙J)ᵀ1·1ᵀ)⊙I")],
    4: [(1, "(1((A⊙I)1)ᵀ)⊙J")],
    5: [(1, "((A⊙I)1·1ᵀ)⊙J")],
    6: [(1, "(1·1ᵀ(A⊙J)1·1ᵀ)⊙I"), (-1, "((A⊙J)1·1ᵀ)⊙I"), (-1, "((A⊙J)ᵀ1·1ᵀ)⊙I")],
    7: [(1, "((A⊙J)1·1ᵀ)⊙J"), (-1, "A⊙J")],
    8: [(1, "((A⊙J)ᵀ1·1ᵀ)⊙J"), (-1, "Aᵀ⊙J")],
    9: [(1, "(1((A⊙J)1)ᵀ)⊙J"), (-1, "Aᵀ⊙J")],
    10: [(1, "(1((A⊙J)ᵀ1)ᵀ)⊙J"), (-1, "A⊙J")],
    11: [(1, "(1·1ᵀ(A⊙I)1·1ᵀ)⊙J"), (-1, "(1((A⊙I)1)ᵀ)⊙J"), (-1, "((A⊙I)1·1ᵀ)⊙J")],
    12: [(1, "(1·1ᵀ(A⊙I)1·1ᵀ)⊙I"), (-1, "A⊙I")],
    13: [(1, "A⊙J")],
    14: [(1, "Aᵀ⊙J")],
    15: [
        (1, "(1·1ᵀ(A⊙J)1·1ᵀ)⊙J"),
        (-1, "((A⊙J)1·1ᵀ)⊙J"),
        (-1, "((A⊙J)ᵀ1·1ᵀ)⊙J"),
        (-1, "(1((A⊙J)1)ᵀ)⊙J"),
        (-1, "(1((A⊙J)ᵀ1)ᵀ)⊙J"),
        (1, "A⊙J"),
        (1, "Aᵀ⊙J"),
    ],
}
"""Each operator, with A for N, as a linear combination of words of the corrected grammar."""

OUT_OF_REACH = {3, 4, 6, 8, 9, 10, 11, 14, 15}
"""What the printed grammar cannot make for asymmetric N, however its words are combined."""


def is_word(grammar: Grammar, text: str) -> bool:
    try:
        return derive_word(grammar, parse(text)).term == parse(text)
    except GrammarError:
        return False


def on_a(p: int) -> Term:
    return substitute(basis_term(p), {"N": A})


@pytest.mark.parametrize("p", EVERY)
def test_the_corrected_grammar_reaches_every_operator(p: int) -> None:
    grammar = find_grammar("2-IGN")
    words = [(coefficient, parse(text)) for coefficient, text in WORDS[p]]
    for _, word in words:
        derive_word(grammar, word)
    total = reduce(lambda a, b: a + b, (c * word for c, word in words))
    assert equal(total, on_a(p), "none")


@pytest.mark.parametrize("p", [*EVERY])
def test_the_printed_grammar_derives_the_same_words_only_where_it_can(p: int) -> None:
    grammar = find_grammar("2-IGN (as printed)")
    assert all(is_word(grammar, text) for _, text in WORDS[p]) == (p not in OUT_OF_REACH)


def looks_out_of_its_row_only(pattern: Pattern) -> bool:
    """No edge enters the row vertex but a loop; the column vertex has at most the edge from it.

    True of A and kept by V1ᵀ, M⊙J, M⊙I and MV, so it holds in all patterns of all printed words.
    """
    row, column = pattern.boundary
    for edge in pattern.edges:
        start, end = edge.ends
        if end == row != start:
            return False
        if row != column and column in (start, end) and (start, end) != (row, column):
            return False
    return True


def test_the_printed_grammar_cannot_make_the_others_in_another_way() -> None:
    """Patterns are linearly independent, so one that no word has keeps an operator out of reach."""
    printed = find_grammar("2-IGN (as printed)")
    words = list(enumerate_words(printed, M, 9, "none"))
    assert len(words) > 300
    for word in words:
        assert all(map(looks_out_of_its_row_only, normal_form(word.term, "none"))), word.term
    strange = {
        p for p in EVERY if not all(map(looks_out_of_its_row_only, normal_form(on_a(p), "none")))
    }
    assert strange == OUT_OF_REACH
