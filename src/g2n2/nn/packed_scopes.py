"""Layers whose marked copies meet, on packed rows: a copy is one more graph of a packed batch.

A word that enters the mark is a gather of rows, a sum over marks adds the rows of copies to those
of their graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from ..language.terms import Hole
from .layer import Select
from .marked_rows import Lifting
from .packed_layer import PackedGraphs, PackedLayer, PackedRule, part_rows, selected
from .scopes import Crossing, Scoped, ScopedLayer


@dataclass(frozen=True, eq=False)
class RowCopies:
    """Packed graphs and their copies.

    Attributes:
        graphs: The graphs, and their copies.
        lifting: Which rows of the graphs those of the copies are.
    """

    graphs: tuple[PackedGraphs, PackedGraphs]
    lifting: Lifting

    def summed(self, rows: Tensor, letter: str, scaled: bool) -> Tensor:
        """The sum over the copies of each graph, in float32 at least; over √n where scaled."""
        wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
        weight = self.lifting.chosen.weight.to(wide.dtype)
        if scaled:
            weight = weight * self.lifting.packing.sizes.clamp(min=1).to(wide.dtype).rsqrt()
        weight = weight[self.lifting.copy_of(letter)].unsqueeze(1)
        return self.lifting.summed(wide * weight, letter).to(rows.dtype)


class PackedCrossing:
    """Computes a Crossing."""

    def __init__(self, crossing: Crossing) -> None:
        self.crossing = crossing
        bare = isinstance(crossing.rule.body, Hole)
        self.rule = None if bare else PackedRule.of(crossing, joins=False)

    def __call__(self, read: Scoped, copies: RowCopies) -> Tensor:
        crossing = self.crossing
        operands = []
        for number, (scope, letter) in enumerate(crossing.reads):
            rows = read[scope][letter]
            if crossing.selectors:
                select = cast(Select, crossing.selectors[number])
                rows = selected(rows, [select])[id(select)]
            operands.append(rows if scope else copies.lifting.rows(rows, letter))
        inner = copies.graphs[1]
        if self.rule is None:
            value = operands[0]
        else:
            value = part_rows(self.rule.part(operands, inner), inner.packing)
        if not crossing.sums:
            return value
        return copies.summed(value, crossing.rule.head.letter, crossing.scaled)


class PackedScopedLayer:
    """Computes a ScopedLayer."""

    def __init__(self, layer: ScopedLayer) -> None:
        self.layers = [PackedLayer(each) for each in layer.layers]
        self.crossings = [
            {x: [PackedCrossing(c) for c in layer.crossings_of(scope, x)] for x in each.updates}
            for scope, each in enumerate(layer.layers)
        ]

    def __call__(self, memories: Scoped, copies: RowCopies) -> Scoped:
        both = list(zip(self.layers, memories, copies.graphs, strict=True))
        outer, inner = (layer.read(held, graphs) for layer, held, graphs in both)
        new = []
        for (layer, held, graphs), read, crossings in zip(
            both, (outer, inner), self.crossings, strict=True
        ):
            given = {
                x: [cross((outer, inner), copies) for cross in crossings[x]] for x in crossings
            }
            new.append(layer.updated(held, read, graphs, given=given))
        return new[0], new[1]
