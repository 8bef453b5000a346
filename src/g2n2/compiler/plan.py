"""NetworkPlan: every map, rule and memory of a network, with no tensor made.

    inputs ──► layer ──► … ──► layer ──► read-out ──► decision
               for each variable: select operands, apply rules, concatenate with the memory, mix

A memory holds the words of one variable: M in `[B, N, N, S]`, V_c and V_r in `[B, N, F]`, S in
`[B, K]`. A rule without variables (A, 1, I) is an input and not a step. A rule whose operand's
memory is still empty cannot be applied yet: its step appears in the first layer where it can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..grammars.grammar import Grammar
from ..grammars.rules import Rule
from ..language.sorts import Sort
from .inputs import InputPlan
from .presets import Preset
from .readout_plan import ReadoutPlan


@dataclass(frozen=True)
class Linear:
    """A linear map over channels."""

    width_in: int
    width_out: int
    bias: bool = False

    @property
    def parameters(self) -> int:
        return (self.width_in + self.bias) * self.width_out


@dataclass(frozen=True)
class Selector:
    """What brings one operand of a rule out of a memory."""

    sort: Sort
    maps: tuple[Linear, ...]


@dataclass(frozen=True)
class RuleStep:
    """One rule in one layer: `copies` occurrences, one selector for each operand."""

    rule: Rule
    copies: int
    selectors: tuple[Selector, ...]


@dataclass(frozen=True)
class MemoryUpdate:
    """How a layer makes the new memory of one variable.

    `mix` concatenates the memory with the outputs of the steps and sends them through the MLP
    `mixer`. `bilinear` is the node update of the released code, whose one map has a weight for
    each pair of channels of the new C and of H; it has no steps.
    """

    sort: Sort
    width_in: int
    steps: tuple[RuleStep, ...]
    mixer: tuple[Linear, ...]
    kind: Literal["mix", "bilinear"] = "mix"

    @property
    def width_out(self) -> int:
        return self.mixer[-1].width_out


@dataclass(frozen=True)
class LayerPlan:
    """One layer: the updates of its memories, the matrix memory first."""

    updates: tuple[MemoryUpdate, ...]

    def widths(self) -> dict[Sort, int]:
        return {update.sort: update.width_out for update in self.updates}


@dataclass(frozen=True)
class NetworkPlan:
    """A whole network, ready to be costed, drawn or built."""

    grammar: Grammar
    preset: Preset
    inputs: InputPlan
    embeddings: tuple[tuple[Sort, Linear], ...]
    layers: tuple[LayerPlan, ...]
    readout: ReadoutPlan

    def linears(self) -> Iterator[tuple[str, Sort, Linear]]:
        """Every linear map: where it is, over which entries it runs, and its sizes."""
        for sort, linear in self.embeddings:
            yield "embedding", sort, linear
        for number, layer in enumerate(self.layers, start=1):
            for update in layer.updates:
                for step in update.steps:
                    for selector in step.selectors:
                        for linear in selector.maps:
                            yield f"layer {number}", selector.sort, linear
                for linear in update.mixer:
                    yield f"layer {number}", update.sort, linear
        for linear in self.readout.maps:
            yield "decision", self.readout.sort, linear
