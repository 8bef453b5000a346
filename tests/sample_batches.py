"""Seeded graphs with features for the tests of networks."""

from __future__ import annotations

import random

import networkx as nx
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import undefined_supports
from g2n2.data.batch import GraphBatch
from g2n2.language.sorts import M
from g2n2.nn import GrammarGNN
from g2n2.nn.supports import SpectralSupports

SIZES = (1, 2, 7, 29)


def weighted_batch(
    node_features: int = 0, edge_features: int = 0, directed: bool = False, seed: int = 0
) -> GraphBatch:
    """Weighted graphs of every size of `SIZES` in one batch, features drawn from a normal."""
    draw = torch.Generator().manual_seed(seed)
    graphs, nodes, edges = [], [], []
    for n in SIZES:
        present = torch.rand(n, n, generator=draw) < 3 / n
        matrix = present * (0.5 + torch.rand(n, n, generator=draw))
        if not directed:
            matrix = matrix.triu(1)
            matrix = matrix + matrix.T
        pairs = torch.randn(n, n, edge_features, generator=draw, dtype=torch.float64)
        pairs = pairs if directed else pairs + pairs.transpose(0, 1)
        graphs.append(matrix.numpy())
        nodes.append(torch.randn(n, node_features, generator=draw, dtype=torch.float64))
        edges.append(pairs * (matrix != 0)[..., None])
    return GraphBatch.of(graphs, nodes, edges, dtype=torch.float64)


def molecule(n: int, seed: int) -> nx.Graph:
    """A connected graph of `n` nodes with degrees up to four and a few rings."""
    draw = random.Random(seed)
    graph = nx.empty_graph(n)
    for i in range(1, n):
        open_ends = [j for j in range(i) if graph.degree[j] < 4]
        graph.add_edge(i, draw.choice(open_ends[-4:]))
    for _ in range(n // 6):
        a, b = draw.sample(range(n), 2)
        if graph.degree[a] < 4 and graph.degree[b] < 4:
            graph.add_edge(a, b)
    return graph


def molecule_batch(
    sizes: list[int], seed: int, node_features: int = 11, edge_features: int = 4
) -> GraphBatch:
    """Molecule-like graphs with one-hot atoms and bonds."""
    draw = torch.Generator().manual_seed(seed)
    graphs = [molecule(n, 1000 * seed + i) for i, n in enumerate(sizes)]
    nodes, edges = [], []
    for graph in graphs:
        n = len(graph)
        atoms = torch.randint(node_features, (n,), generator=draw)
        bonds = torch.randint(edge_features, (n, n), generator=draw).triu(1)
        matrix = torch.tensor(nx.to_numpy_array(graph))
        nodes.append(one_hot(atoms, node_features))
        edges.append(one_hot(bonds + bonds.T, edge_features) * matrix[..., None])
    return GraphBatch.of(graphs, nodes, edges)


class Powers(nn.Module):
    """Supports A, A² and A³, for grammars that leave C_1, C_2, C_3 open."""

    def forward(self, adjacency: Tensor, mask: Tensor) -> Tensor:
        square = adjacency @ adjacency
        return torch.stack([adjacency, square, square @ adjacency], dim=-1)


def catalogue_network(grammar: str, **options: object) -> GrammarGNN:
    """A network of one layer of a grammar of the catalogue, with every feature it takes."""
    torch.manual_seed(2)
    chosen = UNMARKED[grammar]
    named = undefined_supports(chosen)
    given = {
        "node_features": 2,
        "edge_features": int(any(rule.head == M for rule in chosen.rules)),
        "width": 3,
        "layers": 1,
        "decision": (4,),
        "supports": SpectralSupports(len(named)) if named else None,
    }
    return GrammarGNN(chosen, **{**given, **options})
