"""Random fingerprints of multisets of colours, and exact ranking of rows.

A refinement round must decide, for very many tuples, which multisets of (tuples of) colours are
equal. The count `m[a, b]` of each colour combination is the coefficient of a multilinear form,
for instance `sum_w x[c(i, w)] * y[c(w, j)] = sum_ab m[a, b] * x[a] * y[b]`. Evaluated at random
points of the field of PRIME elements:

* equal multisets always have equal values, so a split found is exact, never an accident;
* two unequal multisets (counts below PRIME) have equal values with probability at most
  `degree / PRIME` by Schwartz-Zippel, and `(3 / PRIME) ** 6 < 2 ** -110` over the six independent
  evaluations of a fingerprint. A hundred million tuples make fewer than 2 ** 53 pairs, so even
  over a hundred rounds the chance of any wrong merge stays below 2 ** -50.

The field is small so that a product of two n x n matrices stays below 2 ** 53 and can be left to
float64 BLAS without rounding.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Colours = NDArray[np.int64]
Table = NDArray[np.float64]

PRIME = 1_048_573
KEYS = 2
EVALUATIONS_PER_KEY = 3  # PRIME ** 3 < 2 ** 63: three field elements fit one int64
EVALUATIONS = KEYS * EVALUATIONS_PER_KEY
_EXACT_INNER_SIZE = 2**53 // PRIME**2


def dense_ranks(columns: Sequence[NDArray[np.generic]]) -> tuple[Colours, int]:
    """Give the distinct rows of a table their number in lexicographic order, exactly.

    Args:
        columns: Columns of equal length, the most significant first.

    Returns:
        The number of each row, from 0, and how many distinct rows there are.
    """
    order = np.lexsort(tuple(reversed(columns)))
    starts_class = np.zeros(len(order), dtype=np.int64)
    for column in columns:
        ordered = column[order]
        starts_class[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.empty_like(starts_class)
    ranks[order] = np.cumsum(starts_class)
    return ranks, int(starts_class.sum()) + 1


def joint_ranks(parts: Sequence[Sequence[NDArray[np.generic]]]) -> tuple[list[Colours], int]:
    """Give the distinct entries of several arrays joint numbers, which compare between them.

    Args:
        parts: Per array its columns, all of the array's shape; an entry is one row across them.

    Returns:
        One array of numbers per part, read-only and of the part's shape, and the count of numbers.
    """
    columns = [
        np.concatenate([column.ravel() for column in same]) for same in zip(*parts, strict=True)
    ]
    ranks, count = dense_ranks(columns)
    ranks.flags.writeable = False
    shapes = [part[0].shape for part in parts]
    bounds = np.cumsum([part[0].size for part in parts])[:-1]
    flat_parts = np.split(ranks, bounds)
    return [flat.reshape(shape) for flat, shape in zip(flat_parts, shapes, strict=True)], count


def random_table(rng: np.random.Generator, colour_count: int) -> Table:
    """Draw one random field element per colour."""
    return rng.integers(0, PRIME, size=colour_count).astype(np.float64)


def fingerprint_keys(evaluate: Callable[[int], Colours]) -> list[Colours]:
    """Pack independent evaluations of a multilinear form into `KEYS` integer columns.

    Args:
        evaluate: Gives the values, below PRIME, at the random point of that number.
    """
    keys = []
    for key in range(KEYS):
        packed = evaluate(key * EVALUATIONS_PER_KEY)
        for offset in range(1, EVALUATIONS_PER_KEY):
            packed = packed * PRIME + evaluate(key * EVALUATIONS_PER_KEY + offset)
        keys.append(packed)
    return keys


def product_in_field(left: NDArray[np.float64], right: NDArray[np.float64]) -> Colours:
    """Multiply stacks of matrices with entries below PRIME, modulo PRIME, exactly."""
    blocks = range(0, left.shape[-1], _EXACT_INNER_SIZE)
    total = np.zeros((*left.shape[:-1], right.shape[-1]), dtype=np.int64)
    for start in blocks:
        inner = slice(start, start + _EXACT_INNER_SIZE)
        total += (left[..., inner] @ right[..., inner, :]).astype(np.int64) % PRIME
    return total % PRIME
