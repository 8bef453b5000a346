"""Preprocessing: what is fitted on the training graphs of a run and applied to every other graph.

- Nodes without features get their degree as a class: a column for each degree that at least two
  training graphs have, and a last one for all others.
- Columns of numbers that belong to graphs (`graph_features`: joined columns, descriptors) are
  scaled to mean 0 and deviation 1, and become features that all nodes of a graph share. Every
  network can read those, and none can tell apart by them what the columns do not.
- Features of a user's own nodes and edges are scaled too where a column has numbers beyond `LARGE`.

None of this is part of a grammar: what a network tells apart is said of graphs with the features
that come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..described import counted, some
from ..errors import DataError
from ..validation import read_as
from .graph_set import COLUMN, DESCRIPTOR, NO_FEATURES, GraphSet, Ints, one_hot

Values = NDArray[np.float64]

MOST_DEGREES = 256
"""Classes of degrees; the most common ones where there are more."""
LARGE = 10.0
"""Numbers of a node or edge column above which it is scaled."""
TAIL = 0.005
"""Share of the training graphs at either end beyond which a descriptor is clipped."""
FAR = 3.0
"""Deviations from the mean beyond which it is clipped too: many count what few molecules have."""
UNSEEN = "other degree"


@dataclass(frozen=True)
class ScaledColumn:
    """A column is clipped to `low` … `high`, where those are known, and scaled."""

    mean: float
    deviation: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: Values, *, clipped: bool = False, centred: bool = True) -> ScaledColumn:
        """The scaling of some values; `clipped` ones stay within their tails and `FAR`."""
        low, high = np.quantile(values, (TAIL, 1 - TAIL)) if clipped else (-np.inf, np.inf)
        inside = np.clip(values, low, high)
        mean = float(inside.mean()) if centred else 0.0
        deviation = float(np.sqrt(np.square(inside - mean).mean()))
        if not 0 < deviation < np.inf:
            return cls(mean, 1.0, mean, mean)
        if not clipped:
            return cls(mean, deviation)
        low, high = max(low, mean - FAR * deviation), min(high, mean + FAR * deviation)
        return cls(mean, deviation, float(low), float(high))

    @property
    def constant(self) -> bool:
        """Whether all values become one."""
        return self.low is not None and self.low == self.high

    def scale(self, values: Values) -> Values:
        """The scaled values; missing ones become the mean."""
        if self.low is not None:
            values = np.clip(values, self.low, self.high)
        return np.nan_to_num((values - self.mean) / self.deviation)


@dataclass(frozen=True)
class Preprocessing:
    """How graphs are made ready for a network; without arguments they are left as they are."""

    # the classes of degrees, but for the last one; none if nodes have features
    degrees: tuple[int, ...] = ()
    # scaling of graph features, by name
    graph: Mapping[str, ScaledColumn] = field(default_factory=dict)
    # scaling of node features, by their index
    node: Mapping[str, ScaledColumn] = field(default_factory=dict)
    # scaling of edge features, by their index; zero stays zero, as where there is no edge
    edge: Mapping[str, ScaledColumn] = field(default_factory=dict)

    @classmethod
    def fit(cls, graphs: GraphSet, how: str = "auto") -> Preprocessing:
        """Fit it on training graphs; `none` leaves node and edge features as they are."""
        graph: dict[str, ScaledColumn] = {}
        for name, values in zip(graphs.graph_names, graphs.graph_features.T, strict=True):
            known = values[np.isfinite(values)]
            if len(known):
                column = ScaledColumn.of(known, clipped=name.startswith(DESCRIPTOR))
                graph |= {} if column.constant else {name: column}
        if how == "none":
            return cls(graph=graph)
        # Features of a known data set, a constant among them, are as published.
        from_file = "format" in graphs.source
        if has_no_features(graphs) and (from_file or not graphs.node_features.shape[1]):
            return cls(_common_degrees(graphs), graph)
        if not from_file:
            return cls(graph=graph)
        node = _large_columns(graphs.node_features, centred=True)
        return cls((), graph, node, _large_columns(graphs.edge_features, centred=False))

    def apply(self, graphs: GraphSet) -> GraphSet:
        """The graphs with features as the network reads them, and without graph features.

        Raises:
            DataError: A graph feature is missing.
        """
        nodes, names = graphs.node_features, graphs.node_names
        if self.degrees and has_no_features(graphs):
            order = np.array(self.degrees)
            degrees = out_degrees(graphs)
            place = np.searchsorted(order, degrees).clip(max=len(order) - 1)
            nodes = one_hot(np.where(order[place] == degrees, place, len(order)), len(order) + 1)
            names = (*(f"degree {degree}" for degree in self.degrees), UNSEEN)
        nodes = _scaled(nodes, self.node)
        if self.graph:
            if lacking := [name for name in self.graph if name not in graphs.graph_names]:
                raise DataError(
                    f"{graphs.name} lacks {some(lacking)}, which the network was trained with: "
                    "give a table with the columns of the training table"
                )
            places = [graphs.graph_names.index(name) for name in self.graph]
            pairs = zip(self.graph.values(), graphs.graph_features.T[places], strict=True)
            shared = np.stack([column.scale(values) for column, values in pairs], axis=1)
            spread = np.repeat(shared.astype(np.float32), graphs.sizes, axis=0)
            names = (*(names or (f"feature {k}" for k in range(nodes.shape[1]))), *self.graph)
            nodes = np.concatenate([nodes, spread], axis=1)
        return replace(
            graphs,
            node_features=nodes,
            node_names=names,
            edge_features=_scaled(graphs.edge_features, self.edge),
            graph_features=graphs.graph_features[:, :0],
            graph_names=(),
            notes=tuple(n for n in graphs.notes if not (self.degrees and n == NO_FEATURES)),
        )

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `read_graphs` that give new graphs their graph features."""
        columns = [name.removeprefix(COLUMN) for name in self.graph if name.startswith(COLUMN)]
        described = any(name.startswith(DESCRIPTOR) for name in self.graph)
        return {
            **({"join": columns} if columns else {}),
            **({"descriptors": True} if described else {}),
        }

    def notes(self, graphs: GraphSet) -> list[str]:
        """What it does to the graphs it was fitted on, for the summary."""
        notes = []
        if self.degrees:
            count = len(self.degrees) + 1
            notes.append(
                f"Nodes have no features: they get their degree, as one of {count} classes."
            )
        for prefix, what in ((COLUMN, "joined column"), (DESCRIPTOR, "descriptor")):
            given = [name for name in graphs.graph_names if name.startswith(prefix)]
            if used := [name for name in given if name in self.graph]:
                verb = "is a feature" if len(used) == 1 else "are features"
                notes.append(f"{counted(len(used), what)} {verb} of all nodes of a graph, scaled.")
            if prefix == COLUMN and (left := [name for name in given if name not in used]):
                notes.append(f"Not used, as all training graphs have one value: {some(left)}.")
        for level, columns in (("node", self.node), ("edge", self.edge)):
            if columns:
                names = graphs.node_names if level == "node" else graphs.edge_names
                listed = some(names[int(k)] if names else f"feature {k}" for k in columns)
                notes.append(f"Scaled by the training graphs, being large: {level} {listed}.")
        return notes

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return {**asdict(self), "degrees": list(self.degrees)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], source: object) -> Preprocessing:
        """From a file; a DataError if it is damaged."""
        fitted: Preprocessing = read_as(cls, content, "preprocessing", source)
        return fitted.checked(source)

    def checked(self, source: object) -> Preprocessing:
        """Itself; a DataError if it cannot have been fitted."""
        columns = (*self.graph.values(), *self.node.values(), *self.edge.values())
        ordered = list(self.degrees) == sorted(set(self.degrees))
        if not ordered or any(column.deviation == 0 for column in columns):
            raise DataError(f"{source} is damaged: degrees must ascend, no deviation be 0")
        return self


