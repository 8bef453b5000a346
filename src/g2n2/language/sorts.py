"""What size a value has: a sort is a tuple of size symbols, one per axis.

MATLANG over one square matrix needs two symbols, `1` and `n`, and two axes, which gives four sorts.
Nothing below counts to two: an order-3 tensor is `Sort(("n", "n", "n"))`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, order=True)
class Sort:
    """The size of each axis of a value, over the symbols `1` and `n`."""

    axes: tuple[str, ...]

    @property
    def boundary(self) -> int:
        """How many axes have length n: the boundary vertices of a pattern of this sort."""
        return sum(axis == "n" for axis in self.axes)

    @property
    def letter(self) -> str:
        """The one-letter name users may type, or the tuple itself where there is none."""
        return _LETTERS.get(self, str(self))

    @property
    def variable(self) -> str:
        """The paper's name of the grammar variable of this sort."""
        return {"V": "V_c", "R": "V_r"}.get(self.letter, self.letter)

    @property
    def english(self) -> str:
        return _ENGLISH.get(self, f"a tensor of order {len(self.axes)}")

    def __str__(self) -> str:
        return "(" + ",".join(self.axes) + ")"


S: Final = Sort(("1", "1"))
V: Final = Sort(("n", "1"))
R: Final = Sort(("1", "n"))
M: Final = Sort(("n", "n"))

SORTS: Final = (S, V, R, M)

_LETTERS: Final = {S: "S", V: "V", R: "R", M: "M"}
_ENGLISH: Final = {S: "a scalar", V: "a column vector", R: "a row vector", M: "a matrix"}
