"""Weisfeiler-Leman refinement: 1-WL, oblivious k-WL and folklore k-FWL for k up to 3.

Conventions. 1-WL is colour refinement over neighbours; so is 1-FWL. k-WL is the oblivious
algorithm on k-tuples and k-FWL the folklore one, so at graph level 2-WL tells apart what 1-WL does
and 3-WL ("3-WL" of the GNN literature) what 2-FWL does. Neighbours count in both directions; the
first colour of a tuple is the atomic type of its pairs (`pair_types`).
`refinement_reference` is the naive twin.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..described import Described
from ..errors import DataError
from ..graphs import Adjacency, GraphLike, adjacency
from .colour_hashing import Colours, joint_ranks
from .fingerprints import Fingerprints, Variant, neighbours
from .pair_types import Labels, PairTypes, first_colours, pair_types

DEFAULT_MEMORY_LIMIT = 8 * 2**30
# Measured peak, all colours distinct: per pair of nodes for k = 1, per k-tuple otherwise.
_BYTES_PER_TUPLE = {1: 80, 2: 250, 3: 400}
_SEED = 20230519  # fixed, so that a run can be repeated colour for colour


@dataclass(frozen=True, eq=False, repr=False)
class Refinement(Described):
    """Stable colours of several graphs, comparable between them.

    Attributes:
        k: Length of the coloured tuples.
        variant: `wl` (oblivious) or `fwl` (folklore).
        colours: One read-only array `[n] * k` per graph; equal numbers mean equal colours, also
            across graphs.
        graph_history: After each round from 0 to the last, one colour per graph; graphs of
            different size differ from round 0 on.
        types: The atomic types the refinement began with.
    """

    k: int
    variant: Variant
    colours: tuple[Colours, ...]
    graph_history: tuple[Colours, ...]
    types: PairTypes

    def facts(self) -> dict[str, str]:
        """What came out, for `repr` and notebooks."""
        return {
            "test": f"{self.k}-{self.variant.upper()}",
            "graphs": f"{len(self.colours):,}",
            "colours": f"{len(set(self.graph_colours.tolist())):,}",
            "rounds": str(self.rounds),
        }

    @property
    def rounds(self) -> int:
        """How many rounds split a colour before the colouring was stable."""
        return len(self.graph_history) - 1

    @property
    def graph_colours(self) -> Colours:
        """One colour per graph: equal for the graphs the test cannot tell apart."""
        return self.graph_history[-1]

    def separated(self, first: int = 0, second: int = 1) -> bool:
        """Say whether the test tells two of the graphs apart."""
        return bool(self.graph_colours[first] != self.graph_colours[second])

    def separated_at(self, first: int = 0, second: int = 1) -> int | None:
        """Return the round from which two graphs differ; None if they never do."""
        for number, colours in enumerate(self.graph_history):
            if colours[first] != colours[second]:
                return number
        return None

    def merged_pairs(self) -> list[tuple[int, int]]:
        """List the pairs of graphs that are not told apart."""
        classes: dict[int, list[int]] = defaultdict(list)
        for index, colour in enumerate(self.graph_colours.tolist()):
            classes[colour].append(index)
        return [pair for members in classes.values() for pair in combinations(members, 2)]

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
    by_size = _group_by_size(matrices)
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
    in_order: dict[int, Colours] = {}
    for group, part in zip(by_size, colours, strict=True):
        in_order |= dict(zip(group, part, strict=True))
    return Refinement(
        k, variant, tuple(in_order[index] for index in range(len(matrices))), tuple(history), types
    )


def _graph_colours(colours: Sequence[Colours], by_size: Sequence[Sequence[int]]) -> Colours:
    """Compare the multisets of tuple colours exactly; a graph's size is part of its own."""
    found: dict[bytes, int] = {}
    result = np.empty(sum(len(group) for group in by_size), dtype=np.int64)
    for group, part in zip(by_size, colours, strict=True):
        for index, array in zip(group, part, strict=True):
            multiset = np.sort(array, axis=None).tobytes()
            result[index] = found.setdefault(multiset, len(found))
    result.flags.writeable = False
    return result


def _group_by_size(matrices: Sequence[Adjacency]) -> list[list[int]]:
    groups: dict[int, list[int]] = defaultdict(list)
    for index, matrix in enumerate(matrices):
        groups[len(matrix)].append(index)
    return list(groups.values())


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
