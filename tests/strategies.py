"""Random well-typed terms, all derivations of a grammar, and truth by numbers.

Everything draws from a seeded `random.Random`, so a failure names its seed and comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from g2n2.grammars.grammar import Grammar
from g2n2.language.operations import OPERATIONS, POINTWISE
from g2n2.language.sorts import SORTS, M, R, Sort, V
from g2n2.language.terms import (
    FREE_VARIABLES,
    HOLLOW,
    IDENTITY,
    ONE,
    A,
    Number,
    Term,
    apply,
    call,
    fill,
    operation_count,
    power,
)

MULTILINEAR = frozenset(("matmul", "transpose", "diag", "hadamard", "trace"))
LINEAR = MULTILINEAR | {"add", "scale"}
EVERYTHING = LINEAR | set(POINTWISE)

Matrix = npt.NDArray[Any]

NUMBERS = tuple(Fraction(x) for x in ("2", "-1", "3", "1.5", "-2", "0.25", "1", "-12.75", "0"))
FUNCTIONS = ("f", "relu", "exp", "log", "sqrt", "inv", "abs", "sin", "cos", "tanh", "sigmoid")
FREE = tuple(FREE_VARIABLES.values())


@dataclass(frozen=True)
class Vocabulary:
    """What a random term may be made of; `1` and the like are leaves, so `one` is no operation."""

    operations: frozenset[str] = frozenset(MULTILINEAR)
    leaves: tuple[Term, ...] = (A, ONE)
    numbers: tuple[Fraction, ...] = ()
    functions: tuple[str, ...] = ("f",)
    full: bool = True

    @cached_property
    def productions(self) -> dict[Sort, list[tuple[str, tuple[Sort, ...]]]]:
        found: dict[Sort, list[tuple[str, tuple[Sort, ...]]]] = {sort: [] for sort in SORTS}
        for name in sorted(self.operations):
            for sorts in product(SORTS, repeat=OPERATIONS[name].arity):
                result = OPERATIONS[name].typed(*sorts, full=self.full)
                if result is not None:
                    found[result].append((name, sorts))
        return found

    @cached_property
    def least(self) -> dict[Sort, int]:
        """The fewest operations a term of each sort needs; sorts out of reach are absent."""
        cost = {leaf.sort: 0 for leaf in self.leaves}
        for _ in SORTS:
            for sort, rules in self.productions.items():
                for _, sorts in rules:
                    if all(s in cost for s in sorts):
                        total = 1 + sum(cost[s] for s in sorts)
                        cost[sort] = min(total, cost.get(sort, total))
        return cost

    def fits(self, sorts: tuple[Sort, ...], budget: int) -> bool:
        return all(s in self.least for s in sorts) and sum(self.least[s] for s in sorts) <= budget


LINEAR_TERMS = Vocabulary(LINEAR, (A, ONE, IDENTITY, HOLLOW, *FREE), NUMBERS)
ALL_TERMS = Vocabulary(
    EVERYTHING, (A, ONE, IDENTITY, HOLLOW, Number(Fraction(1)), *FREE), NUMBERS, FUNCTIONS
)


def random_term(rng: Random, sort: Sort, size: int, words: Vocabulary = ALL_TERMS) -> Term:
    """A term of a sort with about `size` operations (a few more where the sort needs them)."""
    leaves = [leaf for leaf in words.leaves if leaf.sort == sort]
    budget = max(size, words.least[sort])
    usable = [rule for rule in words.productions[sort] if words.fits(rule[1], budget - 1)]
    if not usable or (leaves and (budget == 0 or rng.random() < 0.08)):
        return rng.choice(leaves)
    op, sorts = rng.choice(usable)
    if op == "scale" and words.numbers and rng.random() < 0.7:
        value = Number(rng.choice(words.numbers))
        return apply(op, value, random_term(rng, sorts[1], budget - 1, words))
    if op == "matmul" and sorts == (M, M) and budget < 6 and rng.random() < 0.2:
        return power(random_term(rng, M, budget // 3, words), rng.randint(2, 3))
    shares = _shares(rng, budget - 1, [words.least[s] for s in sorts])
    args = [random_term(rng, s, b, words) for s, b in zip(sorts, shares, strict=True)]
    if op in POINTWISE:
        return call(rng.choice(words.functions), args[0])
    return apply(op, *args)


def random_terms(
    seed: int, count: int, words: Vocabulary = ALL_TERMS, size: int = 10
) -> Iterator[Term]:
    """Terms of all reachable sorts and of up to `size` operations."""
    rng = Random(seed)
    sorts = [sort for sort in SORTS if sort in words.least]
    for _ in range(count):
        yield random_term(rng, rng.choice(sorts), rng.randint(0, size), words)


def _shares(rng: Random, budget: int, least: list[int]) -> list[int]:
    """Split a budget over the arguments, each getting at least what it needs."""
    shares = list(least)
    for _ in range(budget - sum(least)):
        shares[rng.randrange(len(shares))] += 1
    return shares


def random_inputs(rng: Random, n: int, assume: str) -> tuple[Matrix, dict[str, Matrix]]:
    """An integer A that meets `assume`, and integer values for the free variables."""

    def block(rows: int, columns: int, low: int = -(10**6), high: int = 10**6) -> Matrix:
        flat = [rng.randint(low, high) for _ in range(rows * columns)]
        return np.array(flat, dtype=np.int64).reshape(rows, columns)

    a = block(n, n, 0, 1) if assume == "simple" else block(n, n)
    if assume != "none":
        a = np.triu(a) + np.triu(a, 1).T
    if assume == "simple":
        np.fill_diagonal(a, 0)
    shapes = {M: (n, n), V: (n, 1), R: (1, n)}
    return a, {leaf.name: block(*shapes[leaf.sort]) for leaf in FREE}


class AllDerivations:
    """Every term a grammar derives, with repetition, by sort and exact size."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.known: dict[tuple[Sort, int], list[Term]] = {}

    def of(self, sort: Sort, size: int) -> list[Term]:
        key = sort, size
        if key not in self.known:
            self.known[key] = []
            for rule in self.grammar.of_sort(sort):
                spare = size - operation_count(rule.body)
                for sizes in product(range(spare + 1), repeat=len(rule.holes)):
                    if sum(sizes) == spare:
                        slots = [self.of(s, k) for s, k in zip(rule.holes, sizes, strict=True)]
                        self.known[key] += [fill(rule.body, list(x)) for x in product(*slots)]
        return self.known[key]

    def up_to(self, sort: Sort, size: int) -> Iterator[tuple[int, Term]]:
        for k in range(size + 1):
            for term in self.of(sort, k):
                yield k, term
