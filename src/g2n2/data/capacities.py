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
    inner: Room | None = None  # of the copies of those copies, where marks nest


class Capacity(NamedTuple):
    """Rows of pairs and of nodes; at least one row of pairs belongs to no graph."""

    pairs: int
    nodes: int
    marked: Room | None = None

    def holds(self, sizes: Ints, copies: Ints | None = None) -> bool:
        """Whether graphs of these sizes fit, with so many marked copies of each."""
        rooms, marked = [self.pairs - 1, self.nodes], self.marked
        while marked is not None:
            rooms += [marked.pairs - 1, marked.nodes, marked.copies]
            marked = marked.inner
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
    """At most `count` capacities for batches of a set, the smallest first.

    They are those with the least unused room over drawn batches. A batch that fits none of them
    needs a capacity of its own. With k marks, `copies` `[G, k]` are the copies of each graph:
    those of the first mark, those of the first two, and so on.
    """
    random = np.random.default_rng(0)
    taken, needs = min(batch, len(sizes)), _needs(sizes, copies)
    drawn = np.stack(
        [needs[random.choice(len(sizes), taken, replace=False)].sum(0) for _ in range(DRAWN)]
    )
    pairs = drawn[:, 0 if copies is None else -3]  # most of the work
    ranked = np.sort(pairs)
    ends = np.unique(np.linspace(0, len(ranked), 129).astype(int)[1:])
    chosen_ends = _least_room(ranked, ends, count)
    capacities = [_capacity(drawn[pairs <= ranked[end - 1]].max(0)) for end in chosen_ends]
    return tuple(dict.fromkeys(capacities))


def _needs(sizes: Ints, copies: Ints | None) -> Ints:
    """`[G, 2 + 3k]` pairs and nodes of each graph; for each mark those of copies, and how many."""
    rows = [sizes**2, sizes]
    for count in () if copies is None else copies.T:
        rows += [count * sizes**2, count * sizes, count]
    return np.stack(rows, axis=1)


def _capacity(needs: Ints) -> Capacity:
    pairs, nodes, *marked = (int(need) for need in needs)
    room = None
    while marked:
        *marked, pairs_of_copies, nodes_of_copies, copies = marked
        room = Room(
            _rounded(copies), _rounded(nodes_of_copies), _rounded(pairs_of_copies + 1), room
        )
    return Capacity(_rounded(pairs + 1), _rounded(nodes), room)


def _least_room(ranked: Ints, ends: Ints, count: int) -> list[int]:
    """Which ends of ascending needs to take as capacities, so that their sum over all is least."""
    edges = np.concatenate([[0], ends])
    room = (edges - edges[:, None]) * np.concatenate([[0], ranked[ends - 1]]).astype(float)
    room[np.tril_indices(len(edges))] = np.inf
    costs, before = np.where(edges == 0, 0.0, np.inf), []
    for _ in range(count):
        totals = costs[:, None] + room  # by the last end but one, and the last
        before.append(totals.argmin(0))
        costs = np.concatenate([[0.0], totals.min(0)[1:]])
    chosen, last = [], len(ends)
    for places in reversed(before):
        if last:
            chosen.append(int(ends[last - 1]))
            last = places[last]
    return chosen[::-1]


def _rounded(rows: int) -> int:
    return max(GRAIN, -(-rows // GRAIN) * GRAIN)
