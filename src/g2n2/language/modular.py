"""Exact arithmetic modulo a prime in float64, so that products can be left to BLAS.

A residue is a float64 integer in [0, p) with p < 2 ** 26. Everything below stays an integer of at
most 2 ** 53 in size, which float64 holds without rounding:

* a product of two residues is below 2 ** 52;
* a matrix product is taken in two halves: one operand is written as `high * 2 ** 13 + low`, so a
  sum over k terms is below k * 2 ** 39, exact up to `LARGEST_INNER` = 2 ** 14 - 1 terms; a longer
  sum is cut into parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .signatures import Contraction

Residues = NDArray[np.float64]

PRIMES = (67_108_859, 67_108_837, 67_108_819)
"""The three largest primes below 2 ** 26."""

LARGEST_INNER = 2**14 - 1
_HALF = float(2**13)


def reduced(values: Residues, prime: int) -> Residues:
    """Bring integers in [0, 2 ** 53] into [0, prime)."""
    quotient: Residues = values * (1.0 / prime)
    np.floor(quotient, out=quotient)
    quotient *= prime
    rest: Residues = np.subtract(values, quotient, out=quotient)
    # The reciprocal is rounded, so the quotient may be off by one either way.
    np.add(rest, prime, out=rest, where=rest < 0)
    np.subtract(rest, prime, out=rest, where=rest >= prime)
    return rest


def product(left: Residues, right: Residues, prime: int) -> Residues:
    """Multiply stacks of matrices modulo the prime, broadcast as `@` does."""
    inner = left.shape[-1]
    if inner > LARGEST_INNER:
        parts = (slice(start, start + LARGEST_INNER) for start in range(0, inner, LARGEST_INNER))
        products = (product(left[..., part], right[..., part, :], prime) for part in parts)
        return reduced(np.sum(list(products), axis=0), prime)
    if prod(left.shape) <= prod(right.shape):
        high = np.floor(left / _HALF)
        carried = reduced(high @ right, prime)
        return reduced(carried * _HALF + (left - high * _HALF) @ right, prime)
    high = np.floor(right / _HALF)
    carried = reduced(left @ high, prime)
    return reduced(carried * _HALF + left @ (right - high * _HALF), prime)


def combined(coefficients: Residues, stack: Residues, prime: int) -> Residues:
    """Linear combinations `[q, ...]`, with coefficients `[q, K]`, of a stack `[K, ...]`."""
    high = np.floor(coefficients / _HALF)
    # Both halves in one product: the stack, which is large, is read once.
    halves = np.concatenate([high, coefficients - high * _HALF]) @ stack.reshape(len(stack), -1)
    carried = reduced(halves[: len(high)], prime)
    rows = reduced(carried * _HALF + halves[len(high) :], prime)
    return rows.reshape(len(coefficients), *stack.shape[1:])


def residue_matrix(values: NDArray[np.float64], prime: int, name: str) -> Residues:
    """Turn a matrix of integers into residues."""
    if (values != np.rint(values)).any():
        i, j = (int(at) for at in np.argwhere(values != np.rint(values))[0])
        raise DataError(
            f"entry ({i}, {j}) of {name} is {values[i, j]}; exact separation needs integer "
            "weights: multiply all of them by one common number"
        )
    if (np.abs(values) > 2**53).any():
        raise DataError(f"a weight of {name} is beyond 2 ** 53, where float64 is no longer exact")
    return np.remainder(values, prime)


class RowSpace:
    """The span modulo a prime of the rows inserted so far, as a reduced echelon basis."""

    def __init__(self, columns: int, prime: int) -> None:
        self.prime = prime
        self.basis: Residues = np.empty((0, columns))
        self.pivots: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def dimension(self) -> int:
        return len(self.basis)

    @property
    def full(self) -> bool:
        """Whether every row there is lies in the span."""
        return self.dimension == int(self.basis.shape[1])

    def insert(self, rows: Residues) -> list[int]:
        """Add rows; return the indices of those outside the span of all rows before them."""
        prime = self.prime
        rest = rows.copy()
        if self.dimension:  # subtract what the span explains
            factors = reduced(prime - rows[:, self.pivots], prime)
            rest = reduced(rows + product(factors, self.basis, prime), prime)
        kept: list[int] = []
        columns: list[int] = []
        for index in np.flatnonzero(rest.any(axis=1)).tolist():
            places = np.flatnonzero(rest[index])
            if not places.size:
                continue
            column = int(places[0])
            inverse = pow(int(rest[index, column]), -1, prime)
            rest[index] = reduced(rest[index] * inverse, prime)
            others = np.flatnonzero(rest[:, column])
            others = others[others != index]
            # prime - x stands for -x, so that nothing is negative; the sum stays below 2 ** 53.
            factors = prime - rest[others, column, None]
            rest[others] = reduced(rest[others] + factors * rest[index], prime)
            kept.append(index)
            columns.append(column)
        if kept:
            fresh = rest[kept]
            if self.dimension:
                factors = reduced(prime - self.basis[:, columns], prime)
                self.basis = reduced(self.basis + product(factors, fresh, prime), prime)
            self.basis = np.concatenate([self.basis, fresh])
            self.pivots = np.concatenate([self.pivots, np.array(columns)])
        return kept


MAX_ENTRIES = 2**29
"""Numbers a product may hold on the way, 4 GiB; beyond it is refused before it is made."""


def contracted(
    contraction: Contraction, operands: Sequence[Residues], nodes: int, prime: int
) -> Residues:
    """What a contraction makes of its operands, on graphs of so many nodes."""
    values = [_along(x, axes) for x, axes in zip(operands, contraction.inputs, strict=True)]
    letters = ["".join(dict.fromkeys(axes)) for axes in contraction.inputs]
    for used, left in contraction.steps:
        if len(used) == 1:
            values.append(_summed(values[used[0]], letters[used[0]], left, prime))
        else:
            a, b = used
            values.append(_joined(values[a], letters[a], values[b], letters[b], left, prime))
        letters.append(left)
    if not values:
        values, letters = [np.ones((1, 1))], [""]
    return _written(values[-1], letters[-1], contraction.output, nodes)


def _along(value: Residues, axes: str) -> Residues:
    """A value along its different letters: the diagonal where one stands twice."""
    held = "".join(dict.fromkeys(axes))
    return value if held == axes else value[_index(held, axes, value.shape[-1])]


def _index(held: str, axes: str, nodes: int) -> tuple[Any, ...]:
    """Where the entries of a value along `held` lie in one along `axes`."""
    ranges = np.ix_(*[np.arange(nodes)] * len(held))
    return (..., *(ranges[held.index(letter)] for letter in axes))


def _summed(value: Residues, held: str, left: str, prime: int) -> Residues:
    for axis, letter in reversed(list(enumerate(held))):
        if letter not in left:
            value = reduced(value.sum(axis=2 + axis), prime)
    return value


def _joined(x: Residues, xs: str, y: Residues, ys: str, left: str, prime: int) -> Residues:
    """The product of two values, summed over the letters that are left out."""
    summed = [letter for letter in xs if letter not in left]
    if not summed:
        first, second = _transposed(x, xs, left), _transposed(y, ys, left)
        size = prod(np.broadcast_shapes(first.shape, second.shape))
        if size > MAX_ENTRIES:
            raise DataError(
                f"an operation holds {size:,} numbers on the way, more than {MAX_ENTRIES:,}; "
                "compare smaller graphs"
            )
        return reduced(first * second, prime)
    shared = [letter for letter in xs if letter in ys and letter in left]
    rows = [letter for letter in xs if letter not in ys]
    columns = [letter for letter in ys if letter not in xs]
    n = x.shape[2 + xs.index(summed[0])]
    batch, inner = (n,) * len(shared), n ** len(summed)
    first = _transposed(x, xs, "".join((*shared, *rows, *summed)))
    second = _transposed(y, ys, "".join((*shared, *summed, *columns)))
    first = first.reshape(*first.shape[:2], *batch, n ** len(rows), inner)
    second = second.reshape(*second.shape[:2], *batch, inner, n ** len(columns))
    value = product(first, second, prime)
    value = value.reshape(*value.shape[:2], *batch, *(n,) * len(rows), *(n,) * len(columns))
    return _transposed(value, "".join((*shared, *rows, *columns)), left)


def _transposed(value: Residues, held: str, wanted: str) -> Residues:
    """A value with its axes in the wanted order, of length 1 for letters it does not have."""
    order = [2 + held.index(letter) for letter in wanted if letter in held]
    ordered = value.transpose(0, 1, *order)
    places = tuple(2 + at for at, letter in enumerate(wanted) if letter not in held)
    return np.expand_dims(ordered, places)


def _written(value: Residues, held: str, output: str, nodes: int) -> Residues:
    """A value along the axes of the output: the same along fresh letters, zero off diagonals."""
    letters = "".join(dict.fromkeys(output))
    shape = (*value.shape[:2], *(nodes,) * len(letters))
    whole = np.broadcast_to(_transposed(value, held, letters), shape)
    if letters == output:
        return whole
    written = np.zeros((*value.shape[:2], *(nodes,) * len(output)))
    written[_index(letters, output, nodes)] = whole
    return written
