"""One pass of a network, as large as an estimate says fits, and what it really took."""

from __future__ import annotations

import torch

from g2n2.compiler.grammar_to_plan import undefined_supports
from g2n2.data.batch import LARGE, GraphBatch
from g2n2.grammars.catalogue import catalogue
from g2n2.nn.memory_budget import estimate
from g2n2.nn.model import GrammarGNN
from g2n2.nn.supports import SpectralSupports
from peak_memory import peak_bytes

GRAPHS = 2
DEGREE = 8


def network(name: str, preset: str) -> GrammarGNN:
    grammar = catalogue()[name]
    unknown = undefined_supports(grammar)
    torch.manual_seed(0)
    supports = SpectralSupports(len(unknown)) if unknown else None
    return GrammarGNN(grammar, 1, width=16, layers=2, preset=preset, supports=supports)


def ratio(name: str, preset: str, device: str, mode: str, mebibytes: int) -> float:
    """Measured over estimated bytes of a pass on the largest graphs so much is said to hold."""
    torch.set_num_threads(1)
    model, training, room = network(name, preset), mode == "train", mebibytes * 2**20
    model.to(device).train(training)

    def need(nodes: int) -> int:
        entries = GRAPHS * DEGREE * nodes if model.columns_only and nodes >= LARGE else None
        return estimate(model, GRAPHS, nodes, 4, training, entries)

    def run(nodes: int) -> None:
        count = GRAPHS * DEGREE * nodes // 2
        ends = torch.randint(0, nodes, (2, count), device=device)
        ends = torch.cat([ends, ends.flip(0)], 1)
        owner = (torch.arange(count, device=device) * GRAPHS // count).repeat(2)
        sizes = torch.full((GRAPHS,), nodes, device=device)
        features = torch.ones(GRAPHS * nodes, 1, device=device)
        sparse = model.columns_only and nodes >= LARGE
        batch = GraphBatch.from_edges(
            sizes, owner, ends, nodes=features, directed=False, sparse=sparse
        )
        with torch.set_grad_enabled(training):
            outputs = model(batch).sum()
        if training:
            outputs.backward()

    nodes = 8
    while need(nodes + nodes // 8) < room:
        nodes += nodes // 8
    run(8)
    before = _peak(device)
    run(nodes)
    return (_peak(device) - before) / need(nodes)


def _peak(device: str) -> int:
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return peak_bytes()
