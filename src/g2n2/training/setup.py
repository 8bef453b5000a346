"""From settings to graphs, split, task, scaling and model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ..compiler.grammar_to_plan import undefined_supports
from ..compiler.inputs import with_transpose
from ..compiler.lowering import columns_only
from ..compiler.marks import marks_named
from ..compiler.presets import find_preset
from ..data.batch import GraphBatch, PackedBatch
from ..data.graph_set import GraphSet, Ints
from ..data.preprocessing import Preprocessing
from ..data.readers.tables import shortened
from ..data.store import GraphStore
from ..described import Described, some
from ..errors import DataError
from ..language.terms import DISTANCES
from ..nn.readout import Readout
from .config import RunConfig, names_dataset, run_grammar
from .task import Scaling, Task


@dataclass(frozen=True, eq=False, repr=False)
class Parts(Described):
    """What a run works with: its graphs, their splits, the task, scaling fitted on training graphs.

    `notes` are sentences for the summary; `trained_before` says of the test graphs, in a phrase,
    which the network that a run starts from was trained on.
    """

    graphs: GraphSet
    splits: Mapping[str, Ints]
    task: Task
    scaling: Scaling
    notes: tuple[str, ...]
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    trained_before: str = ""

    def facts(self) -> dict[str, str]:
        return {
            "graphs": self.graphs.name,
            **{name: f"{len(indices):,}" for name, indices in self.splits.items()},
            "targets": some(column.name for column in self.task.columns),
        }


def load_graphs(config: RunConfig) -> GraphSet:
    """Read the graphs of a config, with its targets only."""
    options = dict(config.options)
    if config.target:
        options.setdefault("target", config.target)
    kind, _, column = config.split.partition(":")
    if kind == "column":
        options.setdefault("split_column", column)
    return chosen_graphs(config, read_source(config.dataset, config.data, options)).check()


def graphs_of_run(config: RunConfig, folder: object) -> GraphSet:
    """The graphs a run was trained on, read again."""
    if not (names_dataset(config.dataset) or os.path.exists(config.dataset)):
        raise DataError(
            f"the graphs of {folder} are not at {config.dataset!r}: put the file back, or if they "
            "were in memory give them in Python, as graphs= of run.evaluate or as the first "
            "argument of train(…, resume=True)"
        )
    return load_graphs(config)


def chosen_graphs(config: RunConfig, graphs: GraphSet) -> GraphSet:
    """The graphs with the targets a config names, and at most its `limit`."""
    from ..data.splits import random_subset

    return random_subset(graphs.with_targets(config.target or None), config.limit, config.seed)


def read_source(source: str, data: str | None, options: Mapping[str, Any]) -> GraphSet:
    """Read the data set of that name, else the user's graphs at that path."""
    from ..data.catalogue import load_dataset
    from ..data.reading import read_with

    if names_dataset(source):
        others = {name: value for name, value in options.items() if name != "target"}
        return load_dataset(source, data, others)  # with all its targets
    path = Path(source)
    if not os.path.exists(path):
        if path.suffix or len(path.parts) > 1:
            raise DataError(f"no file or folder {source!r}: check the path")
        return load_dataset(source)  # names the nearest data set
    return read_with(source, options)


