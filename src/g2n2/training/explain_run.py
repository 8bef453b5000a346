"""Why a run predicts what it does: contributions of nodes and edges in the target's unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..data.batch import GraphBatch
from ..data.batching import ordered_batches
from ..data.graph_set import GraphSet, Ints
from ..described import counted, shown_number
from ..errors import DataError
from ..nn.contributions import (
    AverageInput,
    hiding_effects,
    integrated_gradients,
    rank_correlation,
)
from ..nn.explaining import Explanation, explain
from ..nn.model import GrammarGNN
from .run import HELD_OUT, Run, is_pretrained
from .setup import make_store
from .task import Values

AT_ONCE = (16, 2**13)
"""Graphs in a batch, and their pairs."""
LEAST_FOR_WORDS = 3
"""Graphs whose outputs words can be compared with."""


@dataclass(frozen=True, eq=False)
class GraphContributions:
    """What the nodes and edges of one graph add to a prediction."""

    id: str  # the graph's
    name: str  # what is predicted: the target, or `p(target=class)`
    value: float  # the prediction, in the target's unit, or a probability
    note: str  # how the graph is unlike the training graphs; empty if it is not
    unseen: bool  # whether it has an element that no training graph has: its numbers mean nothing
    nodes: Values  # `[n]` in the target's unit; logits for classes
    # `[E]` the same of each edge. A pair without an edge, which may have a distance, is shared by
    # its two nodes
    edges: Values
    ends: Ints  # `[2, E]` each edge once

    def folded(self, symbols: Sequence[str]) -> GraphContributions:
        """Each hydrogen counts, with its bond, with the one atom it is on."""
        nodes, edges = self.nodes.copy(), self.edges.copy()
        hydrogen = np.array([symbol == "H" for symbol in symbols])
        degrees = np.bincount(self.ends.ravel(), minlength=len(nodes))
        for edge, (a, b) in enumerate(self.ends.T.tolist()):
            for atom, near in ((a, b), (b, a)):
                if hydrogen[atom] and degrees[atom] == 1 and not hydrogen[near]:
                    nodes[near] += nodes[atom] + edges[edge]
                    nodes[atom] = edges[edge] = 0.0
        return replace(self, nodes=nodes, edges=edges)


@dataclass(frozen=True)
class Agreement:
    """Rank correlations of contributions with the effects of hiding each node, one a graph."""

    correlations: tuple[float, ...]

    def __str__(self) -> str:
        if not self.correlations:
            return "contributions are not checked: no held-out graph has nodes that differ in them"
        quantiles = np.quantile(self.correlations, (0.25, 0.5, 0.75))
        low, middle, high = (shown_number(f"{value:.2f}") for value in quantiles)
        return (
            f"checked on {counted(len(self.correlations), 'held-out graph')}: contributions and "
            f"what changes when a node is hidden have a rank correlation of {middle} (median; "
            f"quartiles {low} and {high})"
        )


class Explainer:
    """Explains predictions of one target of a run with one value a graph.

    Graphs are compared with the average node and edge of the `reference`.
    """

    def __init__(self, run: Run, target: str | None, reference: GraphSet) -> None:
        self.run, self.target = run, target_index(run, target)
        regression = run.task.kind == "regression"
        self.scale = run.trained_on.scaling.deviation[self.target] if regression else 1.0
        self.average = AverageInput.of(batch for _, batch in self._batches(reference))

    def graphs(self, graphs: GraphSet) -> list[GraphContributions]:
        """What nodes and edges add to each prediction, in the order of the set.

        Per-element values that were subtracted from the targets are no part of it.
        """
        outcome = self.run.predict(graphs)
        values, names = outcome.calibrated, outcome.names
        contributions: dict[int, GraphContributions] = {}
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
                output = int(values[index].argmax()) if several else self.target
                contributions[index] = GraphContributions(
                    id=names[index],
                    name=self.name_of(output),
                    value=float(values[index, output]),
                    note=outcome.unlike[index],
                    unseen=bool(outcome.unseen[index]),
                    nodes=nodes,
                    edges=pairs[ends[0], ends[1]],
                    ends=ends,
                )
        return [contributions[index] for index in range(len(graphs))]

    def name_of(self, output: int) -> str:
        """What an output of the network means."""
        several = self.run.task.kind == "multiclass"
        column = self.run.task.columns[0 if several else output]
        if column.kind == "regression":
            return column.name
        return f"p({column.name}={(column.classes or ('0', '1'))[output if several else 1]})"

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

    def words(self, graphs: GraphSet, top: int) -> tuple[str, Explanation]:
        """What is predicted, and the words it follows on some graphs; a DataError without any."""
        model = self.run.model
        if not isinstance(model, GrammarGNN):
            raise DataError(f"the baseline {self.run.config.baseline} has no grammar")
        if model.plan.marks:
            raise DataError("words with marks are not tried")
        if len(graphs) < LEAST_FOR_WORDS:
            raise DataError(f"{counted(len(graphs), 'graph')} of {LEAST_FOR_WORDS} or more")
        parts = self.run.parts_of(graphs)
        store = make_store(self.run.config, parts.graphs, self.run.device)
        batch, names = store.batch(np.arange(len(graphs))), parts.graphs.node_names
        explanation = explain(model, batch, size=5, top=top, features=names)
        output = 0 if self.run.task.kind == "multiclass" else self.target
        chosen = replace(explanation, outputs=(explanation.outputs[output],))
        return self.name_of(output), chosen

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
    if (level := run.trained_on.level) != "graph":
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
    """Graphs the run was not trained on: some of its test part, or those a network comes with."""
    if is_pretrained(run.folder):
        graphs = run.read(run.folder / HELD_OUT)
    else:
        splits = run.files.splits()
        part = splits["test"] if len(splits["test"]) else splits["validation"]
        if not len(part):
            raise DataError("the run has no graph it was not trained on")
        graphs = run.own_graphs().select(part)
    order = np.random.default_rng(0).permutation(len(graphs))[:count]
    return graphs.select(np.sort(order))
