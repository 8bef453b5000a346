"""Marked copies: one copy of a graph for each vertex that Σv puts its mark on.

A copy is one more graph of the batch, with a column that is 1 at the marked vertex. Which vertices
are marked:

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
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..compiler.marks import MarkPlan, Marks
from ..compiler.presets import Preset
from ..errors import G2N2Warning
from ..graphs.symmetry import orbits
from ..ops.precision import without_autocast
from .layer import ACTIVATIONS, Memories, linear
from .memory_budget import give_back_freed_memory

REMEMBERED = 2**18
"""Graphs whose orbits are remembered."""
_remembered: dict[bytes, npt.NDArray[np.int64]] = {}


@dataclass(frozen=True, eq=False)
class MarkedCopies:
    """Which copies of the graphs of a batch there are.

    Attributes:
        graph: `[C]` the graph of each copy, ascending.
        vertex: `[C]` its marked vertex.
        weight: `[C]` how many vertices it stands for; 0 for a copy that is none.
        each: How many there are of each graph; None where that differs.
    """

    graph: Tensor
    vertex: Tensor
    weight: Tensor
    each: int | None = None

    def __len__(self) -> int:
        return len(self.graph)

    def chunks(self, most: int) -> list[MarkedCopies]:
        """The copies in groups of at most `most`."""
        parts = (torch.split(t, most) for t in (self.graph, self.vertex, self.weight))
        return [MarkedCopies(*part) for part in zip(*parts, strict=True)]

    def summed(self, values: Tensor, graphs: int) -> Tensor:
        """`[G, …, K]` the sum over each graph's copies of `[C, …, K]`."""
        weighted = values * self.weight.to(values.dtype).view(-1, *[1] * (values.dim() - 1))
        if self.each is not None:  # ONNX has no `index_add`
            return weighted.view(graphs, self.each, *weighted.shape[1:]).sum(1)
        return rows_summed(weighted, self.graph, graphs)


def rows_summed(rows: Tensor, index: Tensor, count: int) -> Tensor:
    """`[count, …]` the sums of the rows `[C, …]` that have an index."""
    total: Tensor = _RowsSummed.apply(rows, index, count)  # type: ignore[no-untyped-call]
    return total


