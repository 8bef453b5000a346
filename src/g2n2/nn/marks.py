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
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import LoweringError
from ..graphs.orbits import orbits

Marks = Literal["all", "orbits", "heavy"] | int
WAYS = ("all", "orbits", "heavy")
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
        parts = zip(*(t.split(most) for t in (self.graph, self.vertex, self.weight)), strict=True)
        return [MarkedCopies(*part) for part in parts]

    def column(self, nodes: int, dtype: torch.dtype) -> Tensor:
        """`[C, N, 1]` the mark of each copy as a column."""
        places = torch.arange(nodes, device=self.vertex.device)
        return (places == self.vertex.unsqueeze(1)).to(dtype).unsqueeze(-1)

    def summed(self, values: Tensor, graphs: int) -> Tensor:
        """`[G, K]` the sum over each graph's copies of `[C, K]`."""
        weighted = values * self.weight.to(values.dtype).unsqueeze(1)
        return values.new_zeros(graphs, values.shape[1]).index_add(0, self.graph, weighted)


def check_marks(marks: object) -> None:
    """Refuse a choice of marks that is none.

    Raises:
        LoweringError: Says what there is to choose from.
    """
    if isinstance(marks, int) and not isinstance(marks, bool) and marks > 0:
        return
    if marks not in WAYS:
        more = ""
        if isinstance(marks, str) and marks.startswith("colour"):
            more = (
                "; vertices of one colour need not have isomorphic marked copies, as rook's and "
                "Shrikhande's graph side by side show: one of each orbit is what is sound"
            )
        raise LoweringError(
            f"marks is all, orbits, heavy or a number of vertices drawn in training, got "
            f"{marks!r}{more}"
        )


def choose_marks(
    marks: Marks,
    adjacency: Tensor,
    nodes: Tensor,
    edges: Tensor,
    mask: Tensor,
    training: bool = False,
) -> MarkedCopies:
    """The marked copies of the graphs of a batch, given as a network reads it."""
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
    key = hashlib.blake2b(pairs.tobytes(), digest_size=16).digest() + repr(pairs.shape).encode()
    if key not in _remembered:
        if len(_remembered) >= REMEMBERED:
            _remembered.clear()
        _remembered[key] = np.bincount(orbits(pairs), minlength=len(pairs))
    return _remembered[key]