def prepare(config: RunConfig, graphs: GraphSet, splits: Mapping[str, Ints] | None = None) -> Parts:
    """Split the graphs, unless splits are given, and fit the scaling on the training part."""
    from ..data.splits import split

    if splits is None:
        method = config.split
        if method == "auto":
            method = "stored" if "train" in graphs.splits else "random"
        splits = split(graphs, method, seed=config.seed)
    task = Task.of(graphs)
    _refuse_overflow(task, graphs)
    if graphs.positions is None and config.distance:
        raise DataError(f"{graphs.name} has no positions, so distance channels cannot be made")
    if graphs.positions is None and names_distances(config):
        raise DataError(
            f"{config.grammar} names D, the squared distances between nodes, and {graphs.name} has "
            "no positions: give SDF or XYZ files, or for QM9 --track distance"
        )
    train = graphs.select(splits["train"])
    if not np.isfinite(train.targets).any():
        raise DataError(
            f"no training graph has a known value of {shortened(c.name for c in task.columns)}: "
            "fill the column, or choose another with --target"
        )
    preprocessing = Preprocessing.fit(train, config.preprocess)
    notes = preprocessing.notes(graphs)
    graphs = preprocessing.apply(graphs)
    unseen = [
        f"{column.name}={name}"
        for column, values in zip(task.columns, train.targets.T, strict=True)
        for number, name in enumerate(column.classes)
        if not (values == number).any()
    ]
    if unseen:
        notes.append(f"no training graph has {shortened(unseen)}: the network cannot learn that.")
    untrained = [
        column.name
        for column, values in zip(task.columns, train.targets.T, strict=True)
        if column.kind == "regression" and not np.isfinite(values).any()
    ]
    if untrained:
        notes.append(
            f"no training graph has a known value of {shortened(untrained)}: the network cannot "
            "learn that."
        )
    held_out = graphs.select(splits["validation"]).targets
    if not np.isfinite(held_out).any():
        notes.append("no validation graph has a known target: the last weights will be kept.")
    elif task.kind == "binary" and not any(len(set(c[np.isfinite(c)])) > 1 for c in held_out.T):
        notes.append("the validation graphs are all of one class: the last weights will be kept.")
    normalise = config.effective_recipe().normalise
    scaling = Scaling.of(task, train, normalise, config.references, config.extent)
    network = config.baseline or config.grammar
    if not takes_edges(config):
        if graphs.edge_features.shape[1]:
            notes.append(f"{network} has no place for edge features: they are left out.")
            graphs = without_edge_features(graphs)
        if graphs.positions is not None:
            notes.append(f"{network} has no place for distances: positions are not used.")
    return Parts(graphs, splits, task, scaling, tuple(notes), preprocessing)


def refuse_one_class(graphs: GraphSet) -> None:
    """Raise a DataError if the targets are classes and none of them has two."""
    known = [column[np.isfinite(column)] for column in graphs.targets.T]
    if not known or any(target.kind == "regression" for target in graphs.columns):
        return
    if all(len(set(values.tolist())) == 1 for values in known):
        first, value = graphs.columns[0], int(known[0][0])
        raise DataError(
            f"every known value of {shortened(c.name for c in graphs.columns)} is one class "
            f"({first.classes[value] if first.classes else value}), so there is nothing to learn: "
            "give graphs of other classes too, or choose another --target"
        )


