"""What a run was trained on; new graphs in the form of those, and what is unlike about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ..data.graph_set import COLUMN, DESCRIPTOR, Floats, GraphSet, Level, Target
from ..data.preprocessing import Preprocessing
from ..data.readers.labels import class_name
from ..data.readers.molecules import ELEMENTS, OTHER_ELEMENT
from ..data.readers.tables import is_number, number_of
from ..data.splits import smiles_of
from ..data.summary import graph_keys
from ..described import counted
from ..errors import DataError
from ..validation import read_as
from .checkpoint import sha256
from .config import RunConfig
from .setup import Parts, reads_positions
from .task import Scaling, Values

Range = tuple[float, float]
Numbers = NDArray[Any]

MOST_SENTENCES = 4
"""About one graph; further ones are counted."""
ENTRIES = 2**22
"""Of the distance matrices made at a time."""
ROUNDING = 1e-5
"""Relative: distances of one graph may differ by that between two machines."""
FAR = 0.1
"""Relative: a graph whose size, or a prediction that, leaves its training range by more is far."""
SEVERAL = ("node_features", "edge_features", "totals")
"""Fields with a range for each column; the others have one."""


@dataclass(frozen=True, kw_only=True)
class TrainedOn:
    """The graphs of a run: where they came from, their features and targets, what was fitted."""

    name: str = ""
    graphs: int  # how many there are in all parts
    sha256: str  # of their arrays; `ids_sha256` of their ids. None in files of earlier versions
    ids_sha256: str | None = None
    level: Level
    node_names: tuple[str, ...]
    edge_names: tuple[str, ...]
    node_features: int  # columns; they may be more than there are names, and so for edges
    edge_features: int
    positions: bool  # whether the network reads distances
    columns: tuple[Target, ...]
    scaling: Scaling
    # of the features; nothing in files of earlier versions
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    # as of the set, what is text or a whole number
    source: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    trained_before: str = ""  # of `Parts`

    @classmethod
    def of(cls, config: RunConfig, parts: Parts) -> TrainedOn:
        """What a run of these settings is trained on."""
        graphs = parts.graphs
        return cls(
            name=graphs.name,
            graphs=len(graphs),
            sha256=checksum(graphs),
            ids_sha256=ids_checksum(graphs),
            level=graphs.level,
            node_names=graphs.node_names,
            edge_names=graphs.edge_names,
            node_features=graphs.node_features.shape[1],
            edge_features=graphs.edge_features.shape[1],
            positions=reads_positions(config, graphs),
            columns=graphs.columns,
            scaling=parts.scaling,
            preprocessing=parts.preprocessing,
            source={k: v for k, v in graphs.source.items() if isinstance(v, str | int)},
            notes=(*graphs.notes, *parts.notes),
            trained_before=parts.trained_before,
        )

    @classmethod
    def from_dict(cls, content: Any, path: object) -> TrainedOn:
        """From a file's content; a DataError if it is damaged."""
        read: TrainedOn = read_as(cls, content, "data", path)
        count, scaling = len(read.columns), read.scaling
        if not count:
            raise DataError(f"{path} is damaged: there are no columns")
        if not len(scaling.mean) == len(scaling.deviation) == count or 0 in scaling.deviation:
            raise DataError(
                f"{path} is damaged: scaling needs a mean and a deviation other than 0 for each of "
                f"{count} columns"
            )
        read.preprocessing.checked(path)
        return read

    def no_graphs(self) -> GraphSet:
        """An empty set with the features and targets of the graphs trained on."""
        positions = np.zeros((0, 3), np.float32) if self.positions else None
        features = self.node_features, self.edge_features
        return GraphSet.empty("", self.columns, *features, level=self.level, positions=positions)

    def refuse_other(self, graphs: GraphSet, run: object) -> None:
        """Raise a DataError if these are not the graphs the run was started on."""
        other = ""
        if checksum(graphs) != self.sha256:
            other = f"data of {graphs.name} is"
        elif self.ids_sha256 not in (None, ids_checksum(graphs)):
            other = f"ids of {graphs.name} are"
        if other:
            raise DataError(
                f"the {other} not what {run} was started on; restore it, or start a new run"
            )

    def without_labels(self, graphs: GraphSet) -> GraphSet:
        """A set without node and edge columns that are targets of the run, and so no features."""
        labels = {column.name for column in self.columns}
        changes: dict[str, Any] = {}
        for what in ("node", "edge"):
            names, values = getattr(graphs, f"{what}_names"), getattr(graphs, f"{what}_features")
            kept = [index for index, name in enumerate(names) if name not in labels]
            if len(kept) < len(names):
                changes[f"{what}_names"] = tuple(names[index] for index in kept)
                changes[f"{what}_features"] = values[:, kept]
        return replace(graphs, **changes) if changes else graphs

    def matched(self, graphs: GraphSet) -> GraphSet:
        """A set with the features and target columns of the graphs trained on.

        Targets get the run's class numbers, missing ones are NaN.

        Raises:
            DataError: Features are missing or unknown, positions are missing, or a class is
                unknown.
        """
        if self.positions and graphs.positions is None:
            raise DataError(
                f"{graphs.name} has no positions, and the run was trained on distances; "
                "give SDF or XYZ files"
            )
        nodes, edges = (_matched_features(graphs, what, self) for what in ("node", "edge"))
        rows = replace(graphs, level=self.level).row_offsets[-1]
        targets = np.full((rows, len(self.columns)), np.nan)
        if graphs.level == self.level:
            by_name = {column.name.lower(): index for index, column in enumerate(graphs.columns)}
            for index, column in enumerate(self.columns):
                if (source := by_name.get(column.name.lower())) is not None:
                    values = graphs.targets[:, source]
                    targets[:, index] = _recoded(values, graphs.columns[source], column)
        return replace(
            graphs,
            node_features=nodes,
            edge_features=edges,
            node_names=self.node_names,
            edge_names=self.edge_names,
            positions=graphs.positions if self.positions else None,
            targets=targets,
            columns=self.columns,
            level=self.level,
        )


