"""Ranges of the training graphs, and notes on new graphs that lie outside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..data.graph_set import COLUMN, DESCRIPTOR, GraphSet
from ..data.readers.molecules import ELEMENTS, OTHER_ELEMENT
from ..described import counted
from ..errors import DataError

Range = tuple[float, float]
Numbers = NDArray[Any]

MOST_SENTENCES = 4
"""About one graph; further ones are counted."""
ENTRIES = 2**22
"""Of the distance matrices made at a time."""
ROUNDING = 1e-5
"""Relative: distances of one graph may differ by that between two machines."""
SEVERAL = ("node_features", "edge_features", "totals")
"""Fields with a range for each column; the others have one."""


@dataclass(frozen=True)
class TrainingRange:
    """Smallest and largest value of everything a network reads about the training graphs.

    Each field but the first is a tuple of ranges, empty if there was nothing to measure.
    """

    elements: tuple[str, ...]  # symbols of all atoms, sorted; empty if they are not known
    nodes: tuple[Range, ...]  # in a graph
    neighbours: tuple[Range, ...]  # the larger of in- and out-degree
    node_features: tuple[Range, ...]
    edge_features: tuple[Range, ...]
    weights: tuple[Range, ...]  # entries of A at edges
    distances: tuple[Range, ...]  # between two nodes of a graph, if the network reads distances
    totals: tuple[Range, ...] = ()  # heavy atoms and net charge, where hydrogens are nodes
    fragments: tuple[Range, ...] = ()  # parts of a graph without an edge between them

    @classmethod
    def of(cls, graphs: GraphSet, distances: bool) -> TrainingRange:
        """The ranges of training graphs; `distances`: whether the network reads distances."""
        ranges: dict[str, tuple[Range, ...]] = {"distances": (), "totals": ()}
        for name, values, _ in _measured(graphs, distances):
            table = values.reshape(-1, 1) if name == "distances" else values
            limits = (table.min(axis=0), table.max(axis=0)) if len(table) else ((), ())
            ranges[name] = tuple(
                (float(low), float(high)) for low, high in zip(*limits, strict=True)
            )
        if ranges["totals"] and ranges["totals"][0] == ranges["nodes"][0]:
            ranges["totals"] = ()  # hydrogens are no nodes: nothing that the nodes do not say
        symbols = graphs.source.get("elements", ())
        elements = symbols if len(symbols) == len(graphs) else ()
        return cls(tuple(sorted(frozenset().union(*elements))), **ranges)

    def checked(self, source: object) -> None:
        """Raise a DataError if these, read from a file, are no ranges."""
        for name, pairs in list(vars(self).items())[1:]:
            if (len(pairs) > 1 and name not in SEVERAL) or any(low > high for low, high in pairs):
                raise DataError(
                    f"{source} is damaged: training.{name} should be a list of ranges, each a "
                    "smallest and a largest value"
                )

    def unseen_elements(self, graphs: GraphSet) -> list[list[str]]:
        """For each graph the elements that no training graph has."""
        if (elements := self._elements_of(graphs)) is not None:
            return [sorted(symbols - set(self.elements)) for symbols in elements]
        unseen: list[list[str]] = [[] for _ in range(len(graphs))]
        if not {*ELEMENTS} <= {*graphs.node_names}:
            return unseen
        owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
        ranges = zip(graphs.node_names, self.node_features, strict=False)
        for column, (name, between) in enumerate(ranges):
            if name in ELEMENTS and between == (0.0, 0.0):
                for graph in np.unique(owner[graphs.node_features[:, column] != 0]):
                    unseen[graph].append(name)
        return unseen

    def _elements_of(self, graphs: GraphSet) -> Sequence[frozenset[str]] | None:
        """The elements of each graph, if its reader and that of the training graphs know them."""
        elements: Sequence[frozenset[str]] | None = graphs.source.get("elements")
        known = self.elements and elements is not None and len(elements) == len(graphs)
        return elements if known else None

    def notes(self, graphs: GraphSet) -> list[list[str]]:
        """For each graph a phrase for everything outside the ranges of the training graphs."""
        phrases: list[list[str]] = [[] for _ in range(len(graphs))]
        if not self.nodes:  # nothing is known of the training graphs
            return phrases
        for graph, unseen in enumerate(self.unseen_elements(graphs)):
            if unseen:
                verb = "was" if len(unseen) == 1 else "were"
                phrases[graph].append(f"{' and '.join(unseen)} {verb} never seen in training")
        named: tuple[str, ...] = ELEMENTS if {*ELEMENTS} <= {*graphs.node_names} else ()
        if self._elements_of(graphs) is not None:
            named = (*ELEMENTS, OTHER_ELEMENT)  # features whose phrase is that of the element
        for graph, not_read in enumerate(graphs.source.get("not_read", ())):
            phrases[graph] += not_read
        for name, values, owner in _measured(graphs, bool(self.distances)):
            ranges = getattr(self, name)
            if name == "distances":
                ((low, high),) = ranges
                ranges = ((low * (1 - ROUNDING), high * (1 + ROUNDING)),) * 2
            if len(ranges) != values.shape[1]:  # no training graph had an edge
                continue
            low, high = np.array(ranges).reshape(-1, 2).T
            rows, columns = np.nonzero((values < low) | (values > high))
            first = np.unique(np.stack([owner[rows], columns]), axis=1, return_index=True)[1]
            for row, column in zip(rows[first], columns[first], strict=True):
                feature = ""
                if name.endswith("_features"):
                    names = graphs.node_names if name == "node_features" else graphs.edge_names
                    feature = names[column] if names else f"feature {column}"
                if feature not in named:
                    phrase = self._phrase(name, feature, column, values[row, column])
                    phrases[owner[row]].append(phrase)
        return phrases

    def _phrase(self, name: str, feature: str, column: int, value: float) -> str:
        """What leaves its range, and the range."""
        between = getattr(self, name)[0 if name == "distances" else column]
        node, edge = ("atom", "bond") if self.elements else ("node", "edge")
        if name == "nodes" or (name == "totals" and column == 0):
            how, limit = ("more", between[1]) if value > between[1] else ("fewer", between[0])
            what, whole = (node, "graph") if name == "nodes" else ("heavy atom", "molecule")
            return f"{counted(int(value), what)}, {how} than any training {whole} ({limit:,.0f})"
        shown = f"{value:.4g}"
        if feature.startswith((COLUMN, DESCRIPTOR)):
            return f"{feature} {shown} deviations from the mean, in training {spread(between)}"
        phrase = {
            "neighbours": f"{'an' if node == 'atom' else 'a'} {node} with {shown} neighbours",
            "node_features": f"{feature} {shown} of {'an' if node == 'atom' else 'a'} {node}",
            "edge_features": f"{feature} {shown} of {'an' if edge == 'edge' else 'a'} {edge}",
            "weights": f"an edge of weight {shown}",
            "distances": f"{node}s {shown} Å apart",
            "totals": f"a net charge of {value:+.0f}",
            "fragments": f"{counted(int(value), 'fragment' if self.elements else 'part')}",
        }
        return f"{phrase[name]}, in training {spread(between)}"


def joined(phrases: Sequence[str]) -> str:
    rest = len(phrases) - MOST_SENTENCES
    return "; ".join([*phrases[:MOST_SENTENCES], *([f"and {rest} more"] if rest > 0 else [])])


def spread(between: Range) -> str:
    """`-1 to 2`, or `always 0`."""
    low, high = (f"{value:.4g}" for value in between)
    return f"always {low}" if low == high else f"{low} to {high}"


def _measured(graphs: GraphSet, distances: bool) -> Iterator[tuple[str, Numbers, Numbers]]:
    """For each field but `elements` its values `[rows, columns]`, and the graph of each row."""
    every = np.arange(len(graphs))
    of_node, of_edge = np.repeat(every, graphs.sizes), np.repeat(every, graphs.edge_counts)
    begin = np.repeat(graphs.node_offsets[:-1], graphs.edge_counts)
    degrees = [np.bincount(begin + side, minlength=len(of_node)) for side in graphs.edges]
    weights = np.ones(len(of_edge)) if graphs.weights is None else graphs.weights
    yield "nodes", graphs.sizes[:, None], every
    yield "fragments", _fragments(graphs, begin, of_node)[:, None], every
    yield "neighbours", np.maximum(*degrees)[:, None], of_node
    yield "node_features", graphs.node_features, of_node
    yield "edge_features", graphs.edge_features, of_edge
    yield "weights", weights[:, None], of_edge
    names = graphs.node_names
    if {"H", "formal charge"} <= {*names} and len(graphs):
        hydrogen, charge = (graphs.node_features[:, names.index(n)] for n in ("H", "formal charge"))
        per_atom = np.stack([hydrogen == 0, charge], axis=1).astype(np.float64)
        yield "totals", np.add.reduceat(per_atom, graphs.node_offsets[:-1], axis=0), every
    if distances and graphs.positions is not None:
        limits = _distances(graphs)
        several = np.isfinite(limits).all(axis=1)  # a single node has no distance
        yield "distances", limits[several], every[several]


def _fragments(graphs: GraphSet, begin: Numbers, of_node: Numbers) -> Numbers:
    """`[G]` connected components, by the smallest number of a node that each node reaches."""
    start, end = graphs.edges + begin
    smallest = np.arange(len(of_node))
    while True:
        reached = smallest.copy()
        np.minimum.at(reached, end, smallest[start])
        np.minimum.at(reached, start, smallest[end])
        reached = reached[reached]
        if (reached == smallest).all():
            break
        smallest = reached
    return np.bincount(of_node[smallest == np.arange(len(smallest))])


def _distances(graphs: GraphSet) -> Numbers:
    """`[G, 2]` smallest and largest distance between two nodes; infinite for one node."""

    assert graphs.positions is not None
    limits = np.tile([np.inf, -np.inf], (len(graphs), 1))
    for size in np.unique(graphs.sizes[graphs.sizes > 1]).tolist():
        members = np.flatnonzero(graphs.sizes == size)
        at_once = max(1, ENTRIES // size**2)
        for start in range(0, len(members), at_once):
            chosen = members[start : start + at_once]
            rows = graphs.node_offsets[chosen][:, None] + np.arange(size)
            points = torch.from_numpy(graphs.positions[rows])
            distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
            limits[chosen, 1] = distances.amax((1, 2)).numpy()
            distances.diagonal(dim1=1, dim2=2).fill_(torch.inf)
            limits[chosen, 0] = distances.amin((1, 2)).numpy()
    return limits
