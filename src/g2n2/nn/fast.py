"""A layer on padded batches through kernels: what `PlannedLayer.forward` says, in fewer operations.

- All selectors of one memory are one matrix product.
- `diag(v)` touches the n entries of its diagonal and not n².
- A matrix memory's update is one op (`ops.pair_mlp`), which keeps no hidden layer that is large.
- Products need no permuted copy: small graphs are multiplied where they lie, larger ones are
  selected as planes (`ops.products`, `ops.channel_major`).

It reads the modules of a PlannedLayer and owns no parameters, so that the layer stays the reference
and both give the same numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..compiler.lowering import Constants
from ..errors import LoweringError
from ..language.sorts import M
from ..ops import channel_major, packed_mlp
from ..ops.pair_mlp import reference
from ..ops.pair_mlp.layout import covered
from ..ops.pair_mlp.parts import Diagonal, Hadamard, Pairs, Part
from ..ops.rule_kernels.spec import MOST_NODES
from .fast_rules import FastRule
from .layer import (
    ApplyRule,
    BilinearUpdate,
    Memories,
    PlannedLayer,
    Select,
    Update,
    in_dtype,
    linear_maps,
    masked,
    through,
)
from .small_layer import SmallLayer

Backend = Literal["auto", "reference", "packed", "triton"]
BACKENDS = ("auto", "reference", "packed", "triton")
RENAMED = {"plain": "packed"}
"""What backends were called before."""
KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def choose(backend: str, device: torch.device) -> Backend:
    """The backend for a device: `auto` is `triton` on a GPU that has it, `packed` elsewhere.

    Raises:
        LoweringError: An unknown backend, or `triton` where it is not installed.
    """
    backend = RENAMED.get(backend, backend)
    if backend not in BACKENDS:
        raise LoweringError(f"no backend is called {backend!r}; known: {', '.join(BACKENDS)}")
    if torch.compiler.is_compiling():
        return "reference"  # the compiler fuses plain operations itself
    if backend == "auto":
        return "triton" if device.type == "cuda" and _has_triton() else "packed"
    if backend == "triton" and not _has_triton():
        raise LoweringError('backend triton needs triton: pip install "g2n2[kernels]"')
    return cast(Backend, backend)


@dataclass(frozen=True, eq=False)
class BatchContext:
    """What all layers of a network share for one batch.

    Attributes:
        constants: What rules may name.
        mask: `[B, N]`.
    """

    constants: Constants
    mask: Tensor

    @cached_property
    def scale(self) -> Tensor:
        """`[B]` 1/√n, in more digits than a half-precision constant has."""
        return self.mask.sum(1, dtype=torch.float32).rsqrt()

    @cached_property
    def node_flags(self) -> Tensor:
        """`[B, N]` int8, as kernels read it."""
        return self.mask.to(torch.int8)

    @cached_property
    def pair_flags(self) -> Tensor:
        """`[B, N, N]` int8."""
        return self.node_flags.unsqueeze(2) * self.node_flags.unsqueeze(1)


class FastLayer:
    """Computes a PlannedLayer."""

    def __init__(self, layer: PlannedLayer) -> None:
        self.layer = layer
        self.small = SmallLayer.of(layer)
        self.rules: dict[str, list[FastRule]] = {}
        self.groups: dict[str, list[Select]] = {}
        self.multiplied: set[int] = set()
        for letter, update in layer.updates.items():
            assert isinstance(update, Update | BilinearUpdate), "a layer has two kinds of update"
            if isinstance(update, BilinearUpdate):
                continue
            rules = [cast(ApplyRule, rule) for rule in update.steps]
            self.rules[letter] = [FastRule.of(rule, _joins(update)) for rule in rules]
            self.multiplied |= {
                id(select)
                for rule in self.rules[letter]
                if rule.shape in ("product", "column")
                for select in rule.rule.selectors
            }
            for rule in rules:
                for source, select in zip(rule.sources, rule.selectors, strict=True):
                    self.groups.setdefault(source, []).append(cast(Select, select))

    def __call__(self, memories: Memories, around: BatchContext) -> Memories:
        """The memories after the layer.

        Raises:
            LoweringError: The batch is not on a GPU.
        """
        constants = around.constants
        _refuse_without_gpu(around.mask.device)
        if self.small is not None and around.mask.shape[1] <= MOST_NODES:
            return self.small(memories, around.scale, around.node_flags, around.pair_flags)
        read = dict(memories)
        for letter, norm in self.layer.norms.items():
            read[letter] = _normalised(memories[letter], cast(nn.RMSNorm, norm))
        operands = self._select(read, constants)
        new: Memories = {}
        for letter, update in self.layer.updates.items():
            if isinstance(update, BilinearUpdate):
                new[letter] = update(memories, read, new, constants)
                continue
            update = cast(Update, update)
            parts = [
                rule.part([operands[id(s)] for s in rule.rule.selectors], constants)
                for rule in self.rules[letter]
            ]
            if update.skips:
                parts.insert(0, Pairs(read[letter]))
            residual = memories[letter] if update.residual else None
            if _joins(update) and not all(isinstance(part, Diagonal) for part in parts):
                new[letter] = _joined(update, parts, residual, around.mask)
            else:
                new[letter] = _concatenated(update, parts, residual, constants)
        return new

    def _select(self, read: Memories, constants: Constants) -> dict[int, Tensor]:
        """Every operand of every rule, by its selector: one product for each memory."""
        found: dict[int, Tensor] = {}
        for letter, group in self.groups.items():
            memory = read[letter]
            linear = [s for s in group if len(s.maps) == 1 and not s.biased]
            flat = [s for s in linear if memory.dim() < 4 or not self._planar(s, memory)]
            for own, apart in ((flat, _linear), (_without(linear, flat), channel_major.linear)):
                if own:
                    pieces = apart(
                        memory, [select.scaled_weight().to(memory.dtype) for select in own]
                    )
                    found |= {id(s): piece for s, piece in zip(own, pieces, strict=True)}
            for select in group:
                if id(select) not in found:
                    value = through(select.maps, memory) * select.scale
                    found[id(select)] = masked(value, select.sort, constants)
        return found

    def _planar(self, select: Select, memory: Tensor) -> bool:
        """Whether kernels want an operand as planes: in products of matrices beyond their tile."""
        return memory.shape[1] > MOST_NODES and id(select) in self.multiplied


def embedded(values: Tensor, embed: nn.Linear, dtype: torch.dtype | None) -> Tensor:
    """A memory before the first layer, embedded.

    Values may come in two halves (`halved`), twice as many as the map takes. Under autocast weights
    are rounded to its dtype as all others are.
    """
    weight, bias = embed.weight, cast(Tensor | None, embed.bias)
    if dtype is not None:
        weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)
    if values.shape[-1] == 2 * embed.in_features:
        return functional.linear(values, torch.cat([weight, weight], dim=1), bias)
    wide = None if bias is None else bias.to(values.dtype)
    return functional.linear(values, weight.to(values.dtype), wide)


def halved(values: Tensor, dtype: torch.dtype) -> Tensor:
    """`[…, S]` in full precision as `[…, 2S]` in half, whose two parts add up to it."""
    high = values.to(dtype)
    return torch.cat([high, (values - high).to(dtype)], dim=-1)


def _joins(update: Update) -> bool:
    """Whether an update is one op, which takes its parts as they are."""
    return update.sort == M and len(linear_maps(update.mixer)) == 2


def _joined(update: Update, parts: list[Part], residual: Tensor | None, mask: Tensor) -> Tensor:
    """A matrix memory's update as one op."""
    dtype = next(iter(vars(parts[0]).values())).dtype
    first, second = (in_dtype(m, dtype) for m in linear_maps(update.mixer))
    activation = "silu" if isinstance(update.mixer[1], nn.SiLU) else "relu"
    mix = _kernel_mix(parts, first[0], second[0], mask, activation)
    return mix(parts, first, second, mask, activation, residual)


