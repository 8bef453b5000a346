"""New graphs as a trained network expects them: features by name, targets as the run knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.graph_set import Floats, GraphSet, Target
from ..errors import DataError
from .task import Task, Values


def match_training_columns(graphs: GraphSet, trained: dict[str, Any], task: Task) -> GraphSet:
    """A set with the features and target columns of the one a network was trained on.

    Targets the set has are brought to the run's classes; those it lacks are NaN.

    Args:
        graphs: As read.
        trained: What `data.json` of the run says.
        task: The run's.

    Raises:
        DataError: Features are missing or unknown, positions are missing, or a class is unknown.
    """
    if trained["positions"] and graphs.positions is None:
        raise DataError(
            f"{graphs.name} has no positions, and the run was trained on distances; "
            "give SDF or XYZ files"
        )
    level = trained["level"]
    labelled = {column.name for column in task.columns}
    nodes, edges = (
        _features(graphs, what, trained[f"{what}_names"], trained[f"{what}_features"], labelled)
        for what in ("node", "edge")
    )
    rows = {"graph": len(graphs), "node": int(graphs.sizes.sum()), "edge": graphs.edges.shape[1]}
    targets = np.full((rows[level], len(task.columns)), np.nan)
    if graphs.level == level:
        have = {column.name.lower(): place for place, column in enumerate(graphs.columns)}
        for place, column in enumerate(task.columns):
            if (found := have.get(column.name.lower())) is not None:
                values = graphs.targets[:, found]
                targets[:, place] = _recoded(values, graphs.columns[found], column)
    return replace(
        graphs,
        node_features=nodes,
        edge_features=edges,
        node_names=tuple(trained["node_names"]),
        edge_names=tuple(trained["edge_names"]),
        positions=graphs.positions if trained["positions"] else None,
        targets=targets,
        columns=task.columns,
        level=level,
    )


def _features(
    graphs: GraphSet, what: str, wanted: Sequence[str], width: int, labelled: set[str]
) -> Floats:
    """Columns in the order of training; a column that is a target of the run is no feature."""
    values: Floats = graphs.node_features if what == "node" else graphs.edge_features
    have = graphs.node_names if what == "node" else graphs.edge_names
    if not wanted or not have:
        if values.shape[1] != width:
            raise DataError(
                f"{graphs.name} has {values.shape[1]} {what} features, the run was trained on "
                f"{width}{_listed(wanted)}"
            )
        return values
    missing = [name for name in wanted if name not in have]
    unknown = [name for name in have if name not in wanted and name not in labelled]
    if missing or unknown:
        faults = [
            f"{verb} the {what} feature{'s' * (len(names) > 1)} {', '.join(names)}"
            for verb, names in (("lacks", missing), ("has unknown to the run", unknown))
            if names
        ]
        raise DataError(
            f"{graphs.name} {' and '.join(faults)}; give the features the run was trained on, "
            "listed in its data.json"
        )
    return values[:, [have.index(name) for name in wanted]]


def _listed(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if names else ""


def _recoded(values: Values, column: Target, trained: Target) -> NDArray[np.float64]:
    """Class numbers of one file as those of the run, by the classes' names."""
    if trained.kind == "regression":
        return values
    known = {name: float(number) for number, name in enumerate(trained.classes)}
    coded = np.full(len(values), np.nan)
    for row in np.flatnonzero(np.isfinite(values)):
        value = values[row]
        name = column.classes[int(value)] if column.classes else f"{value:g}"
        if name not in known:
            raise DataError(
                f"target {trained.name} has the class {name!r}, unknown to the run; "
                f"it knows {', '.join(trained.classes)}"
            )
        coded[row] = known[name]
    return coded
