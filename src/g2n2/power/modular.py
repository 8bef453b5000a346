"""Exact arithmetic modulo a prime in float64, so that products can be left to BLAS.

A residue is a float64 integer in [0, p) with p < 2 ** 26. Everything below stays an integer of at
most 2 ** 53 in size, which float64 holds without rounding:

* a product of two residues is below 2 ** 52;
* a matrix product is taken in two halves: one operand is written as `high * 2 ** 13 + low`, so a
  sum over k terms is below k * 2 ** 39, exact up to `LARGEST_INNER` = 2 ** 14 - 1 terms; a longer
  sum is cut into parts.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

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
    """Form linear combinations `[q, ...]` of the K entries of a stack `[K, ...]`.

    Args:
        coefficients: `[q, K]`.
        stack: `[K, ...]`.
        prime: The modulus.
    """
    high = np.floor(coefficients / _HALF)
    # Both halves in one product: the stack, which is large, is read once.
    halves = np.concatenate([high, coefficients - high * _HALF]) @ stack.reshape(len(stack), -1)
    carried = reduced(halves[: len(high)], prime)
    rows = reduced(carried * _HALF + halves[len(high) :], prime)
    return rows.reshape(len(coefficients), *stack.shape[1:])


def residue_matrix(values: NDArray[np.float64], prime: int, name: str) -> Residues:
    """Turn a matrix of integers into residues.

    Raises:
        DataError: If an entry is not an integer.
    """
    if (values != np.rint(values)).any():
        i, j = (int(at) for at in np.argwhere(values != np.rint(values))[0])
        raise DataError(
            f"entry ({i}, {j}) of {name} is {values[i, j]}; exact separation needs integer "
            "weights: multiply all of them by one common number"
        )
    if (np.abs(values) > 2**53).any():
        raise DataError(f"a weight of {name} is beyond 2 ** 53, where float64 is no longer exact")
    return np.remainder(values, prime)
