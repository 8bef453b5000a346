"""NetworkPlan: every map, rule and memory of a network, with no tensor made.

    inputs ──► layer ──► … ──► layer ──► read-out ──► decision
               for each variable: select operands, apply rules, concatenate with the memory, mix

A memory holds the words of one variable: M in `[B, N, N, S]`, V_c and V_r in `[B, N, F]`, S in
`[B, K]`. A rule without variables (A, 1, I) is an input and not a step. A rule whose operand's
memory is still empty cannot be applied yet: its step appears in the first layer where it can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..grammars.grammar import Grammar
from ..grammars.rules import Rule
from ..language.sorts import M, R, S, Sort, V
from .inputs import InputPlan
from .plan_power import PlanPower
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
    """One rule in one layer: `copies` occurrences, one selector for each operand.

    In a read-out a rule that is linear in its one variable has no selector: each channel of the
    memory is an occurrence.
    """

    rule: Rule
    copies: int
    selectors: tuple[Selector, ...]


@dataclass(frozen=True)
class MemoryUpdate:
    """How a layer makes the new memory of one variable.

    `mix` concatenates the memory with the outputs of the steps and sends them through the MLP
    `mixer`. `bilinear` is the node update of the released code, whose one map has a weight for
    each pair of channels of the new C and of H; it has no steps.

    Attributes:
        sort: Of the variable.
        width_in: Channels of the memory before.
        steps: The rules that are applied.
        mixer: The maps of the MLP, or one linear map.
        kind: `mix` or `bilinear`.
        residual: Whether the memory before is added to what the MLP gives.
    """

    sort: Sort
    width_in: int
    steps: tuple[RuleStep, ...]
    mixer: tuple[Linear, ...]
    kind: Literal["mix", "bilinear"] = "mix"
    residual: bool = False

    @property
    def width_out(self) -> int:
        return self.mixer[-1].width_out


@dataclass(frozen=True)
class LayerPlan:
    """One layer: the updates of its memories, the matrix memory first.

    Attributes:
        updates: One for each memory it makes.
        norms: The memories it reads normalised, and their channels.
    """

    updates: tuple[MemoryUpdate, ...]
    norms: tuple[tuple[Sort, int], ...] = ()

    def widths(self) -> dict[Sort, int]:
        return {update.sort: update.width_out for update in self.updates}


@dataclass(frozen=True)
class NetworkPlan(PlanPower):
    """A whole network, ready to be costed, drawn or built.

    Attributes:
        grammar: What it is the network of.
        preset: All that the grammar does not say.
        inputs: What the memories start with.
        embeddings: The linear map of each memory before the first layer.
        layers: In the order they run.
        readout: What is read out of the last memories.
        only_free: Whether MLPs stand only on memories where a function adds nothing to the words
            (`functions="free"`); `added_rules` says what they add elsewhere.
    """

    grammar: Grammar
    preset: Preset
    inputs: InputPlan
    embeddings: tuple[tuple[Sort, Linear], ...]
    layers: tuple[LayerPlan, ...]
    readout: ReadoutPlan
    only_free: bool = False

    def _repr_html_(self) -> str:
        from .plan_to_text import plan_html

        return plan_html(self)


SYMBOLS: dict[Sort, str] = {M: "C", V: "H", R: "R", S: "s"}
"""C and H as in the paper; R holds rows and s scalars, where a grammar has them."""

AXES: dict[Sort, tuple[str, ...]] = {M: ("B", "N", "N"), V: ("B", "N"), R: ("B", "N"), S: ("B",)}

LEGEND = "B graphs of N nodes; the last number counts channels"


class NumberedSelector(NamedTuple):
    """One selector of a layer with its number: L1, L2, …"""

    number: int
    step: RuleStep
    operand: int
    selector: Selector


def shape(sort: Sort, channels: int | str) -> str:
    """`[B, N, N, 64]` for a matrix memory of 64 channels."""
    return f"[{', '.join((*AXES[sort], str(channels)))}]"


def numbered_selectors(part: LayerPlan | ReadoutPlan) -> list[NumberedSelector]:
    """The selectors of a layer or of a read-out, numbered as in the paper."""
    updates = part.updates if isinstance(part, LayerPlan) else (part,)
    selectors = [
        (step, operand, selector)
        for update in updates
        for step in update.steps
        for operand, selector in enumerate(step.selectors)
    ]
    selectors.sort(key=lambda item: list(SYMBOLS).index(item[2].sort))
    return [NumberedSelector(number, *item) for number, item in enumerate(selectors, start=1)]
