"""The two Laplacians of a graph and their Chebyshev polynomials, as words (appendix B).

Degrees are A1, so weighted graphs have weighted degrees (A²⊙I of the paper holds for simple graphs
only). An isolated node has a zero row in both Laplacians, as in networkx: inv(sqrt(0)) = 0, so its
eigenvalue is 0 and eigenvalue 0 counts the connected components.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, get_args

from ..errors import GrammarError
from ..grammars.subgraph_counts import laplacian_power
from ..language.terms import IDENTITY, Number, Term, apply

Laplacian = Literal["normalised", "combinatorial"]


def laplacian(kind: Laplacian = "normalised") -> Term:
    """L = D − A, or L = D^{-1/2}(D − A)D^{-1/2} = I − D^{-1/2}AD^{-1/2} off isolated nodes."""
    if kind not in get_args(Laplacian):
        names = " or ".join(get_args(Laplacian))
        raise GrammarError(f"no Laplacian is called {kind!r}; write {names}")
    return laplacian_power(1, normalised=kind == "normalised")


def chebyshev(base: Term, coefficients: Sequence[float | Fraction]) -> Term:
    """Σₖ cₖ Tₖ(base): degree 2^l takes l products one after the other, and no large number.

    2 T_m T_j = T_{m+j} + T_{m−j} splits a series of degree at most 2m into q + T_m r with q and r
    of degree at most m.
    """
    series = list(coefficients)
    while len(series) > 1 and not series[-1]:
        series.pop()
    degree = len(series) - 1
    if degree < 2:
        return combination(list(zip(series, (IDENTITY, base), strict=False)))
    m = 1 << ((degree - 1).bit_length() - 1)
    upper = [series[m], *(2 * c for c in series[m + 1 :])]
    lower = series[:m]
    for j, c in enumerate(series[m + 1 :], start=1):
        lower[m - j] -= c
    product = _chebyshev_power(base, m) @ chebyshev(base, upper)
    return combination(
        [(1, product), (1, chebyshev(base, lower))] if any(lower) else [(1, product)]
    )


def _chebyshev_power(base: Term, m: int) -> Term:
    """T_m for a power of two: T_{2k} = 2 T_k² − I."""
    if m == 1:
        return base
    half = _chebyshev_power(base, m // 2)
    return combination([(2, half @ half), (-1, IDENTITY)])


def combination(parts: Sequence[tuple[float | Fraction, Term]]) -> Term:
    """A linear combination without its zero parts; a number is the decimal it prints as."""
    scaled = []
    for number, term in parts:
        exact = number if isinstance(number, Fraction) else Fraction(str(number))
        if exact:
            scaled.append(term if exact == 1 else apply("scale", Number(exact), term))
    if not scaled:
        return apply("scale", Number(Fraction(0)), IDENTITY)
    total = scaled[0]
    for term in scaled[1:]:
        total = total + term
    return total
