"""GraphSet: many graphs of any size as flat arrays, with features, targets, ids and splits.

Every reader ends here and everything behind it (batches, splits, summaries, training) starts here.
Numpy only, so a data file can be read, checked and summarised without torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..described import Described, some, span
from ..errors import DataError
from ..notebook_html import graph_svg

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Level = Literal["graph", "node", "edge"]
Kind = Literal["regression", "binary", "multiclass"]
PER_GRAPH = ("rows", "elements", "smiles")
"""Entries of a source with one value per graph: its record, its elements, its SMILES."""


@dataclass(frozen=True)
class Target:
    """One column of the targets.

    Attributes:
        name: How it is called on the command line and in result files.
        unit: Unit of the stored values; may be empty.
        kind: What it is; `multiclass` values are class numbers from 0.
        classes: The classes' own names in the file; empty for regression.
        symbol: How a table prints it.
    """

    name: str
    unit: str = ""
    kind: Kind = "regression"
    classes: tuple[str, ...] = ()
    symbol: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class GraphSet(Described):
    """Many graphs as flat arrays, one graph after the other.

    Attributes:
        name: What the set is called in results.
        sizes: `[G]` nodes of each graph, at least 1.
        edge_counts: `[G]` listed edges of each graph.
        edges: `[2, ΣE]` ends of each edge, counted from 0 within its graph. An undirected edge is
            listed in both directions; `A[i, j]` is the edge from `i` to `j`.
        node_features: `[ΣN, F]`, F may be 0.
        edge_features: `[ΣE, E]`, E may be 0.
        targets: `[G, T]`, `[ΣN, T]` or `[ΣE, T]` by `level`; NaN where a value is missing.
        columns: One `Target` for each of the T columns.
        level: What a target belongs to.
        weights: `[ΣE]` entries of A, or None where all are 1.
        positions: `[ΣN, 3]` coordinates in Å, or None.
        node_names: Names of the F node features.
        edge_names: Names of the E edge features.
        ids: One id per graph, in the input's own words; its number where the input has none.
        splits: Indices of graphs by name: `train`, `validation`, `test`, or `fold-1` … `fold-10`
            (a fold names its test graphs).
        notes: What a reader noticed and did, one sentence each, for the summary.
        source: Where it came from: path or generator, sha256, options.
    """

    name: str
    sizes: Ints
    edge_counts: Ints
    edges: Ints
    node_features: Floats
    edge_features: Floats
    targets: NDArray[np.float64]
    columns: tuple[Target, ...] = ()
    level: Level = "graph"
    weights: Floats | None = None
    positions: Floats | None = None
    node_names: tuple[str, ...] = ()
    edge_names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    splits: Mapping[str, Ints] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    source: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.sizes)

    def facts(self) -> dict[str, str]:
        """The set in a few words, for `repr` and notebooks."""
        facts = {
            "name": some([self.name]),
            "graphs": f"{len(self):,}",
            "nodes": span(*((self.sizes.min(), self.sizes.max()) if len(self) else (0, 0))),
            "edges": f"{self.edges.shape[1]:,}",
            "node_features": str(self.node_features.shape[1]),
            "edge_features": str(self.edge_features.shape[1]),
            "targets": some(column.name for column in self.columns),
        }
        if self.level != "graph":
            facts["level"] = self.level
        if self.splits:
            facts["splits"] = some(f"{part}:{len(rows):,}" for part, rows in self.splits.items())
        return facts

    def drawing(self) -> str:
        """The first graphs, drawn."""
        return "".join(graph_svg(self.adjacency(index)) for index in range(min(3, len(self))))

    @cached_property
    def node_offsets(self) -> Ints:
        """`[G + 1]` where each graph's nodes begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def edge_offsets(self) -> Ints:
        """`[G + 1]` where each graph's edges begin."""
        return np.concatenate([[0], np.cumsum(self.edge_counts)]).astype(np.int64)

    @cached_property
    def directed(self) -> bool:
        """Whether some edge has no equal edge the other way."""
        n = int(self.sizes.max(initial=1))
        graph = np.repeat(np.arange(len(self), dtype=np.int64), self.edge_counts)
        weight = np.ones(self.edges.shape[1]) if self.weights is None else self.weights
        one_way = (graph * n + self.edges[0]) * n + self.edges[1]
        other_way = (graph * n + self.edges[1]) * n + self.edges[0]
        first, second = np.lexsort((weight, one_way)), np.lexsort((weight, other_way))
        return not (
            np.array_equal(one_way[first], other_way[second])
            and np.array_equal(weight[first], weight[second])
        )

    def select(self, indices: NDArray[Any] | list[int]) -> GraphSet:
        """Some of the graphs, in the given order, without splits.

        Args:
            indices: Numbers of graphs, or one true or false for each.

        Raises:
            DataError: There is no graph of some number.
        """
        given = np.asarray(indices)
        if given.dtype == bool and len(given) != len(self):
            raise DataError(f"{len(given)} flags for the {len(self)} graphs of {self.name}")
        wanted = np.flatnonzero(given) if given.dtype == bool else given.astype(np.int64)
        if len(bad := wanted[(wanted < 0) | (wanted >= len(self))]):
            raise DataError(
                f"{self.name} has no graph {bad[0]}: its {len(self)} graphs count from 0"
            )
        nodes = ragged_rows(self.node_offsets, wanted)
        edges = ragged_rows(self.edge_offsets, wanted)
        rows = {"graph": wanted, "node": nodes, "edge": edges}[self.level]
        return replace(
            self,
            sizes=self.sizes[wanted],
            edge_counts=self.edge_counts[wanted],
            edges=self.edges[:, edges],
            node_features=self.node_features[nodes],
            edge_features=self.edge_features[edges],
            targets=self.targets[rows],
            weights=None if self.weights is None else self.weights[edges],
            positions=None if self.positions is None else self.positions[nodes],
            ids=tuple(self.ids[i] for i in wanted) if self.ids else (),
            splits=MappingProxyType({}),
            source=self._source_of(wanted),
        )

    def blocks(self, size: int, start: int = 0) -> Iterator[GraphSet]:
        """The graphs from index `start` on, `size` at a time, with the `directed` of the set."""
        for first in range(start, len(self), size):
            numbers = np.arange(first, min(first + size, len(self)))
            block = self.select(numbers)
            if not self.ids:
                block = replace(block, ids=tuple(map(str, numbers)))
            vars(block)["directed"] = self.directed
            yield block

    def _source_of(self, wanted: Ints) -> Mapping[str, Any]:
        """The source with its `PER_GRAPH` entries for the wanted graphs only."""
        of_each = {
            name: tuple(self.source[name][i] for i in wanted)
            for name in PER_GRAPH
            if len(self.source.get(name, ())) == len(self)
        }
        return MappingProxyType({**self.source, **of_each})

    def adjacency(self, index: int) -> NDArray[np.float64]:
        """`[n, n]` matrix A of one graph; parallel edges add up."""
        n = int(self.sizes[index])
        span = slice(*self.edge_offsets[index : index + 2])
        matrix = np.zeros((n, n))
        weights = 1.0 if self.weights is None else self.weights[span]
        np.add.at(matrix, (self.edges[0, span], self.edges[1, span]), weights)
        return matrix

    def check(self) -> GraphSet:
        """Refuse arrays that do not fit together or hold what no network can use; else itself.

        Raises:
            DataError: Naming the first graph at fault and what to do.
        """
        graphs, nodes, edges = len(self), int(self.sizes.sum()), int(self.edge_counts.sum())
        if not graphs:
            raise DataError(f"{self.name} holds no graph")
        if len(empty := np.flatnonzero(self.sizes < 1)):
            raise DataError(f"{self._label(empty[0])} has no nodes; drop it")
        rows = {"graph": graphs, "node": nodes, "edge": edges}[self.level]
        for what, got, expected in (
            ("edge_counts", len(self.edge_counts), graphs),
            ("edges", self.edges.shape[1], edges),
            ("node_features", len(self.node_features), nodes),
            ("edge_features", len(self.edge_features), edges),
            ("targets", len(self.targets), rows),
            ("columns", len(self.columns), self.targets.shape[1]),
            ("weights", edges if self.weights is None else len(self.weights), edges),
            ("positions", nodes if self.positions is None else len(self.positions), nodes),
            ("ids", len(self.ids) or graphs, graphs),
        ):
            if got != expected:
                raise DataError(f"{what} of {self.name} has {got} rows, expected {expected}")
        owner = np.repeat(np.arange(graphs), self.edge_counts)
        outside = (self.edges < 0) | (self.edges >= self.sizes[owner])
        if outside.any():
            place = int(np.flatnonzero(outside.any(axis=0))[0])
            raise DataError(
                f"{self._label(owner[place])} has {self.sizes[owner[place]]} nodes, but an edge "
                f"joins {self.edges[0, place]} and {self.edges[1, place]} (counted from 0)"
            )
        self._refuse_not_finite()
        return self

    def _refuse_not_finite(self) -> None:
        of_node = np.repeat(np.arange(len(self)), self.sizes)
        of_edge = np.repeat(np.arange(len(self)), self.edge_counts)
        for what, values, owner in (
            ("a node feature", self.node_features, of_node),
            ("an edge feature", self.edge_features, of_edge),
            ("a weight", self.weights, of_edge),
            ("a position", self.positions, of_node),
        ):
            if values is None:
                continue
            bad = ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                raise DataError(
                    f"{what} of {self._label(owner[at])} is NaN or infinite; "
                    "fill it in or drop that graph"
                )

    def _label(self, index: int) -> str:
        name = f" ({self.ids[index]})" if self.ids else ""
        return f"graph {index}{name} of {self.name}"


def ragged_rows(offsets: Ints, wanted: Ints) -> Ints:
    """The flat positions of the wanted graphs, one graph after the other."""
    counts = offsets[wanted + 1] - offsets[wanted]
    starts = np.repeat(offsets[wanted] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return starts + np.arange(int(counts.sum()), dtype=np.int64)
