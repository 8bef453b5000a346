"""Patterns evaluated on stacks of equal-sized graphs, modulo a prime, vertex by vertex.

A pattern is a sum over its inner vertices of products of entries, so inner vertices are eliminated
one after the other, the cheapest first: the factors that touch a vertex are multiplied and summed
over it. With two factors left that is a matrix product, which goes to BLAS (`words.modular`).

Arrays are `[draws, graphs] + [n] * axes`; an array that does not depend on the draw has 1 in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

import numpy as np

from .modular import Residues, product, reduced
from .patterns import Pattern

Combination = Sequence[tuple[Pattern, Fraction]]


class Factor:
    """An array with one axis for each of some vertices, in ascending order."""

    def __init__(self, vertices: Sequence[int], values: Residues) -> None:
        """Take the diagonal where a vertex occurs twice, and put the axes in order."""
        kept = sorted(set(vertices))
        letters = dict(zip(kept, _LETTERS, strict=False))
        written = "".join(letters[v] for v in vertices)
        wanted = "".join(letters[v] for v in kept)
        self.vertices = tuple(kept)
        self.values: Residues = (
            values if written == wanted else np.einsum(f"...{written}->...{wanted}", values)
        )

    def spread(self, vertices: Sequence[int]) -> Residues:
        """The values with an axis of length 1 for every vertex it does not have."""
        lengths = dict(zip(self.vertices, self.values.shape[2:], strict=True))
        shape = [lengths.get(v, 1) for v in vertices]
        return self.values.reshape(*self.values.shape[:2], *shape)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def residue(value: Fraction, prime: int) -> float:
    """A rational number as an element of the field."""
    return float(value.numerator * pow(value.denominator, -1, prime) % prime)


def evaluate(
    combination: Combination,
    boundary: int,
    values: Mapping[str, Residues],
    nodes: int,
    graphs: int,
    prime: int,
) -> Residues:
    """The value of a linear combination of patterns, `[draws or 1, graphs] + [n] * boundary`.

    `values` has the array of each label, on a stack of `graphs` graphs of `nodes` nodes.
    """
    total: Residues | None = None
    for pattern, coefficient in combination:
        part = _evaluate_pattern(pattern, values, nodes, graphs, prime)
        if coefficient != 1:
            part = reduced(part * residue(coefficient, prime), prime)
        total = part if total is None else reduced(total + part, prime)
    return np.zeros((1, graphs, *(nodes,) * boundary)) if total is None else total


def _evaluate_pattern(
    pattern: Pattern, values: Mapping[str, Residues], nodes: int, graphs: int, prime: int
) -> Residues:
    factors = [Factor(edge.ends, values[edge.label]) for edge in pattern.edges]
    inner = set(range(pattern.vertices)) - set(pattern.boundary)
    bare = inner - {v for factor in factors for v in factor.vertices}
    inner -= bare
    if bare or not factors:
        factors.append(Factor((), np.full((1, graphs), float(pow(nodes, len(bare), prime)))))
    while inner:
        vertex = min(inner, key=lambda v: (_cost(v, factors), v))
        inner.remove(vertex)
        touching = [factor for factor in factors if vertex in factor.vertices]
        factors = [factor for factor in factors if vertex not in factor.vertices]
        factors.append(_eliminated(vertex, touching, prime))
    return _on_boundary(factors, pattern.boundary, nodes, prime)


def _cost(vertex: int, factors: Sequence[Factor]) -> int:
    """How many vertices are left joined when one is eliminated."""
    joined = {v for factor in factors if vertex in factor.vertices for v in factor.vertices}
    return len(joined)


def _multiplied(first: Factor, second: Factor, prime: int) -> Factor:
    vertices = sorted({*first.vertices, *second.vertices})
    return Factor(vertices, reduced(first.spread(vertices) * second.spread(vertices), prime))


def _eliminated(vertex: int, factors: list[Factor], prime: int) -> Factor:
    """The product of factors that share a vertex, summed over it."""
    factors = sorted(factors, key=lambda factor: len(factor.vertices))
    while len(factors) > 2 or (
        len(factors) == 2 and {*factors[0].vertices} <= {*factors[1].vertices}
    ):
        first = factors.pop(0)
        # The partner that makes the least of it: one that has its vertices already, if any.
        partner = min(factors, key=lambda factor: len({*first.vertices, *factor.vertices}))
        factors[factors.index(partner)] = _multiplied(first, partner, prime)
        factors.sort(key=lambda factor: len(factor.vertices))
    if len(factors) == 1:
        (only,) = factors
        axis = 2 + only.vertices.index(vertex)
        rest = [v for v in only.vertices if v != vertex]
        return Factor(rest, reduced(only.values.sum(axis=axis), prime))
    left, right = factors
    return _contracted(vertex, left, right, prime)


def _contracted(vertex: int, left: Factor, right: Factor, prime: int) -> Factor:
    """A matrix product for each value of the vertices that both factors keep."""
    shared = [v for v in left.vertices if v in right.vertices and v != vertex]
    rows = [v for v in left.vertices if v not in right.vertices]
    columns = [v for v in right.vertices if v not in left.vertices]
    first = _arranged(left, [*shared, *rows, vertex])
    second = _arranged(right, [*shared, vertex, *columns])
    kept = first.shape[2 : 2 + len(shared)]
    row_shape = first.shape[2 + len(shared) : -1]
    column_shape = second.shape[3 + len(shared) :]
    inner = first.shape[-1]
    value = product(
        first.reshape(*first.shape[:2], *kept, prod(row_shape), inner),
        second.reshape(*second.shape[:2], *kept, inner, prod(column_shape)),
        prime,
    )
    shape = (*value.shape[:2], *kept, *row_shape, *column_shape)
    return Factor([*shared, *rows, *columns], value.reshape(shape))


def _arranged(factor: Factor, order: Sequence[int]) -> Residues:
    axes = [2 + factor.vertices.index(v) for v in order]
    return np.ascontiguousarray(np.transpose(factor.values, (0, 1, *axes)))


def _on_boundary(
    factors: Sequence[Factor], boundary: Sequence[int], nodes: int, prime: int
) -> Residues:
    """The product of factors on boundary vertices, as an array over the boundary positions."""
    vertices = sorted(set(boundary))
    total = factors[0].spread(vertices)
    for factor in factors[1:]:
        total = reduced(total * factor.spread(vertices), prime)
    total = np.broadcast_to(total, (*total.shape[:2], *(nodes,) * len(vertices)))
    letters = dict(zip(vertices, _LETTERS, strict=False))
    short = "".join(letters[v] for v in vertices)
    full = "".join(letters[v] for v in boundary)
    if len(vertices) == len(boundary):
        return total if short == full else np.einsum(f"...{short}->...{full}", total)
    # A vertex at two positions: zero wherever the two differ.
    result = np.zeros((*total.shape[:2], *(nodes,) * len(boundary)))
    np.einsum(f"...{full}->...{short}", result)[...] = total
    return result


def joint_size(combination: Combination) -> int:
    """The most axes an array has while a combination is evaluated: its largest elimination."""
    largest = 0
    for pattern, _ in combination:
        ends = [{*edge.ends} for edge in pattern.edges]
        inner = set(range(pattern.vertices)) - set(pattern.boundary)
        while inner:
            vertex = min(inner, key=lambda v: (len(set().union(*(e for e in ends if v in e))), v))
            inner.remove(vertex)
            touching = [e for e in ends if vertex in e]
            joined = set().union(*touching)
            # Two factors are one product, which holds no array over all their vertices.
            largest = max(largest, len(joined) if len(touching) > 2 else len(joined) - 1)
            ends = [e for e in ends if vertex not in e] + [joined - {vertex}]
        largest = max(largest, len(pattern.boundary))
    return largest
