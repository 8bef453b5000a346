"""Reference values of a target: sums over elements and pairs of elements, fitted by least squares.

The network learns the rest, and the sums are added to its output. *Per element*: nearly all of a
QM9 total energy is the sum of its atoms' energies. *Extent*, which needs positions: charges `q`
have the second moment about their centre

    Σᵢ qᵢ |rᵢ − r|² = Σ_{i<j} qᵢ qⱼ dᵢⱼ² / Σᵢ qᵢ

and R² is the second moment of the electrons, which are near the nuclei. So the sums are those of
`d²` over the pairs of two elements, `1ᵀ(diag(h) D² diag(k))1` in the language, divided by the
nuclear charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .graph_set import GraphSet
from .qm9_build import ATOMIC_NUMBERS

Values = NDArray[np.float64]
BETWEEN = "·"
"""Separates the two elements in the name of a pair's sum."""


class References(NamedTuple):
    """A fit."""

    values: Values  # `[G]` reference value of each graph, in the target's unit
    # one value per element, by its name, and per pair of elements, as `H·C`; 0 for what occurs in
    # no training graph
    coefficients: dict[str, float]


def fit_references(
    graphs: GraphSet,
    train_indices: NDArray[Any] | list[int],
    targets: Sequence[str],
    *,
    extent: bool = False,
) -> dict[str, References]:
    """Fit one value per element, and with `extent` per pair of elements, to each target.

    Node features have one column per element; training graphs without the target are left out.
    """
    sums = reference_sums(graphs, extent=extent)
    table = np.stack(list(sums.values()), axis=1)
    train = np.asarray(train_indices, dtype=np.int64)
    fits = {}
    for target in targets:
        values = graphs.with_targets([target]).targets[:, 0]
        rows = train[np.isfinite(values[train])]
        if not len(rows):
            raise DataError(f"no training graph of {graphs.name} has a value of {target}")
        # Sums of squares are hundreds of times those of atoms: scaled, no digits are lost.
        scale = np.linalg.norm(table[rows], axis=0)
        scale[scale == 0] = 1.0
        solution = np.linalg.lstsq(table[rows] / scale, values[rows], rcond=None)[0] / scale
        coefficients = dict(zip(sums, solution.tolist(), strict=True))
        fits[target] = References(table @ solution, coefficients)
    return fits


def reference_sums(graphs: GraphSet, *, extent: bool) -> Mapping[str, Values]:
    """`[G]` atoms of each element, and with `extent` Σ d² / charge of each pair of elements."""
    elements = [name for name in graphs.node_names if name in ATOMIC_NUMBERS]
    if graphs.level != "graph" or not elements:
        raise DataError(
            f"reference values per element need a graph target and node features named "
            f"{', '.join(ATOMIC_NUMBERS)}; {graphs.name} has {graphs.level} targets and the "
            f"features {', '.join(graphs.node_names) or '(none)'}"
        )
    columns = [graphs.node_names.index(name) for name in elements]
    atoms = graphs.node_features[:, columns].astype(np.float64)
    counts = _totals(graphs, atoms)
    sums = dict(zip(elements, counts.T, strict=True))
    if extent:
        charge = counts @ np.array([float(ATOMIC_NUMBERS[name]) for name in elements])
        pairs = _squared_distances(graphs, atoms, counts) / np.maximum(charge, 1.0)[:, None, None]
        for i, j in combinations_with_replacement(range(len(elements)), 2):
            sums[f"{elements[i]}{BETWEEN}{elements[j]}"] = pairs[:, i, j]
    return sums


def _squared_distances(graphs: GraphSet, atoms: Values, counts: Values) -> Values:
    """`[G, E, E]` Σ d² between the atoms of two elements (of one element: each pair twice).

    Σ |x − y|² over m points x and n points y is n Σ|x|² + m Σ|y|² − 2 Σx · Σy.
    """
    if graphs.positions is None:
        raise DataError(f"the extent needs positions, which {graphs.name} has not")
    centres = _totals(graphs, graphs.positions.astype(np.float64)) / graphs.sizes[:, None]
    centred = graphs.positions - np.repeat(centres, graphs.sizes, axis=0)
    squares = _totals(graphs, atoms * np.square(centred).sum(1, keepdims=True))
    sums = np.stack([_totals(graphs, atoms * axis[:, None]) for axis in centred.T], axis=-1)
    both = squares[:, :, None] * counts[:, None, :]
    moments: Values = both + both.transpose(0, 2, 1) - 2.0 * sums @ sums.transpose(0, 2, 1)
    return moments


def _totals(graphs: GraphSet, values: Values) -> Values:
    """`[ΣN, K]` to `[G, K]`."""
    totals: Values = np.add.reduceat(values, graphs.node_offsets[:-1], axis=0)
    return totals
