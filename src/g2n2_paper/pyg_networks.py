"""PyG's networks that ours are compared with, as baselines of the library.

They run through the library's data, training and outputs, once `add_to_baselines` was called.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from g2n2.compiler.presets import Preset
from g2n2.compiler.readout_plan import Task, plan_readout
from g2n2.data.batch import GraphBatch
from g2n2.errors import LoweringError
from g2n2.language.sorts import V
from g2n2.nn.baselines import BASELINES, Baseline
from g2n2.nn.convolutions import ConvolutionGNN
from g2n2.nn.readout import Readout

ELEMENTS = 5
"""Node features of QM9 that say the element come first."""


class GINE(ConvolutionGNN):
    """GIN of the library (batch norms, read-out) with PyG's `GINEConv` (Hu et al. 2020)."""

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
        index, features = _listed(adjacency != 0, edges, mask)
        values = nodes
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            values = norm(_padded(convolution(values[mask], index, features), mask), mask).relu()
        ones = mask.to(values.dtype).unsqueeze(-1)
        output: Tensor = self.readout({"V": values}, mask, {"1": ones})
        return output


class OfDistances(nn.Module):
    """A network of PyG that reads the element of each atom and the distances of all pairs.

    A distance is the last edge feature, in Å. The network's outputs of atoms are summed by the
    library's read-out.
    """

    def __init__(
        self,
        node_features: int = 0,
        edge_features: int = 0,
        width: int = 128,
        layers: int = 6,
        out: int = 1,
        task: Task = "graph",
        **options: Any,
    ) -> None:
        name = type(self).__name__
        if (out, task) != (1, "graph") or any(v not in (None, False) for v in options.values()):
            raise LoweringError(f"{name} gives one number for each graph and has no other options")
        super().__init__()
        self.node_features, self.edge_features = node_features, edge_features
        preset = Preset(name, decision=())
        plan = plan_readout({V: 1}, task, preset, "sum", (), out, False)
        self.readout = Readout(plan, preset, typical_size=1.0)
        self.make(width, layers)

    def make(self, width: int, layers: int) -> None:
        """Make the network of PyG."""
        raise NotImplementedError

    def forward(self, batch: GraphBatch) -> Tensor:
        return self.network(batch.adjacency, batch.nodes, batch.edges, batch.mask)

    def network(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        """Tensors in, tensors out; only real nodes are computed."""
        elements = nodes[mask][:, :ELEMENTS].argmax(1)
        each = self.atoms(elements, edges[..., -1].float(), mask)
        ones = mask.to(each.dtype).unsqueeze(-1)
        output: Tensor = self.readout({"V": _padded(each, mask)}, mask, {"1": ones})
        return output

    def atoms(self, elements: Tensor, distances: Tensor, mask: Tensor) -> Tensor:
        """`[R]` elements and `[B, N, N]` distances to `[R, 1]` outputs of the real atoms."""
        raise NotImplementedError


class SchNet(OfDistances):
    """PyG's SchNet on all pairs of atoms within its cutoff of 10 Å, with its default basis."""

    def make(self, width: int, layers: int) -> None:
        from torch_geometric.nn import SchNet as OfPyG

        self.pairs: tuple[Tensor, Tensor] | None = None
        self.schnet = OfPyG(
            width, width, layers, interaction_graph=lambda positions, batch: self.pairs
        )
        for block in self.schnet.interactions:
            del block.mlp  # a second name of `conv.nn`, which files of weights cannot hold

    def atoms(self, elements: Tensor, distances: Tensor, mask: Tensor) -> Tensor:
        near = (distances > 0) & (distances <= self.schnet.cutoff)
        self.pairs = _listed(near, distances, mask)
        alone = torch.arange(len(elements), device=mask.device)  # an output for each atom
        each: Tensor = self.schnet(elements, elements, alone)  # which does not look at positions
        return each


class ViSNet(OfDistances):
    """PyG's ViSNet on all pairs of atoms within its cutoff of 5 Å, and its other defaults.

    Batches have no positions, so they are recovered from the distances. A rotation or reflection
    that is lost with that does not change its outputs.
    """

    def make(self, width: int, layers: int) -> None:
        from torch_geometric.nn.models import ViSNet as OfPyG

        self.visnet = OfPyG(hidden_channels=width, num_layers=layers)
        self.pairs = GivenPairs()
        self.visnet.representation_model.distance = self.pairs

    def atoms(self, elements: Tensor, distances: Tensor, mask: Tensor) -> Tensor:
        cutoff: float = self.visnet.representation_model.cutoff
        alone = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device) & mask.unsqueeze(1)
        near = (distances > 0) & (distances <= cutoff) | alone
        index, lengths = _listed(near, distances, mask)
        positions = positions_of(distances, mask)[mask].to(distances.dtype)
        self.pairs.listed = index, lengths, positions[index[0]] - positions[index[1]]
        numbers = torch.arange(len(elements), device=mask.device)  # an output for each atom
        each, _ = self.visnet(elements, positions, numbers)
        return cast(Tensor, each)


class GivenPairs(nn.Module):
    """In place of ViSNet's `Distance`, which looks for pairs by torch-cluster."""

    listed: tuple[Tensor, Tensor, Tensor]  # `[2, E]` pairs, their lengths and vectors

    def forward(self, positions: Tensor, batch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.listed


@torch.no_grad()
def positions_of(distances: Tensor, mask: Tensor) -> Tensor:
    """`[B, N, N]` distances in space to `[B, N, 3]` positions, by multidimensional scaling.

    They are centred in each graph, zero at the padding, and determined up to a rotation or
    reflection. Those of a planar or linear graph have a flat direction.
    """
    real = mask.double()
    pairs = real[:, :, None] * real[:, None]
    squared = distances.double().square() * pairs
    count = real.sum(1)[:, None].clamp(min=1.0)
    of_node = squared.sum(2) / count
    of_all = (of_node.sum(1) / count[:, 0])[:, None, None]
    products = (of_node[:, :, None] + of_node[:, None] - squared - of_all) * pairs / 2.0
    values, vectors = torch.linalg.eigh(products)  # in ascending order
    positions = vectors[..., -3:] * values[:, None, -3:].clamp(min=0.0).sqrt()
    return nn.functional.pad(positions, (3 - positions.shape[-1], 0)) * real.unsqueeze(-1)


def _listed(present: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The `present` pairs of a padded batch as PyG lists them, `[2, E]`, and their values."""
    graph, start, end = present.nonzero(as_tuple=True)
    number = (mask.flatten().cumsum(0) - 1).view(mask.shape)  # of each real node
    return torch.stack([number[graph, start], number[graph, end]]), values[graph, start, end]


def _padded(rows: Tensor, mask: Tensor) -> Tensor:
    """`[R, C]` rows of the real nodes as `[B, N, C]`, zero at the padding."""
    return rows.new_zeros(*mask.shape, rows.shape[1]).masked_scatter(mask.unsqueeze(-1), rows)


NETWORKS = {
    "GINE": Baseline("Hu et al. 2020, PyG's GINEConv", True, lambda o: GINE(**o), ()),
    "SchNet": Baseline("Schütt et al. 2017, PyG's SchNet", True, lambda o: SchNet(**o), ()),
    "ViSNet": Baseline("Wang et al. 2024, PyG's ViSNet", True, lambda o: ViSNet(**o), ()),
}


def add_to_baselines() -> None:
    """Have runs find them by name."""
    BASELINES.update(NETWORKS)