def _matched_features(graphs: GraphSet, what: str, trained: TrainedOn) -> Floats:
    """Columns in the order of training."""
    wanted = getattr(trained, f"{what}_names")
    width = getattr(trained, f"{what}_features")
    values: Floats = graphs.node_features if what == "node" else graphs.edge_features
    names = graphs.node_names if what == "node" else graphs.edge_names
    if len(wanted) < width or len(names) < values.shape[1]:  # some have no name
        if values.shape[1] != width:
            listed = f": {', '.join(wanted)}" if wanted else ""
            raise DataError(
                f"{graphs.name} has {values.shape[1]} {what} features, the run was trained on "
                f"{width}{listed}; give the features the run was trained on"
            )
        return values
    missing = [name for name in wanted if name not in names]
    unknown = [name for name in names if name not in wanted]
    if missing or unknown:
        faults = [
            f"{verb} the {what} feature{'s' * (len(odd) > 1)} {', '.join(odd)}"
            for verb, odd in (("lacks", missing), ("has unknown to the run", unknown))
            if odd
        ]
        raise DataError(
            f"{graphs.name} {' and '.join(faults)}; give the features the run was trained on, "
            "listed in its data.json"
        )
    return values[:, [names.index(name) for name in wanted]]


def _recoded(values: Values, column: Target, trained: Target) -> Values:
    """Targets of a file as those of the run: numbers, or the run's number of each class.

    Classes are known by name, in any case if the run has no two that differ in case only.
    """
    if trained.kind == "regression" and not column.classes:
        return values
    numbers = {name: float(number) for number, name in enumerate(trained.classes)}
    by_lower = {name.lower(): number for name, number in numbers.items()}
    coded = np.full(len(values), np.nan)
    for row in np.flatnonzero(np.isfinite(values)):
        value = values[row]
        name = column.classes[int(value)] if column.classes else class_name(value)
        if trained.kind == "regression":
            if not is_number(name):
                raise DataError(
                    f"target {trained.name} has the value {name!r}, and the run predicts numbers"
                )
            coded[row] = number_of(name)
            continue
        number = numbers.get(name)
        if number is None and len(by_lower) == len(numbers):
            number = by_lower.get(name.lower())
        if number is None:
            raise DataError(
                f"target {trained.name} has the class {name!r}, unknown to the run; "
                f"it knows {', '.join(trained.classes)}"
            )
        coded[row] = number
    return coded


def ids_checksum(graphs: GraphSet) -> str:
    """sha256 over the graphs' ids in their order."""
    return sha256(json.dumps(graphs.ids).encode())


def checksum(graphs: GraphSet) -> str:
    """sha256 over every array a network sees."""
    digest = hashlib.sha256()
    names = ("sizes", "edge_counts", "edges", "node_features", "edge_features", "weights")
    for name in (*names, "positions", "targets"):
        values = getattr(graphs, name)
        digest.update(name.encode())
        if values is not None:
            digest.update(str(values.shape).encode())
            digest.update(np.ascontiguousarray(values).tobytes())
    if graphs.graph_names:  # of graphs that are not preprocessed yet
        digest.update(np.ascontiguousarray(graphs.graph_features).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class GraphKeys:
    """A key of each graph of a run, by which it is known again without the run's data."""

    by: Literal["SMILES", "1-WL"]  # what the key is a hash of
    keys: tuple[str, ...]

    @classmethod
    def of(cls, graphs: GraphSet) -> GraphKeys:
        """Of graphs as a network reads them."""
        found = graph_keys(graphs)
        if smiles_of(graphs) is None:
            return cls("1-WL", tuple(f"{key:016x}" for key in found))
        return cls("SMILES", tuple(sha256(text.encode())[:16] for text in found))


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

    def far(self, graphs: GraphSet) -> NDArray[np.bool_]:
        """For each graph whether it is far larger or smaller than any training graph.

        By its nodes, and where hydrogens are nodes by its heavy atoms.
        """
        is_far = np.zeros(len(graphs), dtype=bool)
        for name, values, _ in _measured(graphs, distances=False):
            if name in ("nodes", "totals") and (between := getattr(self, name)):
                low, high = between[0]
                is_far |= (values[:, 0] < low * (1 - FAR)) | (values[:, 0] > high * (1 + FAR))
        return is_far

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
