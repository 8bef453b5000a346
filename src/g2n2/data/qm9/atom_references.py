"""What a target owes to the elements alone: one value each, fitted on the training graphs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..graph_set import GraphSet
from .features import ELEMENTS


class AtomReferences(NamedTuple):
    """The fit.

    Attributes:
        values: `[G]` sum of the coefficients over each graph's atoms, in the target's unit.
        coefficients: One value per element; 0 for an element no training graph holds.
    """

    values: NDArray[np.float64]
    coefficients: dict[str, float]


def atom_references(
    graphs: GraphSet, train_indices: NDArray[Any] | list[int], target: str
) -> AtomReferences:
    """Fit one reference value per element by least squares on the training graphs.

    A network then learns `target − values` and the values are added to its output: a QM9 total
    energy is nearly all atoms, and what the chemistry adds is a hundredth of it.

    Args:
        graphs: Graphs whose node features hold one column per element.
        train_indices: The graphs to fit on; no others are looked at. Missing targets are left out.
        target: Name of one of the columns.

    Raises:
        DataError: If the target or the element columns are not there, or nothing can be fitted.
    """
    names = [column.name for column in graphs.columns]
    if target not in names:
        raise DataError(f"{graphs.name} has no target {target!r}; it has: {', '.join(names)}")
    places = [place for place, name in enumerate(graphs.node_names) if name in ELEMENTS]
    if graphs.level != "graph" or not places:
        raise DataError(
            f"reference values per element need a graph target and node features named "
            f"{', '.join(ELEMENTS)}; {graphs.name} has {graphs.level} targets and the features "
            f"{', '.join(graphs.node_names) or '(none)'}"
        )
    counts = np.add.reduceat(
        graphs.node_features[:, places].astype(np.float64), graphs.node_offsets[:-1], axis=0
    )
    wanted = graphs.targets[:, names.index(target)]
    train = np.asarray(train_indices, dtype=np.int64)
    train = train[np.isfinite(wanted[train])]
    if not len(train):
        raise DataError(f"no training graph of {graphs.name} has a value of {target}")
    fitted = np.linalg.lstsq(counts[train], wanted[train], rcond=None)[0]
    elements = [graphs.node_names[place] for place in places]
    return AtomReferences(counts @ fitted, dict(zip(elements, fitted.tolist(), strict=True)))
