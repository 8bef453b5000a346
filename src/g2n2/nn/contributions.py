"""What each node and pair adds to a network's output, compared with an average node and pair.

Contributions are integrated gradients: the features of all nodes and pairs go from those of an
average node and pair to their own, and gradient times change is integrated on the way. They add up
to the change of the output. `hiding_effects` is the check: the features of one node and its pairs
are replaced by average ones, and the change of the output measured, without a gradient. Graphs
without features have edges only, and the average is no edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..data.batch import GraphBatch

Numbers = npt.NDArray[np.float64]

STEPS = 16
"""Points of the integral; midpoints."""


@dataclass(frozen=True, eq=False)
class AverageInput:
    """Mean features of nodes, of pairs with an edge and of pairs without one, over some graphs."""

    nodes: Tensor
    edges: Tensor
    others: Tensor

    @classmethod
    def of(cls, batches: Iterable[GraphBatch]) -> AverageInput:
        sums: list[Tensor] = []
        for batch in batches:
            kinds = (batch.mask, *_pairs(batch))
            values = (batch.nodes, batch.edges, batch.edges)
            more = [
                torch.cat([value[kind].sum(0), kind.sum()[None]])
                for value, kind in zip(values, kinds, strict=True)
            ]
            sums = [old + new for old, new in zip(sums, more, strict=True)] if sums else more
        return cls(*(total[:-1] / total[-1].clamp(min=1) for total in sums))

    def like(self, batch: GraphBatch) -> dict[str, Tensor]:
        """The inputs that are explained, with average values."""
        if not batch.nodes.shape[-1] and not batch.edges.shape[-1]:
            return {"adjacency": torch.zeros_like(batch.adjacency)}
        bonded, apart = (kind.unsqueeze(-1).to(batch.edges) for kind in _pairs(batch))
        nodes = self.nodes * batch.mask.unsqueeze(-1).to(batch.nodes)
        return {"nodes": nodes, "edges": self.edges * bonded + self.others * apart}


def _pairs(batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """`[B, N, N]` where two nodes have an edge, and where they have none."""
    both = batch.mask[:, :, None] & batch.mask[:, None]
    both = both & ~torch.eye(both.shape[1], dtype=torch.bool, device=both.device)
    edge = (batch.adjacency != 0) | (batch.adjacency.mT != 0)
    return both & edge, both & ~edge


@dataclass(frozen=True, eq=False)
class Contributions:
    """Of a batch: `nodes` `[B, N]`, and `pairs` `[B, N, N]`, zero on the diagonal."""

    nodes: Tensor
    pairs: Tensor

    @property
    def of_hiding(self) -> Tensor:
        """`[B, N]` what goes when a node is hidden: its own part and that of its pairs."""
        return self.nodes + self.pairs.sum(1) + self.pairs.sum(2)


def integrated_gradients(
    model: nn.Module, batch: GraphBatch, outputs: Tensor, average: AverageInput, steps: int = STEPS
) -> Contributions:
    """What nodes and pairs add to one output of each graph.

    Args:
        model: A network with one row of outputs for each graph, in evaluation mode.
        batch: The graphs, dense.
        outputs: `[B]` which output of each graph.
        average: What they are compared with.
        steps: Points of the integral.
    """
    start = average.like(batch)
    change = {name: getattr(batch, name) - value for name, value in start.items()}
    sums = {name: torch.zeros_like(value) for name, value in change.items()}
    for step in range(steps):
        share = (step + 0.5) / steps
        inputs = {n: (v + change[n] * share).detach().requires_grad_() for n, v in start.items()}
        total = model(replace(batch, **inputs)).gather(1, outputs[:, None]).sum()
        grads = torch.autograd.grad(total, list(inputs.values()), allow_unused=True)
        for name, grad in zip(inputs, grads, strict=True):
            if grad is not None:
                sums[name] += grad / steps
    parts = {name: (value * change[name]).detach() for name, value in sums.items()}
    nodes = torch.zeros_like(batch.adjacency[..., 0])
    if "adjacency" in parts:
        pairs = parts["adjacency"]
    else:
        nodes, pairs = parts["nodes"].sum(-1), parts["edges"].sum(-1)
    diagonal = pairs.diagonal(dim1=1, dim2=2)
    return Contributions(nodes + diagonal, pairs - torch.diag_embed(diagonal))


@torch.no_grad()
def hiding_effects(
    model: nn.Module, batch: GraphBatch, outputs: Tensor, average: AverageInput
) -> Tensor:
    """`[B, N]` what the output loses if the features of a node and its pairs are hidden."""
    hidden = average.like(batch)
    whole = model(batch).gather(1, outputs[:, None])[:, 0]
    effects = torch.zeros_like(batch.adjacency[..., 0])
    for node in range(batch.mask.shape[1]):
        inputs = {}
        for name, value in hidden.items():
            inputs[name] = getattr(batch, name).clone()
            inputs[name][:, node] = value[:, node]
            if name != "nodes":
                inputs[name][:, :, node] = value[:, :, node]
        less = model(replace(batch, **inputs)).gather(1, outputs[:, None])[:, 0]
        effects[:, node] = whole - less
    return effects * batch.mask


def rank_correlation(first: Numbers, second: Numbers) -> float:
    """Spearman's, ties by mean rank; NaN if one of them is constant."""
    one, other = (_ranks(np.asarray(values, dtype=np.float64)) for values in (first, second))
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Numbers) -> Numbers:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Numbers = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    return ranks
