"""A batch in pieces of like size, so that one large graph does not pad all others to its size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph_set import Ints

ENDS = (1 / 32, 1 / 8, 3 / 8, 1)
"""Where pieces end, as shares of a batch that begins with its largest graphs."""
WORTH = 0.5
"""Share of the padded entries up to which pieces, each with kernels of its own, are worth it."""
HEAVY = 2**19
"""Padded entries from which on: a lighter step is bound by launching its kernels."""


@dataclass(frozen=True)
class Piece:
    """Graphs `start` to `end` of a batch, padded to `width` nodes."""

    start: int
    end: int
    width: int

    @property
    def entries(self) -> int:
        return (self.end - self.start) * self.width**2


def cut(sizes: Ints, most: int) -> tuple[Piece, ...]:
    """The pieces of a batch whose sizes fall; the whole where pieces save little.

    Widths of pieces are few, since each set of them is recorded once.

    Args:
        sizes: Nodes of each graph, the largest first.
        most: Of any graph: no piece is wider.
    """
    whole = Piece(0, len(sizes), bucket(int(sizes[0]), most))
    if whole.entries < HEAVY:
        return (whole,)
    ends = sorted({max(1, round(share * len(sizes))) for share in ENDS})
    parts: list[Piece] = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        width = bucket(int(sizes[start]), most, finest=1, exact=0)
        if parts and parts[-1].width == width:
            start = parts.pop().start
        parts.append(Piece(start, end, width))
    worth = sum(part.entries for part in parts) <= WORTH * whole.entries
    return tuple(parts) if worth else (whole,)


def falling(indices: Ints, sizes: Ints) -> Ints:
    """Indices of graphs, the largest first; `sizes` are those of all graphs."""
    return indices[np.argsort(-sizes[indices], kind="stable")]


def bucket(nodes: int, most: int, finest: int = 8, exact: int = 32) -> int:
    """The width graphs are padded to: exact while small, then one of `finest` for each doubling."""
    grain = max(1, (1 << (nodes.bit_length() - 1)) // finest) if nodes > exact else 1
    return min(most, -(-nodes // grain) * grain)
