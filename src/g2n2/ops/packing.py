"""Packing: where the graphs of a batch lie when their pairs and nodes are rows without padding.

The pairs (i, j) of all graphs, graph after graph, are the rows of a matrix memory `[P, S]`,
P = Σn²; the nodes are the rows of a column or row memory `[Q, S]`, Q = Σn; the graphs those of a
scalar memory `[G, S]`. Row-wise operations need no more. An operation that knows graphs takes
blocks, dense tensors `[g, n, n, S]`: one view for each run of graphs of equal size, or a single
padded copy of a batch of small graphs on a GPU, where few launches matter more than few numbers.
Kernels read places of graphs from tensors (`index`), so that a CUDA graph serves every batch that
fits; rows beyond its last graph are its tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from .derivatives import once_differentiable
from .graph_index import GraphIndex, packed_index

PADDED_NODES = 64
"""Blocks are padded on a GPU where no graph is larger than this."""


def pads(device: torch.device, most: int) -> bool:
    """Whether blocks of graphs of at most that many nodes are padded on a device."""
    return device.type == "cuda" and most <= PADDED_NODES


@dataclass(frozen=True)
class SizeRun:
    """`count` graphs of `size` nodes: which graphs, nodes and pairs of the batch they are."""

    size: int
    count: int
    graphs: slice
    nodes: slice
    pairs: slice

    def shape(self, letter: str) -> tuple[int, ...]:
        """Of the memory of a variable, without its channels."""
        return (self.count, *[self.size] * {"M": 2, "V": 1, "R": 1, "S": 0}[letter])


class Packing:
    """The places of graphs in a packed batch, sorted by size.

    Args:
        sizes: Nodes of each graph, in the caller's order.
        device: Of the index tensors.
        padded: Whether blocks are one padded copy; None for what suits the device.

    Attributes:
        order: The caller's number of each packed graph.
        runs: Of equal size, ascending; none where only the device knows sizes.
        graphs: Number of graphs.
        nodes: Rows of nodes, the tail included.
        pairs: Rows of pairs, the tail included.
        most: Nodes of the largest graph, at most.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        device: torch.device | str = "cpu",
        padded: bool | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.order = sorted(range(len(sizes)), key=sizes.__getitem__)
        self.runs: list[SizeRun] = []
        graphs = nodes = pairs = 0
        for size, group in groupby(self.order, key=sizes.__getitem__):
            count = len(list(group))
            ends = graphs + count, nodes + count * size, pairs + count * size**2
            starts = zip((graphs, nodes, pairs), ends, strict=True)
            self.runs.append(SizeRun(size, count, *(slice(*span) for span in starts)))
            graphs, nodes, pairs = ends
        self.graphs, self.nodes, self.pairs = graphs, nodes, pairs
        self.most = self.runs[-1].size if self.runs else 0
        self.padded = pads(self.device, self.most) if padded is None else padded
        self.has_tail = False

    @classmethod
    def within(cls, sizes: Tensor, most: int, nodes: int, pairs: int) -> Packing:
        """Of graphs in the caller's order whose sizes only the device knows, with a tail.

        Args:
            sizes: `[G]` int64; 0 where there is no graph.
            most: Of them, at most.
            nodes: Rows of nodes, at least their sum.
            pairs: Rows of pairs, more than the sum of their squares.
        """
        packing = cls((), sizes.device, padded=True)
        packing.graphs, packing.nodes, packing.pairs, packing.most = len(sizes), nodes, pairs, most
        packing.sizes, packing.has_tail = sizes, True
        packing.order = list(range(len(sizes)))
        return packing

    @classmethod
    def at(cls, index: GraphIndex, pairs: int) -> Packing:
        """Of graphs that lie where an index says, with a tail."""
        packing = cls.within(index.sizes, index.most, len(index.owners), pairs)
        packing.index = index
        return packing

    def views(self, rows: Tensor, letter: str) -> list[Tensor]:
        """The rows of a variable's memory as blocks: `[g, n, n, S]`, `[g, n, S]` or `[g, S]`."""
        if self.padded:
            if letter == "S":
                return [rows]
            block = self._places(letter).pad(rows)
            return [block.view(*self._padded_shape(letter), rows.shape[1])]
        lengths = [_span(run, letter).stop - _span(run, letter).start for run in self.runs]
        parts = (rows,) if len(lengths) == 1 else rows.split_with_sizes(lengths)
        return [
            part.view(*run.shape(letter), part.shape[-1])
            for part, run in zip(parts, self.runs, strict=True)
        ]

    def rows(self, blocks: Sequence[Tensor], letter: str) -> Tensor:
        """The rows of a memory from its blocks: the inverse of `views`."""
        if self.padded and letter == "S":
            return blocks[0]
        flat = [block.flatten(0, {"M": 2, "V": 1, "R": 1, "S": 0}[letter]) for block in blocks]
        if self.padded:
            return self._places(letter).unpad(flat[0])
        return flat[0] if len(flat) == 1 else torch.cat(flat)

    def means(self, pairs: Tensor, beyond: float) -> Tensor:
        """`[P, 1]` the mean over all pairs of the graph of each pair; `beyond` in the tail."""
        blocks = self.views(pairs, "M")
        count = self.sizes.square().clamp(min=1).view(-1, 1, 1, 1)
        means = [
            (block.sum((1, 2), keepdim=True) / count[span]).expand_as(block)
            for block, span in zip(blocks, self.spans, strict=True)
        ]
        rows = self.rows(means, "M")
        return rows.masked_fill(self._pair_places.tail[:, None], beyond) if self.has_tail else rows

    @cached_property
    def present(self) -> list[Tensor]:
        """`[g, n]` of each block, true where there is a node."""
        if self.padded:
            return [torch.arange(self.most, device=self.device) < self.sizes[:, None]]
        shapes = [run.shape("V") for run in self.runs]
        return [torch.ones(shape, dtype=torch.bool, device=self.device) for shape in shapes]

    @property
    def spans(self) -> list[slice]:
        """Which graphs are in each block."""
        return [slice(None)] if self.padded else [run.graphs for run in self.runs]

    @cached_property
    def sizes(self) -> Tensor:
        """`[G]`."""
        sizes = [run.size for run in self.runs for _ in range(run.count)]
        return torch.tensor(sizes, device=self.device)

    @cached_property
    def index(self) -> GraphIndex:
        """Where graphs lie, as kernels read it."""
        return packed_index(self.sizes, self.most, self.nodes, self.pairs, self.has_tail)

    @cached_property
    def scale(self) -> Tensor:
        """`[G]` 1/√n in float32."""
        scale = self.index.scale
        return self.sizes.clamp(min=1).float().rsqrt() if scale is None else scale

    @cached_property
    def totals(self) -> tuple[Tensor, Tensor]:
        """Rows of nodes and of pairs that belong to graphs."""
        if self.index.totals is not None:
            return self.index.totals
        nodes, pairs = torch.tensor([self.nodes, self.pairs], device=self.device).unbind()
        return nodes, pairs

    @cached_property
    def caller(self) -> Tensor:
        """`[G]` the caller's number of each packed graph."""
        return torch.tensor(self.order, device=self.device)

    @cached_property
    def graph_of_node(self) -> Tensor:
        """`[Q]`; the last graph for the tail."""
        if self.has_tail:
            return self.index.owners.long().remainder(self.graphs)
        numbers = torch.arange(self.graphs, device=self.device)
        return torch.repeat_interleave(numbers, self.sizes, output_size=self.nodes)

    @cached_property
    def place(self) -> Tensor:
        """`[Q]` the number of each node within its graph; the last node's for the tail."""
        sizes = self.sizes[self.graph_of_node]
        starts = (self.sizes.cumsum(0) - self.sizes)[self.graph_of_node]
        place = torch.arange(self.nodes, device=self.device) - starts
        return torch.minimum(place, sizes - 1).clamp(min=0) if self.has_tail else place

    @cached_property
    def diagonal(self) -> Tensor:
        """`[Q]` the pair (i, i) of each node; ascending, in the tail the last row of pairs."""
        starts = self.index.pair_starts[self.graph_of_node]
        diagonal = starts + self.place * (self.sizes[self.graph_of_node] + 1)
        if not self.has_tail:
            return diagonal
        return torch.where(self.index.owners < 0, self.pairs - 1, diagonal)

    @cached_property
    def ends(self) -> tuple[Tensor, Tensor]:
        """`[P]` the row of the first node of each pair, and the second's number in its graph.

        The tail repeats the last pair.
        """
        lengths = self.sizes[self.graph_of_node]
        pairs = torch.arange(self.pairs, device=self.device)
        if not self.has_tail:
            nodes = torch.arange(self.nodes, device=self.device)
            start = torch.repeat_interleave(nodes, lengths, output_size=self.pairs)
            return start, pairs - (lengths.cumsum(0) - lengths)[start]
        row_ends = torch.where(self.index.owners < 0, 0, lengths).cumsum(0)
        pairs = torch.minimum(pairs, row_ends[-1] - 1)
        start = torch.searchsorted(row_ends, pairs, right=True)
        return start, pairs - (row_ends - lengths)[start]

    def padded_nodes(self, width: int, graphs: Tensor | None = None) -> Tensor:
        """`[Q]` where each node is among the `[B, width]` of the caller's padded batch."""
        return (self.caller if graphs is None else graphs)[self.graph_of_node] * width + self.place

    def padded_pairs(self, width: int, graphs: Tensor | None = None) -> Tensor:
        """`[P]` where each pair is among the `[B, width, width]` of the caller's padded batch."""
        start, end = self.ends
        return self.padded_nodes(width, graphs)[start] * width + end

    def cuts(self, length: int) -> list[int]:
        """How many nodes have their pair (i, i) before each multiple of `length`."""
        if length >= self.pairs:
            return [0, self.nodes]
        starts = torch.arange(0, self.pairs + length, length, device=self.device)
        return list(torch.searchsorted(self.diagonal, starts).tolist())

    def _padded_shape(self, letter: str) -> tuple[int, ...]:
        return (self.graphs, *[self.most] * {"M": 2, "V": 1, "R": 1}[letter])

    def _places(self, letter: str) -> _Places:
        return self._pair_places if letter == "M" else self._node_places

    @cached_property
    def _pair_places(self) -> _Places:
        graphs = torch.arange(self.graphs, device=self.device)
        (nodes,) = self.present
        sizes = self.sizes[:, None, None]
        numbers = torch.arange(self.most, device=self.device)
        inside = (nodes[:, :, None] & nodes[:, None]).flatten()
        source = self.index.pair_starts[:, None, None] + numbers[:, None] * sizes + numbers
        tail = torch.arange(self.pairs, device=self.device) >= self.totals[1]
        place = self.padded_pairs(self.most, graphs)
        return _Places(place, torch.where(inside, source.flatten(), 0), ~inside, tail)

    @cached_property
    def _node_places(self) -> _Places:
        graphs = torch.arange(self.graphs, device=self.device)
        inside = self.present[0].flatten()
        numbers = torch.arange(self.most, device=self.device)
        source = (self.index.node_starts[:, None] + numbers).flatten()
        tail = torch.arange(self.nodes, device=self.device) >= self.totals[0]
        place = self.padded_nodes(self.most, graphs)
        return _Places(place, torch.where(inside, source, 0), ~inside, tail)


