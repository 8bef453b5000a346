"""Suites: named families of hard graphs, and which pairs of them are to be told apart."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import chain, combinations
from math import comb
from pathlib import Path
from typing import overload

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..data.suite_files import BREC_CATEGORIES, read_brec, read_exp, read_sr25
from ..described import Described, some, span
from ..errors import DataError
from ..graphs import Adjacency, adjacency, read_graph6_file
from .families import CSL_NODES, CSL_SKIPS, cfi, circular_skip_link
from .small_graphs import connected_graphs


@dataclass(frozen=True, repr=False)
class SameSizePairs(Described, Sequence[tuple[int, int]]):
    """All pairs of graphs of equal size, counted and listed without being stored.

    Attributes:
        groups: Indices of the graphs, one ascending tuple per size.
    """

    groups: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(graphs: Sequence[Adjacency]) -> "SameSizePairs":
        """Group graphs by their number of nodes."""
        by_size: dict[int, list[int]] = defaultdict(list)
        for index, matrix in enumerate(graphs):
            by_size[len(matrix)].append(index)
        return SameSizePairs(tuple(tuple(group) for group in by_size.values()))

    def __len__(self) -> int:
        return sum(comb(len(group), 2) for group in self.groups)

    def facts(self) -> dict[str, str]:
        """How many, for `repr` and notebooks."""
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
        """The suite in a few words, for `repr` and notebooks."""
        sizes = [len(matrix) for matrix in self.graphs]
        found = {
            "name": self.name,
            "graphs": f"{len(self.graphs):,}",
            "nodes": span(min(sizes, default=0), max(sizes, default=0)),
            "pairs": f"{len(self.pairs):,}",
        }
        if self.categories:
            found["categories"] = some(dict.fromkeys(self.categories))
        return found

    def merged(self, values: Sequence[Hashable]) -> int:
        """Count the pairs an invariant fails to tell apart.

        Args:
            values: The invariant of each graph, for instance `Refinement.graph_colours.tolist()`.
        """
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


def load_suite(name: str, data: str | Path | None = None) -> Suite:
    """Generate or read the suite of that name.

    Args:
        name: One of `SUITE_NAMES`.
        data: Folder in which files are sought before `$G2N2_DATA`, the user cache and the official
            source; generated suites need none.

    Raises:
        DataError: If there is no such suite, or its file is missing or damaged.
    """
    if name in _GENERATED:
        return _GENERATED[name]()
    if name in _READ:
        return _READ[name](data)
    close = get_close_matches(name, SUITE_NAMES, n=2, cutoff=0.4)
    guess = f" (did you mean {' or '.join(close)}?)" if close else ""
    raise DataError(
        f"no suite {name!r}{guess}: expected one of {', '.join(SUITE_NAMES)}, "
        "or a path to a graph6 file"
    )


def graph6_suite(path: str | Path, pairs: bool = False) -> Suite:
    """Read a user's graph6 file, `.gz` or not.

    Args:
        path: The file.
        pairs: Lines 2i and 2i + 1 are a pair; otherwise the file is one family, and all pairs of
            graphs of equal size are meant.

    Raises:
        DataError: If it cannot be read, or holds an odd number of graphs where pairs were asked.
    """
    graphs = read_graph6_file(path)
    if not pairs:
        return Suite(str(path), graphs, SameSizePairs.of(graphs))
    if len(graphs) % 2:
        raise DataError(
            f"{path} holds {len(graphs)} graphs, expected an even number for consecutive pairs: "
            "a line is missing, or the file is one family"
        )
    return Suite(str(path), graphs, _consecutive(len(graphs)))


@cache
def _atlas() -> Suite:
    """Take all graphs of 1 to 7 nodes, from the networkx atlas."""
    graphs = tuple(adjacency(graph) for graph in nx.graph_atlas_g()[1:])
    return Suite("atlas", graphs, SameSizePairs.of(graphs))


@cache
def _graph8c() -> Suite:
    """Grow all 11,117 connected graphs of 8 nodes."""
    graphs = tuple(connected_graphs(8))
    return Suite("graph8c", graphs, SameSizePairs.of(graphs))


@cache
def _csl() -> Suite:
    """Make the ten circular skip link graphs of Murphy et al. 2019."""
    graphs = tuple(circular_skip_link(CSL_NODES, skip) for skip in CSL_SKIPS)
    return Suite("csl", graphs, SameSizePairs.of(graphs))


@cache
def _cfi() -> Suite:
    """Make CFI pairs over four small bases; the first three have treewidth 2, K4 has 3."""
    bases = {
        "C3": nx.cycle_graph(3),
        "K4-e": nx.Graph([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
        "K2,3": nx.complete_bipartite_graph(2, 3),
        "K4": nx.complete_graph(4),
    }
    graphs = tuple(chain.from_iterable(cfi(base) for base in bases.values()))
    return Suite("cfi", graphs, _consecutive(len(graphs)), tuple(bases))


def _sr25(data: str | Path | None) -> Suite:
    """Read the 15 strongly regular graphs SR(25, 12, 5, 6)."""
    graphs = read_sr25(data)
    return Suite("sr25", graphs, SameSizePairs.of(graphs))


def _exp(data: str | Path | None) -> Suite:
    """Read the 600 pairs of EXP, with their node labels (Abboud et al. 2021)."""
    graphs, labels = read_exp(data)
    return Suite("exp", graphs, _consecutive(len(graphs)), node_labels=labels)


def _brec(data: str | Path | None) -> Suite:
    """Read the 400 pairs of BREC v3 (Wang and Zhang 2024)."""
    graphs = read_brec(data)
    categories = chain.from_iterable([name] * count for name, count in BREC_CATEGORIES)
    return Suite("brec", graphs, _consecutive(len(graphs)), tuple(categories))


def _consecutive(count: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, i + 1) for i in range(0, count, 2))


_GENERATED: dict[str, Callable[[], Suite]] = {
    "atlas": _atlas,
    "graph8c": _graph8c,
    "csl": _csl,
    "cfi": _cfi,
}
_READ: dict[str, Callable[[str | Path | None], Suite]] = {
    "sr25": _sr25,
    "exp": _exp,
    "brec": _brec,
}
SUITE_NAMES = ("atlas", "graph8c", "sr25", "csl", "exp", "brec", "cfi")
