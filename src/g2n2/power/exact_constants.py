"""Exact residues of numbers and of functions of them.

A float64 is a rational number whose denominator is a power of two, so it has an exact residue.
`inv` is exact in the field. `sqrt` is exact in a field that holds the square roots of the primes it
needs, chosen one by one and multiplied out, so that √2·√3 = √6 there too. `relu` and `abs` of
rational numbers are exact. Any other function becomes a random number for each of its values, which
is what a function that nothing is known of can do (`rule_sums`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, GrammarError
from ..language.modular import Residues, reduced
from ..language.terms import DISTANCES, Apply, Term, leaves, substitute, subterms

EXACT_FUNCTIONS = frozenset(("inv", "sqrt", "relu", "abs"))
FIELD_BITS = 26
LARGEST_DENOMINATOR = 10_000


def residues(values: NDArray[np.float64], prime: int) -> Residues:
    """Exact residues of float64 numbers."""
    if (values == np.rint(values)).all() and (np.abs(values) <= 2**53).all():
        return np.remainder(values, prime)
    distinct, where = np.unique(values, return_inverse=True)
    ratios = [float(value).as_integer_ratio() for value in distinct]
    table = np.array([float(a * pow(b, -1, prime) % prime) for a, b in ratios])
    return table[where.reshape(values.shape)]


def inverses(values: Residues, prime: int) -> Residues:
    """Inverses in the field, 0 where the value is 0."""
    result, power, exponent = np.ones_like(values), values, prime - 2
    while exponent:
        if exponent & 1:
            result = reduced(result * power, prime)
        exponent >>= 1
        power = reduced(power * power, prime)
    return np.where(values == 0, 0.0, result)


def functions_in(terms: Iterable[Term]) -> list[Apply]:
    """The parts of terms that apply a function."""
    parts = (part for term in terms for part in subterms(term))
    return [part for part in parts if isinstance(part, Apply) and part.function]


def check_supports(
    bodies: Iterable[Term],
    supports: Mapping[str, Term],
    given: Iterable[str],
    marks: Iterable[str] = (),
) -> None:
    """Refuse a matrix that has no value."""
    defined = {"A", "1", "I", "J", *given, *marks}
    for body in bodies:
        for leaf in leaves(substitute(body, dict(supports))):
            if leaf == DISTANCES and leaf.name not in defined:
                raise GrammarError(
                    "D, the squared distances between nodes, is no word of A: give its values "
                    "with supports=, or leave out the rules that name it"
                )
            if leaf.name not in defined:
                raise GrammarError(
                    f"the support {leaf.name} has no definition; add a line such as "
                    f"{leaf.name} = A, or give its values with supports="
                )


def _rational(value: float) -> Fraction:
    """The rational number, 0 or more, of which a root is taken."""
    near = Fraction(max(value, 0.0)).limit_denominator(LARGEST_DENOMINATOR)
    if abs(float(near) - max(value, 0.0)) > 1e-12 * max(1.0, value):
        raise DataError(
            f"sqrt({value!r}) has no exact value here: its argument is no fraction with a "
            f"denominator up to {LARGEST_DENOMINATOR:,}; define the support without the root"
        )
    return near


def _factors(number: int) -> Counter[int]:
    powers: Counter[int] = Counter()
    divisor = 2
    while number > 1:
        divisor = number if divisor * divisor > number else divisor
        while number % divisor == 0:
            powers[divisor] += 1
            number //= divisor
        divisor += 1
    return powers


def odd_primes(number: float) -> set[int]:
    """The primes that divide a rational number an odd number of times."""
    value = _rational(number)
    product = value.numerator * value.denominator
    return {q for q, power in _factors(product).items() if power % 2} if product else set()


def square_root(number: float, prime: int) -> float:
    """The root of a rational number: a product of the chosen roots of its primes."""
    value = _rational(number)
    if not value:
        return 0.0
    root = pow(value.denominator, -1, prime)
    for q, power in _factors(value.numerator * value.denominator).items():
        root = root * pow(q, power // 2, prime) % prime
        if power % 2:
            # A root of q modulo a prime of the form 4k + 3 of which q is a square.
            root = root * pow(q, (prime + 1) // 4, prime) % prime
    return float(root)


@cache
def primes_with_roots(needed: frozenset[int]) -> tuple[int, int]:
    """The two largest primes below 2 ** 26, of the form 4k + 3, modulo which all are squares."""
    limit = 2**FIELD_BITS
    sieve = np.ones(limit, dtype=np.bool_)
    sieve[:2] = False
    for divisor in range(2, 2 ** (FIELD_BITS // 2)):
        if sieve[divisor]:
            sieve[divisor * divisor :: divisor] = False
    candidates = np.flatnonzero(sieve)
    candidates = candidates[(candidates > limit // 4) & (candidates % 4 == 3)]
    for q in sorted(needed):
        # By quadratic reciprocity whether q is a square depends on the prime modulo 4q only.
        rest = candidates % (4 * q)
        first = {int(r): int(candidates[np.flatnonzero(rest == r)[0]]) for r in np.unique(rest)}
        squares = [r for r, prime in first.items() if pow(q, (prime - 1) // 2, prime) == 1]
        candidates = candidates[np.isin(rest, squares)]
    if len(candidates) < 2:
        raise DataError(
            f"the square roots of {len(needed)} different primes are needed at once, and no small "
            "field holds them: pass graphs whose degrees have fewer prime factors, or fewer graphs"
        )
    return int(candidates[-1]), int(candidates[-2])
