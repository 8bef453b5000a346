"""A run that goes on with the steps another has recorded, on the same graphs.

Folds of a set differ in which graphs they train on and in where their weights start; everything
that is recorded is the same. It works on the tensors of the first run, so the next run's network,
optimiser and average are given these tensors in place of their own, with their own numbers in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..data.graph_set import GraphSet
from ..data.store import GraphStore
from ..nn.model import GrammarGNN
from .averaging import Average
from .flat_parameters import prepare

if TYPE_CHECKING:
    from .cuda_graphs import GraphedStep


def is_hit(
    step: GraphedStep,
    model: GrammarGNN,
    optimiser: torch.optim.Optimizer,
    average: Average,
    store: GraphStore,
) -> bool:
    """Whether the recorded steps of a run are those of another, but for numbers in tensors."""
    mine = (step.network.model, step.optimiser, step.average, step.store.store)
    return (
        bool(step.graphs)
        and cache_key(*mine) == cache_key(model, optimiser, average, store)
        and same_graphs(step.store.store.graphs, store.graphs)
    )


@torch.no_grad()
def take_over(
    step: GraphedStep,
    model: GrammarGNN,
    optimiser: torch.optim.Optimizer,
    average: Average,
    store: GraphStore,
) -> None:
    """Let recorded steps move the weights of another run, from where that run is now."""
    weights = list(model.parameters())
    prepare(optimiser, weights)
    for kept, weight in zip(step.weights, weights, strict=True):
        weight.data = _with_numbers_of(kept.data, weight.data)
        theirs, own = step.optimiser.state[kept], optimiser.state[weight]
        for name in own.keys() & theirs.keys():  # a weight without gradients may have no state
            own[name] = _with_numbers_of(theirs[name], own[name])
    for place, values in enumerate(average.shadow):
        average.shadow[place] = _with_numbers_of(step.average.shadow[place], values)
    _with_numbers_of(step.store.targets, store.targets)
    step.copies.refresh()
    step.network.train()  # what is recorded later is a training step too


def _with_numbers_of(kept: Tensor, values: Tensor) -> Tensor:
    return kept.copy_(values)


def cache_key(
    model: GrammarGNN, optimiser: torch.optim.Optimizer, average: Average, store: GraphStore
) -> tuple[Any, ...]:
    """What a recording holds besides tensors."""
    groups = [
        (group["betas"], group["eps"], group["weight_decay"], len(group["params"]))
        for group in optimiser.param_groups
    ]
    dropout, size = model.readout.dropout, model.typical_size
    network = (model.plan, model.options, model.backend, str(model.supports), dropout, size)
    place = (store.distance, store.dtype, store.device)
    return (*network, type(optimiser), groups, average.decay, *place)


def same_graphs(graphs: GraphSet, others: GraphSet) -> bool:
    """The same arrays, or arrays without content."""
    names = ("sizes", "edges", "node_features", "edge_features", "weights", "positions")
    for mine, theirs in ((getattr(graphs, n), getattr(others, n)) for n in names):
        if mine is not theirs and (np.size(mine) or np.size(theirs)):
            return False
    return graphs.targets.shape == others.targets.shape
