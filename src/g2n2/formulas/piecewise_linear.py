"""Pointwise functions as sums of hidden ReLU units."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..errors import LoweringError
from ..language.evaluation import FUNCTION_VALUES

Unit = tuple[float, float, float]
"""(a, b, weight): the hidden unit relu(a·x + b) and its weight in the output."""

IDENTITY: tuple[Unit, ...] = ((1.0, 0.0, 1.0), (-1.0, 0.0, -1.0))
"""x = relu(x) − relu(−x)."""
_EXACT: dict[str, tuple[Unit, ...]] = {
    "f": ((1.0, 0.0, 1.0),),
    "relu": ((1.0, 0.0, 1.0),),
    "abs": ((1.0, 0.0, 1.0), (-1.0, 0.0, 1.0)),
}


def is_exact(function: str) -> bool:
    """Whether a few ReLUs are the function everywhere."""
    return function in _EXACT


def relu_units(
    functions: tuple[str, ...], domain: Sequence[int] | None
) -> tuple[tuple[Unit, ...], float]:
    """Hidden units and an output bias that are a composed function on the integers of a domain.

    Between two of them the result is the straight line, below and above the domain it is wrong.
    """
    if len(functions) == 1 and is_exact(functions[0]):
        return _EXACT[functions[0]], 0.0
    points = np.array(sorted(set(domain or ())), dtype=np.float64)
    if not len(points):
        raise LoweringError("the domain is empty; give for instance range(0, max_degree + 1)")
    values = points
    for name in functions:
        values = FUNCTION_VALUES["relu" if name == "f" else name](values)
    slopes = np.diff(values) / np.diff(points)
    bends = [0.0, *slopes.tolist()]
    units = tuple(
        (1.0, -start, after - before)
        for start, (before, after) in zip(points.tolist(), pairwise(bends), strict=False)
        if after != before
    )
    return units, float(values[0])
