"""The exact value of a word at one entry, by the reference interpreter.

The interpreter works modulo any number; modulo one that exceeds twice the largest value the term
can have, its residue is the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod

import numpy as np

from ..graphs import Adjacency
from .evaluation import evaluate, evaluate_mod
from .operations import OPERATIONS
from .terms import Apply, Leaf, MarkSum, Number, Term, combination, multilinear, substitute

MAX_STEPS = 20_000_000
"""Multiplications of Python integers spent on one value, some ten seconds."""


def exact_value(
    term: Term, graph: Adjacency, supports: Mapping[str, Term], row: int, column: int
) -> int | Fraction | None:
    """The value at one entry of a term, without functions, on a graph with integer weights.

    None where it would take more than `MAX_STEPS`. `supports` defines the matrices besides A.
    """
    written = substitute(term, dict(supports))
    nodes = len(graph)
    if _steps(written, nodes, {}) > MAX_STEPS:
        return None
    largest = int(np.abs(graph).max())
    denominator = _denominator(written, {})
    bound = max(1, int(_bound(written, nodes, largest, {}) * denominator))
    # Odd and even denominators alike are units modulo a number that is 1 modulo all of them.
    modulus = 2 * bound * denominator + 1
    residue = int(evaluate_mod(written, graph, modulus)[row, column]) * denominator % modulus
    numerator = residue - modulus if residue > modulus // 2 else residue
    value = Fraction(numerator, denominator)
    return int(value) if value.denominator == 1 else value


def exact_sentence(term: Term, graph: Adjacency) -> int | Fraction | None:
    """The value of a combination of sentences on a simple graph; None where it would take too long.

    A sentence without sums multiplies and adds natural numbers, so float64 has its value where that
    is below 2⁵³: whatever is larger on the way is multiplied by zero.
    """
    total = Fraction(0)
    for factor, sentence in combination(term):
        if not multilinear(sentence):
            return exact_value(term, graph, {}, 0, 0)
        value = float(evaluate(sentence, graph).item())
        if not value < 2**53:
            return exact_value(term, graph, {}, 0, 0)
        total += factor * Fraction(value)
    return int(total) if total.denominator == 1 else total


def _steps(term: Term, nodes: int, memo: dict[Term, int]) -> int:
    """Multiplications the interpreter makes, which evaluates a shared part each time it occurs."""
    if isinstance(term, MarkSum):
        return nodes * _steps(term.body, nodes, memo)
    if not isinstance(term, Apply):
        return 0
    if term not in memo:
        here: int = nodes ** (term.sort.boundary + len(_summed(term)))
        memo[term] = here + sum(_steps(arg, nodes, memo) for arg in term.args)
    return memo[term]


def _denominator(term: Term, memo: dict[Term, int]) -> int:
    """A number whose product with the value is an integer."""
    if isinstance(term, Number):
        return term.value.denominator
    if isinstance(term, MarkSum):
        return _denominator(term.body, memo)
    if not isinstance(term, Apply):
        return 1
    if term not in memo:
        memo[term] = prod(_denominator(arg, memo) for arg in term.args)
    return memo[term]


def _bound(term: Term, nodes: int, largest: int, memo: dict[Term, Fraction]) -> Fraction:
    """A bound on the absolute value of every entry."""
    if isinstance(term, Number):
        return abs(term.value)
    if isinstance(term, Leaf):
        return Fraction(largest if term.name == "A" else 1)
    if isinstance(term, MarkSum):
        return nodes * _bound(term.body, nodes, largest, memo)
    assert isinstance(term, Apply), term
    if term not in memo:
        bounds = [_bound(arg, nodes, largest, memo) for arg in term.args]
        total = sum(bounds, Fraction(0)) if term.op == "add" else Fraction(prod(bounds))
        memo[term] = total * nodes ** len(_summed(term))
    return memo[term]


def _summed(term: Apply) -> str:
    """The letters of its signature an operation sums over."""
    operation = OPERATIONS[term.op]
    if not operation.multilinear:
        return ""
    return operation.contraction(tuple(arg.sort for arg in term.args)).summed
