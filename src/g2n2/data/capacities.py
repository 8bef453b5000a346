"""Capacities: for how many rows a CUDA graph of packed batches is recorded.

A step is recorded once for each capacity, and recording takes as long as hundreds of steps. A few
capacities, chosen from batches drawn at random from the set, leave few rows unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .graph_set import Ints

MOST = 6
"""Capacities chosen for a set."""
DRAWN = 2048
"""Random batches that the choice is based on."""
GRAIN = 64
"""Capacities are multiples of this."""


class Room(NamedTuple):
    """Marked copies of the graphs of a batch, and rows of their nodes and pairs."""

    copies: int
    nodes: int
    pairs: int


class Capacity(NamedTuple):
    """Rows of pairs and of nodes; at least one row of pairs belongs to no graph."""

    pairs: int
    nodes: int
    marked: Room | None = None

    def holds(self, sizes: Ints, copies: Ints | None = None) -> bool:
        """Whether graphs of these sizes fit, with so many marked copies of each."""
        rooms = [self.pairs - 1, self.nodes]
        if self.marked is not None:
            rooms += [self.marked.pairs - 1, self.marked.nodes, self.marked.copies]
        return bool((_needs(sizes, copies).sum(0) <= rooms).all())


def capacity_of(sizes: Ints, copies: Ints | None = None) -> Capacity:
    """The capacity of one batch, a little more than it needs."""
    return _capacity(_needs(sizes, copies).sum(0))


def largest_capacity(sizes: Ints, batches: Sequence[Ints], copies: Ints | None = None) -> Capacity:
    """One capacity that holds each of some batches of graphs."""
    needs = _needs(sizes, copies)
    return _capacity(np.max([needs[batch].sum(0) for batch in batches], axis=0))


def capacities(
    sizes: Ints, batch: int, count: int = MOST, copies: Ints | None = None
) -> tuple[Capacity, ...]:
    """Capacities for batches drawn from a set, the smallest first.

    They are those with the least unused room over the drawn batches. A batch that fits none of them
    needs a capacity of its own.

    Args:
        sizes: Nodes of every graph of the set.
        batch: Graphs in a batch.
        count: How many, at most.
        copies: Marked copies of every graph, where a network has marks.
    """
    random = np.random.default_rng(0)
    taken, needs = min(batch, len(sizes)), _needs(sizes, copies)
    drawn = np.stack(
        [needs[random.choice(len(sizes), taken, replace=False)].sum(0) for _ in range(DRAWN)]
    )
    pairs = drawn[:, 0 if copies is None else 2]  # most of the work
    ranked = np.sort(pairs)
    ends = np.unique(np.linspace(0, len(ranked), 129).astype(int)[1:])
    chosen_ends = _least_room(ranked, ends, count)
    found = [_capacity(drawn[pairs <= ranked[end - 1]].max(0)) for end in chosen_ends]
    return tuple(dict.fromkeys(found))


def _needs(sizes: Ints, copies: Ints | None) -> Ints:
    """`[G, 2]` pairs and nodes of each graph, or `[G, 5]`, those of its copies and their number."""
    rows = [sizes**2, sizes]
    rows += [] if copies is None else [copies * sizes**2, copies * sizes, copies]
    return np.stack(rows, axis=1)


def _capacity(needs: Ints) -> Capacity:
    pairs, nodes, *marked = (int(need) for need in needs)
    room = None
    if marked:
        room = Room(_rounded(marked[2]), _rounded(marked[1]), _rounded(marked[0] + 1))
    return Capacity(_rounded(pairs + 1), _rounded(nodes), room)


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