def has_no_features(graphs: GraphSet) -> bool:
    """Whether nodes have no features, or the constant 1 that stands for none."""
    constant = graphs.node_names == ("one",) and bool((graphs.node_features == 1).all())
    return constant or not graphs.node_features.shape[1]


def out_degrees(graphs: GraphSet) -> Ints:
    """`[ΣN]` how many edges leave each node."""
    start = graphs.edges[0] + np.repeat(graphs.node_offsets[:-1], graphs.edge_counts)
    return np.bincount(start, minlength=int(graphs.sizes.sum()))


def _common_degrees(graphs: GraphSet) -> tuple[int, ...]:
    """Degrees that at least two graphs have; none if all nodes have one degree."""
    degrees = out_degrees(graphs)
    if not len(degrees) or degrees.min() == degrees.max():
        return ()
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
    present = np.unique(np.stack([degrees, owner]), axis=1)[0]
    values, counts = np.unique(present, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:MOST_DEGREES]
    return tuple(sorted(values[k].item() for k in common if counts[k] > 1))


def _large_columns(values: NDArray[np.float32], *, centred: bool) -> dict[str, ScaledColumn]:
    return {
        str(index): ScaledColumn.of(column.astype(np.float64), centred=centred)
        for index, column in enumerate(values.T)
        if len(column) and np.abs(column).max() > LARGE and np.ptp(column)
    }


def _scaled(
    values: NDArray[np.float32], columns: Mapping[str, ScaledColumn]
) -> NDArray[np.float32]:
    """Features with some columns scaled; those of other graphs than the fitted ones may lack."""
    if not columns or max(map(int, columns)) >= values.shape[1]:
        return values
    scaled = values.copy()
    for index, column in columns.items():
        scaled[:, int(index)] = column.scale(values[:, int(index)].astype(np.float64))
    return scaled
