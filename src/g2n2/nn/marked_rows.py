"""Marked copies of packed graphs: rows of one more packed batch, gathered from those of the graphs.

Copies follow one another as their graphs do, so that graphs of equal size stay together. Where a
CUDA graph is recorded only the device knows which copies there are: they have the rows of a `Room`,
and those beyond the last copy reach neither outputs nor gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..compiler.marks import Marks
from ..data.capacities import Room
from ..ops.derivatives import once_differentiable
from ..ops.packing import Packing
from .input_memories import halved, input_memories
from .layer import Memories
from .marks import MarkedCopies, drawn_weights, mark_weights, rows_summed

if TYPE_CHECKING:
    from .packed import PackedNetwork
    from .packed_layer import PackedGraphs


@dataclass(frozen=True, eq=False)
class RowGraphs:
    """Packed graphs of which copies can be marked.

    Attributes:
        network: Computes the copies.
        packing: Where the graphs lie.
        memories: What the copies of a graph share.
        adjacency: `[P, 1]` A.
        weights: `[Q]` how many vertices a mark on each node stands for.
        features: `[Q, F]` of nodes and `[P, E]` of pairs, where the orbits of copies need them.
        marks: `[Q, k]` a column for each mark so far.
        room: Of the copies; None where the host counts them.
        lifting: Where the rows of these copies come from; None for the graphs themselves.
    """

    network: PackedNetwork
    packing: Packing
    memories: Memories
    adjacency: Tensor
    weights: Tensor
    features: tuple[Tensor, Tensor] | None
    marks: Tensor
    room: Room | None = None
    lifting: Lifting | None = None

    @classmethod
    def of(cls, network: PackedNetwork, graphs: PackedGraphs) -> RowGraphs:
        """The graphs of a batch after the layers before the marks."""
        assert graphs.adjacency is not None, "networks with marks read it"
        assert graphs.marks is not None, "and weigh them"
        marks = graphs.adjacency.new_zeros(graphs.packing.nodes, 0)
        return cls(
            network,
            graphs.packing,
            network.trunk(graphs),
            graphs.adjacency,
            graphs.marks,
            graphs.features,
            marks,
            graphs.room,
        )

    @property
    def count(self) -> int:
        return self.packing.graphs

    @property
    def most(self) -> int:
        return self.packing.most

    def choose(self, marks: Marks, training: bool) -> MarkedCopies:
        """The copies there are; with a room so many, of which the last may be none."""
        packing, weights = self.packing, self.weights
        if isinstance(marks, int) and training:
            drawn = [drawn_weights(marks, present) for present in packing.present]
            weights = node_weights(packing, drawn)
        if self.room is None:
            rows = weights.nonzero()[:, 0]
            weight = weights[rows]
        else:
            rows, weight = _first_rows(weights, self.room.copies)
        return MarkedCopies(packing.graph_of_node[rows], packing.place[rows], weight)

    def copies(self, chosen: MarkedCopies) -> RowGraphs:
        """The graphs of some copies."""
        lifting = Lifting(self.packing, chosen, self.room)
        copies = lifting.packing
        here = (copies.place == chosen.vertex[copies.graph_of_node]).unsqueeze(1)
        column = cleared(here.to(self.marks.dtype), tail_of(copies, "V"))
        marks = torch.cat([lifting.rows(self.marks, "V"), column], dim=1)
        features, plan = None, self.network.model.plan.marks
        if self.features is not None and plan and marks.shape[1] < len(plan.names):
            nodes, edges = self.features
            nodes = torch.cat([lifting.rows(nodes, "V"), column.to(nodes.dtype)], dim=1)
            features = nodes, lifting.rows(edges, "M")
        adjacency = lifting.rows(self.adjacency, "M")
        if features is None:
            weights = lifting.rows(self.weights.unsqueeze(1), "V")[:, 0]
        else:
            weights = weights_of("orbits", copies, adjacency, *features)
        memories = {letter: lifting.rows(x, letter) for letter, x in self.memories.items()}
        return replace(
            self,
            packing=copies,
            memories=memories,
            adjacency=adjacency,
            weights=weights,
            features=features,
            marks=marks,
            room=self.room and self.room.inner,
            lifting=lifting,
        )

    def read(self) -> Tensor:
        """`[C, P]` what is read out of each copy."""
        return self.network.features(self.inputs())

    def inputs(self) -> PackedGraphs:
        """The copies with the memories their layers start with."""
        network, plan = self.network, self.network.model.plan.inputs
        constants = network.constants(self.packing, self.adjacency)
        columns = self.packing.views(self.marks, "V")
        none = self.marks.new_zeros(())
        parts = [
            input_memories(plan.marked, network.model.words, column, none, named)
            for column, named in zip(columns, constants, strict=True)
        ]
        seeds = {
            letter: cleared(self.packing.rows([part[letter] for part in parts], letter), tail)
            for letter in parts[0]
            for tail in [tail_of(self.packing, letter)]
        }
        whole = network.model.plan
        shared = whole.scoped.inside if whole.scoped else whole.inputs.unmarked
        widths = {} if whole.trunk else {s.letter: width for s, width in shared.widths.items()}
        first = {
            letter: _joined(self.memories.get(letter), seeds.get(letter), widths.get(letter, 0))
            for letter in dict.fromkeys((*self.memories, *seeds))
        }
        graphs = network.from_inputs(self.packing, first, self.adjacency, None)
        named = [
            constants.beside(dict(zip(plan.marks, torch.split(column, 1, dim=-1), strict=True)))
            for constants, column in zip(graphs.constants, columns, strict=True)
        ]
        return replace(graphs, constants=named)


class Lifting:
    """Where the rows of copies come from; `packing` says where the copies lie."""

    def __init__(self, packing: Packing, chosen: MarkedCopies, room: Room | None) -> None:
        self.graphs, self.chosen = packing, chosen
        sizes = packing.sizes[chosen.graph]
        if room is None:
            self.packing = Packing(sizes.tolist(), packing.device)
        else:
            sizes = torch.where(chosen.weight != 0, sizes, 0)
            self.packing = Packing.within(sizes, packing.most, room.nodes, room.pairs)

    def rows(self, rows: Tensor, letter: str) -> Tensor:
        """The rows of a memory of the graphs as those of the copies, zero in the tail."""
        if letter == "S":
            return rows.index_select(0, self.chosen.graph)
        source = self._pairs if letter == "M" else self._nodes
        tail = tail_of(self.packing, letter)
        lifted: Tensor = _Lift.apply(rows, source, tail)  # type: ignore[no-untyped-call]
        return lifted

    def summed(self, rows: Tensor, letter: str) -> Tensor:
        """The sums over the copies of each graph of their rows of a memory."""
        if letter == "S":
            return rows_summed(rows, self.chosen.graph, self.graphs.graphs)
        if letter == "M":
            return rows_summed(rows, self._pairs, self.graphs.pairs)
        return rows_summed(rows, self._nodes, self.graphs.nodes)

    def copy_of(self, letter: str) -> Tensor:
        """The copy that each row of a memory of the copies belongs to."""
        if letter == "S":
            return torch.arange(self.packing.graphs, device=self.packing.device)
        nodes = self.packing.graph_of_node
        return nodes[self.packing.ends[0]] if letter == "M" else nodes

    @cached_property
    def _nodes(self) -> Tensor:
        """`[Q]` which node of its graph each node of a copy is."""
        starts = self.graphs.index.node_starts[self.chosen.graph]
        source: Tensor = starts[self.packing.graph_of_node] + self.packing.place
        return source.long()

    @cached_property
    def _pairs(self) -> Tensor:
        """`[P]` which pair of its graph each pair of a copy is."""
        copies, sizes = self.packing, self.packing.sizes
        first, end = copies.ends
        owner = copies.graph_of_node[first]
        starts = self.graphs.index.pair_starts[self.chosen.graph]
        source: Tensor = starts[owner] + copies.place[first] * sizes[owner] + end
        return source


class _Lift(torch.autograd.Function):
    """Rows of graphs to those of their copies; back, the sum over copies."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        rows, source, tail = args
        ctx.source, ctx.tail, ctx.count = source, tail, len(rows)
        return cleared(rows.index_select(0, source), tail)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        grad = cleared(grads[0].clone(), ctx.tail) if ctx.tail is not None else grads[0]
        # Half precision would round the sum at every copy.
        wide = torch.promote_types(grad.dtype, torch.float32)
        total = grad.new_zeros(ctx.count, grad.shape[1], dtype=wide)
        return total.index_add_(0, ctx.source, grad.to(wide)).to(grad.dtype), None, None


