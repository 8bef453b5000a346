"""Targets as the network learns them: less fitted references, centred and scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data.atom_references import BETWEEN, fit_references, reference_sums
from ..data.graph_set import GraphSet
from ..errors import DataError
from .task import Task, Values

NOISE = 1e-9
"""Of the largest target: a deviation up to that is rounding, and the column a constant."""


@dataclass(frozen=True)
class Scaling:
    """`learned = (target − reference − mean) / deviation`.

    Attributes:
        mean: `[T]`.
        deviation: `[T]`, never zero.
        references: For each target the fitted value of each element and pair of elements, by the
            names of `reference_sums`.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    references: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        task: Task,
        train: GraphSet,
        normalise: bool,
        references: bool = False,
        extent: bool = False,
    ) -> Scaling:
        """Fitted on training graphs; the identity for classes, or if nothing is asked for."""
        columns = len(task.columns)
        plain = cls((0.0,) * columns, (1.0,) * columns)
        if task.kind != "regression":
            return plain
        fitted: dict[str, Mapping[str, float]] = {}
        if references or extent:
            names = [column.name for column in task.columns]
            fits = fit_references(train, np.arange(len(train)), names, extent=extent)
            fitted |= {name: fit.coefficients for name, fit in fits.items()}
        plain = cls(plain.mean, plain.deviation, fitted)
        if not normalise:
            return plain
        mean, deviation = [], []
        rest = train.targets - plain.reference(task, train)
        for values, whole in zip(rest.T, train.targets.T, strict=True):
            known = values[np.isfinite(values)]
            spread = float(known.std()) if known.size else 0.0
            mean.append(float(known.mean()) if known.size else 0.0)
            # A constant column has rounding noise for a deviation; scaling by that explodes. Noise
            # goes with the size of the targets themselves, whatever was taken off them.
            noise = NOISE * float(np.abs(whole[np.isfinite(whole)]).max(initial=0.0))
            deviation.append(spread if spread > noise else 1.0)
        return cls(tuple(mean), tuple(deviation), fitted)

    def reference(self, task: Task, graphs: GraphSet) -> Values:
        """`[rows, T]` the part of the targets explained by elements and, with extent, distances."""
        values = np.zeros((len(graphs.targets), len(task.columns)))
        if not self.references:
            return values
        extent = any(BETWEEN in name for fitted in self.references.values() for name in fitted)
        sums = reference_sums(graphs, extent=extent)
        for place, column in enumerate(task.columns):
            for name, value in self.references.get(column.name, {}).items():
                if name not in sums:
                    raise DataError(f"{graphs.name} has no node feature for {name}")
                values[:, place] += value * sums[name]
        return values

    def scale(self, task: Task, graphs: GraphSet) -> Values:
        """All targets of a set as the loss sees them, computed in float64."""
        if task.kind != "regression":
            return graphs.targets
        rest = graphs.targets - self.reference(task, graphs) - np.asarray(self.mean)
        scaled: Values = rest / np.asarray(self.deviation)
        return scaled

    def unscale(self, task: Task, graphs: GraphSet, outputs: Values) -> Values:
        """Outputs, one row for each row of the targets, in the targets' units."""
        if task.kind != "regression":
            return outputs
        values: Values = outputs * np.asarray(self.deviation) + np.asarray(self.mean)
        return values + self.reference(task, graphs)

    def as_dict(self) -> dict[str, Any]:
        return {
            "mean": list(self.mean),
            "deviation": list(self.deviation),
            "references": {name: dict(values) for name, values in self.references.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scaling:
        return cls(tuple(values["mean"]), tuple(values["deviation"]), values["references"])
