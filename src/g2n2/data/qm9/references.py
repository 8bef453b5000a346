"""What a target owes to simple sums alone: few values, fitted on the training graphs.

A network learns what is left and the sums are added to its output. *Per element*: a QM9 total
energy is nearly all atoms, and what the chemistry adds is a hundredth of it. *Extent*, which needs
positions: charges `q` about their centre have the second moment

    Σᵢ qᵢ |rᵢ − r|² = Σ_{i<j} qᵢ qⱼ dᵢⱼ² / Σᵢ qᵢ

and R² is that of the electrons, which lie about the nuclei; so the sums are those of `d²` over the
pairs of two elements, as `1ᵀ(diag(h) D² diag(k))1` in the language, over the nuclear charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..graph_set import GraphSet
from .features import ATOMIC_NUMBERS

Values = NDArray[np.float64]
BETWEEN = "·"
"""Stands between the two elements in the name of a pair's sum."""


class References(NamedTuple):
    """The fit.

    Attributes:
        values: `[G]` what the sums give for each graph, in the target's unit.
        coefficients: One value per element, by its name, and per pair of elements, as `H·C`; 0 for
            what no training graph holds.
    """

    values: Values
    coefficients: dict[str, float]


def fit_references(
    graphs: GraphSet,
    train_indices: NDArray[Any] | list[int],
    targets: Sequence[str],
    *,
    extent: bool = False,
) -> dict[str, References]:
    """Fit each target one value per element, and per pair of elements, by least squares.

    Args:
        graphs: Graphs whose node features hold one column per element.
        train_indices: The graphs to fit on; no others are looked at. Missing targets are left out.
        targets: Names of columns.
        extent: The sums of squared distances too.

    Raises:
        DataError: If a target, the element columns or, where needed, the positions are not there,
            or nothing can be fitted.
    """
    names = [column.name for column in graphs.columns]
    sums = reference_sums(graphs, extent=extent)
    table = np.stack(list(sums.values()), axis=1)
    train = np.asarray(train_indices, dtype=np.int64)
    found = {}
    for target in targets:
        if target not in names:
            raise DataError(f"{graphs.name} has no target {target!r}; it has: {', '.join(names)}")
        wanted = graphs.targets[:, names.index(target)]
        known = train[np.isfinite(wanted[train])]
        if not len(known):
            raise DataError(f"no training graph of {graphs.name} has a value of {target}")
        fitted = _least_squares(table[known], wanted[known])
        coefficients = dict(zip(sums, fitted.tolist(), strict=True))
        found[target] = References(table @ fitted, coefficients)
    return found


def _least_squares(table: Values, wanted: Values) -> Values:
    # Sums of squares are hundreds of times those of atoms: in one unit, no digits are lost.
    unit = np.linalg.norm(table, axis=0)
    unit[unit == 0] = 1.0
    fitted: Values = np.linalg.lstsq(table / unit, wanted, rcond=None)[0] / unit
    return fitted


def reference_sums(graphs: GraphSet, *, extent: bool) -> Mapping[str, Values]:
    """`[G]` for each element how many atoms, and for each pair of elements Σ d² over the charge."""
    elements = [name for name in graphs.node_names if name in ATOMIC_NUMBERS]
    if graphs.level != "graph" or not elements:
        raise DataError(
            f"reference values per element need a graph target and node features named "
            f"{', '.join(ATOMIC_NUMBERS)}; {graphs.name} has {graphs.level} targets and the "
            f"features {', '.join(graphs.node_names) or '(none)'}"
        )
    places = [graphs.node_names.index(name) for name in elements]
    atoms = graphs.node_features[:, places].astype(np.float64)
    counts = _totals(graphs, atoms)
    sums = dict(zip(elements, counts.T, strict=True))
    if extent:
        charge = counts @ np.array([float(ATOMIC_NUMBERS[name]) for name in elements])
        pairs = _squared_distances(graphs, atoms, counts) / np.maximum(charge, 1.0)[:, None, None]
        for one, other in combinations_with_replacement(range(len(elements)), 2):
            sums[f"{elements[one]}{BETWEEN}{elements[other]}"] = pairs[:, one, other]
    return sums


def _squared_distances(graphs: GraphSet, atoms: Values, counts: Values) -> Values:
    """`[G, E, E]` Σ d² between the atoms of two elements (of one element: each pair twice).

    No matrix of distances is needed: Σ |x − y|² over m points x and n points y is
    n Σ|x|² + m Σ|y|² − 2 Σx · Σy.
    """
    if graphs.positions is None:
        raise DataError(
            f"{graphs.name} has no positions, which sums of squared distances need (extent)"
        )
    centres = _totals(graphs, graphs.positions.astype(np.float64)) / graphs.sizes[:, None]
    place = graphs.positions - np.repeat(centres, graphs.sizes, axis=0)
    squares = _totals(graphs, atoms * np.square(place).sum(1, keepdims=True))
    first = np.stack([_totals(graphs, atoms * axis[:, None]) for axis in place.T], axis=-1)
    both = squares[:, :, None] * counts[:, None, :]
    made: Values = both + both.transpose(0, 2, 1) - 2.0 * first @ first.transpose(0, 2, 1)
    return made


def _totals(graphs: GraphSet, values: Values) -> Values:
    """`[ΣN, K]` to `[G, K]`."""
    made: Values = np.add.reduceat(values, graphs.node_offsets[:-1], axis=0)
    return made
