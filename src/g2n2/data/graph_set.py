"""GraphSet: many graphs of any size as flat numpy arrays, with features, targets, ids and splits.

Readers collect one `GraphRecord` a graph and `assemble` them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..described import Described, counted, some, span
from ..errors import DataError
from ..graphs import Adjacency
from ..notebook_html import graph_svg

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Level = Literal["graph", "node", "edge"]
Kind = Literal["regression", "binary", "multiclass"]
_TARGET_PLACES = {
    "networkx": "a target is 'y' of graph.graph, or of all nodes or edges",
    "pyg": "a target is data.y",
    "matrices": "matrices have no targets: give networkx graphs or PyG Data",
}
PER_GRAPH = ("rows", "elements", "smiles", "not_read", "other_atoms", "names_of_nodes")
"""Entries of a source with one value per graph: its record, its elements, its SMILES, phrases on
what the features leave out of it, the symbols of atoms whose element has no feature, and the names
of its nodes, where they are not their numbers."""
COLUMN, DESCRIPTOR = "column ", "descriptor "
"""Prefixes of the names of graph features, which tell them from node features."""
NO_FEATURES = "Nodes have no features: each gets a constant 1."


def source_of_names(names: Sequence[Sequence[Hashable]]) -> dict[str, Any]:
    """The entry of a source with the names of each graph's nodes; none if they are numbers."""
    if all(str(name) == str(k) for of_graph in names for k, name in enumerate(of_graph)):
        return {}
    return {"names_of_nodes": tuple(tuple(map(_name, of_graph)) for of_graph in names)}


def _name(node: Hashable) -> str | int:
    return node if isinstance(node, int) else str(node)


