"""A run's parts, built from its config: data, split, task, scaling, network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ..data.graph_set import GraphSet, Ints
from ..data.store import GraphStore
from ..errors import DataError
from ..grammars.catalogue import find_grammar
from ..language.sorts import M
from .config import RunConfig
from .scaling import Scaling
from .tasks import Task


@dataclass(frozen=True, eq=False)
class Parts:
    """What a run works with.

    Attributes:
        graphs: The whole set, with the chosen targets.
        splits: Indices of `train`, `validation` and `test`.
        task: What is learned.
        scaling: Fitted on the training graphs.
        notes: What was decided on the way, for the summary.
    """

    graphs: GraphSet
    splits: Mapping[str, Ints]
    task: Task
    scaling: Scaling
    notes: tuple[str, ...]


def load_graphs(config: RunConfig) -> GraphSet:
    """The graphs a config names, with its targets only."""
    from ..data.catalogue import DATASETS, load_dataset
    from ..data.reading import read_graphs

    known = {row.name.replace("_", "-") for row in DATASETS}
    options = dict(config.options)
    name = config.dataset
    if Path(name).exists() and name.lower().replace("_", "-") not in known:
        graphs = read_graphs(name, **options)
    else:
        graphs = load_dataset(name, data=config.data, **options)
    graphs = choose_targets(graphs, config.target)
    if config.limit and config.limit < len(graphs):
        order = np.random.default_rng([config.seed, 1]).permutation(len(graphs))
        graphs = graphs.select(np.sort(order[: config.limit]))
    return graphs.check()


def choose_targets(graphs: GraphSet, wanted: tuple[str, ...]) -> GraphSet:
    """The set with some of its target columns, named in any case; all where none is named.

    Raises:
        DataError: No such target; the message lists those there are.
    """
    if not wanted:
        return graphs
    names = {
        spelling.lower(): place
        for place, column in enumerate(graphs.columns)
        for spelling in (column.name, column.symbol)
        if spelling
    }
    for name in wanted:
        if name.lower() not in names:
            have = ", ".join(column.name for column in graphs.columns) or "none"
            raise DataError(f"{graphs.name} has no target {name!r}; it has: {have}")
    places = [names[name.lower()] for name in wanted]
    return replace(
        graphs,
        targets=graphs.targets[:, places],
        columns=tuple(graphs.columns[place] for place in places),
    )


def prepare(config: RunConfig, graphs: GraphSet, splits: Mapping[str, Ints] | None = None) -> Parts:
    """Split the graphs and fit what is fitted on the training part."""
    from ..data.splits import split

    how = config.split
    if how == "auto":
        how = "stored" if "train" in graphs.splits else "random"
    chosen = splits if splits is not None else split(graphs, how, seed=config.seed)
    task = Task.of(graphs)
    notes = []
    recipe = config.effective_recipe()
    if graphs.positions is None and config.distance:
        raise DataError(f"{graphs.name} has no positions, so distance channels cannot be made")
    train = graphs.select(chosen["train"])
    if not np.isfinite(train.targets).any():
        raise DataError("no training graph has a known target")
    scaling = Scaling.of(task, train, recipe.normalise, config.references)
    if graphs.edge_features.shape[1] and not _takes_edges(config):
        notes.append(
            f"{config.baseline or config.grammar} has no place for edge features: they are left out"
        )
        graphs = replace(graphs, edge_features=graphs.edge_features[:, :0], edge_names=())
    return Parts(graphs, chosen, task, scaling, tuple(notes))


def distance_kinds(config: RunConfig, graphs: GraphSet) -> tuple[str, ...]:
    """Edge channels made of positions; none without positions or without a place for them."""
    if graphs.positions is None or not _takes_edges(config):
        return ()
    return config.effective_recipe().distance


def make_store(
    config: RunConfig, graphs: GraphSet, device: torch.device, dtype: torch.dtype
) -> GraphStore:
    """The graphs on the device."""
    return GraphStore(graphs, device, distance_kinds(config, graphs), dtype)


def make_model(config: RunConfig, parts: Parts) -> nn.Module:
    """The network of a config for these graphs, its weights a function of the seed."""
    from ..data.distances import distance_width

    graphs = parts.graphs
    kinds = distance_kinds(config, graphs)
    edge_features = graphs.edge_features.shape[1] + sum(map(distance_width, kinds))
    sizes = {
        "node_features": graphs.node_features.shape[1],
        "edge_features": edge_features,
        "width": config.width,
        "layers": config.layers,
        "out": parts.task.out,
        "task": graphs.level,
    }
    torch.manual_seed(config.seed)
    if config.baseline:
        from ..nn.baselines import baseline

        return baseline(config.baseline, **sizes)
    from ..nn.model import GrammarGNN

    grammar = find_grammar(config.grammar)
    has_matrices = any(rule.head == M for rule in grammar.rules)
    return GrammarGNN(
        grammar,
        **sizes,
        readout=config.readout,
        preset=config.effective_recipe().preset,
        decision=config.decision,
        context=config.context,
        directed=graphs.directed and has_matrices,
        typical_size=float(graphs.sizes.mean()),
    )


def _takes_edges(config: RunConfig) -> bool:
    if config.baseline:
        return False
    return any(rule.head == M for rule in find_grammar(config.grammar).rules)
