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

Mixing = Literal["any", "zero", "homogeneous", "linear"]
"""What is mixed into a memory: any function of its channels and of the rules' outputs, any that
keeps zero, any with f(tx) = t·f(x) for t ≥ 0, or a linear one."""


@dataclass(frozen=True)
class WLTestOptions:
    """How `power.grammar_test` is called to describe a network, and how well that does.

    Attributes:
        functions: What the mixing of each memory can compute.
        last_functions: What it can compute in the last layer, where that differs.
        inputs: What stands between the inputs and the first layer's rules.
        describes: `exactly`; `from above` where the network may see less; `not at all` where a
            layer is no round of the test.
    """

    functions: dict[Sort, Mixing]
    last_functions: dict[Sort, Mixing] | None
    inputs: Literal["values", "colours", "functions"]
    describes: Literal["exactly", "from above", "not at all"]


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
class NetworkPlan:
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

    def test_grammar(self) -> Grammar:
        """The grammar whose own WL test describes this network; see `plan_power`."""
        from .plan_power import test_grammar

        return test_grammar(self)

    def functions(self) -> dict[Sort, Mixing]:
        """What a layer's mixing of each memory can compute; see `plan_power`."""
        from .plan_power import functions

        return functions(self)

    def test_options(self) -> WLTestOptions:
        """How the WL test of `test_grammar` is run for this network; see `plan_power`."""
        from .plan_power import test_options

        return test_options(self)

    def added_rules(self) -> tuple[Rule, ...]:
        """The rules that MLPs and biases add to the grammar; see `plan_power`."""
        from .plan_power import added_rules

        return added_rules(self)

    def exceptions(self) -> tuple[str, ...]:
        """Why the test of `test_grammar` does not describe this network exactly, if so."""
        from .plan_power import exceptions

        return exceptions(self)

    def reads_sentences(self) -> bool:
        """Whether the read-out contains every rule of S."""
        from .plan_power import reads_sentences

        return reads_sentences(self)

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
        for step in self.readout.steps:
            for selector in step.selectors:
                for linear in selector.maps:
                    yield "read-out", selector.sort, linear
        for linear in self.readout.maps:
            yield "decision", self.readout.sort, linear
