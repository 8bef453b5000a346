"""What a tuple sees in one round, as a fingerprint: the sums behind 1-WL, k-WL and k-FWL.

Each sum is the multilinear form of a multiset of colours (`colour_hashing`), taken over stacks of
graphs of equal size: colours are `[g] + [n] * k`, atomic types `[g, n, n]`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .colour_hashing import (
    EVALUATIONS,
    PRIME,
    Colours,
    Table,
    fingerprint_keys,
    product_in_field,
    random_table,
)

Variant = Literal["wl", "fwl"]

_CHUNK_TUPLES = 2**21


class Neighbours(NamedTuple):
    """The edges of a stack of equal-sized graphs, so that 1-WL takes time by edges, not by pairs.

    Attributes:
        node: Where an edge is seen from, numbered through the stack.
        other: Where it leads.
        kind: Its atomic type.
    """

    node: Colours
    other: Colours
    kind: Colours


def neighbours(types: Colours, is_edge: NDArray[np.bool_]) -> Neighbours:
    """List the edges of a stack of graphs, `[g, n, n]`."""
    graph, node, other = np.nonzero(is_edge[types])
    offset = graph * types.shape[-1]
    return Neighbours(offset + node, offset + other, types[graph, node, other])


class Fingerprints:
    """The random points of one round, and the fingerprints of all multisets at them.

    Args:
        k: Length of the coloured tuples.
        variant: `wl` or `fwl`.
        colour_count: Number of colours before the round.
        is_edge: Which atomic types are edges, `[types]`.
        rng: Where the points are drawn.
    """

    def __init__(
        self,
        k: int,
        variant: Variant,
        colour_count: int,
        is_edge: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> None:
        self.k, self.variant = k, variant
        self.tables = [
            [random_table(rng, colour_count) for _ in range(k)] for _ in range(EVALUATIONS)
        ]
        # A pair without an edge gets 0, so that the sum over all nodes is one over neighbours.
        self.edge_tables = [random_table(rng, len(is_edge)) * is_edge for _ in range(EVALUATIONS)]

    def keys(self, colours: Colours, types: "Colours | Neighbours") -> list[Colours]:
        """Fingerprint the multiset of every tuple of equal-sized graphs, some graphs at a time."""
        if isinstance(types, Neighbours):
            return fingerprint_keys(partial(self._neighbours, colours, types))
        step = max(1, _CHUNK_TUPLES // int(np.prod(colours.shape[1:])))
        chunks = [
            self._chunk_keys(colours[start : start + step], types[start : start + step])
            for start in range(0, len(colours), step)
        ]
        return [np.concatenate(column) for column in zip(*chunks, strict=True)]

    def _chunk_keys(self, colours: Colours, types: Colours) -> list[Colours]:
        if self.variant == "fwl":
            return fingerprint_keys(partial(self._folklore, colours))
        by_position = (partial(self._oblivious, colours, at) for at in range(self.k))
        return [key for evaluate in by_position for key in fingerprint_keys(evaluate)]

    def _neighbours(self, colours: Colours, edges: "Neighbours", point: int) -> Colours:
        """Colour refinement: `sum_w edge(type(i, w)) * x(c(w))` over neighbours, `[g, n]`."""
        (table,) = self.tables[point]
        seen = table[colours.ravel()[edges.other]].astype(np.int64)
        values = self.edge_tables[point][edges.kind].astype(np.int64) * seen % PRIME
        # Sums of fewer than 2 ** 26 values below 2 ** 26 are exact in float64.
        total = np.bincount(edges.node, weights=values, minlength=colours.size)
        return (total.astype(np.int64) % PRIME).reshape(colours.shape)

    def _oblivious(self, colours: Colours, position: int, point: int) -> Colours:
        """k-WL: `sum_w x(c(v with w at the position))`, the same for every node there."""
        values = self.tables[point][position][colours]
        total = values.sum(axis=position + 1, keepdims=True).astype(np.int64) % PRIME
        return np.broadcast_to(total, colours.shape)

    def _folklore(self, colours: Colours, point: int) -> Colours:
        """k-FWL: one product of k colours per node `w`, summed over `w`."""
        if self.k == 2:
            return _sum_of_pairs(colours, self.tables[point])
        return _sum_of_triples(colours, self.tables[point])


def _sum_of_pairs(colours: Colours, tables: Sequence[Table]) -> Colours:
    """2-FWL: `sum_w x(c(i, w)) * y(c(w, j))`, a matrix product, `[g, n, n]`."""
    return product_in_field(tables[0][colours], tables[1][colours])


def _sum_of_triples(colours: Colours, tables: Sequence[Table]) -> Colours:
    """3-FWL: `sum_w x(c(w, j, l)) * y(c(i, w, l)) * z(c(i, j, w))`, `[g, n, n, n]`.

    One node `w` at a time, so that nothing of size `n ** 4` is held.
    """
    x, y, z = (table[colours].astype(np.int64) for table in tables)
    total = np.zeros_like(colours)
    for w in range(colours.shape[1]):
        pair = x[:, w, None, :, :] * y[:, :, w, None, :] % PRIME
        total += pair * z[:, :, :, w, None] % PRIME
    return total % PRIME
