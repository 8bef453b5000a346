"""Capture shapes: a few batch shapes that fit all batches drawn at random from a set.

A step is captured as a CUDA graph once per batch shape, and a capture takes as long as hundreds of
steps. So batches share shapes: a bucket may be wider than its graphs need.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .graph_set import Ints
from .size_buckets import ENDS, SizeBucket, padded_width

Shape = tuple[SizeBucket, ...]
"""Of a batch: how many graphs of how many nodes."""

MOST = 6
"""Shapes, at most."""
DRAWN = 2048
"""Random batches that the choice is based on."""
LAUNCH = 2**13
"""Padded entries that take as long as launching the kernels of one more bucket."""
LEAST_GAIN = 0.01
"""Share of the work that one more shape must save."""


def cost(shape: Shape) -> int:
    """Of a step, in padded entries."""
    return sum(bucket.entries + LAUNCH for bucket in shape)


def holds(shape: Shape, sizes: Ints) -> bool:
    """Whether graphs of these sizes, the largest first, fit."""
    return all(sizes[bucket.start] <= bucket.width for bucket in shape)


def capture_shapes(sizes: Ints, batch: int) -> tuple[Shape, ...]:
    """Shapes for batches drawn from a set, the cheapest first; the last one holds any batch.

    They are chosen greedily: each time the shape that saves most on the random batches.

    Args:
        sizes: Nodes of every graph of the set.
        batch: Graphs in a batch; a set that has fewer is filled up with its smallest graph.
    """
    starts = sorted({0, *(max(1, round(share * batch)) for share in ENDS)} - {batch})
    random = np.random.default_rng(0)
    drawn = np.stack(
        [_largest(random.permutation(sizes)[:batch], batch)[starts] for _ in range(DRAWN)]
    )
    largest = _largest(sizes, batch)[starts]
    needs = np.unique(np.vstack([_rounded(drawn, int(sizes.max())), largest]), axis=0)
    shapes = list(dict.fromkeys(_cheapest(need, starts, batch) for need in needs))
    column = {start: number for number, start in enumerate(starts)}
    fits = np.stack(
        [np.all([drawn[:, column[b.start]] <= b.width for b in s], axis=0) for s in shapes], axis=1
    )
    costs = np.array([cost(shape) for shape in shapes], dtype=np.float64)
    prices = np.where(fits, costs, np.inf)
    chosen = [shapes.index(_cheapest(largest, starts, batch))]
    paid = prices[:, chosen[0]]
    while len(chosen) < MOST:
        saved = np.maximum(paid[:, None] - prices, 0.0).sum(0)
        best = int(saved.argmax())
        if saved[best] < LEAST_GAIN * paid.sum():
            break
        chosen.append(best)
        paid = np.minimum(paid, prices[:, best])
    return tuple(sorted((shapes[i] for i in chosen), key=cost))


def _largest(sizes: Ints, batch: int) -> Ints:
    """`[batch]` the largest sizes, falling; the smallest is repeated if there are too few."""
    ranked = np.sort(sizes)[::-1][:batch]
    return np.pad(ranked, (0, batch - len(ranked)), mode="edge")


def _rounded(sizes: Ints, most: int) -> Ints:
    distinct, inverse = np.unique(sizes, return_inverse=True)
    widths = np.array([padded_width(size, most, finest=4, exact=8) for size in distinct.tolist()])
    return widths[inverse].reshape(sizes.shape)


def _cheapest(need: Ints, starts: list[int], batch: int) -> Shape:
    """The cheapest buckets that begin at some of `starts` and are `need` wide there."""
    inner = range(1, len(starts))
    shapes = []
    for cut in (cut for count in range(len(starts)) for cut in combinations(inner, count)):
        ends = [*(starts[i] for i in cut), batch]
        begins = zip([0, *cut], ends, strict=True)
        shapes.append(tuple(SizeBucket(starts[i], end, int(need[i])) for i, end in begins))
    return min(shapes, key=cost)