@dataclass(frozen=True)
class Target:
    """One column of the targets."""

    name: str  # on the command line and in result files
    unit: str = ""  # of the stored values
    kind: Kind = "regression"  # `multiclass` values are class numbers from 0
    classes: tuple[str, ...] = ()  # their names in the file; empty for regression
    symbol: str = ""  # how a table prints it


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
        graph_features: `[G, K]` numbers that belong to a graph, NaN where one is missing.
        graph_names: Names of the K graph features: `column mw`, `descriptor MolWt`.
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
    graph_features: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    graph_names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    splits: Mapping[str, Ints] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("splits", "source"):
            vars(self)[name] = MappingProxyType(dict(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def empty(
        cls,
        name: str,
        columns: tuple[Target, ...] = (),
        node_features: int = 0,
        edge_features: int = 0,
        **fields: Any,
    ) -> GraphSet:
        """A set without graphs, with so many features; the other arguments are fields of it."""
        none, edges = np.zeros(0, np.int64), np.zeros((2, 0), np.int64)
        nodes, pairs = (np.zeros((0, k), np.float32) for k in (node_features, edge_features))
        targets = np.zeros((0, len(columns)))
        return cls(name, none, none, edges, nodes, pairs, targets, columns, **fields)

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
        if self.graph_names:
            facts["graph_features"] = str(len(self.graph_names))
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

    @property
    def row_offsets(self) -> Ints:
        """`[G + 1]` where each graph's rows of the targets begin."""
        if self.level == "graph":
            return np.arange(len(self) + 1)
        return self.node_offsets if self.level == "node" else self.edge_offsets

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
        """Some of the graphs, by number or by one flag for each, without splits."""
        given = np.asarray(indices)
        if given.dtype == bool and len(given) != len(self):
            raise DataError(f"{len(given)} flags for the {len(self)} graphs of {self.name}")
        wanted = np.flatnonzero(given) if given.dtype == bool else given.astype(np.int64)
        if len(bad := wanted[(wanted < 0) | (wanted >= len(self))]):
            raise DataError(f"{self.name} has no graph {bad[0]}: it has {len(self)}, from 0")
        nodes = ragged_rows(self.node_offsets, wanted)
        edges = ragged_rows(self.edge_offsets, wanted)
        rows = {"graph": wanted, "node": nodes, "edge": edges}[self.level]
        per_graph = {
            name: tuple(self.source[name][i] for i in wanted)
            for name in PER_GRAPH
            if len(self.source.get(name, ())) == len(self)
        }
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
            graph_features=self.graph_features[wanted if self.graph_names else []],
            ids=tuple(self.ids[i] for i in wanted) if self.ids else (),
            splits={},
            source={**self.source, **per_graph},
        )

    def node_name(self, graph: int, node: int) -> str | int:
        """What the user calls a node of a graph; its number from 0 where nodes have no names."""
        named = self.source.get("names_of_nodes", ())
        name: str | int = named[graph][node] if len(named) == len(self) else node
        return name

    @property
    def target_place(self) -> str:
        """Where graphs in memory have their targets; empty for those of a file."""
        return _TARGET_PLACES.get(str(self.source.get("format")), "")

    def with_targets(self, wanted: Sequence[str] | None) -> GraphSet:
        """The set with some target columns, by name or symbol in any case; with all where None."""
        if wanted is None:
            return self
        numbers = {
            spelling.lower(): number
            for number, column in enumerate(self.columns)
            for spelling in (column.name, column.symbol)
            if spelling
        }
        for name in wanted:
            if name.lower() not in numbers:
                names = ", ".join(column.name for column in self.columns)
                listed = f"it has: {names}" if names else self.target_place or "it has: none"
                raise DataError(f"{self.name} has no target {name!r}; {listed}")
        chosen = [numbers[name.lower()] for name in wanted]
        columns = tuple(self.columns[index] for index in chosen)
        return replace(self, targets=self.targets[:, chosen], columns=columns)

    def blocks(self, size: int, start: int = 0) -> Iterator[GraphSet]:
        """The graphs from index `start` on, `size` at a time, with the `directed` of the set."""
        for first in range(start, len(self), size):
            numbers = np.arange(first, min(first + size, len(self)))
            block = self.select(numbers)
            if not self.ids:
                block = replace(block, ids=tuple(map(str, numbers)))
            vars(block)["directed"] = self.directed
            yield block

    def adjacency(self, index: int) -> NDArray[np.float64]:
        """`[n, n]` matrix A of one graph; parallel edges add up."""
        n = int(self.sizes[index])
        span = slice(*self.edge_offsets[index : index + 2])
        matrix = np.zeros((n, n))
        weights = 1.0 if self.weights is None else self.weights[span]
        np.add.at(matrix, (self.edges[0, span], self.edges[1, span]), weights)
        return matrix

    def check(self) -> GraphSet:
        """Itself, unless arrays do not fit together or hold NaN or infinite numbers."""
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
            ("graph_features", len(self.graph_features) if self.graph_names else graphs, graphs),
            ("graph_names", len(self.graph_names), self.graph_features.shape[1]),
        ):
            if got != expected:
                raise DataError(f"{what} of {self.name} has {got} rows, expected {expected}")
        if self.positions is not None and self.positions.shape[1:] != (3,):
            shape = list(self.positions.shape)
            raise DataError(f"positions of {self.name} have shape {shape}, expected [nodes, 3]")
        owner = np.repeat(np.arange(graphs), self.edge_counts)
        outside = (self.edges < 0) | (self.edges >= self.sizes[owner])
        if outside.any():
            edge = int(np.flatnonzero(outside.any(axis=0))[0])
            raise DataError(
                f"{self._label(owner[edge])} has {self.sizes[owner[edge]]} nodes, but an edge "
                f"joins {self.edges[0, edge]} and {self.edges[1, edge]} (counted from 0)"
            )
        for what, values, counts in (
            ("a node feature", self.node_features, self.sizes),
            ("an edge feature", self.edge_features, self.edge_counts),
            ("a weight", self.weights, self.edge_counts),
            ("a position", self.positions, self.sizes),
        ):
            if values is not None and not np.isfinite(values).all():
                row = np.argwhere(~np.isfinite(values))[0, 0]
                graph = int(np.repeat(np.arange(graphs), counts)[row])
                raise DataError(f"{what} of {self._label(graph)} is NaN or infinite; drop it")
        return self

    def _label(self, index: int) -> str:
        name = f" ({self.ids[index]})" if self.ids else ""
        return f"graph {index}{name} of {self.name}"


