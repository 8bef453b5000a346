"""What a run was trained on, as its data.json says, and new graphs in the form of those."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.graph_set import Floats, GraphSet, Level, Target
from ..data.preprocessing import Preprocessing
from ..data.readers.labels import class_name
from ..errors import DataError
from ..validation import read_as
from .checkpoint import sha256
from .config import RunConfig
from .setup import Parts, reads_positions
from .task import Scaling, Values


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
    """Class numbers of a file as those of the run, by the classes' names."""
    if trained.kind == "regression":
        return values
    number_of = {name: float(number) for number, name in enumerate(trained.classes)}
    coded = np.full(len(values), np.nan)
    for row in np.flatnonzero(np.isfinite(values)):
        value = values[row]
        name = column.classes[int(value)] if column.classes else class_name(value)
        if name not in number_of:
            raise DataError(
                f"target {trained.name} has the class {name!r}, unknown to the run; "
                f"it knows {', '.join(trained.classes)}"
            )
        coded[row] = number_of[name]
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
