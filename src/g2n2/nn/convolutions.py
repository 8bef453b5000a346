"""Networks of PyG's convolutions on dense, masked batches: GCN, GIN and ChebNet."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ..compiler.presets import Preset
from ..compiler.readout_plan import Task, plan_readout, readout_options
from ..data.batch import GraphBatch
from ..data.pyg_fields import pyg_data
from ..errors import G2N2Error, LoweringError
from ..language.sorts import V
from .memory_budget import validate_batch
from .readout import Readout

SPECTRUM_END = 2.0
"""The largest eigenvalue ChebNet assumes: PyG's own guess would look at the whole batch."""


class NodeNorm(nn.BatchNorm1d):
    """Batch normalisation over the nodes of all graphs; padding takes no part and stays zero.

    Its ε is 0.1: in regular graphs all nodes are alike, and a small one would blow up rounding.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=0.1)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        """`[B, N, C]` to the same."""
        nodes = values[mask]
        if self.training and len(nodes) == 1:  # one node has no deviation
            parameters = self.running_mean, self.running_var, self.weight, self.bias
            rows = nn.functional.batch_norm(nodes, *parameters, eps=self.eps)
        else:
            rows = super().forward(nodes)
        return torch.zeros_like(values).masked_scatter(mask.unsqueeze(-1), rows)


class ConvolutionGNN(nn.Module):
    """Convolutions of PyG with ReLU after each, and the read-out of a `GrammarGNN`.

    GIN has batch normalisation before each ReLU: without it, sums over many neighbours grow from
    layer to layer. (As published, it has more of them, within each MLP.)

    Edge features are not read. Without node features every node starts with 1. Weights are the
    entries of A, and messages run from `i` to `j` along `A[i, j]`, as in PyG.

    `kind` is `GCN`, `GIN` or `ChebNet`; the other options are those of `baseline`.
    """

    def __init__(
        self,
        kind: str,
        node_features: int = 0,
        edge_features: int = 0,
        width: int = 64,
        layers: int = 3,
        out: int = 1,
        task: Task = "graph",
        readout: str | Mapping[str, str] | None = None,
        decision: tuple[int, ...] | None = None,
        context: bool = False,
        order: int = 5,
        norm: bool = True,
        pooling: str | Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("width", width), ("layers", layers), ("out", out), ("order", order)):
            if value < 1:
                raise LoweringError(f"{name} must be at least 1, got {value}")
        self.kind, self.task = kind, task
        self.node_features, self.edge_features = node_features, edge_features
        hidden = (width,) if decision is None else decision
        preset = Preset(kind, decision=hidden)
        mode, pooling = readout_options(readout, pooling)
        if mode == "grammar":
            raise LoweringError(f'{kind} has no grammar to read out; use readout="pooled"')
        plan = plan_readout({V: width}, task, preset, pooling, hidden, out, context)
        sizes = [max(node_features, 1), *[width] * layers]
        self.convolutions = nn.ModuleList(
            _convolution(kind, a, b, order) for a, b in pairwise(sizes)
        )
        normed = layers if norm and kind == "GIN" else 0
        self.norms = nn.ModuleList(NodeNorm(width) for _ in range(normed))
        self.readout = Readout(plan, preset, typical_size=1.0)

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Outputs for PyG's tensors, PyG data or a GraphBatch, as of a `GrammarGNN`."""
        if isinstance(x, GraphBatch):
            return self.network(*self.checked(x))
        data = pyg_data(x, edge_index, edge_attr, batch, edge_weight)
        graphs = GraphBatch.from_pyg(data)
        return graphs.as_pyg(self.network(*self.checked(graphs)), data, self.task)

    def checked(self, batch: GraphBatch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The four tensors of a batch that fits this network.

        Raises:
            ShapeError: Another number of features.
            DataError: Numbers of another dtype or device.
        """
        validate_batch(self, batch, self.node_features, self.edge_features)
        return batch.adjacency, batch.nodes, batch.edges, batch.mask

    def network(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        """Tensors in, tensors out; padded nodes have no edges, and the read-out skips them."""
        ones = mask.to(nodes.dtype).unsqueeze(-1)
        adjacency = adjacency * ones * ones.mT
        values = nodes if self.node_features else ones
        convolved = self._dense if self.kind == "GIN" else self._sparse
        for number, convolution in enumerate(self.convolutions):
            values = convolved(convolution, values, adjacency)
            if self.norms:
                values = self.norms[number](values, mask)
            values = values.relu()
        constants = {"1": ones, "11ᵀ": ones.unsqueeze(2) * ones.unsqueeze(1)}
        output: Tensor = self.readout({"V": values}, mask, constants)
        return output

    @staticmethod
    def _dense(convolution: nn.Module, values: Tensor, adjacency: Tensor) -> Tensor:
        """PyG's sparse GINConv drops weights, its dense twin sums with them."""
        value: Tensor = convolution(values, adjacency.mT)
        return value

    def _sparse(self, convolution: nn.Module, values: Tensor, adjacency: Tensor) -> Tensor:
        """Of edges as PyG wants them; node `i` of graph `b` is number `b N + i`."""
        graph, start, end = adjacency.nonzero(as_tuple=True)
        first, flat = graph * adjacency.shape[1], values.flatten(0, 1)
        edges = torch.stack([first + start, first + end]), adjacency[graph, start, end]
        largest = {"lambda_max": flat.new_tensor(SPECTRUM_END)} if self.kind == "ChebNet" else {}
        value: Tensor = convolution(flat, *edges, **largest)
        return value.view(*values.shape[:2], -1)


def _convolution(kind: str, width_in: int, width_out: int, order: int) -> nn.Module:
    if find_spec("torch_geometric") is None:
        raise G2N2Error(f"{kind} is made of PyG's layers: pip install 'g2n2[pyg]'")
    from torch_geometric.nn import ChebConv, DenseGINConv, GCNConv

    layer: nn.Module
    match kind:
        case "GCN":
            layer = GCNConv(width_in, width_out)
        case "GIN":
            sizes = nn.Linear(width_in, width_out), nn.ReLU(), nn.Linear(width_out, width_out)
            layer = DenseGINConv(nn.Sequential(*sizes), train_eps=True)
        case "ChebNet":
            layer = ChebConv(width_in, width_out, order)
        case _:
            raise LoweringError(f"the convolutions are GCN, GIN and ChebNet, got {kind!r}")
    return layer
