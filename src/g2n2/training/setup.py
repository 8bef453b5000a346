"""A run's parts, built from its config: data, split, task, scaling, network."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import nn

from ..compiler.columns import columns_only
from ..compiler.presets import find_preset
from ..data.graph_set import GraphSet, Ints
from ..data.store import GraphStore
from ..described import Described, some
from ..errors import DataError
from ..language.sorts import M
from ..nn.readout import Readout
from .config import RunConfig
from .scaling import Scaling
from .settings import run_grammar
from .task import Task

SMALLEST_BATCH = 8


@dataclass(frozen=True, eq=False, repr=False)
class Parts(Described):
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

    def facts(self) -> dict[str, str]:
        """What there is in a few words, for `repr` and notebooks."""
        return {
            "graphs": self.graphs.name,
            **{name: f"{len(indices):,}" for name, indices in self.splits.items()},
            "targets": some(column.name for column in self.task.columns),
        }


def load_graphs(config: RunConfig) -> GraphSet:
    """The graphs a config names, with its targets only.

    Raises:
        DataError: There are none such, or the data does not know an option.
    """
    graphs = read_source(config.dataset, config.data, _reading_options(config))
    return chosen_graphs(config, graphs).check()


def chosen_graphs(config: RunConfig, graphs: GraphSet) -> GraphSet:
    """The graphs with the targets a config names, and as many as it asks for."""
    graphs = choose_targets(graphs, config.target)
    if not config.limit or config.limit >= len(graphs):
        return graphs
    order = np.random.default_rng([config.seed, 1]).permutation(len(graphs))
    return _some(graphs, np.sort(order[: config.limit]))


def _some(graphs: GraphSet, chosen: Ints) -> GraphSet:
    """A selection that keeps the splits of the set, as far as their graphs are in it."""
    within = {
        part: np.flatnonzero(np.isin(chosen, members)) for part, members in graphs.splits.items()
    }
    kept = {part: members for part, members in within.items() if len(members)}
    return replace(graphs.select(chosen), splits=MappingProxyType(kept))


def read_source(source: str, data: str | None, options: Mapping[str, Any]) -> GraphSet:
    """The user's own graphs where the source is a path, else the data set of that name.

    `target`, an option of the user's own graphs, is no option of a data set: it has them all.
    """
    from ..data.catalogue import load_dataset
    from ..data.reading import read_with

    if names_dataset(source):
        rest = {name: value for name, value in options.items() if name != "target"}
        return load_dataset(source, data, rest)
    path = Path(source)
    if not os.path.exists(path):
        if path.suffix or len(path.parts) > 1:
            raise DataError(f"no file or folder {source!r}: check the path")
        return load_dataset(source)  # names the nearest data set
    return read_with(source, options)


def names_dataset(source: str) -> bool:
    """Whether a source is the name of a data set, which wins over a file of that name."""
    from ..data.catalogue import DATASETS

    known = {row.name.replace("_", "-") for row in DATASETS}
    return source.lower().replace("_", "-") in known


def _reading_options(config: RunConfig) -> dict[str, Any]:
    """The config's options, with what its other settings say about reading."""
    options = dict(config.options)
    if config.target:
        options.setdefault("target", config.target)
    kind, _, column = config.split.partition(":")
    if kind == "column":
        options.setdefault("split_column", column)
    return options


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
    _refuse_endless(task, graphs)
    notes = []
    recipe = config.effective_recipe()
    if graphs.positions is None and config.distance:
        raise DataError(f"{graphs.name} has no positions, so distance channels cannot be made")
    train = graphs.select(chosen["train"])
    if not np.isfinite(train.targets).any():
        raise DataError("no training graph has a known target")
    if not np.isfinite(graphs.select(chosen["validation"]).targets).any():
        notes.append("no validation graph has a known target: the last weights will be kept.")
    scaling = Scaling.of(task, train, recipe.normalise, config.references, config.extent)
    if graphs.edge_features.shape[1] and not takes_edges(config):
        notes.append(
            f"{config.baseline or config.grammar} has no place for edge features: "
            "they are left out."
        )
        graphs = without_edge_features(graphs)
    if graphs.positions is not None and not takes_edges(config):
        notes.append(
            f"{config.baseline or config.grammar} has no place for distances: "
            "positions are not used."
        )
    return Parts(graphs, chosen, task, scaling, tuple(notes))


