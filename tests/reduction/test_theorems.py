"""Diagonals are free beside outer products: tested on graphs with loops and weights too."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar
from g2n2.power.random_probes import graph_classes
from g2n2.reduction.compare import included
from g2n2.reduction.theorems import MATRICES, OUTER, by_theorem, within_3wl


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


def test_operations_within_three_indices() -> None:
    assert within_3wl(find_grammar("G_L3").operations | {"trace", "add", "f_M"})