def _refuse_overflow(task: Task, graphs: GraphSet) -> None:
    """Refuse targets whose squares, needed for deviations and scores, overflow."""
    if task.kind != "regression":
        return
    for column, values in zip(task.columns, graphs.targets.T, strict=True):
        finite = values[np.isfinite(values)]
        low, high = finite.min(initial=np.inf), finite.max(initial=-np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            computable = not low < high or 0 < finite.std() < np.inf
        if not computable:
            raise DataError(
                f"target {column.name!r} of {graphs.name} goes from {low:.3g} to {high:.3g}, and "
                "the squares of such numbers cannot be computed: give it in another unit, or take "
                "its logarithm"
            )


def distance_kinds(config: RunConfig, graphs: GraphSet) -> tuple[str, ...]:
    """Edge channels made of positions; none without positions or if the network reads no edges."""
    if graphs.positions is None or not takes_edges(config):
        return ()
    return config.effective_recipe().distance


def names_distances(config: RunConfig) -> bool:
    """Whether a rule of the run's grammar names D, the squared distances of the positions."""
    if config.baseline:
        return False
    return DISTANCES.name in undefined_supports(run_grammar(config))


def reads_positions(config: RunConfig, graphs: GraphSet) -> bool:
    """Whether the network reads distances of these graphs, as edge channels or as D."""
    return bool(distance_kinds(config, graphs)) or names_distances(config)


def make_store(config: RunConfig, graphs: GraphSet, device: torch.device) -> GraphStore:
    """The graphs on the device, in the precision of the run."""
    dtype = torch.float64 if config.precision == "64" else torch.float32
    squared = names_distances(config)
    columns = config.baseline is None and not squared and columns_only(run_grammar(config))
    return GraphStore(graphs, device, distance_kinds(config, graphs), dtype, columns, squared)


def batch_for(model: nn.Module, store: GraphStore, indices: Ints) -> GraphBatch | PackedBatch:
    """Graphs of a store as a network takes them: rows where it computes those."""
    from ..nn.model import GrammarGNN

    packs = isinstance(model, GrammarGNN) and model.packs
    sparse = store.sparse(int(store.graphs.sizes[indices].max()))
    return store.packed(indices) if packs and not sparse else store.batch(indices)


def make_model(config: RunConfig, parts: Parts) -> nn.Module:
    """The network of a config for these graphs, its weights a function of the seed."""
    from ..data.distances import distance_width
    from ..nn.baselines import baseline
    from ..nn.model import GrammarGNN

    graphs = parts.graphs
    kinds = distance_kinds(config, graphs)
    shared: dict[str, Any] = {
        "node_features": graphs.node_features.shape[1],
        "edge_features": graphs.edge_features.shape[1] + sum(map(distance_width, kinds)),
        "width": config.effective_recipe().width,
        "layers": config.layers,
        "out": parts.task.out,
        "task": graphs.level,
        "readout": config.readout,
        "pooling": config.pooling,
        "decision": config.decision,
        "context": config.context,
    }
    torch.manual_seed(config.seed)
    model: nn.Module
    if config.baseline:
        functions = None if config.functions == "mlp" else config.functions
        given = {
            "preset": config.preset,
            "pair_bias": config.pair_bias,
            "pair_norm": config.pair_norm,
            "functions": functions,
        }
        shared |= {name: value for name, value in given.items() if value is not None}
        model = baseline(config.baseline, **shared)
    else:
        grammar = run_grammar(config)
        model = GrammarGNN(
            grammar,
            **shared,
            functions=config.functions,
            pair_bias=config.pair_bias,
            pair_norm=config.pair_norm,
            marks=marks_named(config.marks),
            trunk=config.trunk,
            preset=config.effective_recipe().preset,
            directed=graphs.directed and grammar.has_matrices,
            typical_size=float(graphs.sizes.mean()),
        )
    assert isinstance(model.readout, Readout), "every network ends in one"
    model.readout.dropout = config.effective_recipe().dropout
    return model


def refuse_unread_directions(model: nn.Module, graphs: GraphSet) -> None:
    """Raise a DataError for directed graphs if no word of the network's grammar reads Aᵀ."""
    from ..nn.model import GrammarGNN

    if isinstance(model, GrammarGNN) and graphs.directed:
        grammar, inputs = model.plan.grammar, model.plan.inputs
        if not (inputs.directed_safe or inputs.matrix):
            raise DataError(
                f"{graphs.name} has directed graphs, and no word of "
                f"{grammar.name or 'this grammar'} reads Aᵀ: {with_transpose(grammar)}, or "
                "symmetrise the graphs"
            )


def refuse_unknown_names(config: RunConfig, *, resume: bool) -> None:
    """Raise a G2N2Error for names and settings that mean nothing here, before data is read."""
    from ..data.distances import distance_width
    from ..data.splits import refuse_unknown_split
    from ..nn.baselines import find_baseline

    if config.preset is not None:
        find_preset(config.preset)
    if config.baseline:
        find_baseline(config.baseline)
        for name in ("marks", "trunk"):
            if (value := getattr(config, name)) != getattr(RunConfig, name):
                raise DataError(
                    f"{name}={value!r} is about marks, and the baseline {config.baseline} has "
                    "none; leave it out, or take a grammar with marks, such as r-G_L3Σ"
                )
    for kind in config.distance or ():
        distance_width(kind)
    if resume or config.split == "auto":
        return
    refuse_unknown_split(config.split)
    kind, _, path = config.split.partition(":")
    if kind == "file" and not os.path.exists(path):
        raise DataError(f"no file {path!r} to split by: check the path")


def takes_edges(config: RunConfig) -> bool:
    """Whether the network reads edge features."""
    if config.baseline:
        from ..nn.baselines import find_baseline

        return find_baseline(config.baseline).reads_edges
    return run_grammar(config).has_matrices


def without_edge_features(graphs: GraphSet) -> GraphSet:
    return replace(graphs, edge_features=graphs.edge_features[:, :0], edge_names=())
