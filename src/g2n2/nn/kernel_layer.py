"""A layer on small graphs, in as few kernels as it can have.

Its rules are M·M, M⊙M, diag(v) and M·v, every selector is a linear map, and each memory is updated
by a two-layer MLP: r-G_L3 and what is left of it when rules are taken away. Whatever else a grammar
has goes the general way of `packed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..language.sorts import M, V
from ..language.terms import Apply, Hole
from ..ops.packing import Packing
from ..ops.rule_kernels.spec import KernelRule, Kind
from ..ops.side_stream import Branch
from .layer import (
    SMALL,
    ApplyRule,
    Memories,
    Normalise,
    NormaliseGraph,
    PlannedLayer,
    Select,
    Update,
    in_dtype,
    linear_maps,
)

ALIGNED = 8
"""Channels that library products like in multiples: 16 bytes in half precision."""
KINDS: dict[tuple[str, tuple[str, ...]], Kind] = {
    ("matmul", ("M", "M")): "product",
    ("hadamard", ("M", "M")): "hadamard",
    ("diag", ("V",)): "diagonal",
    ("matmul", ("M", "V")): "column",
}
WIDEST = 256
"""Channels of a memory that fit a kernel's tile."""
PLACES: dict[Kind, str] = {"product": "M", "hadamard": "M", "diagonal": "M", "column": "V"}


@dataclass(frozen=True, eq=False)
class KernelLayer:
    """How a layer is computed by `ops.selecting`, `ops.rule_kernels` and `ops.pair_mlp`."""

    layer: PlannedLayer  # the layer
    # of each memory, in the order of the columns of its operands
    selectors: dict[str, list[Select]]
    rules: tuple[KernelRule, ...]  # all rules of both updates

    @classmethod
    def of(cls, layer: PlannedLayer) -> KernelLayer | None:
        """None for a layer that has more than this one knows."""
        updates = list(layer.updates.values())
        if "M" not in layer.updates or not all(_plain(update) for update in updates):
            return None
        selectors: dict[str, list[Select]] = {}
        starts: dict[int, int] = {}
        rules: list[KernelRule] = []
        for letter, update in layer.updates.items():
            assert isinstance(update, Update), "the only kind that is plain"
            skip = _kept(update)
            end = 0
            if letter == "M":
                end = skip if _norm_of_entries(layer, "M") else skip + -skip % ALIGNED
            for step in update.steps:
                rule = cast(ApplyRule, step)
                kind = _kind(rule)
                if kind is None or PLACES[kind] != letter:
                    return None
                for source, module in zip(rule.sources, rule.selectors, strict=True):
                    select = cast(Select, module)
                    same_source = selectors.setdefault(source, [])
                    starts[id(select)] = sum(_width(s) for s in same_source)
                    same_source.append(select)
                width = _width(cast(Select, rule.selectors[0]))
                operands = tuple(starts[id(select)] for select in rule.selectors)
                rules.append(KernelRule(kind, operands, end, width, rule.power))
                end += width
        every = [select for same_source in selectors.values() for select in same_source]
        complete = set(layer.updates) == set(selectors)
        return (
            cls(layer, selectors, tuple(rules)) if complete and all(map(_linear, every)) else None
        )

    def __call__(self, memories: Memories, packing: Packing) -> Memories:
        """The memories after the layer; all are packed rows."""
        from ..ops.rule_kernels.triton import apply
        from ..ops.selecting import select

        read, selected, kept = {}, {}, {}
        skips, branch = self._updated("M").skips, Branch()
        for letter, own in self.weights().items():
            memory = memories[letter]
            with branch if letter == "V" else nullcontext():
                weight = stacked(own).to(memory.dtype)
                norm = _norm_of_entries(self.layer, letter)
                if norm is None and letter in self.layer.norms:
                    by_graph = cast(NormaliseGraph, self.layer.norms[letter])
                    memory = by_graph.on_rows(memory, packing, kernels=True)
                if norm is None:  # channels that are always zero
                    memory, weight = aligned(memory), aligned(weight)
                gain = None if norm is None else norm.weight.to(memory.dtype)
                # The MLP of a matrix memory reads it beside the rules' outputs: it is put there.
                room = linear_maps(self._updated("M").mixer)[0].in_features if letter == "M" else 0
                read[letter], selected[letter], kept[letter] = select(
                    memory, gain, SMALL, weight, room if skips else 0
                )
                if norm is None:
                    kept[letter] = memories[letter]
        branch.join()
        matrix, column = apply(
            read["M"] if skips else None,
            selected["M"],
            selected.get("V"),
            packing.scale,
            self.rules,
            packing.index,
        )
        nodes, pairs = packing.totals
        new, branch = {}, Branch()
        if "V" in self.layer.updates:
            with branch:
                parts = [read["V"], column] if self._updated("V").skips else [column]
                new["V"] = self._mixed("V", torch.cat(parts, dim=-1), kept["V"], nodes)
        new["M"] = self._mixed("M", matrix, kept["M"], pairs)
        branch.join()
        return new

    def weights(self) -> dict[str, list[Tensor]]:
        """The selectors' weights of each memory."""
        return {
            letter: [cast(nn.Linear, select.maps[0]).weight for select in own]
            for letter, own in self.selectors.items()
        }

    def _updated(self, letter: str) -> Update:
        return cast(Update, self.layer.updates[letter])

    def _mixed(self, letter: str, joined: Tensor, kept: Tensor, count: Tensor) -> Tensor:
        from ..ops.pair_mlp import mix_rows

        update = self._updated(letter)
        (w1, b1), (w2, b2) = (in_dtype(part, joined.dtype) for part in linear_maps(update.mixer))
        if joined.shape[-1] > w1.shape[1]:  # the memory came with channels that are always zero
            skip = _kept(update)
            w1 = torch.cat([aligned(w1[:, :skip]), w1[:, skip:]], dim=1)
        if len(w1) % ALIGNED:  # units that are always zero
            w1, w2 = aligned(w1.T).T, aligned(w2)
            b1 = None if b1 is None else aligned(b1)
        return mix_rows(joined, (w1, b1), (w2, b2), count, kept if update.residual else None)


