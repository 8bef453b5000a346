"""A linear read-out solved by ridge regression: as a start of the weights, or at every step.

At every step is variable projection: the layers alone learn, and the loss of a step is what the
best linear map of their outputs leaves. The derivative of that loss by the map is zero there, so
its gradient is that of the same loss with the map held fixed, and no solve is differentiated.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from g2n2.data.batch import GraphBatch
from g2n2.nn.model import GrammarGNN

SHRINK = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridge strengths of a read-out; the validation image chooses one."""
LEAST = 1e-6
"""A column with a smaller deviation, in units of the largest or of 1, is a constant."""


@dataclass(frozen=True)
class Ridge:
    """A linear map of columns, and what it leaves."""

    weights: Tensor  # `[P]`, no gradient
    offset: Tensor
    # mean squared error and penalty over the variance of the truth; it has the columns' gradient
    loss: Tensor

    def of(self, columns: Tensor) -> Tensor:
        """`[n]` the map of columns `[n, P]`."""
        return columns.to(self.weights) @ self.weights + self.offset


def ridge(columns: Tensor, truth: Tensor, shrink: float) -> Ridge:
    """The ridge regression of `truth` `[n]` on columns `[n, P]`, in float64.

    Weights are shrunk in units of each column's deviation, the offset is not.
    """
    target = truth.double()
    centred = target - target.mean()
    with torch.no_grad():
        deviation = columns.double().std(0, correction=0)
        useful = ~(deviation <= LEAST * deviation.max().clamp(min=1.0))  # NaN is kept
    chosen = columns.double()[:, useful]
    mean, unit = chosen.mean(0), chosen.std(0, correction=0)
    scaled = (chosen - mean) / unit
    with torch.no_grad():
        square = scaled.T @ scaled
        square.diagonal().add_(shrink * len(scaled))
        solved = torch.linalg.solve(square, scaled.T @ centred)
        weights = target.new_zeros(columns.shape[1])
        weights[useful] = solved / unit
        offset = target.mean() - mean @ weights[useful]
    left = (scaled @ solved - centred).square().mean() + shrink * solved.square().sum()
    return Ridge(weights, offset, left / centred.square().mean())


def read_features(model: GrammarGNN, batch: GraphBatch) -> Tensor:
    """`[n, P]` what the decision layers read of the nodes of one graph."""
    memories, constants = model.final(*model.checked(batch))
    return model.readout.features(memories, batch.mask, constants)[0]
