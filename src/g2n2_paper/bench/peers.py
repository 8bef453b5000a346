"""Networks of others, and ours by `torch.compile`, on the batches of a workload.

Padded ones are whole steps of compiled operations in one CUDA graph, padded to the largest graph,
so that one recording serves every batch. Those of PyG take lists of edges, one operation after the
other, from batches that lie on the device.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from g2n2.bench import RATE, Pass, Workload
from g2n2.data.graph_set import Ints
from g2n2.nn.model import GrammarGNN
from g2n2.training.config import RECIPES
from g2n2.training.optimiser import make_optimiser, set_rate

HEADS = 8
"""Of attention in FloydNet."""
GAUSSIANS = 16
"""Of a distance in SchNet, as many as in our recipe."""
WARM = 3
"""Steps before one is recorded."""


def compiled_pass(work: Workload, model: nn.Module, training: bool) -> Pass:
    """A pass of a network on `adjacency, nodes, edges, mask`, compiled and recorded."""
    network = torch.compile(model.network if isinstance(model, GrammarGNN) else model)
    optimiser = make_optimiser(model, RECIPES["modern"], work.device)
    set_rate(optimiser, RATE)
    chosen = [torch.from_numpy(indices).to(work.device) for indices in work.batches]
    indices = chosen[0].clone()
    every = work.batch(np.arange(len(work.graphs)))
    tensors = every.adjacency, every.nodes, every.edges, every.mask

    def step() -> None:
        with work.autocast(), torch.set_grad_enabled(training):
            outputs = network(*(tensor.index_select(0, indices) for tensor in tensors))
        if training:
            assert every.targets is not None, "the store always gives targets"
            total, count = work.task.loss(outputs, every.targets.index_select(0, indices))
            (total / count).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            optimiser.zero_grad(set_to_none=True)
            step()
    torch.cuda.current_stream().wait_stream(stream)
    optimiser.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def one_pass() -> None:
        for of_batch in chosen:
            indices.copy_(of_batch)
            graph.replay()

    return one_pass


class Floyd(nn.Module):
    """FloydNet's blocks on all pairs, of the width and layers of a workload."""

    def __init__(self, work: Workload) -> None:
        super().__init__()
        block = import_module("floydnet").PivotalAttentionBlock
        features = 2 * work.graphs.node_features.shape[1] + work.store.edge_width + 1
        self.embed = nn.Linear(features, work.width)
        self.blocks = nn.ModuleList(
            block(work.width, min(HEADS, work.width)) for _ in range(work.layers)
        )
        self.decide = nn.Linear(work.width, 1)

    def forward(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        count = nodes.shape[1]
        ends = [nodes.unsqueeze(axis).expand(-1, count, count, -1) for axis in (1, 2)]
        x = self.embed(torch.cat([adjacency.unsqueeze(-1), edges, *ends], dim=-1))
        absent = ~mask[:, None, None, None, :]  # of the nodes a pair meets
        for block in self.blocks:
            x = block(x, attn_mask=absent)
        pairs = (mask[:, :, None] & mask[:, None]).unsqueeze(-1)
        output: Tensor = self.decide((x * pairs).sum((1, 2)))
        return output


class Gine(nn.Module):
    """GINE on the bonds, with the features ours has."""

    def __init__(self, work: Workload) -> None:
        from torch_geometric.nn import GINEConv

        super().__init__()
        width = work.width
        self.embed = nn.Linear(work.graphs.node_features.shape[1], width)
        maps = (
            nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
            for _ in range(work.layers)
        )
        edges = work.graphs.edge_features.shape[1]
        self.layers = nn.ModuleList(GINEConv(part, edge_dim=edges) for part in maps)
        self.decide = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, data: Any) -> Tensor:
        from torch_geometric.nn import global_add_pool

        x = self.embed(data.x)
        for layer in self.layers:
            x = x + layer(x, data.edge_index, data.edge_attr).relu()
        output: Tensor = self.decide(global_add_pool(x, data.batch, len(data.y)))
        return output


class Schnet(nn.Module):
    """SchNet on all pairs of a molecule, whose distances lie with the batch."""

    def __init__(self, work: Workload) -> None:
        from torch_geometric.nn import SchNet

        super().__init__()
        self.pairs: tuple[Tensor, Tensor] | None = None
        self.network = SchNet(
            hidden_channels=work.width,
            num_filters=work.width,
            num_interactions=work.layers,
            num_gaussians=GAUSSIANS,
            interaction_graph=lambda positions, batch: self.pairs,
        )

    def forward(self, data: Any) -> Tensor:
        self.pairs = data.pairs, data.distances
        output: Tensor = self.network(data.x.argmax(1), data.pos, data.batch)
        return output


SPARSE = {"gine": Gine, "schnet": Schnet}


def sparse_pass(work: Workload, peer: str, training: bool) -> Pass:
    """A pass of a network of PyG, one operation after the other."""
    torch.manual_seed(0)
    model = SPARSE[peer](work).to(work.device)
    optimiser = make_optimiser(model, RECIPES["modern"], work.device)
    set_rate(optimiser, RATE)
    batches = [_joined(work, indices).to(work.device) for indices in work.batches]

    def one_pass() -> None:
        for data in batches:
            with work.autocast(), torch.set_grad_enabled(training):
                outputs = model(data)
            if training:
                total, count = work.task.loss(outputs, data.y)
                optimiser.zero_grad(set_to_none=True)
                (total / count).backward()  # type: ignore[no-untyped-call]
                optimiser.step()

    return one_pass


def _joined(work: Workload, indices: Ints) -> Any:
    """The molecules of a batch as PyG's, with all pairs of each."""
    from torch_geometric.data import Batch, Data

    graphs = work.graphs.select(indices)
    assert graphs.positions is not None, "molecules have positions"
    made, atom, bond = [], 0, 0
    for number, (n, bonds) in enumerate(zip(graphs.sizes, graphs.edge_counts, strict=True)):
        atoms, own = slice(atom, atom + n), slice(bond, bond + bonds)
        positions = torch.from_numpy(graphs.positions[atoms])
        pairs = (1 - torch.eye(int(n))).nonzero().T
        data = Data(
            x=torch.from_numpy(graphs.node_features[atoms]),
            edge_index=torch.from_numpy(graphs.edges[:, own]),
            edge_attr=torch.from_numpy(graphs.edge_features[own]),
            pos=positions,
            y=torch.from_numpy(graphs.targets[number : number + 1]).float(),
            distances=(positions[pairs[0]] - positions[pairs[1]]).norm(dim=1),
        )
        data.pairs_index = pairs  # PyG moves what is called an index by the nodes before it
        made.append(data)
        atom, bond = atom + n, bond + bonds
    batch = Batch.from_data_list(made)
    batch.pairs = batch.pairs_index
    return batch
