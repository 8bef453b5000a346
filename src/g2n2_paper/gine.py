"""GINE: GIN with edge features (Hu et al. 2020), of PyG's layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g2n2.nn.convolutions import ConvolutionGNN


class GINE(ConvolutionGNN):
    """The library's GIN (batch norms, read-out) with PyG's `GINEConv` for its convolutions."""

    def __init__(
        self,
        node_features: int = 0,
        edge_features: int = 0,
        width: int = 64,
        layers: int = 3,
        **options: Any,
    ) -> None:
        from torch_geometric.nn import GINEConv

        super().__init__("GIN", node_features, edge_features, width, layers, **options)
        for layer, convolution in enumerate(self.convolutions):
            self.convolutions[layer] = GINEConv(
                convolution.nn, train_eps=True, edge_dim=edge_features
            )

    def network(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        """Tensors in, tensors out; only real nodes are computed."""
        graph, start, end = adjacency.nonzero(as_tuple=True)
        number = (mask.flatten().cumsum(0) - 1).view(mask.shape)
        index = torch.stack([number[graph, start], number[graph, end]])
        features = edges[graph, start, end]
        values = nodes
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            rows = convolution(values[mask], index, features)
            values = rows.new_zeros(*mask.shape, rows.shape[1])
            values[mask] = rows
            values = norm(values, mask).relu()
        ones = mask.to(values.dtype).unsqueeze(-1)
        output: Tensor = self.readout({"V": values}, mask, {"1": ones})
        return output
