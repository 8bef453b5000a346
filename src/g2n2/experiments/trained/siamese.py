"""A contender as BREC's protocol wants it: stacks `[B, n, n]` in, 16 numbers per graph out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ...graphs import Adjacency
from ...nn.baselines import baseline
from .calibration import Standardise, calibrate
from .contenders import Contender

DIMENSIONS = 16
"""Numbers per graph, as in BREC: half of its 32 relabelings."""

DECISION = (64,)


class Embedding(nn.Module):
    """A network without node or edge features, on stacks of graphs of one size."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, adjacency: Tensor) -> Tensor:
        """`[B, n, n]` to `[B, 16]`."""
        count, nodes, _ = adjacency.shape
        mask = torch.ones(count, nodes, dtype=torch.bool, device=adjacency.device)
        features = adjacency.new_zeros(count, nodes, 0)
        edges = adjacency.new_zeros(count, nodes, nodes, 0)
        output: Tensor = cast(Any, self.network).network(adjacency, features, edges, mask)
        return output


def plain_embedding(contender: Contender, **options: Any) -> Embedding:
    """The network as it comes, with random weights."""
    own: dict[str, Any] = {"preset": contender.preset} if contender.preset else {}
    return Embedding(
        baseline(
            contender.network,
            width=contender.width,
            layers=contender.layers,
            out=DIMENSIONS,
            decision=DECISION,
            **{**own, **contender.options, **options},
        )
    )


def calibrated_embedding(
    contender: Contender, graphs: Sequence[Adjacency], dtype: torch.dtype, device: torch.device
) -> Embedding:
    """The network with standardised pooled features, calibrated on some graphs of one size."""
    made = plain_embedding(contender)
    readout = cast(Any, made.network).readout
    width = readout.decision[0].in_features
    readout.decision = nn.Sequential(Standardise(width), *readout.decision)
    if readout.straight is not None:
        readout.straight = nn.Sequential(Standardise(width), readout.straight)
    made = made.to(device, dtype).train()
    stack = torch.tensor(np.stack(graphs), dtype=dtype, device=device)
    chosen = getattr(made.network, "backend", None)
    if chosen is not None:
        cast(Any, made.network).backend = "reference"  # the others do not call every map
    calibrate(made, lambda: made(stack))
    if chosen is not None:
        cast(Any, made.network).backend = chosen
    return made