def _refuse_endless(task: Task, graphs: GraphSet) -> None:
    """Refuse numbers whose squares, of which deviations and scores are made, are no numbers."""
    if task.kind != "regression":
        return
    for column, values in zip(task.columns, graphs.targets.T, strict=True):
        known = values[np.isfinite(values)]
        low, high = known.min(initial=np.inf), known.max(initial=-np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            computable = not low < high or 0 < known.std() < np.inf
        if not computable:
            raise DataError(
                f"target {column.name!r} of {graphs.name} goes from {low:.3g} to {high:.3g}, and "
                "the squares of such numbers cannot be computed: give it in another unit, or take "
                "its logarithm"
            )


def with_batch(config: RunConfig, train: int) -> RunConfig:
    """The config with its batch written down: smaller for few graphs, or there are no steps."""
    recipe = config.effective_recipe()
    batch = recipe.batch
    while config.batch is None and batch > SMALLEST_BATCH and train < batch * recipe.least_steps:
        batch //= 2
    return replace(config, batch=batch)


def distance_kinds(config: RunConfig, graphs: GraphSet) -> tuple[str, ...]:
    """Edge channels made of positions; none without positions or without a place for them."""
    if graphs.positions is None or not takes_edges(config):
        return ()
    return config.effective_recipe().distance


def make_store(
    config: RunConfig, graphs: GraphSet, device: torch.device, dtype: torch.dtype
) -> GraphStore:
    """The graphs on the device."""
    columns = config.baseline is None and columns_only(run_grammar(config))
    return GraphStore(graphs, device, distance_kinds(config, graphs), dtype, columns)


def make_model(config: RunConfig, parts: Parts) -> nn.Module:
    """The network of a config for these graphs, its weights a function of the seed."""
    model = _network(config, parts)
    readout = model.readout
    assert isinstance(readout, Readout), "every network ends in one"
    readout.dropout = config.effective_recipe().dropout
    return model


def _network(config: RunConfig, parts: Parts) -> nn.Module:
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
        "readout": config.readout,
        "pooling": config.pooling,
        "decision": config.decision,
        "context": config.context,
    }
    torch.manual_seed(config.seed)
    if config.baseline:
        from ..nn.baselines import baseline

        own: dict[str, Any] = {"preset": config.preset, "pair_bias": config.pair_bias}
        own["functions"] = None if config.functions == "mlp" else config.functions
        asked = {name: value for name, value in own.items() if value is not None}
        return baseline(config.baseline, **sizes, **asked)
    from ..nn.model import GrammarGNN

    grammar = run_grammar(config)
    has_matrices = any(rule.head == M for rule in grammar.rules)
    return GrammarGNN(
        grammar,
        **sizes,
        functions=config.functions,
        pair_bias=config.pair_bias,
        preset=config.effective_recipe().preset,
        directed=graphs.directed and has_matrices,
        typical_size=float(graphs.sizes.mean()),
    )


def refuse_unknown_names(config: RunConfig, *, resume: bool) -> None:
    """Refuse a baseline, preset, distance or split nobody knows before any data is read.

    Args:
        config: The settings.
        resume: Whether the split is already made.

    Raises:
        G2N2Error: Naming the known ones.
    """
    from ..data.distances import distance_width
    from ..data.splits import refuse_unknown_split

    if config.preset is not None:
        find_preset(config.preset)
    if config.baseline:
        from ..nn.baselines import find_baseline

        find_baseline(config.baseline)
    for kind in config.distance or ():
        distance_width(kind)
    if resume or config.split == "auto":
        return
    refuse_unknown_split(config.split)
    kind, _, path = config.split.partition(":")
    if kind == "file" and not os.path.exists(path):
        raise DataError(f"no file {path!r} to split by: check the path")


def takes_edges(config: RunConfig) -> bool:
    """Whether the network has a place for edge features."""
    if config.baseline:
        from ..nn.baselines import BASELINES

        found = {name.lower(): row for name, row in BASELINES.items()}.get(config.baseline.lower())
        return found is not None and found.reads_edges  # one that is unknown is refused when made
    return any(rule.head == M for rule in run_grammar(config).rules)


def without_edge_features(graphs: GraphSet) -> GraphSet:
    return replace(graphs, edge_features=graphs.edge_features[:, :0], edge_names=())