def aligned(values: Tensor) -> Tensor:
    """`[…, S]` with zeros up to a multiple of `ALIGNED` channels."""
    return functional.pad(values, (0, -values.shape[-1] % ALIGNED))


def stacked(weights: Sequence[Tensor]) -> Tensor:
    """Weights one below the other: no copy where they are the parts of one tensor, in order."""
    whole = weights[0]._base
    if whole is not None and sum(map(len, weights)) == len(whole) and whole.dim() == 2:
        starts = [weight.storage_offset() for weight in weights]
        sizes = [weight.numel() for weight in weights]
        in_order = all(a + n == b for a, n, b in zip(starts, sizes, starts[1:], strict=False))
        if in_order and all(weight._base is whole for weight in weights):
            return whole
    return torch.cat(list(weights))


def _plain(update: nn.Module) -> bool:
    """Whether an update is a two-layer MLP with ReLU, of widths the kernels take."""
    if not isinstance(update, Update) or update.sort not in (M, V) or not update.steps:
        return False
    maps = linear_maps(update.mixer)
    return (
        len(maps) == 2 and isinstance(update.mixer[1], nn.ReLU) and maps[1].out_features <= WIDEST
    )


def _kind(rule: ApplyRule) -> Kind | None:
    body = rule.rule.body
    if not isinstance(body, Apply) or not all(isinstance(part, Hole) for part in body.args):
        return None
    kind = KINDS.get((body.op, tuple(part.sort.letter for part in body.args)))
    return None if kind in ("hadamard", "diagonal") and rule.power else kind


def _linear(select: Select) -> bool:
    return len(select.maps) == 1 and not select.biased and select.scale == 1.0


def _width(select: Select) -> int:
    return cast(nn.Linear, select.maps[-1]).out_features if len(select.maps) == 1 else 0


def _kept(update: Update) -> int:
    """Channels of the memory itself among the inputs of its MLP."""
    outputs = sum(_width(cast(Select, cast(ApplyRule, s).selectors[0])) for s in update.steps)
    return linear_maps(update.mixer)[0].in_features - outputs if update.skips else 0


def _norm_of_entries(layer: PlannedLayer, letter: str) -> Normalise | None:
    """The norm that the kernel of the selectors computes."""
    if letter not in layer.norms or isinstance(layer.norms[letter], NormaliseGraph):
        return None
    return cast(Normalise, layer.norms[letter])