def weights_of(
    marks: Marks, packing: Packing, adjacency: Tensor, nodes: Tensor, edges: Tensor
) -> Tensor:
    """`[Q]` how many vertices a mark on each node of packed graphs stands for."""
    blocks = (packing.views(x, v) for x, v in ((adjacency, "M"), (nodes, "V"), (edges, "M")))
    given = zip(*blocks, packing.present, strict=True)
    return node_weights(packing, [mark_weights(marks, a[..., 0], x, e, m) for a, x, e, m in given])


def node_weights(packing: Packing, blocks: Sequence[Tensor]) -> Tensor:
    """`[Q]` the numbers `[g, n]` of each block, 0 in the tail."""
    weights = packing.rows([block.unsqueeze(-1) for block in blocks], "V")
    return cleared(weights, tail_of(packing, "V"))[:, 0]


def tail_of(packing: Packing, letter: str) -> Tensor | None:
    """Rows of a memory that belong to no graph; None where there are none."""
    if not packing.has_tail or letter == "S":
        return None
    rows, total = (packing.pairs, 1) if letter == "M" else (packing.nodes, 0)
    return torch.arange(rows, device=packing.device) >= packing.totals[total]


def cleared(rows: Tensor, tail: Tensor | None) -> Tensor:
    """Rows whose tail is set to zero."""
    return rows if tail is None else rows.masked_fill_(tail.unsqueeze(1), 0.0)


def _first_rows(weights: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The first so many rows whose weight is not 0, and their weights, 0 where there are fewer."""
    there = weights != 0
    places = torch.where(there, there.cumsum(0) - 1, count).clamp(max=count)
    numbers = torch.arange(len(weights), device=weights.device)
    rows = numbers.new_zeros(count + 1).scatter_(0, places, numbers)[:count]
    filled = torch.arange(count, device=weights.device) < there.sum()
    return torch.where(filled, rows, 0), torch.where(filled, weights[rows], 0)


def _joined(lifted: Tensor | None, seeds: Tensor | None, width: int) -> Tensor:
    """What all copies share, and the channels of the mark; in halves where the first are.

    `width` is that of the first as a whole.
    """
    if lifted is None or seeds is None:
        memory = seeds if lifted is None else lifted
        assert memory is not None, "it is one of them"
        return memory
    if lifted.shape[1] == 2 * width > 0:
        (high, low), more = lifted.chunk(2, dim=1), halved(seeds, lifted.dtype).chunk(2, dim=1)
        return torch.cat([high, more[0], low, more[1]], dim=1)
    return torch.cat([lifted, seeds.to(lifted.dtype)], dim=1)
