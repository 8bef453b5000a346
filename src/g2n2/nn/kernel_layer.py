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
from ..ops.graph_index import GraphIndex
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
    """How a layer is computed by `ops.selecting`, `ops.rule_kernels` and `ops.pair_mlp`.

    Attributes:
        layer: The layer.
        selectors: Of each memory, in the order of the columns of its operands; of the column memory
            first those of diagonals.
        rules: All rules of both updates.
    """

    layer: PlannedLayer
    selectors: dict[str, list[Select]]
    rules: tuple[KernelRule, ...]

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
            skip = _kept(update) if letter == "M" else 0
            end, diagonals = skip if _norm_of_entries(layer, letter) else skip + -skip % ALIGNED, 0
            for step in update.steps:
                rule = cast(ApplyRule, step)
                kind = _kind(rule)
                if kind is None or PLACES[kind] != letter:
                    return None
                for source, module in zip(rule.sources, rule.selectors, strict=True):
                    select = cast(Select, module)
                    own = selectors.setdefault(source, [])
                    starts[id(select)] = sum(_width(s) for s in own)
                    own.append(select)
                width = _written(rule)
                operands = tuple(starts[id(select)] for select in rule.selectors)
                to = diagonals if kind == "diagonal" else end
                rules.append(KernelRule(kind, operands, to, width, rule.power))
                if kind == "diagonal":
                    diagonals += width
                else:
                    end += width
            if not end:
                return None
        every = [select for own in selectors.values() for select in own]
        known = set(layer.updates) == set(selectors)
        return cls(layer, selectors, tuple(rules)) if known and all(map(_linear, every)) else None

    def __call__(self, memories: Memories, packing: Packing) -> Memories:
        """The memories after the layer; all are packed rows."""
        from ..ops.rule_kernels.triton import apply
        from ..ops.selecting.triton import select

        read, selected, kept = {}, {}, {}
        skips, branch = self._updated("M").skips, Branch()
        for letter, own in self.weights().items():
            memory = memories[letter]
            with branch if letter == "V" else nullcontext():
                weight = stacked(own).to(memory.dtype)
                norm = _norm_of_entries(self.layer, letter)
                by_graph = norm is None and letter in self.layer.norms
                if by_graph:
                    memory = cast(NormaliseGraph, self.layer.norms[letter]).on_rows(memory, packing)
                if norm is None:  # channels that are always zero
                    memory, weight = aligned(memory), aligned(weight)
                gain = None if norm is None else norm.weight.to(memory.dtype)
                # The MLP of a matrix memory reads it beside the rules' outputs: it is put there.
                room = self._room if letter == "M" and skips else 0
                read[letter], selected[letter], kept[letter] = select(
                    memory, gain, SMALL, weight, room
                )
                if by_graph or kept[letter].shape != memories[letter].shape:
                    kept[letter] = memories[letter]
        branch.join()
        matrix, column, along = apply(
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
        new["M"] = self._mixed("M", matrix, kept["M"], pairs, along, packing.index)
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

    @property
    def _room(self) -> int:
        """Channels of the matrix memory and of the rules' outputs beside it."""
        kinds = ("product", "hadamard")
        return _kept(self._updated("M")) + sum(r.width for r in self.rules if r.kind in kinds)

    def _mixed(
        self,
        letter: str,
        joined: Tensor,
        kept: Tensor,
        count: Tensor,
        along: Tensor | None = None,
        index: GraphIndex | None = None,
    ) -> Tensor:
        from ..ops.pair_mlp.triton import mix_rows

        update, diagonals = self._updated(letter), 0 if along is None else along.shape[1]
        along = along if diagonals else None
        (w1, b1), (w2, b2) = (in_dtype(part, joined.dtype) for part in linear_maps(update.mixer))
        skip, wide = _kept(update), joined.shape[1] + diagonals
        kinds = [_kind(cast(ApplyRule, step)) for step in update.steps]
        behind = kinds == sorted(kinds, key="diagonal".__eq__)
        if wide > w1.shape[1] or not behind:
            # The memory came with channels that are always zero; or diagonals, which are last.
            steps = [_written(step) for step in update.steps]
            memory, *outputs = w1.split_with_sizes([skip, *steps], dim=1)
            memory = aligned(memory) if wide > w1.shape[1] else memory
            order = sorted(range(len(kinds)), key=lambda k: kinds[k] == "diagonal")
            w1 = torch.cat([memory, *(outputs[k] for k in order)], dim=1)
        if len(w1) % ALIGNED:  # units that are always zero
            w1, w2 = aligned(w1.T).T, aligned(w2)
            b1 = None if b1 is None else aligned(b1)
        residual = kept if update.residual else None
        return mix_rows(joined, (w1, b1), (w2, b2), count, residual, along, index)


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


def _written(step: nn.Module) -> int:
    """Channels a rule writes."""
    return _width(cast(Select, cast(ApplyRule, step).selectors[0]))


def _kept(update: Update) -> int:
    """Channels of the memory itself among the inputs of its MLP."""
    outputs = sum(map(_written, update.steps))
    return linear_maps(update.mixer)[0].in_features - outputs if update.skips else 0


def _norm_of_entries(layer: PlannedLayer, letter: str) -> Normalise | None:
    """The norm that the kernel of the selectors computes."""
    if letter not in layer.norms or isinstance(layer.norms[letter], NormaliseGraph):
        return None
    return cast(Normalise, layer.norms[letter])
