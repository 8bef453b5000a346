"""Weisfeiler-Leman refinement: 1-WL, oblivious k-WL and folklore k-FWL for k up to 3.

Conventions. 1-WL is colour refinement over neighbours; so is 1-FWL. k-WL is the oblivious
algorithm on k-tuples and k-FWL the folklore one, so at graph level 2-WL tells apart what 1-WL does
and 3-WL ("3-WL" of the GNN literature) what 2-FWL does. Neighbours count in both directions; the
first colour of a tuple is the atomic type of its pairs (`pair_types`). The tests hold it against a
naive twin, `tests/naive_refinement.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..described import Described
from ..errors import DataError
from ..graphs import GraphLike, adjacency
from .colours import (
    EVALUATIONS,
    PRIME,
    SEED,
    ColourHistory,
    Colours,
    fingerprint_keys,
    group_by_size,
    in_order,
    joint_ranks,
    numbered,
    product_in_field,
    random_table,
)
from .memory_limit import DEFAULT_MEMORY_LIMIT, check_memory
from .pair_types import Labels, PairTypes, first_colours, pair_types

# Measured peak, all colours distinct: per pair of nodes for k = 1, per k-tuple otherwise.
_BYTES_PER_TUPLE = {1: 80, 2: 250, 3: 400}


Variant = Literal["wl", "fwl"]

_CHUNK_TUPLES = 2**21


class Neighbours(NamedTuple):
    """The edges of a stack of graphs, from `node` to `other` (numbered through the stack), by type.

    With them 1-WL takes time by edges, not by pairs.
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

    Colours are `[g] + [n] * k`, for stacks of g graphs of equal size.
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

    def keys(self, colours: Colours, edges: Neighbours | None) -> list[Colours]:
        """Fingerprint the multiset of every tuple of equal-sized graphs, some graphs at a time.

        Only colour refinement, of k = 1, needs the edges.
        """
        if edges is not None:
            return fingerprint_keys(partial(self._neighbours, colours, edges))
        step = max(1, _CHUNK_TUPLES // int(np.prod(colours.shape[1:])))
        chunks = [
            self._chunk_keys(colours[start : start + step])
            for start in range(0, len(colours), step)
        ]
        return [np.concatenate(column) for column in zip(*chunks, strict=True)]

    def _chunk_keys(self, colours: Colours) -> list[Colours]:
        if self.variant == "fwl":
            return fingerprint_keys(partial(self._folklore, colours))
        by_position = (partial(self._oblivious, colours, at) for at in range(self.k))
        return [key for evaluate in by_position for key in fingerprint_keys(evaluate)]

    def _neighbours(self, colours: Colours, edges: Neighbours, point: int) -> Colours:
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
        if self.k == 2:  # a matrix product: sum_w x(c(i, w)) * y(c(w, j))
            first, second = self.tables[point]
            return product_in_field(first[colours], second[colours])
        # sum_w x(c(w, j, l)) * y(c(i, w, l)) * z(c(i, j, w)), one w at a time: nothing is n ** 4.
        x, y, z = (table[colours].astype(np.int64) for table in self.tables[point])
        total = np.zeros_like(colours)
        for w in range(colours.shape[1]):
            pair = x[:, w, None, :, :] * y[:, :, w, None, :] % PRIME
            total += pair * z[:, :, :, w, None] % PRIME
        return total % PRIME


@dataclass(frozen=True, eq=False, repr=False)
class Refinement(Described, ColourHistory):
    """Stable colours of several graphs, comparable between them.

    Attributes:
        k: Length of the coloured tuples.
        variant: `wl` (oblivious) or `fwl` (folklore).
        colours: One read-only array `[n] * k` per graph.
        graph_history: One colour per graph after each round; graphs of different size differ from
            round 0 on.
        types: The atomic types the refinement began with.
    """

    k: int
    variant: Variant
    colours: tuple[Colours, ...]
    types: PairTypes

    def facts(self) -> dict[str, str]:
        return {
            "test": f"{self.k}-{self.variant.upper()}",
            "graphs": f"{len(self.colours):,}",
            "colours": f"{len(set(self.graph_colours.tolist())):,}",
            "rounds": str(self.rounds),
        }

    def node_colours(self) -> tuple[Colours, ...]:
        """Return one colour per node and graph, `[n]`: the colour of the tuple `(i, ..., i)`."""
        return tuple(array[(np.arange(len(array)),) * self.k] for array in self.colours)

    def pair_colours(self) -> tuple[Colours, ...]:
        """Return one colour per pair of nodes and graph, `[n, n]`.

        It is the tuple's colour for k = 2, that of `(i, j, j)` for k = 3, and for k = 1 the colours
        of both nodes with the atomic type of the pair.
        """
        if self.k == 2:
            return self.colours
        if self.k == 3:
            return tuple(np.einsum("ijj->ij", array) for array in self.colours)
        parts = [
            (*np.broadcast_arrays(array[:, None], array[None, :]), types)
            for array, types in zip(self.colours, self.types.of_graph, strict=True)
        ]
        return tuple(joint_ranks(parts)[0])


def refine(
    graphs: Sequence[GraphLike],
    k: int = 1,
    variant: Variant = "wl",
    node_labels: Labels | None = None,
    edge_labels: Labels | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
) -> Refinement:
    """Refine the colours of several graphs jointly until they are stable.

    >>> import networkx as nx
    >>> from g2n2 import refine
    >>> pair = nx.cycle_graph(6), nx.disjoint_union_all([nx.cycle_graph(3)] * 2)
    >>> refine(pair, k=1).separated(), refine(pair, k=2, variant="fwl").separated()
    (False, True)

    A split is exact; that unequal colours were merged by accident has probability below
    2 ** -50 (`colours`).

    Args:
        graphs: Whatever `adjacency` takes; sizes may differ.
        k: 1, 2 or 3.
        variant: `wl` (oblivious) or `fwl` (folklore).
        node_labels: Per graph an array `[n]` or `[n, d]`.
        edge_labels: Per graph an array `[n, n]` or `[n, n, d]`, read only where there is an edge.
        memory_limit: Bytes this call may take; checked before anything is allocated.

    Raises:
        DataError: If an argument is out of range, a graph or label array is malformed, or the
            memory would not suffice.
    """
    if k not in (1, 2, 3) or variant not in ("wl", "fwl"):
        raise DataError(
            f"no test k={k!r}, variant={variant!r}: expected k in 1, 2, 3 and variant 'wl' or 'fwl'"
        )
    if isinstance(graphs, str) or len(graphs) == 0:
        raise DataError("nothing to refine: expected a list of at least one graph")
    matrices = [adjacency(graph) for graph in graphs]
    tuples = sum(len(matrix) ** max(k, 2) for matrix in matrices)
    check_memory(
        f"{k}-{variant.upper()} on {len(matrices)} graph(s) of up to {max(map(len, matrices))} "
        f"nodes holds {tuples:,} tuples, about",
        tuples * _BYTES_PER_TUPLE[k],
        memory_limit,
        "take a smaller k, fewer graphs at a time, or raise memory_limit",
    )
    types = pair_types(matrices, node_labels, edge_labels)
    history = []
    for colours in colour_rounds(types, k, variant):
        # The multisets of tuple colours, compared exactly; a graph's size is part of its own.
        history.append(numbered(np.sort(array, axis=None).tobytes() for array in colours))
        history[-1].flags.writeable = False
    return Refinement(tuple(history), k, variant, colours, types)


def colour_rounds(types: PairTypes, k: int, variant: Variant) -> Iterator[tuple[Colours, ...]]:
    """Colours `[n] * k` of each graph, round by round until they are stable."""
    by_size = group_by_size(types.of_graph)
    stacks = [np.stack([types.of_graph[index] for index in group]) for group in by_size]
    colours, count = first_colours(stacks, k)
    edges = [neighbours(stack, types.is_edge) if k == 1 else None for stack in stacks]
    rng = np.random.default_rng(SEED)
    while True:
        yield in_order(by_size, colours)
        seen = Fingerprints(k, variant, count, types.is_edge, rng)
        colours, new_count = joint_ranks(
            [[old, *seen.keys(old, arcs)] for old, arcs in zip(colours, edges, strict=True)]
        )
        if new_count == count:
            return
        count = new_count
