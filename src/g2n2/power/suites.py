"""Suites: named families of hard graphs, and which pairs of them are to be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations
from math import comb
from pathlib import Path
from typing import overload

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..described import Described, some, span
from ..errors import DataError
from ..graphs import Adjacency, adjacency, read_graph6_file
from ..graphs.families import CSL_NODES, CSL_SKIPS, cfi, circular_skip_link
from .colours import group_by_size


@dataclass(frozen=True, repr=False)
class SameSizePairs(Described, Sequence[tuple[int, int]]):
    """All pairs of graphs of equal size, counted and listed without being stored."""

    groups: tuple[tuple[int, ...], ...]  # indices of the graphs, one ascending tuple per size

    @staticmethod
    def of(graphs: Sequence[Adjacency]) -> SameSizePairs:
        """Group graphs by their number of nodes."""
        return SameSizePairs(tuple(map(tuple, group_by_size(graphs))))

    def __len__(self) -> int:
        return sum(comb(len(group), 2) for group in self.groups)

    def facts(self) -> dict[str, str]:
        return {"pairs": f"{len(self):,}", "sizes": f"{len(self.groups):,}"}

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return chain.from_iterable(combinations(group, 2) for group in self.groups)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[int, int], ...]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | tuple[tuple[int, int], ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        rest = index + len(self) if index < 0 else index
        for group in self.groups:
            for position, first in enumerate(group):
                partners = len(group) - position - 1
                if 0 <= rest < partners:
                    return first, group[position + 1 + rest]
                rest -= partners
        raise IndexError(f"pair {index} of {len(self)}")


@dataclass(frozen=True, eq=False, repr=False)
class Suite(Described):
    """Graphs, and the pairs of them a test should tell apart.

    No pair of a named suite is isomorphic; a user's file is taken as it is.

    Attributes:
        name: The name it is loaded by, or the file it was read from.
        graphs: Read-only adjacency matrices.
        pairs: Indices into `graphs`.
        categories: One name per pair, or empty where the suite has no categories.
        node_labels: One array `[n]` per graph, or None.
    """

    name: str
    graphs: tuple[Adjacency, ...]
    pairs: Sequence[tuple[int, int]]
    categories: tuple[str, ...] = ()
    node_labels: tuple[NDArray[np.int64], ...] | None = None

    def facts(self) -> dict[str, str]:
        sizes = [len(matrix) for matrix in self.graphs]
        facts = {
            "name": self.name,
            "graphs": f"{len(self.graphs):,}",
            "nodes": span(min(sizes, default=0), max(sizes, default=0)),
            "pairs": f"{len(self.pairs):,}",
        }
        if self.categories:
            facts["categories"] = some(dict.fromkeys(self.categories))
        return facts

    def merged(self, values: Sequence[Hashable]) -> int:
        """Count the pairs that an invariant, one value per graph, fails to tell apart."""
        if len(values) != len(self.graphs):
            raise DataError(
                f"suite {self.name} has {len(self.graphs)} graphs, got {len(values)} values: "
                "expected one per graph"
            )
        if isinstance(self.pairs, SameSizePairs):
            # Tens of millions of pairs in graph8c: count classes instead of walking over pairs.
            counts = (Counter(values[i] for i in group).values() for group in self.pairs.groups)
            return sum(comb(count, 2) for count in chain.from_iterable(counts))
        return sum(values[i] == values[j] for i, j in self.pairs)


def graph6_suite(path: str | Path, pairs: bool = False) -> Suite:
    """Read a user's graph6 file, `.gz` or not.

    With `pairs`, lines 2i and 2i + 1 are a pair; otherwise the file is one family, and all pairs of
    graphs of equal size are meant.
    """
    graphs = read_graph6_file(path)
    if not pairs:
        return Suite(str(path), graphs, SameSizePairs.of(graphs))
    if len(graphs) % 2:
        raise DataError(
            f"{path} holds {len(graphs)} graphs, expected an even number for consecutive pairs: "
            "a line is missing, or the file is one family"
        )
    return Suite(str(path), graphs, consecutive_pairs(len(graphs)))


@cache
def atlas() -> Suite:
    """Take all graphs of 1 to 7 nodes, from the networkx atlas."""
    graphs = tuple(adjacency(graph) for graph in nx.graph_atlas_g()[1:])
    return Suite("atlas", graphs, SameSizePairs.of(graphs))


@cache
def graph8c() -> Suite:
    """Read all 11,117 connected graphs of 8 nodes from a file of this package."""
    graphs = read_graph6_file(Path(__file__).with_name("graph8c.g6.gz"))
    return Suite("graph8c", graphs, SameSizePairs.of(graphs))


@cache
def csl() -> Suite:
    """Make the ten circular skip link graphs of Murphy et al. 2019."""
    graphs = tuple(circular_skip_link(CSL_NODES, skip) for skip in CSL_SKIPS)
    return Suite("csl", graphs, SameSizePairs.of(graphs))


@cache
def cfi_pairs() -> Suite:
    """Make CFI pairs over four small bases; the first three have treewidth 2, K4 has 3."""
    bases = {
        "C3": nx.cycle_graph(3),
        "K4-e": nx.Graph([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
        "K2,3": nx.complete_bipartite_graph(2, 3),
        "K4": nx.complete_graph(4),
    }
    graphs = tuple(chain.from_iterable(cfi(base) for base in bases.values()))
    return Suite("cfi", graphs, consecutive_pairs(len(graphs)), tuple(bases))


def consecutive_pairs(count: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, i + 1) for i in range(0, count, 2))


GENERATED: dict[str, Callable[[], Suite]] = {
    "atlas": atlas,
    "graph8c": graph8c,
    "csl": csl,
    "cfi": cfi_pairs,
}
"""The suites that need no file; `data.suites.load_suite` knows the others too."""
