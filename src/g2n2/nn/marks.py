"""Marked copies: one copy of a graph for each vertex that Σv puts its mark on.

A copy is one more graph of the batch, with a node feature that is 1 at the marked vertex. Which
vertices are marked:

- `all`: every one, as the grammar says.
- `orbits`: one of each orbit of the graph's automorphisms, counted as often as the orbit has
  vertices. The sum is the same: automorphic copies are isomorphic graphs. One of each *colour* of a
  refinement would be wrong: copies of one colour need not be (rook's and Shrikhande's graph side by
  side have one colour and two kinds of copy).
- `heavy`: no vertex with one neighbour, such as hydrogen, unless that neighbour has one too. What a
  mark on such a leaf sees follows from the mark beside it, so that nothing is lost where edges are
  all the network reads; not so for features of other pairs, such as distances.
- K: in training K vertices drawn at random, each counted n/K times; elsewhere all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..compiler.marks import MarkPlan, Marks
from ..compiler.presets import Preset
from ..graphs.symmetry import orbits
from .layer import ACTIVATIONS, linear

REMEMBERED = 2**18
"""Graphs whose orbits are remembered."""
_remembered: dict[bytes, npt.NDArray[np.int64]] = {}


@dataclass(frozen=True, eq=False)
class MarkedCopies:
    """Which copies of the graphs of a batch there are.

    Attributes:
        graph: `[C]` the graph of each copy, ascending.
        vertex: `[C]` its marked vertex.
        weight: `[C]` how many vertices it stands for.
    """

    graph: Tensor
    vertex: Tensor
    weight: Tensor

    def __len__(self) -> int:
        return len(self.graph)

    def chunks(self, most: int) -> list[MarkedCopies]:
        """The copies in groups of at most `most`."""
        parts = (torch.split(t, most) for t in (self.graph, self.vertex, self.weight))
        return [MarkedCopies(*part) for part in zip(*parts, strict=True)]

    def of(self, batch: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The copies of a batch: adjacency, nodes with one more column, edges and mask."""
        adjacency, nodes, edges, mask = (tensor.index_select(0, self.graph) for tensor in batch)
        nodes = torch.cat([nodes, self.column(mask.shape[1], nodes.dtype)], dim=-1)
        return adjacency, nodes, edges, mask

    def column(self, nodes: int, dtype: torch.dtype) -> Tensor:
        """`[C, N, 1]` the mark of each copy as a column."""
        places = torch.arange(nodes, device=self.vertex.device)
        return (places == self.vertex.unsqueeze(1)).to(dtype).unsqueeze(-1)

    def summed(self, values: Tensor, graphs: int) -> Tensor:
        """`[G, K]` the sum over each graph's copies of `[C, K]`."""
        weighted = values * self.weight.to(values.dtype).unsqueeze(1)
        return values.new_zeros(graphs, values.shape[1]).index_add(0, self.graph, weighted)


def choose_marks(marks: Marks, batch: Sequence[Tensor], training: bool = False) -> MarkedCopies:
    """The marked copies of a batch: adjacency, features of nodes and of edges, mask."""
    adjacency, nodes, edges, mask = batch
    if marks == "orbits":
        weight = _orbit_sizes(adjacency, nodes, edges, mask)
    elif marks == "heavy":
        weight = _inner(adjacency, mask).to(adjacency.dtype)
    elif isinstance(marks, int) and training:
        weight = _drawn(marks, mask).to(adjacency.dtype)
    else:
        weight = mask.to(adjacency.dtype)
    graph, vertex = weight.nonzero(as_tuple=True)
    return MarkedCopies(graph, vertex, weight[graph, vertex])


def _inner(adjacency: Tensor, mask: Tensor) -> Tensor:
    """`[B, N]` vertices with more than one neighbour, or whose neighbours have no other."""
    joined = (adjacency != 0) | (adjacency != 0).mT
    joined = joined & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    inner = joined.sum(2) > 1
    return mask & (inner | ~(joined & inner.unsqueeze(1)).any(2))


def _drawn(count: int, mask: Tensor) -> Tensor:
    """`[B, N]` n/K for each of K vertices drawn from the n of each graph."""
    sizes = mask.sum(1, keepdim=True)
    keys = torch.rand(mask.shape, device=mask.device).masked_fill(~mask, 2.0)
    ranks = keys.argsort(1).argsort(1)
    drawn = (ranks < count) & mask
    return drawn * (sizes / sizes.clamp(max=count))


