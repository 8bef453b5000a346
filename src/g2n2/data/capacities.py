"""Capacities: for how many rows a CUDA graph of packed batches is recorded.

A step is recorded once for each capacity, and recording takes as long as hundreds of steps. A few
capacities, chosen from batches drawn at random from the set, leave few rows unused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .graph_set import Ints

MOST = 6
"""Capacities chosen for a set."""
DRAWN = 2048
"""Random batches that the choice is based on."""
GRAIN = 64
"""Capacities are multiples of this."""


class Capacity(NamedTuple):
    """Rows of pairs and of nodes; at least one row of pairs belongs to no graph."""

    pairs: int
    nodes: int

    def holds(self, sizes: Ints) -> bool:
        """Whether graphs of these sizes fit."""
        return int((sizes**2).sum()) < self.pairs and int(sizes.sum()) <= self.nodes


def capacity_of(sizes: Ints) -> Capacity:
    """The capacity of one batch, a little more than it needs."""
    return Capacity(_rounded(int((sizes**2).sum()) + 1), _rounded(int(sizes.sum())))


def capacities(sizes: Ints, batch: int, count: int = MOST) -> tuple[Capacity, ...]:
    """Capacities for batches drawn from a set, the smallest first.

    They are those with the least unused room over the drawn batches. A batch that fits none of them
    needs a capacity of its own.

    Args:
        sizes: Nodes of every graph of the set.
        batch: Graphs in a batch.
        count: How many, at most.
    """
    random = np.random.default_rng(0)
    taken = min(batch, len(sizes))
    drawn = [sizes[random.choice(len(sizes), taken, replace=False)] for _ in range(DRAWN)]
    nodes = np.array([chosen.sum() for chosen in drawn])
    pairs = np.array([(chosen**2).sum() for chosen in drawn])
    ranked = np.sort(pairs)
    ends = np.unique(np.linspace(0, len(ranked), 129).astype(int)[1:])
    chosen_ends = _least_room(ranked, ends, count)
    found = []
    for end in chosen_ends:
        room = ranked[end - 1]
        inside = pairs <= room
        found.append(Capacity(_rounded(int(room) + 1), _rounded(int(nodes[inside].max()))))
    return tuple(dict.fromkeys(found))


def _least_room(ranked: Ints, ends: Ints, count: int) -> list[int]:
    """Which ends of ascending needs to take as capacities, so that their sum over all is least."""
    starts = np.concatenate([[0], ends[:-1]])
    costs = np.full((count + 1, len(ends) + 1), np.inf)
    before = np.zeros((count + 1, len(ends) + 1), dtype=int)
    costs[:, 0] = 0.0
    edges = np.concatenate([starts, ends[-1:]])
    for number in range(1, count + 1):
        for last in range(1, len(ends) + 1):
            total = costs[number - 1, :last] + (
                (ends[last - 1] - edges[:last]) * ranked[ends[last - 1] - 1]
            )
            before[number, last] = int(total.argmin())
            costs[number, last] = total[before[number, last]]
    chosen, last = [], len(ends)
    for number in range(count, 0, -1):
        if last == 0:
            break
        chosen.append(int(ends[last - 1]))
        last = before[number, last]
    return chosen[::-1]


def _rounded(rows: int) -> int:
    return max(GRAIN, -(-rows // GRAIN) * GRAIN)