@dataclass(frozen=True, eq=False)
class _Places:
    """Between R rows and the K entries of a padded block."""

    place: Tensor  # `[R]` the entry of each row; any for the tail
    source: Tensor  # `[K]` the row of each entry; any for the padding
    outside: Tensor  # `[K]` true in the padding
    tail: Tensor  # `[R]` true in the tail

    def pad(self, rows: Tensor) -> Tensor:
        """The entries of the block, zero in the padding."""
        places = self.source, self.outside, self.place, self.tail
        block: Tensor = _Gather.apply(rows, *places)  # type: ignore[no-untyped-call]
        return block

    def unpad(self, block: Tensor) -> Tensor:
        """The rows; the tail receives copies of entries, and its gradient counts for nothing."""
        places = self.place, None, self.source, self.outside
        rows: Tensor = _Gather.apply(block, *places)  # type: ignore[no-untyped-call]
        return rows


class _Gather(torch.autograd.Function):
    """Rows in another order, zero where `cleared`; back, gathered and cleared the other way."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        rows, source, cleared, *ctx.back = args
        gathered: Tensor = rows.index_select(0, source)
        return gathered if cleared is None else gathered.masked_fill_(cleared.unsqueeze(1), 0.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        source, cleared = ctx.back
        grad = grads[0].index_select(0, source).masked_fill_(cleared.unsqueeze(1), 0.0)
        return grad, None, None, None, None


def _span(run: SizeRun, letter: str) -> slice:
    return {"M": run.pairs, "V": run.nodes, "R": run.nodes, "S": run.graphs}[letter]
