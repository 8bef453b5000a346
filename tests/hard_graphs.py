"""Strongly regular graphs that refinement tests need beside those of `g2n2.graphs.families`."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from g2n2.graphs import Adjacency, adjacency


def group_table(*orders: int) -> NDArray[np.int64]:
    """The addition table of a product of cyclic groups: `4` is cyclic, `2, 2` Klein's group."""
    elements = list(product(*map(range, orders)))
    sums = [[tuple(np.add(x, y) % orders) for y in elements] for x in elements]
    return np.array([[elements.index(entry) for entry in row] for row in sums])


def latin_square_graph(square: NDArray[np.int64]) -> Adjacency:
    """Cells of a Latin square, joined on equal row, column or symbol: SR(n², 3(n − 1), n, 6)."""
    rows, columns = np.divmod(np.arange(square.size), len(square))
    agree = [values[:, None] == values for values in (rows, columns, square.ravel())]
    joined = np.logical_or.reduce(agree)
    np.fill_diagonal(joined, False)
    return adjacency(joined)
