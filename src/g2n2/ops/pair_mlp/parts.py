"""What enters the update of a matrix memory, in the order of the first weight's columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Pairs:
    """A tensor `[B, N, N, S]`: the memory itself, or what a rule gave."""

    values: Tensor

    @property
    def width(self) -> int:
        return self.values.shape[-1]


@dataclass(frozen=True, eq=False)
class Hadamard:
    """Two such tensors, to be multiplied entry by entry."""

    left: Tensor
    right: Tensor

    @property
    def width(self) -> int:
        return self.left.shape[-1]


@dataclass(frozen=True, eq=False)
class Diagonal:
    """A tensor `[B, N, S]` that stands for the matrices with these diagonals."""

    values: Tensor

    @property
    def width(self) -> int:
        return self.values.shape[-1]


Part: TypeAlias = Pairs | Hadamard | Diagonal