def ragged_rows(offsets: Ints, wanted: Ints) -> Ints:
    """The flat positions of the wanted graphs, one graph after the other."""
    counts = offsets[wanted + 1] - offsets[wanted]
    starts = np.repeat(offsets[wanted] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return starts + np.arange(int(counts.sum()), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class GraphRecord:
    """One graph; the fields are those of `GraphSet`, `weights` None where all are 1."""

    size: int
    edges: Ints
    node_features: Floats | None = None
    edge_features: Floats | None = None
    weights: Floats | None = None
    positions: Floats | None = None

    @classmethod
    def of_matrix(cls, matrix: NDArray[Any]) -> GraphRecord:
        """The graph of an adjacency matrix `[n, n]`, its edges row by row."""
        edges = np.stack(np.nonzero(matrix)).astype(np.int64)
        weights = matrix[edges[0], edges[1]].astype(np.float32)
        return cls(len(matrix), edges, weights=None if (weights == 1).all() else weights)


def graph_set(
    sizes: Ints,
    edge_counts: Ints,
    edges: Ints,
    node_features: Floats | None = None,
    edge_features: Floats | None = None,
    *,
    ids: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    **fields: Any,
) -> GraphSet:
    """A checked GraphSet; nodes without features get a constant 1, graphs without ids numbers."""
    if node_features is None or not node_features.shape[1]:
        node_features = np.ones((int(sizes.sum()), 1), np.float32)
        fields["node_names"] = ("one",)
        notes = (*notes, NO_FEATURES)
    if edge_features is None:
        edge_features = np.zeros((edges.shape[1], 0), np.float32)
    return GraphSet(
        sizes=sizes,
        edge_counts=edge_counts,
        edges=edges,
        node_features=node_features,
        edge_features=edge_features,
        ids=tuple(map(str, range(len(sizes)))) if ids is None else tuple(ids),
        notes=tuple(notes),
        **{"targets": np.zeros((len(sizes), 0)), **fields},
    ).check()


def assemble(
    records: Sequence[GraphRecord],
    *,
    ids: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    **fields: Any,
) -> GraphSet:
    """Join records, at least one, into a checked GraphSet; the other arguments as `graph_set`."""
    if not records:
        raise DataError("the list holds no graph; expected PyG Data, networkx graphs or text")
    sizes = np.array([record.size for record in records], dtype=np.int64)
    edge_counts = np.array([record.edges.shape[1] for record in records], dtype=np.int64)
    names = tuple(map(str, range(len(records)))) if ids is None else ids
    positions = [record.positions for record in records if record.positions is not None]
    if 0 < len(positions) < len(records):
        lacking = len(records) - len(positions)
        notes = (*notes, f"No positions are kept: {counted(lacking, 'graph')} without any.")
    if any(record.weights is not None for record in records):
        ones = (np.ones(count, np.float32) for count in edge_counts)
        weights = zip(records, ones, strict=True)
        fields["weights"] = np.concatenate(
            [one if record.weights is None else record.weights for record, one in weights]
        )
    return graph_set(
        sizes,
        edge_counts,
        np.concatenate([record.edges for record in records], axis=1),
        _stacked("node", [r.node_features for r in records], sizes, names, fields),
        _stacked("edge", [r.edge_features for r in records], edge_counts, names, fields),
        positions=np.concatenate(positions) if len(positions) == len(records) else None,
        ids=names,
        notes=notes,
        **fields,
    )


def _stacked(
    what: str, blocks: Sequence[Floats | None], counts: Ints, ids: Sequence[str], fields: Any
) -> Floats:
    """One block of features `[rows, width]`; graphs without rows (no edges) fit any width."""
    stacked: list[Floats] = []
    first = ""
    for values, rows, name in zip(blocks, counts.tolist(), ids, strict=True):
        block = np.zeros((rows, 0), np.float32) if values is None else values
        if rows and stacked and block.shape[1] != stacked[0].shape[1]:
            raise DataError(
                f"graph {name!r} has {block.shape[1]} {what} features and graph {first!r} has "
                f"{stacked[0].shape[1]}; expected the same number everywhere: fill in what is "
                "missing"
            )
        if rows:
            first = first if stacked else name
            stacked.append(block)
    width = len(fields.get(f"{what}_names", ()))
    return np.concatenate(stacked) if stacked else np.zeros((0, width), np.float32)


def plain_graphs(
    name: str, graphs: Sequence[Adjacency], node_features: Floats | None = None, **fields: Any
) -> GraphSet:
    """A checked GraphSet of adjacency matrices, with node features `[ΣN, F]` or a constant 1."""
    sizes = np.array([len(matrix) for matrix in graphs], dtype=np.int64)
    edges = [np.argwhere(matrix).T for matrix in graphs]
    counts = np.array([ends.shape[1] for ends in edges], dtype=np.int64)
    if node_features is None:
        node_features = np.ones((int(sizes.sum()), 1), np.float32)
        fields.setdefault("node_names", ("one",))
    fields = {"ids": (), **fields}
    return graph_set(
        sizes, counts, np.concatenate(edges, axis=1), node_features, name=name, **fields
    )


def split_matrices(sizes: Ints, edge_counts: Ints, edges: Ints) -> Iterator[NDArray[np.float64]]:
    """The 0/1 matrix of each graph, from the edges of all of them one after the other."""
    ends = np.cumsum(edge_counts.astype(np.int64))[:-1]
    for n, (u, v) in zip(sizes.tolist(), np.split(edges, ends, axis=1), strict=True):
        matrix = np.zeros((n, n))
        matrix[u, v] = 1
        yield matrix


def as_float32(values: NDArray[Any]) -> Floats:
    """Features in float32; what is beyond it becomes infinite, which `GraphSet.check` names."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def one_hot(values: NDArray[Any], width: int) -> Floats:
    """`[N]` numbers from 0 -> `[N, width]` with a single 1 in each row."""
    columns: Floats = np.eye(width, dtype=np.float32)[values]
    return columns
