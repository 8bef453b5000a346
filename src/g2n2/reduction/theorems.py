"""Theorems that place grammars against each other and against WL tests, beside simulations.

**Diagonals are free** beside products, Hadamard products and outer products (proved in
docs/power.md). On any finite set of graphs the span of the matrix words of `OUTER` is the set of
all functions of pairs that are constant on some partition, since it is closed under ⊙ and holds
1·1ᵀ. With an indicator matrix B of a part it holds B·Bᵀ and B1·1ᵀ, and so the relation E that
joins nodes with equal rows in every B. Words are constant on the classes of E, so the diagonal of m
is the row sums of E⊙m over the row sums of E, a column of words. Hence r-G_L3 tells no more apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..grammars.catalogue import find_grammar
from ..grammars.grammar import Grammar
from ..language.operations import OPERATIONS
from ..language.patterns import Assumption
from .compare import Inclusion, included

OUTER = Grammar.parse("V → (V⊙V) | MV | 1; M → (M⊙M) | MM | VVᵀ | A; S → 1ᵀV", "L3 without diag")
"""Everything of L3 but diag, rows left out: as strong as r-G_L3."""

MATRICES = Grammar.parse("M → (M⊙M) | MM | 1·1ᵀ | A; S → 1ᵀM1", "L3 without diag and columns")
"""The same without columns: v·1ᵀ stands for v, and n·(1ᵀv) for 1ᵀv, as n² is a sentence too."""

DIAGONALS = "by theorem: diagonals are free beside ·, ⊙ and outer products (proof in docs/power.md)"
BOUNDED = (
    "cited: each of its operations can be written with three indices (Geerts 2021; Geerts and "
    "Reutter 2022)"
)
L1_IS_1WL = "cited: r-G_L1 is 1-WL (Geerts 2021; Theorem 4 of the paper)"
L3_IS_3WL = "cited: r-G_L3 is 3-WL (Geerts 2021; Theorems 1 and 2 of the paper)"
BOUNDED_MARKS = (
    "cited: with m marks in scope each of its operations can be written with 3 + m indices (Geerts "
    "and Reutter 2022)"
)
MARKED_BOUND = "proved in docs/beyond-3wl.md: inside its marks each operation has three indices"
MARKED_TESTS = (
    "proved in docs/beyond-3wl.md from r-G_L1 = 1-WL and r-G_L3 = 3-WL on graphs with marked nodes"
)
IGN_IS_1WL = "cited: 2-IGN with functions is at most 2-WL, which is 1-WL (Geerts 2020)"


def within_3wl(operations: Iterable[str]) -> bool:
    """Whether three indices at a time suffice for every operation, by its signature.

    Expressions with so many indices tell apart no more than 3-WL, whatever functions they apply; a
    mark is one index more.
    """
    used = [OPERATIONS[name] for name in operations]
    return all(
        op.kind == "pointwise" or (op.kind != "binder" and op.axes.treewidth_two) for op in used
    )


def by_theorem(larger: Grammar, smaller: Grammar, assume: Assumption) -> Inclusion | None:
    """An inclusion by way of r-G_L3 and the theorem on diagonals, where both ends are simulated."""
    ends = (OUTER, MATRICES)
    if assume == "none" or all(included(g, smaller, assume).status != "proved" for g in ends):
        return None
    through = included(larger, find_grammar("r-G_L3"), assume)
    if through.status != "proved":
        return None
    return Inclusion("proved", through.larger, cited=(*through.cited, DIAGONALS))
