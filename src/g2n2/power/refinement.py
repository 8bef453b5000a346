"""Weisfeiler-Leman refinement: 1-WL, oblivious k-WL and folklore k-FWL for k up to 3.

Conventions. 1-WL is colour refinement over neighbours; so is 1-FWL. k-WL is the oblivious
algorithm on k-tuples and k-FWL the folklore one, so at graph level 2-WL tells apart what 1-WL does
and 3-WL ("3-WL" of the GNN literature) what 2-FWL does. Neighbours count in both directions; the
first colour of a tuple is the atomic type of its pairs (`pair_types`). The tests hold it against a
naive twin, `tests/naive_refinement.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..described import Described
from ..errors import DataError, GrammarError
from ..graphs import Adjacency, GraphLike, adjacency
from .colours import (
    EVALUATIONS,
    PRIME,
    ColourHistory,
    Colours,
    fingerprint_keys,
    group_by_size,
    in_order,
    joint_ranks,
    product_in_field,
    random_table,
)
from .pair_types import Labels, PairTypes, first_colours, pair_types

DEFAULT_MEMORY_LIMIT = 8 * 2**30
# Measured peak, all colours distinct: per pair of nodes for k = 1, per k-tuple otherwise.
_BYTES_PER_TUPLE = {1: 80, 2: 250, 3: 400}
_SEED = 20230519  # fixed, so that a run can be repeated colour for colour


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

    Colours are `[g] + [n] * k` and atomic types `[g, n, n]`, for stacks of g graphs of equal size.
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

    def keys(self, colours: Colours, types: Colours | Neighbours) -> list[Colours]:
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
class Refinement(ColourHistory, Described):
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
    graph_history: tuple[Colours, ...]
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
    2 ** -50 (`colour_hashing`).

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
    _check_memory(matrices, k, variant, memory_limit)
    types = pair_types(matrices, node_labels, edge_labels)
    by_size = group_by_size(matrices)
    stacked_types = [np.stack([types.of_graph[index] for index in group]) for group in by_size]
    colours, count = first_colours(stacked_types, k)
    history = [_graph_colours(colours, by_size)]
    seen_by = [neighbours(t, types.is_edge) if k == 1 else t for t in stacked_types]
    rng = np.random.default_rng(_SEED)
    while True:
        seen = Fingerprints(k, variant, count, types.is_edge, rng)
        new_colours, new_count = joint_ranks(
            [[old, *seen.keys(old, kind)] for old, kind in zip(colours, seen_by, strict=True)]
        )
        if new_count == count:
            break
        colours, count = new_colours, new_count
        history.append(_graph_colours(colours, by_size))
    return Refinement(k, variant, in_order(by_size, colours), tuple(history), types)


def _graph_colours(colours: Sequence[Colours], by_size: Sequence[Sequence[int]]) -> Colours:
    """Compare the multisets of tuple colours exactly; a graph's size is part of its own."""
    numbers: dict[bytes, int] = {}
    result = np.empty(sum(len(group) for group in by_size), dtype=np.int64)
    for group, part in zip(by_size, colours, strict=True):
        for index, array in zip(group, part, strict=True):
            multiset = np.sort(array, axis=None).tobytes()
            result[index] = numbers.setdefault(multiset, len(numbers))
    result.flags.writeable = False
    return result


def _check_memory(matrices: Sequence[Adjacency], k: int, variant: str, limit: int) -> None:
    """Refuse before allocating what would not fit."""
    tuples = sum(len(matrix) ** max(k, 2) for matrix in matrices)
    needed = tuples * _BYTES_PER_TUPLE[k]
    if needed > limit:
        raise DataError(
            f"{k}-{variant.upper()} on {len(matrices)} graph(s) of up to "
            f"{max(len(matrix) for matrix in matrices)} nodes holds {tuples:,} tuples, about "
            f"{needed / 2**30:,.1f} GiB, the limit is {limit / 2**30:,.1f} GiB: "
            "take a smaller k, fewer graphs at a time, or raise memory_limit"
        )


DEEPEST_FOLKLORE = 3
"""The largest k of a k-FWL that `refine` runs."""

_TEST = re.compile(
    r"\s*((?:[Σ∑]\s*|mark\s*)*)(\d+)\s*[-_‐‑–]?\s*(f?)wl\s*(\(?full\)?)?\s*", re.IGNORECASE
)
_SAME_POWER = {
    (0, 1): "r-G_L1", (0, 2): "r-G_L3", (1, 1): "r-G_L1Σ", (1, 2): "r-G_L3Σ",
    (2, 1): "r-G_L1ΣΣ", (2, 2): "r-G_L3ΣΣ",
}  # fmt: skip
"""By marks and the k of the folklore test."""


@dataclass(frozen=True)
class WLTest:
    """A Weisfeiler-Leman test, by name, so that `3-WL` can stand where a grammar can.

    `Σ2-FWL` is 2-FWL on every graph with one node marked and the multiset over marks; `ΣΣ1-WL` has
    two marks, nested; `Σ2-FWL (full)` lets pairs see the multiset over marks in every round.
    """

    name: str  # as it was asked for, `3-WL` or `2-FWL`
    # the k of the folklore test that tells the same graphs apart: (k + 1)-WL and k-FWL do (Grohe
    # and Otto 2015), and 2-WL and 1-WL are both 1
    folklore: int
    marks: int = 0  # how many nodes are marked at once
    full: bool = False  # whether colours come back out of a mark in every round

    @classmethod
    def find(cls, text: str) -> WLTest | None:
        """The test a text names; None where it names none."""
        m = _TEST.fullmatch(text)
        if m is None:
            return None
        marks = len(re.findall("[Σ∑]|mark", m[1], re.IGNORECASE))
        k, folk, full = int(m[2]), bool(m[3]), bool(m[4])
        name = f"{'Σ' * marks}{k}-{'FWL' if folk else 'WL'}{' (full)' if full else ''}"
        level = k if folk else max(k - 1, 1)
        deepest = 2 if marks else DEEPEST_FOLKLORE
        if k < 1 or level > deepest or marks > 2 or (full and (marks, level) != (1, 2)):
            raise GrammarError(
                f"{name} cannot be run; known: 1-WL to {DEEPEST_FOLKLORE + 1}-WL, "
                f"1-FWL to {DEEPEST_FOLKLORE}-FWL, with one or two marks up to 3-WL (Σ3-WL, "
                "ΣΣ1-WL), and Σ2-FWL (full)"
            )
        return cls(name, level, marks, full)

    @property
    def grammar(self) -> str | None:
        """The name of a grammar of the same power, where the catalogue has one."""
        return None if self.full else _SAME_POWER.get((self.marks, self.folklore))

    def refine(self, graphs: Sequence[GraphLike]) -> ColourHistory:
        """The test on several graphs, by the folklore algorithm, which needs the shorter tuples."""
        if self.marks:
            from .marked_refinement import refine_marked

            return refine_marked(
                graphs, self.folklore, self.marks, "full" if self.full else "nested"
            )
        return refine(graphs, self.folklore, "wl" if self.folklore == 1 else "fwl")

    def refusal(self) -> GrammarError:
        """What is said where rules are needed."""
        if self.grammar is None:
            more = (
                "L3Σ (full) is a grammar it bounds"
                if self.full
                else "no grammar over · ᵀ 1 diag ⊙ Tr has its power, which 3-WL bounds"
            )
        else:
            more = f"{self.grammar} is a grammar of that power"
        return GrammarError(f"{self.name} has no rules; {more}")


ONE_WL = WLTest("1-WL", 1)
THREE_WL = WLTest("3-WL", 2)
