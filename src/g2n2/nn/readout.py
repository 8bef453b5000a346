"""From the last memories to outputs: rules of S, pooling that ignores padding, decision layers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..compiler.lowering import Constants, sums_over_nodes
from ..compiler.plan import RuleStep
from ..compiler.presets import Preset
from ..compiler.readout_plan import ReadoutPlan
from ..errors import LoweringError
from ..grammars.rules import crosses
from ..ops import reference as ops
from .input_memories import LazyConstants
from .layer import ACTIVATIONS, ApplyRule, Memories, linear
from .scopes import SUMS, SentenceSum

LEAST = float("-inf")
MATRIX_SUMS = {("diagonal", "sum"), ("off-diagonal", "sum")}
PLAIN_SUMS = {*MATRIX_SUMS, ("nodes", "sum")}
NO_SUMS: Mapping[str, Tensor] = MappingProxyType({})
OVER_NODES = {"scalars": 0, "off-diagonal": 2}
"""How many nodes a part is summed over, where not one."""


def pool(values: Tensor, present: Tensor, how: str) -> Tensor:
    """`[…, K, S]` to `[…, S]` over the entries that are `present` `[…, K]`; 0 where none is.

    Sums run in float32 at least, whatever the dtype of the memory.
    """
    present = present.unsqueeze(-1)
    if how == "max":
        top = values.masked_fill(~present, LEAST).amax(-2)
        return top.masked_fill(~present.any(-2), 0.0)
    total = (values * present).sum(-2, dtype=_exact(values.dtype))
    return total if how == "sum" else total / present.sum(-2).clamp(min=1)


def _exact(dtype: torch.dtype) -> torch.dtype:
    """The dtype sums over nodes are taken in."""
    return dtype if dtype == torch.float64 else torch.float32


class SentenceRule(ApplyRule):
    """A rule of S on the last memories, several occurrences at once.

    A rule without selectors reads every channel of its one memory. Each sum over nodes is divided
    by `unit`, the same number for all graphs.
    """

    def __init__(self, plan: RuleStep, preset: Preset, unit: float) -> None:
        super().__init__(plan, preset)
        self.size = unit ** sums_over_nodes(plan.rule.body)
        self.sources = [sort.letter for sort in plan.rule.holes]

    def forward(self, memories: Memories, constants: Constants) -> Tensor:
        """`[B, copies]` in the dtype of the constants, operands selected in that of the weights."""
        operands = [memories[source] for source in self.sources]
        if self.selectors:
            pairs = zip(self.selectors, operands, strict=True)
            operands = [select(operand, constants) for select, operand in pairs]
        dtype = constants["1"].dtype
        value = self.compute([operand.to(dtype) for operand in operands], constants)
        return value if self.size == 1.0 else value / self.size


class Readout(nn.Module):
    """The read-out of a ReadoutPlan and its decision layers.

    In training, `dropout` is the share of the numbers each decision layer reads that is left out.

    `typical_size` divides sums (once for nodes, twice for pairs) where the preset is normalised, so
    that the decision layers see numbers near 1 and outputs still grow with the graph.
    """

    def __init__(self, plan: ReadoutPlan, preset: Preset, typical_size: float) -> None:
        super().__init__()
        if not typical_size > 0:
            raise LoweringError(f"typical_size is a number of nodes above 0, got {typical_size!r}")
        self.plan = plan
        self.dropout = 0.0
        self.unit = typical_size if preset.normalised else 1.0
        self.rules, self.sums = (
            nn.ModuleList(
                module(step, preset, self.unit) for step in plan.steps if crosses(step.rule) == sums
            )
            for module, sums in ((SentenceRule, False), (SentenceSum, True))
        )
        maps = [linear(part) for part in plan.maps]
        self.straight = maps.pop(0) if plan.linear_path else None
        parts: list[nn.Module] = []
        for part in maps:
            parts += [part, ACTIVATIONS[preset.activation]()]
        self.decision = nn.Sequential(*parts[:-1])

    @property
    def dtype(self) -> torch.dtype:
        return next(self.decision.parameters()).dtype

    @property
    def sums_pairs(self) -> bool:
        """Whether it sums a matrix memory over its diagonal and beside it."""
        return {*self.plan.pools} >= MATRIX_SUMS

    @property
    def sums_only(self) -> bool:
        """Whether it reads sums of nodes and pairs and nothing else."""
        plan = self.plan
        return plan.task == "graph" and not plan.steps and {*plan.pools} <= PLAIN_SUMS

    @property
    def reads_pairs(self) -> bool:
        """Whether it reads more of a matrix memory than those sums."""
        rules = any("M" in cast(SentenceRule, rule).sources for rule in self.rules)
        return self.plan.task != "graph" or rules or not self.sums_pairs

    def forward(self, memories: Memories, mask: Tensor, constants: Constants) -> Tensor:
        value = self.decide(self.features(memories, mask, constants))
        if self.plan.task == "node":
            return value * constants["1"]
        if self.plan.task == "graph" or "ends" in constants:
            return value
        return value * constants["11ᵀ"]

    def decide(self, features: Tensor) -> Tensor:
        """The decision layers, on any number of rows."""
        features = features.to(self.dtype)  # pooled sums may be wider than a half-precision model
        features = functional.dropout(features, self.dropout, self.training)
        value = features
        for part in self.decision:
            value = part(value)
            if not isinstance(part, nn.Linear):
                value = functional.dropout(value, self.dropout, self.training)
        if self.straight is not None:
            value = value + self.straight(features)
        return value

    def features(
        self,
        memories: Memories,
        mask: Tensor,
        constants: Constants,
        sums: Mapping[str, Tensor] = NO_SUMS,
    ) -> Tensor:
        """What the decision layers read: `[B, P]`, `[B, N, P]`, `[B, N, N, P]` or `[E, P]`.

        `sums` has those of the matrix memory that were computed before, by the part they are over.
        """
        plan = self.plan
        of_graph = self.of_graph(memories, mask, constants, sums) if plan.graph_width else None
        if plan.task == "graph":
            assert of_graph is not None, "a graph read-out is never empty"
            return of_graph
        ends = constants["ends"] if plan.task == "edge" and "ends" in constants else None
        parts = [self._local(name, memories, mask, ends) for name in plan.local]
        if of_graph is not None and ends is not None:
            parts.append(of_graph[ends[0] // mask.shape[1]])
        elif of_graph is not None:
            spread = of_graph[:, None] if plan.task == "node" else of_graph[:, None, None]
            parts.append(spread.expand(*parts[0].shape[:-1], -1))
        return torch.cat(parts, dim=-1)

    def _local(self, name: str, memories: Memories, mask: Tensor, ends: Tensor | None) -> Tensor:
        """A part that belongs to a node or an edge.

        `ends` `[2, E]` are of the edges alone, and count the nodes of all graphs, padded.
        """
        match name:
            case "C":
                return memories["M"]
            case "row sums C":
                how = self.plan.local_pooling
                rows = pool(memories["M"], mask[:, None], how)
                return rows * mask.unsqueeze(-1) / (self.unit if how == "sum" else 1.0)
            case "diag C":
                return ops.diagonal(memories["M"])
        letter, _, end = name.partition("_")
        vectors = memories["V" if letter == "H" else "R"]
        if not end:
            return vectors
        if ends is not None:
            return vectors.flatten(0, 1)[ends[int(end == "j")]]
        return vectors.unsqueeze(2 if end == "i" else 1).expand(-1, *[mask.shape[1]] * 2, -1)

    def of_graph(
        self,
        memories: Memories,
        mask: Tensor,
        constants: Constants,
        sums: Mapping[str, Tensor] = NO_SUMS,
    ) -> Tensor:
        """`[B, P]` the memories pooled, and the rules of S."""
        parts = [self.pooled(memories, mask, sums)] if self.plan.pooled_width else []
        if self.rules:
            parts += self.sentences(memories, constants)
        if self.sums:
            parts.append(memories[SUMS])
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def sentences(self, memories: Memories, constants: Constants) -> list[Tensor]:
        """`[B, copies]` of each rule of S, summed in float32 at least."""
        dtype = _exact(self.dtype)
        read = {letter: value.to(self.dtype) for letter, value in memories.items()}
        if constants["1"].dtype != dtype:
            assert isinstance(constants, LazyConstants), "a network of rules makes these"
            constants = constants.to(dtype)
        return [rule(read, constants) for rule in self.rules]

    def pooled(
        self, memories: Memories, mask: Tensor, sums: Mapping[str, Tensor] = NO_SUMS
    ) -> Tensor:
        """`[B, P]` every part of the memories, pooled."""
        parts = []
        for part, how in self.plan.pools:
            given = part in sums and how == "sum"
            value = sums[part] if given else self._pool(part, how, memories, mask)
            power = OVER_NODES.get(part, 1) if how == "sum" else 0
            parts.append(value / self.unit**power if power else value)
        return torch.cat(parts, dim=-1)

    def _pool(self, part: str, how: str, memories: Memories, mask: Tensor) -> Tensor:
        match part:
            case "nodes" | "rows":
                vectors = memories["V" if part == "nodes" else "R"]
                if how == "sum" and vectors.dtype != torch.float64:
                    return vectors.sum(1, dtype=torch.float32)  # zero at the padding
                return pool(vectors, mask, how)
            case "scalars":
                return memories["S"]
            case "diagonal":
                return pool(ops.diagonal(memories["M"]), mask, how)
            case _:
                diagonal = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
                pairs = mask[:, :, None] & mask[:, None] & ~diagonal
                return pool(memories["M"].flatten(1, 2), pairs.flatten(1), how)
