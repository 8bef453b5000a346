"""Why a run predicts what it does: contributions of nodes and edges in the target's unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ..data.batch import GraphBatch
from ..data.batching import ordered_batches
from ..data.graph_set import GraphSet, Ints
from ..errors import DataError
from ..nn.contributions import (
    AverageInput,
    hiding_effects,
    integrated_gradients,
    rank_correlation,
)
from ..nn.explaining import Explanation, explain
from ..nn.model import GrammarGNN
from .pretrained import HELD_OUT, is_pretrained
from .run import Run
from .setup import load_graphs, make_store
from .task import Values

AT_ONCE = (16, 2**13)
"""Graphs in a batch, and their pairs."""


@dataclass(frozen=True, eq=False)
class GraphContributions:
    """What the nodes and edges of one graph add to a prediction.

    Attributes:
        id: The graph's.
        value: The prediction, in the target's unit, or a probability.
        nodes: `[n]` in the target's unit; logits for classes.
        edges: `[E]` the same of each edge. A pair without an edge, which may have a distance, is
            shared by its two nodes.
        ends: `[2, E]` each edge once.
    """

    id: str
    value: float
    nodes: Values
    edges: Values
    ends: Ints


@dataclass(frozen=True)
class Agreement:
    """Rank correlations of contributions with the effects of hiding each node, one a graph."""

    correlations: tuple[float, ...]

    def __str__(self) -> str:
        if not self.correlations:
            return "no held-out graph to check the contributions on"
        low, middle, high = np.quantile(self.correlations, (0.25, 0.5, 0.75))
        graphs = f"{len(self.correlations)} held-out graph{'s' * (len(self.correlations) != 1)}"
        return (
            f"checked on {graphs}: contributions and what changes when a node is hidden have a "
            f"rank correlation of {middle:.2f} (median; quartiles {low:.2f} and {high:.2f})"
        )


class Explainer:
    """Explains predictions of one target of a run.

    Args:
        run: A run with one value a graph.
        target: Which; None if there is one only.
        reference: Graphs whose average node and edge the others are compared with.

    Raises:
        DataError: There is no such target, it must be chosen, or the run predicts nodes or edges.
    """

    def __init__(self, run: Run, target: str | None, reference: GraphSet) -> None:
        self.run, self.target = run, target_index(run, target)
        regression = run.task.kind == "regression"
        self.scale = run.files.scaling().deviation[self.target] if regression else 1.0
        self.average = AverageInput.of(batch for _, batch in self._batches(reference))

    def graphs(self, graphs: GraphSet) -> list[GraphContributions]:
        """What nodes and edges add to each prediction, in the order of the set.

        Per-element values that were subtracted from the targets are no part of it.
        """
        values = self.run.predict(graphs).values
        found: dict[int, GraphContributions] = {}
        for indices, batch in self._batches(graphs):
            parts = integrated_gradients(self.run.model, batch, self._outputs(batch), self.average)
            for place, index in enumerate(indices.tolist()):
                n = int(graphs.sizes[index])
                nodes, pairs = (
                    part[place].double().cpu().numpy() * self.scale
                    for part in (parts.nodes[:, :n], parts.pairs[:, :n, :n])
                )
                pairs = pairs + pairs.T
                span = slice(*graphs.edge_offsets[index : index + 2])
                ends = np.unique(np.sort(graphs.edges[:, span], axis=0), axis=1)
                ends = ends[:, ends[0] != ends[1]]
                bonded = np.zeros((n, n), dtype=bool)
                bonded[ends[0], ends[1]] = bonded[ends[1], ends[0]] = True
                nodes = nodes + np.where(bonded, 0.0, pairs).sum(1) / 2
                several = self.run.task.kind == "multiclass"
                value = values[index].max() if several else values[index, self.target]
                name = graphs.ids[index] if graphs.ids else str(index)
                edges = pairs[ends[0], ends[1]]
                found[index] = GraphContributions(name, float(value), nodes, edges, ends)
        return [found[index] for index in range(len(graphs))]

    def agreement(self, graphs: GraphSet) -> Agreement:
        """How far contributions rank the nodes as hiding them does, graph by graph."""
        correlations = []
        for indices, batch in self._batches(graphs):
            outputs = self._outputs(batch)
            given = (self.run.model, batch, outputs, self.average)
            both = (integrated_gradients(*given).of_hiding, hiding_effects(*given))
            for place, size in enumerate(graphs.sizes[indices].tolist()):
                one, other = (values[place, :size].double().cpu().numpy() for values in both)
                correlations.append(rank_correlation(one, other))
        return Agreement(tuple(value for value in correlations if np.isfinite(value)))

    def words(self, graphs: GraphSet, top: int) -> Explanation | None:
        """The words the output follows on some graphs; None where none can be tried."""
        model = self.run.model
        if not isinstance(model, GrammarGNN) or model.plan.marks or len(graphs) < 3:
            return None
        parts = self.run.parts_of(graphs)
        batch = make_store(self.run.config, parts.graphs, self.run.device).batch(
            np.arange(len(graphs))
        )
        names = parts.graphs.node_names
        found = explain(model, batch, size=5, top=top, features=names)
        output = 0 if self.run.task.kind == "multiclass" else self.target
        return Explanation((found.outputs[output],), found.values, found.candidates, found.notes)

    def _outputs(self, batch: GraphBatch) -> torch.Tensor:
        """Which output of each graph: the target's, or that of the predicted class."""
        if self.run.task.kind != "multiclass":
            return torch.full((len(batch),), self.target, device=batch.mask.device)
        with torch.no_grad():
            best: torch.Tensor = self.run.model(batch).argmax(1)
        return best

    def _batches(self, graphs: GraphSet) -> Iterator[tuple[Ints, GraphBatch]]:
        """Some graphs at a time, as the network reads them."""
        parts = self.run.parts_of(graphs)
        store = make_store(self.run.config, parts.graphs, self.run.device)
        for chosen in ordered_batches(graphs.sizes, *AT_ONCE):
            batch = store.batch(chosen)
            if batch.adjacency.is_sparse:
                raise DataError(f"{graphs.name} has a graph too large to be explained")
            yield chosen, batch


def target_index(run: Run, target: str | None) -> int:
    """The column of a target."""
    columns = run.task.columns
    if (level := run.files.data("level")) != "graph":
        raise DataError(f"explain takes runs with one value a graph; this one predicts {level}s")
    names = [column.name for column in columns]
    if target is None:
        if len(columns) > 1:
            raise DataError(f"choose what to explain with --target: {', '.join(names)}")
        return 0
    spellings = {s.lower(): k for k, c in enumerate(columns) for s in (c.name, c.symbol) if s}
    if target.lower() not in spellings:
        raise DataError(f"the run has no target {target!r}; it has: {', '.join(names)}")
    return spellings[target.lower()]


def held_out(run: Run, count: int) -> GraphSet:
    """Graphs the run was not trained on: some of its test part, or those a network comes with.

    Raises:
        DataError: They cannot be read, or there are none.
    """
    if is_pretrained(run.folder):
        graphs = run.read(run.folder / HELD_OUT)
    else:
        splits = run.files.splits()
        part = splits["test"] if len(splits["test"]) else splits["validation"]
        if not len(part):
            raise DataError("the run has no graph it was not trained on")
        graphs = load_graphs(run.config).select(part)
    order = np.random.default_rng(0).permutation(len(graphs))[:count]
    return graphs.select(np.sort(order))
