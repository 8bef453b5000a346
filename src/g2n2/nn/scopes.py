"""Layers whose marked copies meet: memories of graphs and of their copies, and rules between them.

    V_c′ → V_c         what a graph holds, in each of its copies
    V_c → Σv. V_c′     what the copies of a graph hold, added up

Everything else in such a layer is an ordinary layer on the graphs and one on the copies. Copies see
what others hold through the graph, so they are computed together. Where a preset divides products
over n nodes by √n, it divides sums over marks by √n too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from ..compiler.lowering import Constants, sums_over_nodes
from ..compiler.plan import LayerPlan, RuleStep
from ..compiler.presets import Preset
from ..grammars.rules import Rule, crosses
from ..language.sorts import primes
from ..language.terms import MarkSum
from .layer import ApplyRule, Memories, PlannedLayer
from .marks import MarkedCopies

Scoped = tuple[Memories, Memories]
"""The memories of graphs and those of their copies, both by plain letters."""

SUMS = "Σ"
"""Where sentences that sum over marks stand among the last memories of the graphs."""


@dataclass(frozen=True, eq=False)
class PaddedCopies:
    """The copies of the graphs of a padded batch, as rows of a larger one.

    Attributes:
        chosen: The copies.
        constants: What rules may name on graphs and on copies; on copies the mark too.
    """

    chosen: MarkedCopies
    constants: tuple[Constants, Constants]

    def lifted(self, value: Tensor) -> Tensor:
        """A value of graphs as one of their copies."""
        return value.index_select(0, self.chosen.graph)

    def summed(self, value: Tensor, scaled: bool) -> Tensor:
        """The sum over the copies of each graph, in float32 at least; over √n where scaled."""
        wide = value.to(torch.promote_types(value.dtype, torch.float32))
        total = self.chosen.summed(wide, self.constants[0]["1"].shape[0])
        if scaled:
            scale = self.constants[0]["1/√n"].to(total.dtype)
            total = total * scale.view(-1, *[1] * (total.dim() - 1))
        return total.to(value.dtype)


class Crossing(ApplyRule):
    """A rule that brings words into marked copies, or adds up words of theirs."""

    def __init__(self, plan: RuleStep, preset: Preset) -> None:
        head, body = plan.rule.head, plan.rule.body
        sums = isinstance(body, MarkSum)
        inner = Rule(head, body.body if isinstance(body, MarkSum) else body)
        super().__init__(replace(plan, rule=inner).plain, preset)
        self.written, self.sums = plan.rule, sums
        self.scaled = sums and preset.product_scale
        self.reads = [(hole.scope, hole.plain.letter) for hole in plan.rule.holes]
        self.sources = [letter for _, letter in self.reads]

    def forward(self, read: Scoped, copies: PaddedCopies) -> Tensor:  # type: ignore[override]
        operands = []
        for number, (scope, letter) in enumerate(self.reads):
            value = read[scope][letter]
            if self.selectors:
                value = self.selectors[number](value, copies.constants[scope])
            operands.append(value if scope else copies.lifted(value))
        value = self.applied(operands, copies.constants[1])
        return copies.summed(value, self.scaled) if self.sums else value

    def extra_repr(self) -> str:
        return str(self.written)


class SentenceSum(Crossing):
    """A sentence that sums over marks; each sum over nodes is divided by `unit`, as others are."""

    def __init__(self, plan: RuleStep, preset: Preset, unit: float) -> None:
        super().__init__(plan, replace(preset, product_scale=False))
        self.size = unit ** (1 + sums_over_nodes(self.rule.body))

    def forward(self, read: Scoped, copies: PaddedCopies) -> Tensor:  # type: ignore[override]
        return super().forward(read, copies) / self.size


class ScopedLayer(nn.Module):
    """One layer of a network whose marked copies meet."""

    def __init__(self, plan: LayerPlan, preset: Preset) -> None:
        super().__init__()
        self.scopes = nn.ModuleList(PlannedLayer(plan.within(x), preset) for x in (0, 1))
        self.crossings = nn.ModuleDict(
            {
                update.sort.letter: nn.ModuleList(
                    Crossing(step, preset) for step in update.steps if crosses(step.rule)
                )
                for update in plan.updates
            }
        )

    @property
    def layers(self) -> tuple[PlannedLayer, PlannedLayer]:
        """The ordinary layers on graphs and on copies."""
        outer, inner = (cast(PlannedLayer, layer) for layer in self.scopes)
        return outer, inner

    def crossings_of(self, scope: int, letter: str) -> list[Crossing]:
        """The crossings that end in the memory of a variable."""
        name = letter + primes(scope)
        return (
            list(cast(Sequence[Crossing], self.crossings[name])) if name in self.crossings else []
        )

    def forward(self, memories: Scoped, copies: PaddedCopies) -> Scoped:
        both = list(zip(self.layers, memories, copies.constants, strict=True))
        outer, inner = (layer.read(held, constants) for layer, held, constants in both)
        new = []
        for scope, (layer, held, constants) in enumerate(both):
            given = {
                letter: [
                    cross((outer, inner), copies) for cross in self.crossings_of(scope, letter)
                ]
                for letter in layer.updates
            }
            new.append(layer.updated(held, (outer, inner)[scope], constants, given))
        return new[0], new[1]
