"""Size buckets: a batch in parts of similar size, so that one large graph does not pad the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph_set import Ints

ENDS = (1 / 32, 1 / 8, 3 / 8, 1)
"""Where buckets end, as shares of a batch sorted by falling size."""
MOST_WORK = 0.5
"""Buckets are used if they have at most this share of the padded entries of the whole batch."""
LEAST_ENTRIES = 2**19
"""A batch of fewer padded entries is not split: launching its kernels takes most of its time."""


@dataclass(frozen=True)
class SizeBucket:
    """Graphs `start` to `end` of a batch, padded to `width` nodes."""

    start: int
    end: int
    width: int

    @property
    def entries(self) -> int:
        return (self.end - self.start) * self.width**2


def size_buckets(sizes: Ints, most: int) -> tuple[SizeBucket, ...]:
    """The buckets of a batch sorted by falling size; one bucket if more would save little.

    There are few different widths, since each combination of them is captured once.

    Args:
        sizes: Nodes of each graph, the largest first.
        most: Nodes of the largest graph of the set; no bucket is wider.
    """
    whole = SizeBucket(0, len(sizes), padded_width(int(sizes[0]), most))
    if whole.entries < LEAST_ENTRIES:
        return (whole,)
    ends = sorted({max(1, round(share * len(sizes))) for share in ENDS})
    buckets: list[SizeBucket] = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        width = padded_width(int(sizes[start]), most, finest=1, exact=0)
        if buckets and buckets[-1].width == width:
            start = buckets.pop().start
        buckets.append(SizeBucket(start, end, width))
    saves = sum(bucket.entries for bucket in buckets) <= MOST_WORK * whole.entries
    return tuple(buckets) if saves else (whole,)


def largest_first(indices: Ints, sizes: Ints) -> Ints:
    """Indices of graphs, the largest first; `sizes` are those of all graphs."""
    return indices[np.argsort(-sizes[indices], kind="stable")]


def padded_width(nodes: int, most: int, finest: int = 8, exact: int = 32) -> int:
    """The width graphs are padded to: exact up to `exact`, then `finest` widths per doubling."""
    grain = max(1, (1 << (nodes.bit_length() - 1)) // finest) if nodes > exact else 1
    return min(most, -(-nodes // grain) * grain)
