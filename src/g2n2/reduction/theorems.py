"""Theorems that place grammars against each other and against WL tests, beside simulations.

**Diagonals are free** beside products, Hadamard products and outer products (proved in
docs/power.md). On any finite set of graphs the span of the matrix words of `OUTER` is the set of
all functions of pairs that are constant on some partition, since it is closed under ⊙ and holds
1·1ᵀ. With an indicator matrix B of a part it holds B·Bᵀ and B1·1ᵀ, and so the relation E that
joins nodes with equal rows in every B. Words are constant on the classes of E, so the diagonal of m
is the row sums of E⊙m over the row sums of E, a column of words. Hence r-G_L3 tells no more apart.

**A mark over L1 is an index of a matrix** (proved in docs/beyond-3wl.md). Column v of the matrix W
is a column word w(v): 1 is 1·1ᵀ, v is I, another mark u is u1ᵀ, Aw is AW and diag(w)x is W⊙X. So
Σv. 1ᵀw(v) = 1ᵀW1, and one mark over L1 is at most L3, two are at most one mark over L3.
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
MARK_IS_INDEX = (
    "by theorem: a mark over L1 is an index of a matrix of L3, Σv. 1ᵀw = 1ᵀW1 (proof in "
    "docs/beyond-3wl.md)"
)
MARKED_BOUND = "proved in docs/beyond-3wl.md: inside its marks each operation has three indices"
MARKED_TESTS = (
    "proved in docs/beyond-3wl.md from r-G_L1 = 1-WL and r-G_L3 = 3-WL on graphs with marked nodes"
)
IGN_IS_1WL = "cited: 2-IGN with functions is at most 2-WL, which is 1-WL (Geerts 2020)"


_ONE_MARK_LESS = (("r-G_L1Σ", "G_L3"), ("r-G_L1ΣΣ", "G_L3Σ"))


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
    """An inclusion by way of a theorem above, where both of its ends are simulated."""
    return _by_index(larger, smaller, assume) or _by_diagonals(larger, smaller, assume)


def index_bound(grammar: Grammar, assume: Assumption) -> tuple[Grammar, Inclusion] | None:
    """The grammar with a mark less that bounds one with marks over L1, and why."""
    for low, high in _ONE_MARK_LESS if grammar.marked else ():
        through = included(grammar, find_grammar(low), assume)
        if through.status == "proved":
            cited = (*through.cited, MARK_IS_INDEX)
            return find_grammar(high), Inclusion("proved", through.larger, cited=cited)
    return None


def _by_index(larger: Grammar, smaller: Grammar, assume: Assumption) -> Inclusion | None:
    """By way of the theorem on marks over L1."""
    bound = index_bound(larger, assume)
    if bound is None or included(bound[0], smaller, assume).status != "proved":
        return None
    return bound[1]


def _by_diagonals(larger: Grammar, smaller: Grammar, assume: Assumption) -> Inclusion | None:
    """By way of r-G_L3 and the theorem on diagonals."""
    ends = (OUTER, MATRICES)
    if assume == "none" or all(included(g, smaller, assume).status != "proved" for g in ends):
        return None
    through = included(larger, find_grammar("r-G_L3"), assume)
    if through.status != "proved":
        return None
    return Inclusion("proved", through.larger, cited=(*through.cited, DIAGONALS))