def _concatenated(
    update: Update, parts: list[Part], residual: Tensor | None, constants: Constants
) -> Tensor:
    """Any other update, as the layer writes it."""
    values = [reference.values(part) for part in parts]
    value = through(update.mixer, torch.cat(values, dim=-1))
    if residual is not None:
        value = value + residual
    return masked(value, update.sort, constants) if update.biased else value


def _kernel_mix(
    parts: list[Part], w1: Tensor, w2: Tensor, mask: Tensor, activation: str
) -> Callable[..., Tensor]:
    """The op for these parts: a hidden layer is written where it fits."""
    from ..ops.pair_mlp import streamed, triton

    if not covered(parts, len(w1), len(w2)):
        return _mix_rows
    hidden_bytes = mask.numel() * mask.shape[1] * len(w1) * w1.element_size()
    fits = activation == "relu" and hidden_bytes <= streamed.HIDDEN_BYTES
    return streamed.mix if fits else triton.mix


def _mix_rows(
    parts: Sequence[Part],
    first: packed_mlp.Map,
    second: packed_mlp.Map,
    mask: Tensor,
    activation: str,
    residual: Tensor | None = None,
) -> Tensor:
    """See `pair_mlp.reference.mix`: what no kernel covers, in chunks of library products."""
    rows = []
    for part in parts:
        if isinstance(part, Hadamard):
            rows.append(packed_mlp.Part(part.left.flatten(0, 2), part.right.flatten(0, 2)))
        else:
            diagonal = isinstance(part, Diagonal)
            rows.append(packed_mlp.Part(part.values.flatten(0, -2), diagonal=diagonal))
    count, nodes = mask.shape
    node = torch.arange(count * nodes, device=mask.device)
    added = None if residual is None else residual.flatten(0, 2)
    value = packed_mlp.mix(rows, first, second, activation, node * nodes + node % nodes, added)
    return value.view(count, nodes, nodes, -1) * reference.pair_mask(mask)


def _refuse_without_gpu(device: torch.device) -> None:
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise LoweringError(
            f"backend triton runs on a GPU, and the batch is on {device.type}: "
            'move network and batch to "cuda", or use backend "packed"'
        )


def _normalised(memory: Tensor, norm: nn.RMSNorm) -> Tensor:
    from ..ops.norms.triton import rms_norm

    return rms_norm(memory, norm.weight.to(memory.dtype), norm.eps or 0.0)


def _without(selects: list[Select], some: list[Select]) -> list[Select]:
    return [select for select in selects if all(select is not one for one in some)]


def _linear(x: Tensor, weights: Sequence[Tensor]) -> Sequence[Tensor]:
    """The channels through each of the weights: one product."""
    joined = functional.linear(x, torch.cat(list(weights)))
    return joined.split_with_sizes([len(weight) for weight in weights], dim=-1)


def _has_triton() -> bool:
    return find_spec("triton") is not None
