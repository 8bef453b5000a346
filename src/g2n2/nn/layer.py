"""One layer: what a LayerPlan says, as modules.

`__init__` walks the plan, `forward` calls tensor operations only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import Tensor, nn

from ..compiler.lowering import Constants, lower, sums_over_nodes
from ..compiler.plan import LayerPlan, Linear, MemoryUpdate, RuleStep, Selector
from ..compiler.presets import Preset
from ..language.sorts import M, S, Sort
from ..ops import packed
from ..ops.packing import Packing

Memories = dict[str, Tensor]
"""The memory of each variable, by its letter: M `[B, N, N, S]`, V and R `[B, N, F]`, S `[B, K]`."""

NOTHING: Mapping[str, Sequence[Tensor]] = MappingProxyType({})

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "silu": nn.SiLU}

SMALL = 0.1
"""Mean square below which a memory is no longer blown up to size 1. Pairs no word has reached yet
are exactly zero, and a smaller number would multiply the gradients of their biases by 1/√SMALL in
every layer, and let one step of those biases decide the whole memory."""


def linear(plan: Linear) -> nn.Linear:
    return nn.Linear(plan.width_in, plan.width_out, plan.bias)


def masked(value: Tensor, sort: Sort, constants: Constants) -> Tensor:
    """Zero at the padding."""
    if sort == S:
        return value
    return value * constants["11ᵀ" if sort == M else "1"]


def in_dtype(part: nn.Linear, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of a map, as numbers of that dtype."""
    bias = cast(Tensor | None, part.bias)
    return part.weight.to(dtype), None if bias is None else bias.to(dtype)


def through(maps: nn.Module, value: Tensor) -> Tensor:
    """A sequence of maps in the dtype of the value, whatever that of the weights."""
    for part in cast(nn.Sequential, maps):
        if isinstance(part, nn.Linear):
            value = nn.functional.linear(value, *in_dtype(part, value.dtype))
        else:
            value = part(value)
    return value


def linear_maps(mixer: nn.Sequential) -> list[nn.Linear]:
    """The maps of an MLP, in order."""
    return [part for part in mixer if isinstance(part, nn.Linear)]


class Normalise(nn.Module):
    """Divide every entry's channels by their root mean square, in the dtype they come in.

    Autocast leaves the weight in float32, and no fused kernel takes that beside bfloat16.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, value: Tensor, constants: Constants) -> Tensor:
        weight = self.weight.to(value.dtype)
        return nn.functional.rms_norm(value, weight.shape, weight, SMALL)

    def on_rows(self, rows: Tensor, packing: Packing, kernels: bool) -> Tensor:
        """The same for packed rows; `kernels` says whether there are some."""
        return packed.rms_norm(rows, self.weight.to(rows.dtype), SMALL)


class NormaliseGraph(Normalise):
    """Divide all entries of a graph's matrices by the root mean square of them all."""

    def forward(self, value: Tensor, constants: Constants) -> Tensor:
        wide = value.to(torch.promote_types(value.dtype, torch.float32))
        numbers = constants["1/√n"].to(wide.dtype) ** -4 * value.shape[-1]
        mean = wide.square().sum((1, 2, 3)) / numbers
        scale = (mean + SMALL).rsqrt().to(value.dtype)
        return value * scale.view(-1, 1, 1, 1) * self.weight.to(value.dtype)

    def on_rows(self, rows: Tensor, packing: Packing, kernels: bool) -> Tensor:
        return packed.graph_norm(rows, self.weight.to(rows.dtype), SMALL, packing, kernels)


class Select(nn.Module):
    """One operand out of a memory: a linear map, or an MLP for PPGN."""

    def __init__(self, plan: Selector, preset: Preset) -> None:
        super().__init__()
        self.sort = plan.sort
        self.scale = 1.0 / plan.maps[0].width_in if preset.selector_scale else 1.0
        self.biased = any(part.bias for part in plan.maps)
        maps: list[nn.Module] = []
        for part in plan.maps:
            maps.append(linear(part))
            if len(plan.maps) > 1:
                maps.append(ACTIVATIONS[preset.activation]())
        self.maps = nn.Sequential(*maps)

    def forward(self, memory: Tensor, constants: Constants) -> Tensor:
        value: Tensor = self.maps(memory)
        if self.scale != 1.0:
            # One number a channel: runtimes of ONNX fuse a single one into the product, as float32.
            value = value * value.new_full((value.shape[-1],), self.scale)
        return masked(value, self.sort, constants) if self.biased else value

    def scaled_weight(self) -> Tensor:
        """The weight of a single linear map, times the scale."""
        weight = cast(nn.Linear, self.maps[0]).weight
        return weight if self.scale == 1.0 else weight * self.scale


