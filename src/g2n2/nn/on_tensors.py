"""A network as a module of tensors: what is exported, and what is recorded."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .model import GrammarGNN


class OnTensors(nn.Module):
    """`GrammarGNN.network` as the forward pass of a module."""

    def __init__(self, model: GrammarGNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        return self.model.network(adjacency, nodes, edges, mask)


class OnInputs(nn.Module):
    """A network as a function of packed input memories (`PackedNetwork.from_inputs`)."""

    def __init__(self, model: GrammarGNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> Tensor:
        packed = self.model.packed
        return packed.on_graphs(packed.from_inputs(*inputs))
