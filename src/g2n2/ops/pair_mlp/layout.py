"""Parts sorted by kind, and where each meets the first weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from .parts import Diagonal, Hadamard, Pairs, Part

MOST_PAIRS = 3
"""Tensors the kernels take, besides one Hadamard product and one diagonal."""
WIDEST = 128
"""Channels of a part or a result that fit a kernel's tile."""


@dataclass(frozen=True)
class Columns:
    """Where the columns of each part begin in the first weight."""

    pairs: tuple[int, ...]
    hadamard: int
    diagonal: int


@dataclass(frozen=True, eq=False)
class Layout:
    """What the kernels take: `[B, N, N, S]` tensors, factors and vectors, by kind."""

    columns: Columns
    pairs: tuple[Tensor, ...]
    left: Tensor | None
    right: Tensor | None
    diagonal: Tensor | None


def placed(parts: Sequence[Part]) -> list[tuple[Part, slice]]:
    """Each part with its columns of the first weight."""
    found, start = [], 0
    for part in parts:
        found.append((part, slice(start, start + part.width)))
        start += part.width
    return found


def laid_out(parts: Sequence[Part]) -> Layout:
    """The layout of parts that `covered` accepts."""
    pairs: list[tuple[Tensor, int]] = []
    hadamard: tuple[Hadamard, int] | None = None
    diagonal: tuple[Diagonal, int] | None = None
    for part, own in placed(parts):
        if isinstance(part, Pairs):
            pairs.append((part.values, own.start))
        elif isinstance(part, Hadamard):
            hadamard = (part, own.start)
        else:
            diagonal = (part, own.start)
    return Layout(
        Columns(
            tuple(start for _, start in pairs),
            hadamard[1] if hadamard else 0,
            diagonal[1] if diagonal else 0,
        ),
        tuple(values for values, _ in pairs),
        hadamard[0].left if hadamard else None,
        hadamard[0].right if hadamard else None,
        diagonal[0].values if diagonal else None,
    )


def covered(parts: Sequence[Part], hidden: int, out: int) -> bool:
    """Whether the kernels take these parts and widths; `plain` takes all."""
    kinds = [type(part) for part in parts]
    return (
        1 <= kinds.count(Pairs) <= MOST_PAIRS
        and kinds.count(Hadamard) <= 1
        and kinds.count(Diagonal) <= 1
        and max(out, *(part.width for part in parts)) <= WIDEST
        and hidden % 16 == 0
    )
