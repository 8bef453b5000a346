"""Batches of an epoch: random graphs, or in large sets graphs of similar size, reshuffled.

The order is a pure function of (sizes, batch, seed, epoch), so that a run can be taken up again at
any step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .size_buckets import LEAST_ENTRIES, size_buckets

Ints = NDArray[np.int64]

WINDOW = 64
"""Most batches that are sorted by size together."""
WINDOWS = 12
"""Fewest windows of an epoch, if padding allows it."""
FEW = 128
"""Epochs of at most this many batches are not sorted by size."""


def sorted_together(sizes: Ints, batch: int, few: int = FEW) -> int:
    """How many batches to sort by size together.

    A small set is not sorted: batches of graphs of similar size, and often of the same class, that
    recur in every epoch train worse (GIN on IMDB-BINARY: 65.5 % of held-out graphs right, against
    69.2 % with random batches). More batches are sorted together if graphs differ so much that
    padding would be most of the work, even in size buckets.

    Args:
        sizes: `[G]` nodes of each graph.
        batch: Graphs in a batch.
        few: Batches up to which a set is small.
    """
    small = len(sizes) <= batch * few
    window = 1 if small else min(WINDOW, max(1, len(sizes) // (batch * WINDOWS)))
    while (
        window < WINDOW and _work(sizes, epoch_batches(sizes, batch, 0, 0, window)) > LEAST_ENTRIES
    ):
        window *= 2
    return min(window, WINDOW)


def _work(sizes: Ints, batches: Sequence[Ints]) -> float:
    """Padded entries of a batch in size buckets, on average."""
    most = int(sizes.max())
    split = (size_buckets(np.sort(sizes[indices])[::-1], most) for indices in batches)
    return sum(bucket.entries for buckets in split for bucket in buckets) / len(batches)


def epoch_batches(sizes: Ints, batch: int, seed: int, epoch: int, window: int) -> list[Ints]:
    """The batches of one epoch: every graph once, the last batch kept however small.

    Args:
        sizes: `[G]` nodes of each graph.
        batch: Graphs in a batch.
        seed: Of the run.
        epoch: Counted from 0.
        window: How many batches are sorted by size together: `sorted_together`.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(sizes))
    if window == 1:
        return [order[start : start + batch] for start in range(0, len(order), batch)]
    span = batch * window
    # Windows of equal length, or a short last window would be mostly padding.
    windows = np.array_split(order, max(1, round(len(order) / span)))
    batches = []
    for part in windows:
        ranked = part[np.argsort(sizes[part], kind="stable")]
        batches += [ranked[start : start + batch] for start in range(0, len(ranked), batch)]
    batches = _merge_small(batches, batch)
    return [batches[i] for i in random.permutation(len(batches))]


def ordered_batches(sizes: Ints, batch: int, entries: int | None = None) -> list[Ints]:
    """Batches for evaluation: all graphs by size, no randomness.

    Args:
        sizes: `[G]` nodes of each graph.
        batch: Graphs in a batch, at most.
        entries: Of the padded matrices of a batch, at most, unless one graph alone has more; any
            number where None.
    """
    ranked = np.argsort(sizes, kind="stable")
    batches, start = [], 0
    for end, last in enumerate(sizes[ranked].tolist()):
        full = end - start == batch or (entries and (end - start + 1) * last**2 > entries)
        if full and end > start:
            batches.append(ranked[start:end])
            start = end
    return [*batches, ranked[start:]] if start < len(ranked) else batches


def padding_waste(sizes: Ints, batches: Sequence[Ints]) -> float:
    """Share of padded entries among all B·N² of the batches."""
    filled = padded = 0
    for indices in batches:
        chosen = sizes[indices]
        filled += int((chosen**2).sum())
        padded += len(chosen) * int(chosen.max()) ** 2
    return 1.0 - filled / padded if padded else 0.0


def _merge_small(batches: list[Ints], batch: int) -> list[Ints]:
    """Join the windows' remainders, so that at most one batch of an epoch is not full."""
    full = [b for b in batches if len(b) == batch]
    rest = [b for b in batches if len(b) < batch]
    if len(rest) < 2:
        return full + rest
    joined = np.concatenate(rest)
    return full + [joined[start : start + batch] for start in range(0, len(joined), batch)]
