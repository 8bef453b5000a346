"""A growing subspace modulo a prime: which of some new rows are independent of all before them."""

import numpy as np
from numpy.typing import NDArray

from .modular import Residues, product, reduced


class RowSpace:
    """The span of the rows inserted so far, as a reduced echelon basis.

    Args:
        columns: Length of a row.
        prime: The modulus.
    """

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
        rest = self._remainder(rows)
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

    def _remainder(self, rows: Residues) -> Residues:
        """Subtract from each row what the span explains of it."""
        if not self.dimension:
            return rows.copy()
        factors = reduced(self.prime - rows[:, self.pivots], self.prime)
        return reduced(rows + product(factors, self.basis, self.prime), self.prime)