class ApplyRule(nn.Module):
    """One rule, several occurrences at once."""

    def __init__(self, plan: RuleStep, preset: Preset) -> None:
        super().__init__()
        self.rule = plan.rule
        self.compute = lower(plan.rule.body)
        self.power = sums_over_nodes(plan.rule.body) if preset.product_scale else 0
        self.sources = [selector.sort.letter for selector in plan.selectors]
        self.selectors = nn.ModuleList(Select(selector, preset) for selector in plan.selectors)

    def forward(self, memories: Memories, constants: Constants) -> Tensor:
        operands = [
            select(memories[source], constants)
            for select, source in zip(self.selectors, self.sources, strict=True)
        ]
        return self.applied(operands, constants)

    def applied(self, operands: Sequence[Tensor], constants: Constants) -> Tensor:
        """The rule on its operands."""
        value = self.compute(operands, constants)
        if self.power:
            scale = constants["1/√n"] ** self.power
            value = value * scale.view(-1, *[1] * (value.dim() - 1))
        return value

    def __getstate__(self) -> dict[str, Any]:
        """Pickles hold no functions."""
        return {name: value for name, value in self.__dict__.items() if name != "compute"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self.compute = lower(self.rule.body)

    def extra_repr(self) -> str:
        return str(self.rule)


class Update(nn.Module):
    """The new memory of one variable: the old one and every rule's output, through an MLP."""

    def __init__(self, plan: MemoryUpdate, preset: Preset) -> None:
        super().__init__()
        self.sort = plan.sort
        self.biased = any(part.bias for part in plan.mixer)
        self.skips = plan.width_in > 0
        self.residual = plan.residual
        self.steps = nn.ModuleList(ApplyRule(step, preset) for step in plan.steps)
        parts: list[nn.Module] = []
        for part in plan.mixer:
            parts += [linear(part), ACTIVATIONS[preset.activation]()]
        self.mixer = nn.Sequential(*parts[:-1])

    def forward(
        self,
        old: Memories,
        read: Memories,
        new: Memories,
        constants: Constants,
        given: Sequence[Tensor] = (),
    ) -> Tensor:
        """`given` are outputs of further rules, which follow those of the steps."""
        letter = self.sort.letter
        outputs = [*(step(read, constants) for step in self.steps), *given]
        value: Tensor = self.mixer(
            torch.cat([read[letter], *outputs] if self.skips else outputs, dim=-1)
        )
        if self.residual:
            value = value + old[letter]
        return masked(value, self.sort, constants) if self.biased else value


class BilinearUpdate(nn.Module):
    """The node update of the released code: `Σ_k C_k (H/f) W_k + b/f` with the new C."""

    def __init__(self, plan: MemoryUpdate) -> None:
        super().__init__()
        width_in, width_out = plan.width_in, plan.width_out
        channels = plan.mixer[0].width_in // width_in
        self.weight = nn.Parameter(torch.empty(channels, width_in, width_out))
        self.bias = nn.Parameter(torch.zeros(width_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, old: Memories, read: Memories, new: Memories, constants: Constants) -> Tensor:
        scaled = read["V"] / self.weight.shape[1]
        weight, bias = self.weight.to(scaled.dtype), self.bias.to(scaled.dtype)
        value = torch.einsum("bijk,bjf,kfg->big", new["M"], scaled, weight)
        return (value + bias / len(weight[0])) * constants["1"]


class PlannedLayer(nn.Module):
    """One layer of a grammar's network."""

    def __init__(self, plan: LayerPlan, preset: Preset) -> None:
        super().__init__()
        self.updates = nn.ModuleDict(
            {
                update.sort.letter: (
                    BilinearUpdate(update) if update.kind == "bilinear" else Update(update, preset)
                )
                for update in plan.updates
            }
        )
        self.norms = nn.ModuleDict(
            {
                sort.letter: (
                    NormaliseGraph(width)
                    if sort == M and preset.pair_norm == "graph"
                    else Normalise(width)
                )
                for sort, width in plan.norms
            }
        )

    def forward(self, memories: Memories, constants: Constants) -> Memories:
        return self.updated(memories, self.read(memories, constants), constants)

    def read(self, memories: Memories, constants: Constants) -> Memories:
        """The memories as rules read them."""
        read = dict(memories)
        for letter, norm in self.norms.items():
            read[letter] = norm(memories[letter], constants)
        return read

    def updated(
        self,
        memories: Memories,
        read: Memories,
        constants: Constants,
        given: Mapping[str, Sequence[Tensor]] = NOTHING,
    ) -> Memories:
        """The new memories; `given` are outputs of rules that are no steps of this layer."""
        new: Memories = {}
        for letter, update in self.updates.items():
            more = (given[letter],) if given.get(letter) else ()
            new[letter] = update(memories, read, new, constants, *more)
        return new