def _orbit_sizes(adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
    """`[B, N]` the size of each orbit at its first vertex, 0 elsewhere."""
    on_diagonal = torch.diag_embed(nodes.mT).movedim(1, -1)
    pairs = torch.cat([adjacency.unsqueeze(-1), edges, on_diagonal], dim=-1)
    sizes = np.zeros(mask.shape)
    values = pairs.detach().cpu().numpy()
    for place, (graph, count) in enumerate(zip(values, mask.sum(1).tolist(), strict=True)):
        sizes[place, :count] = _sizes_of(np.ascontiguousarray(graph[:count, :count]))
    return torch.from_numpy(sizes).to(adjacency)


def _sizes_of(pairs: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """`[n]` orbit sizes at first vertices; remembered, as training sees each graph many times."""
    key = _key(pairs)
    if key not in _remembered:
        if len(_remembered) >= REMEMBERED:
            _remembered.clear()
        _remembered[key] = np.bincount(orbits(pairs), minlength=len(pairs))
    return _remembered[key]


def _key(pairs: npt.NDArray[np.generic]) -> bytes:
    return hashlib.blake2b(pairs.tobytes(), digest_size=16).digest() + repr(pairs.shape).encode()


def remember_orbits(
    pairs: npt.NDArray[np.generic], orders: Sequence[npt.NDArray[np.int64]], marks: int = 1
) -> None:
    """Compute the orbits of a graph once for all its relabelled copies.

    Args:
        pairs: `[n, n, E]` what a network reads of each pair, A first.
        orders: For each copy the vertex that stands in each place.
        marks: How many marks the network has; inside the first, the orbits of each marked copy.
    """
    sizes = _sizes_of(pairs)
    for order in orders:
        _remembered[_key(np.ascontiguousarray(pairs[np.ix_(order, order)]))] = sizes[order]
    for vertex in np.flatnonzero(sizes) if marks > 1 else ():
        mark = np.zeros_like(pairs[..., :1])
        mark[vertex, vertex] = 1
        remember_orbits(np.concatenate([pairs, mark], axis=-1), orders, marks - 1)


class SumsOverMarks(nn.Module):
    """The MLPs in front of the sums over marks, and the sums.

    Each sum is divided by `unit`, the same number for all graphs. Copies are computed some at a
    time; where there are more, they are computed again for the backward pass.
    """

    def __init__(self, plan: MarkPlan, preset: Preset, unit: float) -> None:
        super().__init__()
        self.plan, self.unit = plan, unit
        activation = ACTIVATIONS[preset.activation]
        self.mixers = nn.ModuleList(
            nn.Sequential(*[part for m in maps for part in (linear(m), activation())][:-1])
            for maps in plan.mixers
        )

    def forward(
        self, features: Callable[..., Tensor], at_once: int, batch: Sequence[Tensor]
    ) -> Tensor:
        """`[B, K]` what is known of each graph of a batch.

        Args:
            features: What is read out of marked copies, given as the batch is.
            at_once: Copies that are computed together.
            batch: Adjacency, features of nodes and of edges, mask.
        """
        return self._summed(len(self.mixers), features, at_once, batch)

    def _summed(
        self, depth: int, features: Callable[..., Tensor], at_once: int, batch: Sequence[Tensor]
    ) -> Tensor:
        """The sum over the mark that has `depth - 1` marks inside it."""
        if not depth:
            return features(*batch)
        mask = batch[-1]
        mixer = cast(nn.Sequential, self.mixers[depth - 1])
        copies = choose_marks(self.plan.chosen, batch, self.training)
        parts = copies.chunks(max(1, at_once // mask.shape[1] ** (depth - 1)))
        again = len(parts) > 1 and torch.is_grad_enabled()

        def values(part: MarkedCopies) -> Tensor:
            value = self._summed(depth - 1, features, at_once, part.of(batch))
            if len(mixer):
                value = mixer(value.to(cast(nn.Linear, mixer[0]).weight.dtype))
            return part.summed(value, len(mask))

        total = mask.new_zeros((), dtype=batch[0].dtype)
        for part in parts:
            total = total + (
                checkpoint(values, part, use_reentrant=False) if again else values(part)
            )
        return total / self.unit
