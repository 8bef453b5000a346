"""A network as a module of the four tensors of a batch: what is exported, and what is recorded."""

from __future__ import annotations

from torch import Tensor, nn

from .model import GrammarGNN


class OnTensors(nn.Module):
    """`GrammarGNN.network` as the forward pass of a module."""

    def __init__(self, model: GrammarGNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        return self.model.network(adjacency, nodes, edges, mask)
