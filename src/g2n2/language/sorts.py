"""What size a value has: a sort is a tuple of size symbols, one per axis.

MATLANG over one square matrix needs two symbols, `1` and `n`, and two axes, which gives four sorts.
Nothing below counts to two: an order-3 tensor is `Sort(("n", "n", "n"))`.

A grammar variable is a sort and the number of marks in scope: V′ derives columns inside one Σ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, order=True)
class Sort:
    """The size of each axis of a value, over the symbols `1` and `n`.

    `scope` is how many marks the words of a grammar variable may use: 1 for V′, 2 for V″. Values,
    and so terms, have scope 0.
    """

    axes: tuple[str, ...]
    scope: int = 0

    @property
    def plain(self) -> Sort:
        """The sort of the values, without the scope."""
        return Sort(self.axes) if self.scope else self

    def within(self, marks: int) -> Sort:
        """The variable of this sort inside so many marks more."""
        return Sort(self.axes, self.scope + marks) if marks else self

    @property
    def boundary(self) -> int:
        """How many axes have length n: the boundary vertices of a pattern of this sort."""
        return sum(axis == "n" for axis in self.axes)

    @property
    def letter(self) -> str:
        """The one-letter name users may type, or the tuple itself where there is none."""
        return _LETTERS.get(self.plain, str(self)) + primes(self.scope)

    @property
    def variable(self) -> str:
        """The paper's name of the grammar variable of this sort."""
        letter = self.plain.letter
        return {"V": "V_c", "R": "V_r"}.get(letter, letter) + primes(self.scope)

    @property
    def english(self) -> str:
        return _ENGLISH.get(self.plain, f"a tensor of order {len(self.axes)}")

    def __str__(self) -> str:
        return "(" + ",".join(self.axes) + ")"


def primes(scope: int) -> str:
    """What is written after a variable inside so many marks: ′, ″ or more."""
    return "″" if scope == 2 else "′" * scope


S: Final = Sort(("1", "1"))
V: Final = Sort(("n", "1"))
R: Final = Sort(("1", "n"))
M: Final = Sort(("n", "n"))

SORTS: Final = (S, V, R, M)

_LETTERS: Final = {S: "S", V: "V", R: "R", M: "M"}
_ENGLISH: Final = {S: "a scalar", V: "a column vector", R: "a row vector", M: "a matrix"}
