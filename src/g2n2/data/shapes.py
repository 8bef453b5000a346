"""The few shapes that serve all batches drawn by chance from a set.

A step is recorded once for each shape of a batch, and recording takes as long as hundreds of steps.
So batches share shapes: a piece may be wider than its graphs need.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .graph_set import Ints
from .pieces import ENDS, Piece, bucket

Shape = tuple[Piece, ...]
"""Of a batch: how many graphs of how many nodes."""

MOST = 6
"""Shapes, at most."""
DRAWN = 2048
"""Batches that are looked at."""
LAUNCH = 2**13
"""Padded entries that take as long as launching the kernels of one more piece."""
LEAST_GAIN = 0.01
"""Share of the work that one more shape must save."""


def cost(shape: Shape) -> int:
    """Of a step, in padded entries."""
    return sum(piece.entries + LAUNCH for piece in shape)


def holds(shape: Shape, sizes: Ints) -> bool:
    """Whether graphs of these sizes, the largest first, fit."""
    return all(sizes[piece.start] <= piece.width for piece in shape)


def few_shapes(sizes: Ints, batch: int) -> tuple[Shape, ...]:
    """Shapes of batches drawn from a set, the cheapest first; the last one holds any batch.

    Chosen one by one, each time the one that saves most on batches drawn here.

    Args:
        sizes: Nodes of every graph of the set.
        batch: Graphs in a batch; where the set has fewer, it is filled up with the smallest.
    """
    starts = sorted({0, *(max(1, round(share * batch)) for share in ENDS)} - {batch})
    drawn = _drawn(sizes, batch)[:, starts]
    largest = _falling(sizes, batch)[starts]
    needs = np.unique(np.vstack([_rounded(drawn, int(sizes.max())), largest]), axis=0)
    shapes = list(dict.fromkeys(_cheapest(need, starts, batch) for need in needs))
    costs = np.array([cost(shape) for shape in shapes], dtype=np.float64)
    place = {start: column for column, start in enumerate(starts)}
    fits = np.stack(
        [np.all([drawn[:, place[p.start]] <= p.width for p in shape], axis=0) for shape in shapes],
        axis=1,
    )
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


def _drawn(sizes: Ints, batch: int) -> Ints:
    """`[DRAWN, batch]` sizes of batches, the largest first."""
    random = np.random.default_rng(0)
    return np.stack([_falling(random.permutation(sizes)[:batch], batch) for _ in range(DRAWN)])


def _falling(sizes: Ints, batch: int) -> Ints:
    """`[batch]` the largest sizes, the smallest repeated where there are too few."""
    ranked = np.sort(sizes)[::-1][:batch]
    return np.pad(ranked, (0, batch - len(ranked)), mode="edge")


def _rounded(sizes: Ints, most: int) -> Ints:
    known, place = np.unique(sizes, return_inverse=True)
    widths = np.array([bucket(size, most, finest=4, exact=8) for size in known.tolist()])
    return widths[place].reshape(sizes.shape)


def _cheapest(need: Ints, starts: list[int], batch: int) -> Shape:
    """The pieces that cost least, of those that begin at some of `starts`, `need` wide there."""
    inner = range(1, len(starts))
    cuts = [cut for count in range(len(starts)) for cut in combinations(inner, count)]
    made = []
    for cut in cuts:
        begins = [0, *cut]
        ends = [*(starts[i] for i in cut), batch]
        made.append(
            tuple(Piece(starts[i], end, int(need[i])) for i, end in zip(begins, ends, strict=True))
        )
    return min(made, key=cost)
