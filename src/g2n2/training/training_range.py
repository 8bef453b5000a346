"""Ranges of the training graphs, and phrases for a new graph that leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.graph_set import GraphSet
from ..data.readers.molecules import ELEMENTS, OTHER_ELEMENT
from ..errors import DataError
from ..validation import check

Range = tuple[float, float]
Numbers = NDArray[Any]

MOST_SENTENCES = 4
"""About one graph; further ones are counted."""
ENTRIES = 2**22
"""Of the distance matrices made at a time."""
ROUNDING = 1e-5
"""Relative: distances of one graph may differ by that between two machines."""
RANGES = ("nodes", "neighbours", "node_features", "edge_features", "weights", "distances")
SHAPE = {"elements": [str], **{name: [[float]] for name in RANGES}}


@dataclass(frozen=True)
class TrainingRange:
    """Smallest and largest value of everything a network reads about the training graphs.

    Each field but the first is a tuple of ranges, empty if there was nothing to measure.

    Attributes:
        elements: Symbols of all atoms, sorted; empty if the graphs are not known as molecules.
        nodes: One range: nodes in a graph.
        neighbours: One range: the larger of in- and out-degree.
        node_features: One for each column.
        edge_features: One for each column.
        weights: One range: entries of A at edges.
        distances: One range: between two nodes of a graph, if the network reads distances.
    """

    elements: tuple[str, ...]
    nodes: tuple[Range, ...]
    neighbours: tuple[Range, ...]
    node_features: tuple[Range, ...]
    edge_features: tuple[Range, ...]
    weights: tuple[Range, ...]
    distances: tuple[Range, ...]

    @classmethod
    def of(cls, graphs: GraphSet, distances: bool) -> TrainingRange:
        """The ranges of training graphs; `distances`: whether the network reads distances."""
        elements = _elements(graphs) or ()
        limits = np.stack(_distances(graphs), axis=1) if distances else np.zeros((0, 2))
        limits = limits[np.isfinite(limits).all(axis=1)]  # a single node has no distance
        return cls(
            tuple(sorted(set().union(*elements))),
            _ranges(graphs.sizes),
            _ranges(_neighbours(graphs)),
            _ranges(graphs.node_features),
            _ranges(graphs.edge_features),
            _ranges(_weights(graphs)),
            ((float(limits[:, 0].min()), float(limits[:, 1].max())),) if len(limits) else (),
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], source: object) -> TrainingRange:
        """The ranges from a file; a DataError if they are no ranges."""
        check(content, SHAPE, "training", source)
        for name in RANGES:
            several = name.endswith("_features")
            if (len(content[name]) > 1 and not several) or any(
                len(pair) != 2 or pair[0] > pair[1] for pair in content[name]
            ):
                raise DataError(
                    f"{source} is damaged: training.{name} should be a list of ranges, each a "
                    "smallest and a largest value"
                )
        ranges = {name: tuple((low, high) for low, high in content[name]) for name in RANGES}
        return cls(tuple(content["elements"]), **ranges)

    def notes(self, graphs: GraphSet) -> list[list[str]]:
        """For each graph a phrase for everything outside the ranges of the training graphs."""
        notes = _Notes(graphs)
        node, edge = ("an atom", "a bond") if self.elements else ("a node", "an edge")
        nodes = f"{node.split()[1]}s"
        elements = _elements(graphs) if self.elements else None
        for graph, symbols in enumerate(elements or ()):
            if unseen := sorted(symbols - set(self.elements)):
                verb = "was" if len(unseen) == 1 else "were"
                notes.phrases[graph].append(f"{' and '.join(unseen)} {verb} never seen in training")
        notes.sizes(self.nodes, nodes)
        notes.columns(
            self.neighbours, _neighbours(graphs), notes.of_node, [f"{node} with {{}} neighbours"]
        )
        left_out = (*ELEMENTS, OTHER_ELEMENT) if elements is not None else ()
        notes.features(self.node_features, node, left_out)
        notes.features(self.edge_features, edge, of_edges=True)
        notes.columns(self.weights, _weights(graphs), notes.of_edge, ["an edge of weight {}"])
        if self.distances and graphs.positions is not None:
            low, high = self.distances[0]
            allowed = ((low * (1 - ROUNDING), high * (1 + ROUNDING)),)
            for values in _distances(graphs):
                kept = np.flatnonzero(np.isfinite(values))
                notes.columns(allowed, values[kept], kept, [f"{nodes} {{}} Å apart"])
        return notes.phrases


class _Notes:
    """Phrases about graphs, collected graph by graph."""

    def __init__(self, graphs: GraphSet) -> None:
        self.graphs = graphs
        self.phrases: list[list[str]] = [[] for _ in range(len(graphs))]
        self.of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
        self.of_edge = np.repeat(np.arange(len(graphs)), graphs.edge_counts)

    def sizes(self, ranges: tuple[Range, ...], nodes: str) -> None:
        for low, high in ranges:
            for graph in np.flatnonzero((self.graphs.sizes < low) | (self.graphs.sizes > high)):
                size = int(self.graphs.sizes[graph])
                how, limit = ("more", high) if size > high else ("fewer", low)
                one = nodes.removesuffix("s") if size == 1 else nodes
                self.phrases[graph].append(
                    f"{size:,} {one}, {how} than any training graph ({limit:,.0f})"
                )

    def columns(
        self, ranges: Sequence[Range], values: Numbers, owner: Numbers, phrases: Sequence[str]
    ) -> None:
        """A phrase for each column of `values`, once a graph, that leaves its range."""
        if not len(values) or not ranges:
            return
        table = values.reshape(len(values), -1)
        low, high = np.array(ranges).T
        rows, columns = np.nonzero((table < low) | (table > high))
        first = np.unique(np.stack([owner[rows], columns]), axis=1, return_index=True)[1]
        for row, column in zip(rows[first], columns[first], strict=True):
            shown = phrases[column].format(f"{table[row, column]:.4g}")
            self.phrases[owner[row]].append(f"{shown}, in training {spread(ranges[column])}")

    def features(
        self, ranges: Sequence[Range], of: str, left_out: Sequence[str] = (), of_edges: bool = False
    ) -> None:
        """`columns` for the features of nodes or edges; a new element gets its own phrase."""
        owner = self.of_edge if of_edges else self.of_node
        values = self.graphs.edge_features if of_edges else self.graphs.node_features
        names: Sequence[str] = self.graphs.edge_names if of_edges else self.graphs.node_names
        names = names or [f"feature {column}" for column in range(values.shape[1])]
        if len(ranges) != len(names):  # no training graph had an edge
            return
        kept = [column for column, name in enumerate(names) if name not in left_out]
        new = [c for c in kept if names[c] in ELEMENTS and tuple(ranges[c]) == (0.0, 0.0)]
        for column in new:
            for graph in np.unique(owner[values[:, column] != 0]):
                self.phrases[graph].append(f"{names[column]} was never seen in training")
        kept = [column for column in kept if column not in new]
        escaped = [names[column].replace("{", "{{").replace("}", "}}") for column in kept]
        phrases = [f"{name} {{}} of {of}" for name in escaped]
        self.columns([ranges[column] for column in kept], values[:, kept], owner, phrases)


def joined(phrases: Sequence[str]) -> str:
    rest = len(phrases) - MOST_SENTENCES
    return "; ".join([*phrases[:MOST_SENTENCES], *([f"and {rest} more"] if rest > 0 else [])])


def spread(between: Range) -> str:
    """`-1 to 2`, or `always 0`."""
    low, high = (f"{value:.4g}" for value in between)
    return f"always {low}" if low == high else f"{low} to {high}"


def _ranges(values: Numbers) -> tuple[Range, ...]:
    """The range of each column; none without rows."""
    if not len(values):
        return ()
    table = values.reshape(len(values), -1)
    lows, highs = table.min(axis=0).tolist(), table.max(axis=0).tolist()
    return tuple((float(low), float(high)) for low, high in zip(lows, highs, strict=True))


def _elements(graphs: GraphSet) -> Sequence[frozenset[str]] | None:
    """The elements of each graph, if its reader knows them."""
    elements: Sequence[frozenset[str]] | None = graphs.source.get("elements")
    return elements if elements is not None and len(elements) == len(graphs) else None


def _neighbours(graphs: GraphSet) -> Numbers:
    begin = np.repeat(graphs.node_offsets[:-1], graphs.edge_counts)
    nodes = int(graphs.sizes.sum())
    starts, ends = (np.bincount(begin + side, minlength=nodes) for side in graphs.edges)
    return np.maximum(starts, ends)


def _weights(graphs: GraphSet) -> Numbers:
    return np.ones(graphs.edges.shape[1]) if graphs.weights is None else graphs.weights


def _distances(graphs: GraphSet) -> tuple[Numbers, Numbers]:
    """Smallest and largest distance between two nodes of each graph; infinite for one node."""
    import torch

    assert graphs.positions is not None
    low, high = np.full(len(graphs), np.inf), np.full(len(graphs), -np.inf)
    for size in np.unique(graphs.sizes[graphs.sizes > 1]).tolist():
        members = np.flatnonzero(graphs.sizes == size)
        at_once = max(1, ENTRIES // size**2)
        for start in range(0, len(members), at_once):
            chosen = members[start : start + at_once]
            rows = graphs.node_offsets[chosen][:, None] + np.arange(size)
            points = torch.from_numpy(graphs.positions[rows])
            distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
            high[chosen] = distances.amax((1, 2)).numpy()
            distances.diagonal(dim1=1, dim2=2).fill_(torch.inf)
            low[chosen] = distances.amin((1, 2)).numpy()
    return low, high
