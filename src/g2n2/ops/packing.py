"""Packing: where the graphs of a batch lie when their pairs and nodes are rows without padding.

Graphs are sorted by size. The pairs (i, j) of all graphs, graph after graph, are the rows of a
matrix memory `[P, S]`, P = Σn²; the nodes are the rows of a column or row memory `[Q, S]`, Q = Σn;
the graphs those of a scalar memory `[G, S]`. Graphs of equal size lie side by side: such a run is a
view `[g, n, n, S]` of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import torch
from torch import Tensor


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
    """The places of graphs in a packed batch.

    Args:
        sizes: Nodes of each graph, in the caller's order.
        device: Of the index tensors.

    Attributes:
        order: The caller's number of each packed graph.
        runs: Of equal size, ascending.
    """

    def __init__(self, sizes: Sequence[int], device: torch.device | str = "cpu") -> None:
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

    def views(self, rows: Tensor, letter: str) -> list[Tensor]:
        """The rows of a variable's memory, run by run: `[g, n, n, S]`, `[g, n, S]` or `[g, S]`."""
        lengths = [_span(run, letter).stop - _span(run, letter).start for run in self.runs]
        parts = (rows,) if len(lengths) == 1 else rows.split_with_sizes(lengths)
        return [
            part.view(*run.shape(letter), part.shape[-1])
            for part, run in zip(parts, self.runs, strict=True)
        ]

    def rows(self, values: Sequence[Tensor], letter: str) -> Tensor:
        """The rows of a memory from its runs: the inverse of `views`."""
        flat = [value.flatten(0, len(self.runs[0].shape(letter)) - 1) for value in values]
        return flat[0] if len(flat) == 1 else torch.cat(flat)

    @cached_property
    def sizes(self) -> Tensor:
        """`[G]`, ascending."""
        sizes = [run.size for run in self.runs for _ in range(run.count)]
        return torch.tensor(sizes, device=self.device)

    @cached_property
    def caller(self) -> Tensor:
        """`[G]` the caller's number of each packed graph."""
        return torch.tensor(self.order, device=self.device)

    @cached_property
    def graph_of_node(self) -> Tensor:
        """`[Q]`."""
        numbers = torch.arange(self.graphs, device=self.device)
        return torch.repeat_interleave(numbers, self.sizes, output_size=self.nodes)

    @cached_property
    def place(self) -> Tensor:
        """`[Q]` the number of each node within its graph."""
        starts = self.sizes.cumsum(0) - self.sizes
        return torch.arange(self.nodes, device=self.device) - starts[self.graph_of_node]

    @cached_property
    def row_starts(self) -> Tensor:
        """`[Q]` where the pairs (i, ·) of each node begin."""
        lengths = self.sizes[self.graph_of_node]
        return lengths.cumsum(0) - lengths

    @cached_property
    def diagonal(self) -> Tensor:
        """`[Q]` the pair (i, i) of each node; ascending."""
        return self.row_starts + self.place

    def padded_nodes(self, width: int) -> Tensor:
        """`[Q]` where each node is among the `[B, width]` of a padded batch."""
        return self.caller[self.graph_of_node] * width + self.place

    def padded_pairs(self, width: int) -> Tensor:
        """`[P]` where each pair is among the `[B, width, width]` of a padded batch."""
        lengths = self.sizes[self.graph_of_node]
        nodes = torch.arange(self.nodes, device=self.device)
        start = torch.repeat_interleave(nodes, lengths, output_size=self.pairs)
        end = torch.arange(self.pairs, device=self.device) - self.row_starts[start]
        return self.padded_nodes(width)[start] * width + end


def _span(run: SizeRun, letter: str) -> slice:
    return {"M": run.pairs, "V": run.nodes, "R": run.nodes, "S": run.graphs}[letter]
