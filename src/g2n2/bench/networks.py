"""Passes over the batches of a case: our network, and the peers it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..data.batch import GraphBatch
from ..data.batching import epoch_batches, sorted_together
from ..data.dense_store import DenseStore
from ..data.graph_set import GraphSet, Ints
from ..data.store import GraphStore
from ..nn.model import GrammarGNN
from ..nn.replay import Replay
from ..training.config import RECIPES
from ..training.cuda_graphs import GraphedStep
from ..training.optimiser import Average, make_optimiser
from ..training.task import Task
from . import block_diagonal
from .cases import Case, Peer
from .molecules import DISTANCE, graphs_of
from .precision import autocast, half

RATE = 1e-4
Forward = Callable[[GraphBatch], Tensor]
Pass = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Setting:
    """What all networks of a case are given.

    Attributes:
        case: The case.
        graphs: The graphs of one pass.
        store: All of them on the device, padded.
        batches: Their numbers, batch by batch.
        task: What is learned.
    """

    case: Case
    graphs: GraphSet
    store: DenseStore
    batches: list[Ints]
    task: Task

    @classmethod
    def of(cls, case: Case, device: torch.device, cache: Path | None = None) -> Setting:
        graphs = graphs_of(case, cache)
        store = DenseStore(GraphStore(graphs, device, DISTANCE[case.preset]))
        window = sorted_together(graphs.sizes, case.batch, few=0)
        batches = epoch_batches(graphs.sizes, case.batch, 0, 0, window)
        return cls(case, graphs, store, batches, Task.of(graphs))

    @property
    def device(self) -> torch.device:
        return self.store.device

    def network(self, grammar: str = "r-G_L3", preset: str | None = None) -> GrammarGNN:
        """A network for these graphs, on their device; always with the same weights."""
        torch.manual_seed(0)
        model = GrammarGNN(
            grammar,
            self.graphs.node_features.shape[1],
            self.store.store.edge_width,
            width=self.case.width,
            layers=self.case.layers,
            preset=preset or self.case.preset,
            typical_size=float(self.graphs.sizes.mean()),
        )
        return model.to(self.device)

    def batch(self, indices: Ints) -> GraphBatch:
        return self.store.batch(self.on_device(indices), self.store.widest(indices))

    def on_device(self, indices: Ints) -> Tensor:
        return torch.from_numpy(indices).to(self.device)


def our_pass(setting: Setting, model: GrammarGNN) -> Pass:
    """One pass of our network, the fastest way there is."""
    case = setting.case
    if case.graphed and setting.device.type == "cuda":
        return graphed_training(setting, model) if case.training else replayed(setting, model)
    return eager_pass(setting, model, forward_of(model))


def peer_pass(setting: Setting, peer: Peer) -> Pass:
    """The same pass by a peer: `ppgn` the way ours goes, the other two step by step."""
    if peer == "ppgn":
        return our_pass(setting, setting.network("PPGN", "ppgn"))
    model = setting.network()
    if peer == "block-diagonal":
        return eager_pass(setting, model, lambda batch: block_diagonal.network(model, batch))
    model.backend = "reference"
    return eager_pass(setting, model, forward_of(model))


def forward_of(model: GrammarGNN) -> Forward:
    """A network as training calls it: no estimate of memory stands in its way."""
    return lambda batch: model.network(batch.adjacency, batch.nodes, batch.edges, batch.mask)


def graphed_training(setting: Setting, model: GrammarGNN) -> Pass:
    """Whole optimiser steps as CUDA graphs, as `g2n2 train` takes them."""
    case, recipe = setting.case, RECIPES["modern"]
    optimiser = make_optimiser(model, recipe, setting.device)
    average = Average(model, recipe.ema)
    stepper = GraphedStep(
        model,
        optimiser,
        average,
        setting.store,
        setting.task,
        case.batch,
        recipe.clip,
        half(case.precision),
    )
    number = 0

    def one_pass() -> None:
        nonlocal number
        for indices in setting.batches:
            number += 1
            stepper.step(indices, RATE, number)

    return one_pass


def replayed(setting: Setting, model: GrammarGNN) -> Pass:
    """Forward passes as CUDA graphs."""
    network = Replay(model, half(setting.case.precision))
    batches = [setting.batch(indices) for indices in setting.batches]

    def one_pass() -> None:
        for batch in batches:
            network(batch)

    return one_pass


def eager_pass(setting: Setting, model: GrammarGNN, forward: Forward) -> Pass:
    """Steps one operation after the other: forward, and where training, backward and AdamW."""
    case, store = setting.case, setting.store
    chosen = [(setting.on_device(b), store.widest(b)) for b in setting.batches]
    optimiser = make_optimiser(model, RECIPES["modern"], setting.device)
    for group in optimiser.param_groups:
        group["lr"] = torch.full_like(group["lr"], RATE) if torch.is_tensor(group["lr"]) else RATE

    def training() -> None:
        for indices, widest in chosen:
            batch = store.batch(indices, widest)
            with autocast(case.precision, setting.device):
                outputs = forward(batch)
            assert batch.targets is not None, "the store always gives targets"
            total, known = setting.task.loss(outputs, batch.targets)
            optimiser.zero_grad(set_to_none=True)
            (total / known).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    if case.training:
        return training
    batches = [store.batch(indices, widest) for indices, widest in chosen]

    @torch.no_grad()
    def inference() -> None:
        with autocast(case.precision, setting.device):
            for batch in batches:
                forward(batch)

    return inference
