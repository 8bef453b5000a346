"""The same layer with less work: what `GrammarLayer.forward` says, in fewer and larger operations.

- All selectors of one memory are one matrix product.
- `diag(v)` touches the n entries of its diagonal and not n².
- A matrix memory's update is one op (`ops.mixing`), which keeps no hidden layer.
- Products read and write `[B, N, N, S]` as it lies (`ops.products`).

It reads the modules of a GrammarLayer and owns no parameters, so that the layer stays the reference
and both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..compiler.lowering import Constants, lower
from ..errors import LoweringError
from ..language.sorts import M, V
from ..language.terms import Apply, Hole
from ..ops import reference as ops
from ..ops.mixing import plain, reference
from ..ops.mixing.parts import Diagonal, Hadamard, Pairs, Part
from .layer import ApplyRule, BilinearUpdate, GrammarLayer, Memories, Select, Update, masked

Backend = Literal["auto", "reference", "plain", "triton"]
BACKENDS = ("auto", "reference", "plain", "triton")
Shape = Literal["product", "column", "hadamard", "diagonal", "other"]


def choose(backend: str, device: torch.device) -> Backend:
    """The backend for a device: `auto` is `triton` on a GPU that has it, `plain` elsewhere.

    Raises:
        LoweringError: An unknown backend, or `triton` where it cannot run.
    """
    if backend not in BACKENDS:
        raise LoweringError(f"no backend is called {backend!r}; known: {', '.join(BACKENDS)}")
    if torch.compiler.is_compiling():
        return "reference"  # the compiler fuses plain operations itself
    if backend == "auto":
        return "triton" if device.type == "cuda" and _has_triton() else "plain"
    if backend == "triton" and not _has_triton():
        raise LoweringError('backend triton needs triton: pip install "g2n2[kernels]"')
    return cast(Backend, backend)


@dataclass(frozen=True, eq=False)
class FastStep:
    """A rule and the shape that decides how it is computed."""

    rule: ApplyRule
    shape: Shape
    vector: Callable[..., Tensor] | None = None

    @classmethod
    def of(cls, rule: ApplyRule, joins: bool) -> FastStep:
        """`joins` says whether the update can take Hadamard factors and diagonals apart."""
        body = rule.rule.body
        if not isinstance(body, Apply):
            return cls(rule, "other")
        holes = all(isinstance(argument, Hole) for argument in body.args)
        sorts = tuple(argument.sort for argument in body.args)
        if joins and body.op == "diag" and sorts == (V,):
            return cls(rule, "diagonal", lower(body.args[0]))
        if joins and holes and body.op == "hadamard" and sorts == (M, M):
            return cls(rule, "hadamard")
        if holes and body.op == "matmul" and sorts in ((M, M), (M, V)):
            return cls(rule, "product" if sorts == (M, M) else "column")
        return cls(rule, "other")


class FastLayer:
    """Computes a GrammarLayer."""

    def __init__(self, layer: GrammarLayer) -> None:
        self.layer = layer
        self.steps: dict[str, list[FastStep]] = {}
        self.groups: dict[str, list[Select]] = {}
        for letter, update in layer.updates.items():
            if isinstance(update, BilinearUpdate):
                continue
            assert isinstance(update, Update), "a layer has two kinds of update"
            joins = letter == "M" and len(_maps(update.mixer)) == 2
            rules = [cast(ApplyRule, rule) for rule in update.steps]
            self.steps[letter] = [FastStep.of(rule, joins) for rule in rules]
            for rule in rules:
                for source, select in zip(rule.sources, rule.selectors, strict=True):
                    self.groups.setdefault(source, []).append(cast(Select, select))

    def __call__(self, memories: Memories, constants: Constants, backend: Backend) -> Memories:
        read = dict(memories)
        for letter, norm in self.layer.norms.items():
            read[letter] = _normalised(memories[letter], cast(nn.RMSNorm, norm), backend)
        operands = self._select(read, constants)
        new: Memories = {}
        for letter, update in self.layer.updates.items():
            if isinstance(update, BilinearUpdate):
                new[letter] = update(memories, read, new, constants)
                continue
            assert isinstance(update, Update), "a layer has two kinds of update"
            parts = [
                _part(step, [operands[id(s)] for s in step.rule.selectors], constants, backend)
                for step in self.steps[letter]
            ]
            if update.skips:
                parts.insert(0, Pairs(read[letter]))
            new[letter] = _mixed(update, parts, memories.get(letter), constants, backend)
        return new

    def _select(self, read: Memories, constants: Constants) -> dict[int, Tensor]:
        """Every operand of every rule, by its selector: one product for each memory."""
        found: dict[int, Tensor] = {}
        for letter, group in self.groups.items():
            memory = read[letter]
            plain_maps = [s for s in group if len(s.maps) == 1 and not s.biased]
            if plain_maps:
                weights = [_scaled(s) for s in plain_maps]
                joined = functional.linear(memory, torch.cat(weights).to(memory.dtype))
                widths = [len(weight) for weight in weights]
                found |= {
                    id(s): part
                    for s, part in zip(plain_maps, joined.split(widths, dim=-1), strict=True)
                }
            for select in group:
                if id(select) not in found:
                    value = _through(select.maps, memory) * select.scale
                    found[id(select)] = masked(value, select.sort, constants)
        return found


def _part(
    step: FastStep, operands: Sequence[Tensor], constants: Constants, backend: Backend
) -> Part:
    """A rule's output, or what an update can make it of."""
    rule = step.rule
    scale = constants["1/√n"] ** rule.power if rule.power else None
    if step.vector is not None:
        vector = step.vector(operands, constants)
        return Diagonal(vector if scale is None else vector * scale[:, None, None])
    if step.shape == "hadamard":
        return Hadamard(operands[0], operands[1])
    if backend == "triton" and step.shape in ("product", "column"):
        from ..ops.products import triton

        multiply = triton.matrix_matrix if step.shape == "product" else triton.matrix_column
        return Pairs(multiply(operands[0], operands[1], scale))
    value = rule.compute(operands, constants)
    if scale is not None:
        value = value * scale.view(-1, *[1] * (value.dim() - 1))
    return Pairs(value)


