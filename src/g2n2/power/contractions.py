"""Any multilinear operation modulo a prime, step by step as its contraction says.

A value is `[K, g, n, …]`: K words on g graphs, and one axis for each of its letters. K and g may be
1 where the others' are not.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import DataError
from ..language.signatures import Contraction
from .modular import Residues, product, reduced

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
    for place, letter in reversed(list(enumerate(held))):
        if letter not in left:
            value = reduced(value.sum(axis=2 + place), prime)
    return value


def _joined(x: Residues, xs: str, y: Residues, ys: str, left: str, prime: int) -> Residues:
    """The product of two values, summed over the letters that are left out."""
    summed = [letter for letter in xs if letter not in left]
    if not summed:
        first, second = _turned(x, xs, left), _turned(y, ys, left)
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
    one = _turned(x, xs, "".join((*shared, *rows, *summed)))
    two = _turned(y, ys, "".join((*shared, *summed, *columns)))
    one = one.reshape(*one.shape[:2], *batch, n ** len(rows), inner)
    two = two.reshape(*two.shape[:2], *batch, inner, n ** len(columns))
    made = product(one, two, prime)
    made = made.reshape(*made.shape[:2], *batch, *(n,) * len(rows), *(n,) * len(columns))
    return _turned(made, "".join((*shared, *rows, *columns)), left)


def _turned(value: Residues, held: str, wanted: str) -> Residues:
    """A value with its axes in the wanted order, of length 1 for letters it does not have."""
    order = [2 + held.index(letter) for letter in wanted if letter in held]
    turned = value.transpose(0, 1, *order)
    places = tuple(2 + at for at, letter in enumerate(wanted) if letter not in held)
    return np.expand_dims(turned, places)


def _written(value: Residues, held: str, output: str, nodes: int) -> Residues:
    """A value along the axes of the output: the same along fresh letters, zero off diagonals."""
    letters = "".join(dict.fromkeys(output))
    shape = (*value.shape[:2], *(nodes,) * len(letters))
    whole = np.broadcast_to(_turned(value, held, letters), shape)
    if letters == output:
        return whole
    written = np.zeros((*value.shape[:2], *(nodes,) * len(output)))
    written[_index(letters, output, nodes)] = whole
    return written
