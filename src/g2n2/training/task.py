"""What is learned: how outputs meet targets, and what they mean to a user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ..data.graph_set import GraphSet, Target
from ..errors import DataError

Values = NDArray[np.float64]
Kind = Literal["regression", "binary", "multiclass"]


@dataclass(frozen=True)
class Task:
    """The learning task of a set's columns.

    Attributes:
        columns: The targets, all of one kind; a multiclass task has one.
        kind: Regression, binary (several columns: multi-label) or multiclass.
    """

    columns: tuple[Target, ...]
    kind: Kind

    @classmethod
    def of(cls, graphs: GraphSet) -> Task:
        """The task of a set.

        Raises:
            DataError: No target, mixed kinds, or several multiclass columns.
        """
        kinds = {column.kind for column in graphs.columns}
        names = ", ".join(column.name for column in graphs.columns)
        if not kinds:
            found = "".join(f" {note}" for note in graphs.notes)  # what the reader made of it
            raise DataError(f"{graphs.name} has no target to learn; name one with --target.{found}")
        if len(kinds) > 1:
            raise DataError(
                f"the targets {names} mix {' and '.join(sorted(kinds))}; "
                "choose those of one kind with --target"
            )
        kind = kinds.pop()
        if kind == "multiclass" and len(graphs.columns) > 1:
            raise DataError(f"{names} are several multiclass targets; choose one with --target")
        return cls(graphs.columns, kind)

    @property
    def out(self) -> int:
        """Outputs of the network."""
        return len(self.columns[0].classes) if self.kind == "multiclass" else len(self.columns)

    @property
    def metric(self) -> str:
        """What the best model is chosen by; errors of several targets in parts of their spread."""
        if self.kind != "regression":
            return "accuracy"
        return "mae" if len(self.columns) == 1 else "relative_mae"

    @property
    def higher_is_better(self) -> bool:
        return self.kind != "regression"

    def loss(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Sum of the losses of all known targets, and how many there are; NaN is unknown.

        L1 for regression, cross-entropy otherwise, in float32 at least.
        """
        outputs = outputs if outputs.dtype == torch.float64 else outputs.float()
        known = self.known(targets)
        filled = targets.nan_to_num(0.0, 0.0, 0.0).to(outputs.dtype)
        if self.kind == "multiclass":
            known = known[..., 0]  # its one column
            each = functional.cross_entropy(
                outputs.flatten(0, -2), filled[..., 0].long().flatten(), reduction="none"
            ).view(known.shape)
        elif self.kind == "binary":
            each = functional.binary_cross_entropy_with_logits(outputs, filled, reduction="none")
        else:
            each = (outputs - filled).abs()
        return (each * known).sum(), known.sum()

    @staticmethod
    def known(targets: Tensor) -> Tensor:
        """Where a target is neither NaN nor infinite."""
        return (targets - targets) == 0

    def decode(self, outputs: Values) -> Values:
        """Outputs as a user reads them: values, or probabilities."""
        if self.kind == "regression":
            return outputs
        if self.kind == "binary":
            return 0.5 * (1.0 + np.tanh(0.5 * outputs))
        shifted = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
        probabilities: Values = shifted / shifted.sum(axis=-1, keepdims=True)
        return probabilities

    def table(self, decoded: Values) -> list[tuple[str, list[Any]]]:
        """Columns of a predictions file; a target's name may be that of another's column."""
        if self.kind == "multiclass":
            names = self.columns[0].classes
            best = decoded.argmax(axis=-1)
            shares = [(f"p({name})", decoded[:, k].tolist()) for k, name in enumerate(names)]
            return [(self.columns[0].name, [names[i] for i in best]), *shares]
        table: list[tuple[str, list[Any]]] = []
        for place, column in enumerate(self.columns):
            unit = f" [{column.unit}]" if column.unit else ""
            values = decoded[:, place]
            if self.kind == "binary":
                names = column.classes or ("0", "1")
                table.append((column.name, [names[int(p >= 0.5)] for p in values]))
                table.append((f"p({column.name}={names[1]})", values.tolist()))
            else:
                table.append((column.name + unit, values.tolist()))
        return table