class _RowsSummed(torch.autograd.Function):
    """`index_add` to zeros, which would keep all rows for the backward pass."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        rows, ctx.index, count = args
        total: Tensor = rows.new_zeros(count, *rows.shape[1:])
        return total.index_add_(0, ctx.index, rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return grads[0].index_select(0, ctx.index), None, None


class Markable(Protocol):
    """Graphs of which copies can be marked: padded ones below, packed ones in `marked_rows`."""

    @property
    def count(self) -> int:
        """How many graphs."""

    @property
    def most(self) -> int:
        """Nodes of the largest."""

    def choose(self, marks: Marks, training: bool) -> MarkedCopies:
        """The copies there are."""

    def copies(self, chosen: MarkedCopies) -> Self:
        """Some of them."""

    def read(self) -> Tensor:
        """`[G, P]` what the network reads out of each graph."""


@dataclass(frozen=True, eq=False)
class PaddedGraphs:
    """A padded batch: the reference.

    Attributes:
        features: What is read out of memories that start with those shared by all copies; given
            adjacency, columns of marks, mask and memories.
        adjacency: `[B, N, N]`.
        nodes: `[B, N, F]` their features, and a column for each mark.
        edges: `[B, N, N, E]`.
        mask: `[B, N]`.
        memories: What the copies of a graph share.
        marks: Marks so far.
    """

    features: Callable[[Tensor, Tensor, Tensor, Memories], Tensor]
    adjacency: Tensor
    nodes: Tensor
    edges: Tensor
    mask: Tensor
    memories: Memories
    marks: int = 0

    @property
    def count(self) -> int:
        return self.mask.shape[0]

    @property
    def most(self) -> int:
        return self.mask.shape[1]

    def choose(self, marks: Marks, training: bool) -> MarkedCopies:
        # In a compiled program no value decides a shape: every vertex has a copy, which may count
        # 0 times, and orbits, which the host finds, give the sum over all vertices.
        compiled = torch.compiler.is_compiling()
        marks = "all" if compiled and marks == "orbits" else marks
        if isinstance(marks, int) and training:
            weight = drawn_weights(marks, self.mask)
        else:
            weight = mark_weights(marks, self.adjacency, self.nodes, self.edges, self.mask)
        if compiled:
            numbers = (torch.arange(size, device=weight.device) for size in weight.shape)
            graph, vertex = torch.meshgrid(*numbers, indexing="ij")
            size = weight.shape[1]
            return MarkedCopies(graph.flatten(), vertex.flatten(), weight.flatten(), size)
        graph, vertex = weight.nonzero(as_tuple=True)
        return MarkedCopies(graph, vertex, weight[graph, vertex])

    def copies(self, chosen: MarkedCopies) -> PaddedGraphs:
        adjacency, nodes, edges, mask = (
            tensor.index_select(0, chosen.graph)
            for tensor in (self.adjacency, self.nodes, self.edges, self.mask)
        )
        places = torch.arange(self.most, device=mask.device)
        column = (places == chosen.vertex.unsqueeze(1)).to(nodes.dtype).unsqueeze(-1)
        nodes = torch.cat([nodes, column], dim=-1)
        memories = {x: rows.index_select(0, chosen.graph) for x, rows in self.memories.items()}
        return PaddedGraphs(self.features, adjacency, nodes, edges, mask, memories, self.marks + 1)

    @property
    def columns(self) -> Tensor:
        """`[B, N, marks]` 1 at the marked vertices."""
        return self.nodes[..., self.nodes.shape[-1] - self.marks :]

    def read(self) -> Tensor:
        return self.features(self.adjacency, self.columns, self.mask, self.memories)


def mark_weights(
    marks: Marks, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor
) -> Tensor:
    """`[B, N]` how many vertices a mark on each vertex stands for; 0 where there is none.

    Where marks are drawn in training, these are the ones they are drawn from.
    """
    if marks == "orbits":
        return _orbit_sizes(adjacency, nodes, edges, mask)
    if marks == "heavy":
        _warn_of_other_pairs(adjacency, edges)
        return _inner(adjacency, mask).to(adjacency.dtype)
    return mask.to(adjacency.dtype)


def drawn_weights(count: int, mask: Tensor) -> Tensor:
    """`[B, N]` n/K for each of K vertices drawn from the n of each graph."""
    sizes = mask.sum(1, keepdim=True)
    keys = torch.rand(mask.shape, device=mask.device).masked_fill(~mask, 2.0)
    ranks = keys.argsort(1).argsort(1)
    return ((ranks < count) & mask) * (sizes / sizes.clamp(min=1, max=count))


def _warn_of_other_pairs(adjacency: Tensor, edges: Tensor) -> None:
    """Say so if pairs without an edge have features, which a leaf sees and its neighbour not."""
    if torch.compiler.is_compiling() or not edges.shape[-1]:
        return
    unlinked = (adjacency == 0) & ~torch.eye(edges.shape[1], dtype=torch.bool, device=edges.device)
    if bool((edges.any(-1) & unlinked).any()):
        warnings.warn(
            "marks='heavy' loses nothing where features of pairs are those of edges; here other "
            "pairs have some, such as distances, and something is lost: 'orbits' and 'all' lose "
            "nothing",
            G2N2Warning,
            stacklevel=2,
        )


def _inner(adjacency: Tensor, mask: Tensor) -> Tensor:
    """`[B, N]` vertices with more than one neighbour, or whose neighbours have no other."""
    joined = (adjacency != 0) | (adjacency != 0).mT
    joined = joined & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    inner = joined.sum(2) > 1
    return mask & (inner | ~(joined & inner.unsqueeze(1)).any(2))


def _orbit_sizes(adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
    """`[B, N]` the size of each orbit at its first vertex, 0 elsewhere."""
    on_diagonal = torch.diag_embed(nodes.mT).movedim(1, -1)
    pairs = torch.cat([adjacency.unsqueeze(-1), edges, on_diagonal], dim=-1)
    sizes = np.zeros(mask.shape)
    exact = pairs.float() if pairs.dtype == torch.bfloat16 else pairs  # which numpy lacks
    values = exact.detach().cpu().numpy()
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

    Where the preset is normalised, what an MLP gives is added to what it reads, so that the sums
    have that from the start. Each sum is divided by `unit`, the same number for all graphs. Copies
    are computed some at a time; where there are more, they are computed again for the backward
    pass.
    """

    def __init__(self, plan: MarkPlan, preset: Preset, unit: float) -> None:
        super().__init__()
        self.plan, self.unit, self.residual = plan, unit, preset.normalised
        activation = ACTIVATIONS[preset.activation]
        self.mixers = nn.ModuleList(
            nn.Sequential(*[part for m in maps for part in (linear(m), activation())][:-1])
            for maps in plan.mixers
        )

    @property
    def mixer(self) -> nn.Sequential:
        """The MLP in front of the innermost sum."""
        return cast(nn.Sequential, self.mixers[0])

    def forward(self, graphs: Markable, at_once: int | None) -> Tensor:
        """`[B, K]` what is known of each graph.

        Args:
            graphs: The graphs.
            at_once: Copies that are computed together; None for all.
        """
        return self._summed(len(self.mixers), graphs, at_once)

    def _summed(self, depth: int, graphs: Markable, at_once: int | None) -> Tensor:
        """The sum over the mark that has `depth - 1` marks inside it."""
        if not depth:
            return graphs.read()
        mixer = cast(nn.Sequential, self.mixers[depth - 1])
        copies = graphs.choose(self.plan.chosen, self.training)
        parts = [copies]
        if at_once is not None:
            parts = copies.chunks(max(1, at_once // graphs.most ** (depth - 1)))
        again = len(parts) > 1 and torch.is_grad_enabled()

        def values(part: MarkedCopies) -> Tensor:
            if again:
                give_back_freed_memory(part.weight.device)
            value = self._summed(depth - 1, graphs.copies(part), at_once)
            with without_autocast(value.device.type):
                if len(mixer):
                    value = value.to(cast(nn.Linear, mixer[0]).weight.dtype)
                    value = value + mixer(value) if self.residual else mixer(value)
                return part.summed(value, graphs.count)

        sums = [checkpoint(values, x, use_reentrant=False) if again else values(x) for x in parts]
        total: Tensor = sums[0]
        for more in sums[1:]:
            total = total + more
        return total / self.unit
