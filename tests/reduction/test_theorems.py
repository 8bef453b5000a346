"""Diagonals are free beside outer products: tested on graphs with loops and weights too."""

from __future__ import annotations

from itertools import islice, permutations, product

import numpy as np
import pytest

from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.derivations import derive_word
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.membership import factors
from g2n2.grammars.words import enumerate_words
from g2n2.language.evaluation import evaluate
from g2n2.language.parsing import parse
from g2n2.language.sorts import V
from g2n2.language.terms import ONE, Apply, Leaf, Term, apply, mark_sum, substitute
from g2n2.pipeline import compare
from g2n2.placement import proved_above
from g2n2.power.random_probes import graph_classes
from g2n2.power.wl_tests import WLTest
from g2n2.reduction.compare import included
from g2n2.reduction.theorems import MARK_IS_INDEX, MATRICES, OUTER, by_theorem, within_3wl


def symmetric_matrices(nodes: int, values: tuple[int, ...]) -> list[np.ndarray]:
    """All symmetric matrices up to the order of nodes, diagonals included."""
    places = [(i, j) for i in range(nodes) for j in range(i, nodes)]
    found: dict[bytes, np.ndarray] = {}
    for entries in product(values, repeat=len(places)):
        matrix = np.zeros((nodes, nodes))
        for (i, j), entry in zip(places, entries, strict=True):
            matrix[i, j] = matrix[j, i] = entry
        orders = permutations(range(nodes))
        found.setdefault(min(matrix[np.ix_(p, p)].tobytes() for p in orders), matrix)
    return list(found.values())


GRAPHS = [*symmetric_matrices(3, (0, 1, 2)), *symmetric_matrices(4, (0, 1))]


def split(grammar: Grammar) -> list[list[bool]]:
    classes = graph_classes(grammar, GRAPHS)
    return (classes[:, None] == classes[None, :]).tolist()


def test_products_and_outer_products_see_what_diagonals_add() -> None:
    assert len(GRAPHS) == 165 + 90
    assert split(OUTER) == split(find_grammar("r-G_L3"))
    assert split(MATRICES) == split(find_grammar("r-G_L3"))


def test_that_test_can_fail() -> None:
    assert split(OUTER - "M → MM") != split(find_grammar("r-G_L3"))
    assert split(MATRICES - "M → (M⊙M)") != split(find_grammar("r-G_L3"))


def test_the_theorem_needs_both_ends() -> None:
    r_g_l3, ppgn = find_grammar("r-G_L3"), find_grammar("PPGN")
    found = by_theorem(r_g_l3, find_grammar("· ᵀ 1 ⊙"), "symmetric")
    assert found is not None
    assert found.status == "proved"
    assert by_theorem(r_g_l3, ppgn, "symmetric") is None
    assert by_theorem(r_g_l3, find_grammar("r-G_L1"), "symmetric") is None
    assert by_theorem(r_g_l3, OUTER, "none") is None  # words are closed under ᵀ only if A is
    assert included(OUTER, r_g_l3, "symmetric").status == "proved"


def index_matrix(word: Term) -> Term:
    """The matrix whose column v is a column word of r-G_L1ΣΣ."""
    *run, column = factors(word)
    assert isinstance(column, Leaf)
    matrix = parse("I") if column.name == "v" else column @ ONE.T
    for factor in reversed(run):
        if isinstance(factor, Apply):
            assert factor.op == "diag"
            matrix = apply("hadamard", index_matrix(factor.args[0]), matrix)
        else:
            matrix = factor @ matrix
    return matrix


@pytest.mark.parametrize(("fragment", "above"), [("L1Σ", "G_L3"), ("L1ΣΣ", "G_L3Σ")])
def test_a_mark_over_l1_is_an_index_of_a_matrix(fragment: str, above: str) -> None:
    """The identity of the proof, on words, and that its right side is a sentence of the bound."""
    low, high = find_grammar(f"r-G_{fragment}"), find_grammar(above)
    words = enumerate_words(low, V.within(low.scope), 5, "none")
    draw = np.random.default_rng(1)
    for number, word in enumerate(islice(words, 60)):
        left = mark_sum("v", ONE.T @ word.term)
        matrix = index_matrix(word.term)
        right = ONE.T @ matrix @ ONE
        if fragment == "L1ΣΣ":
            left, right = mark_sum("u", left), mark_sum("u", right)
            # the high grammar calls its one mark v
            named = substitute(matrix, {"u": Leaf("v", V)})
            derive_word(high, mark_sum("v", ONE.T @ named @ ONE))
        else:
            derive_word(high, right)
        graph = draw.integers(-2, 3, (4, 4)).astype(float)
        assert evaluate(left, graph) == evaluate(right, graph), (number, str(word.term))
    assert number > 20


def test_fewer_marks_over_l3_bound_marks_over_l1() -> None:
    for low, high in (("r-G_L1Σ", "r-G_L3"), ("r-G_L1ΣΣ", "r-G_L3Σ"), ("G_L1ΣΣ", "L3Σ (full)")):
        found = by_theorem(find_grammar(low), find_grammar(high), "symmetric")
        assert found is not None, (low, high)
        assert found.status == "proved"
        assert MARK_IS_INDEX in found.cited
    assert compare("r-G_L1ΣΣ", "r-G_L3Σ", "with f").relation == "⊆"
    assert by_theorem(find_grammar("r-G_L1ΣΣ"), find_grammar("r-G_L3"), "symmetric") is None
    assert by_theorem(find_grammar("r-G_L3Σ"), find_grammar("r-G_L3"), "symmetric") is None
    assert by_theorem(find_grammar("r-G_L1Σ"), find_grammar("r-G_L1"), "symmetric") is None


@pytest.mark.parametrize(
    ("name", "test"), [("r-G_L1Σ", "3-WL"), ("r-G_L1ΣΣ", "Σ2-FWL"), ("r-G_L1ΣΣ", "4-WL")]
)
def test_wl_tests_bound_marks_over_l1(name: str, test: str) -> None:
    chosen = WLTest.find(test)
    assert chosen is not None
    bound = proved_above(find_grammar(name), chosen)
    assert bound is not None
    assert bound.holds
    assert MARK_IS_INDEX in bound.evidence
    assert proved_above(find_grammar("r-G_L3Σ"), WLTest("3-WL", 2)) is None


def test_operations_within_three_indices() -> None:
    assert within_3wl(find_grammar("G_L3").operations | {"trace", "add", "f_M"})