def _mixed(
    update: Update, parts: list[Part], old: Tensor | None, constants: Constants, backend: Backend
) -> Tensor:
    residual = old if update.residual else None
    maps = _maps(update.mixer)
    if update.sort == M and len(maps) == 2:
        dtype = constants["1"].dtype
        first, second = ((m.weight.to(dtype), _cast(m.bias, dtype)) for m in maps)
        activation = "silu" if isinstance(update.mixer[1], nn.SiLU) else "relu"
        mask = constants["1"][..., 0] > 0
        mix = reference.mix if backend == "reference" else plain.mix
        if backend == "triton":
            mix = _kernels(parts, maps, constants["11ᵀ"].numel(), activation) or mix
        return mix(parts, first, second, mask, activation, residual)
    values = [ops.diagonal_matrix(p.values) if isinstance(p, Diagonal) else p.values for p in parts]  # type: ignore[union-attr]
    value = _through(update.mixer, torch.cat(values, dim=-1))
    if residual is not None:
        value = value + residual
    return masked(value, update.sort, constants) if update.biased else value


def _kernels(
    parts: list[Part], maps: list[nn.Linear], count: int, activation: str
) -> Callable[..., Tensor] | None:
    """The op for these parts: a hidden layer is written for training only, and only if it fits."""
    from ..ops.mixing import streamed, triton

    sizes = maps[0].out_features, maps[1].out_features
    if torch.is_grad_enabled() and streamed.supported(parts, *sizes, count, activation):
        return streamed.mix
    return triton.mix if triton.supported(parts, *sizes) else None


def _normalised(memory: Tensor, norm: nn.RMSNorm, backend: Backend) -> Tensor:
    gain, small = norm.weight.to(memory.dtype), norm.eps or 0.0
    if backend == "triton":
        from ..ops.norms.triton import rms_norm

        return rms_norm(memory, gain, small)
    return functional.rms_norm(memory, norm.normalized_shape, gain, small)


def _scaled(select: Select) -> Tensor:
    weight = cast(nn.Linear, select.maps[0]).weight
    return weight if select.scale == 1.0 else weight * select.scale


def _through(maps: nn.Module, value: Tensor) -> Tensor:
    """A sequence of maps in the dtype of the value, whatever that of the weights."""
    for part in cast(nn.Sequential, maps):
        if isinstance(part, nn.Linear):
            dtype = value.dtype
            value = functional.linear(value, part.weight.to(dtype), _cast(part.bias, dtype))
        else:
            value = part(value)
    return value


def _maps(mixer: nn.Sequential) -> list[nn.Linear]:
    return [part for part in mixer if isinstance(part, nn.Linear)]


def _cast(bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return None if bias is None else bias.to(dtype)


def _has_triton() -> bool:
    from importlib.util import find_spec

    return find_spec("triton") is not None
