"""A layer computed on packed rows: rule by rule, and as few operations as it can be.

Norms, selectors, entrywise rules and MLPs work on all rows at once. Rules that know graphs have ops
of their own (`ops.packed`), or kernels for small graphs on a GPU (`ops.rule_kernels`). Any other
rule is computed block by block as the layer writes it (`ops.packing`), so every grammar is covered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..compiler.lowering import Lowered, lower
from ..data.capacities import Room
from ..language.sorts import M, V
from ..language.terms import A, Apply, Hole
from ..ops import packed, packed_mlp
from ..ops.packing import Packing
from ..ops.rule_kernels.spec import KernelRule
from .input_memories import LazyConstants
from .kernel_layer import KernelLayer
from .layer import (
    NOTHING,
    ApplyRule,
    BilinearUpdate,
    Memories,
    Normalise,
    PlannedLayer,
    Select,
    Update,
    in_dtype,
    linear_maps,
    through,
)

Kind = Literal[
    "selected product",
    "product",
    "column",
    "adjacency",
    "hadamard",
    "diagonal",
    "entrywise",
    "any",
]

PAIR_SUMS = ("diagonal", "off-diagonal")
"""What may stand in the place of the last matrix memory: `[G, S]` sums of its pairs."""
SPARSE = 0.25
"""Share of entries of A that are not 0, below which products with A skip the zeros."""


@dataclass(frozen=True, eq=False)
class PackedGraphs:
    """A batch as rows.

    Attributes:
        packing: Where its graphs lie.
        first: The input memories.
        constants: What rules may name, block by block.
        adjacency: `[P, 1]` A; None where it is sparse or no rule names it.
        entries: For a sparse A, where its entries are once they are sorted by block.
        kernels: Whether the kernels for small graphs compute what they can.
        tiled: Whether those for graphs of several tiles do.
        marks: `[Q]` how many vertices a mark on each node stands for, where there are marks.
        features: Of nodes and of pairs, where the orbits of marked copies need them.
        room: Of the marked copies, where only the device counts them.
    """

    packing: Packing
    first: Memories
    constants: list[LazyConstants]
    adjacency: Tensor | None = None
    entries: Tensor | None = None
    kernels: bool = False
    tiled: bool = False
    marks: Tensor | None = None
    features: tuple[Tensor, Tensor] | None = None
    room: Room | None = None

    @cached_property
    def sparse(self) -> Tensor | None:
        """A of all graphs as one sparse `[Q, Q]`, where it is dense and most entries are 0.

        None where gradients of A are asked for: entries that are 0 have some too.
        """
        if self.adjacency is None or self.packing.padded or self.adjacency.requires_grad:
            return None
        entries = self.adjacency[:, 0]
        rows = entries.nonzero()[:, 0]
        if len(rows) > SPARSE * len(entries):
            return None
        start, end = (ends[rows] for ends in self.packing.ends)
        return torch.sparse_coo_tensor(
            torch.stack([start, end + start - self.packing.place[start]]),
            entries[rows],
            2 * (self.packing.nodes,),
            is_coalesced=True,
            check_invariants=False,
        )


@dataclass(frozen=True, eq=False)
class PackedRule:
    """A rule and the kind that decides how it is computed.

    Attributes:
        rule: The rule's module.
        kind: Two operands multiplied, selected in the same step where that is linear; A times a
            column; one of those an MLP on matrices takes apart; entry by entry; or any other body.
        inner: For `diagonal`, the body under the diag; None where it is the operand itself.
    """

    rule: ApplyRule
    kind: Kind
    inner: Lowered | None = None

    @classmethod
    def of(cls, rule: ApplyRule, joins: bool) -> PackedRule:
        """`joins` says whether the update takes Hadamard factors and diagonals apart."""
        body = rule.rule.body
        if not isinstance(body, Apply):
            return cls(rule, "any")
        holes = all(isinstance(argument, Hole) for argument in body.args)
        sorts = tuple(argument.sort for argument in body.args)
        if joins and body.op == "diag" and sorts == (V,):
            argument = body.args[0]
            return cls(rule, "diagonal", None if holes else lower(argument))
        if joins and holes and body.op == "hadamard" and sorts == (M, M):
            return cls(rule, "hadamard")
        if holes and body.op == "matmul" and sorts in ((M, M), (M, V)):
            if sorts == (M, V):
                return cls(rule, "column")
            linear = all(_is_linear(cast(Select, select)) for select in rule.selectors)
            return cls(rule, "selected product" if linear else "product")
        if body.op == "matmul" and sorts == (M, V) and isinstance(body.args[1], Hole):
            return cls(rule, "adjacency" if body.args[0] == A else "any")
        if holes and not rule.power and body.op in ("hadamard", "add") and len(set(sorts)) == 1:
            return cls(rule, "entrywise")
        return cls(rule, "any")

    def part(self, operands: Sequence[Tensor], graphs: PackedGraphs) -> packed_mlp.Part:
        """The rule's output, or what an update can make it of."""
        rule, packing = self.rule, graphs.packing
        match self.kind:
            case "diagonal":
                value = operands[0]
                if self.inner is not None:
                    value = self._by_block(self.inner, operands, graphs, "V")
                return packed_mlp.Part(value, diagonal=True)
            case "hadamard":
                return packed_mlp.Part(operands[0], operands[1])
            case "product" if graphs.kernels:
                value = self._by_kernel(torch.cat(list(operands), dim=1), None, graphs)
            case "column" if graphs.kernels:
                value = self._by_kernel(operands[0], operands[1], graphs)
            case "product" | "column" | "adjacency" if graphs.tiled:
                value = self._by_tiles(operands, graphs)
            case "product" if not packing.padded:
                value = packed.matrix_matrix(torch.cat(list(operands), dim=1), packing, rule.power)
            case "column" if not packing.padded:
                value = packed.matrix_column(operands[0], operands[1], packing, rule.power)
            case "entrywise":
                value = rule.compute(operands, {})
            case "adjacency" if graphs.sparse is not None:
                value = packed.sparse_column(graphs.sparse, operands[0], packing, rule.power)
            case _:
                value = self._by_block(rule.compute, operands, graphs, rule.rule.head.letter)
        return packed_mlp.Part(value)

    def selected_product(self, memory: Tensor, graphs: PackedGraphs) -> packed_mlp.Part:
        """The product of two operands that are linear maps of one memory."""
        selectors = cast(list[Select], list(self.rule.selectors))
        weight = torch.cat([select.scaled_weight().to(memory.dtype) for select in selectors])
        if graphs.kernels:
            value = self._by_kernel(functional.linear(memory, weight), None, graphs)
        elif graphs.tiled:
            value = self._by_tiles([functional.linear(memory, weight)], graphs)
        elif graphs.packing.padded:
            operands = functional.linear(memory, weight).chunk(2, dim=1)
            value = self._by_block(self.rule.compute, operands, graphs, "M")
        else:
            value = packed.selected_product(memory, weight, graphs.packing, self.rule.power)
        return packed_mlp.Part(value)

    def _by_kernel(self, matrices: Tensor, column: Tensor | None, graphs: PackedGraphs) -> Tensor:
        """M·M of both halves of the channels, or M·v."""
        from ..ops.rule_kernels.triton import apply

        packing = graphs.packing
        if column is None:
            width = matrices.shape[1] // 2
            rule = KernelRule("product", (0, width), 0, width, self.rule.power)
        else:
            rule = KernelRule("column", (0, 0), 0, column.shape[1], self.rule.power)
        pairs, columns = apply(None, matrices, column, packing.scale, [rule], packing.index)
        return pairs if column is None else columns

    def _by_tiles(self, operands: Sequence[Tensor], graphs: PackedGraphs) -> Tensor:
        """M·M, M·v or A·v on graphs of several tiles."""
        from ..ops.tiled_rules import matrix_column, matrix_matrix

        packing, power = graphs.packing, self.rule.power
        if self.kind == "column":
            return matrix_column(operands[0], operands[1], packing, power)
        if self.kind == "adjacency":
            assert graphs.adjacency is not None, "a rule names it"
            matrix = graphs.adjacency.to(operands[0].dtype)
            return matrix_column(matrix, operands[0], packing, power)
        return matrix_matrix(torch.cat(list(operands), dim=1), packing, power)

    def _by_block(
        self, compute: Lowered, operands: Sequence[Tensor], graphs: PackedGraphs, letter: str
    ) -> Tensor:
        rule, packing = self.rule, graphs.packing
        sources = zip(operands, rule.sources, strict=True)
        views = [packing.views(operand, source) for operand, source in sources]
        values = []
        for number, constants in enumerate(graphs.constants):
            value = compute([view[number] for view in views], constants)
            if rule.power:
                scale = constants["1/√n"] ** rule.power
                value = value * scale.view(-1, *[1] * (value.dim() - 1))
            values.append(value)
        return packing.rows(values, letter)


class PackedLayer:
    """Computes a PlannedLayer."""

    def __init__(self, layer: PlannedLayer) -> None:
        self.layer = layer
        self.by_kernels = KernelLayer.of(layer)
        self.rules: dict[str, list[PackedRule]] = {}
        self.selectors: dict[str, list[Select]] = {}
        for letter, update in layer.updates.items():
            if isinstance(update, BilinearUpdate):
                continue
            rules = [cast(ApplyRule, rule) for rule in cast(Update, update).steps]
            self.rules[letter] = [PackedRule.of(rule, _joins(update)) for rule in rules]
            for packed_rule in self.rules[letter]:
                if packed_rule.kind != "selected product":
                    rule = packed_rule.rule
                    for source, select in zip(rule.sources, rule.selectors, strict=True):
                        self.selectors.setdefault(source, []).append(cast(Select, select))

    def __call__(self, memories: Memories, graphs: PackedGraphs, sums: bool = False) -> Memories:
        """The memories after the layer.

        Where `sums` says that nobody reads more of the matrix memory than its sums, those may take
        its place, by the part they are over.
        """
        if graphs.kernels and self.by_kernels is not None:
            return self.by_kernels(memories, graphs.packing)
        return self.updated(memories, self.read(memories, graphs), graphs, sums)

    def read(self, memories: Memories, graphs: PackedGraphs) -> Memories:
        """The memories as rules read them."""
        read = dict(memories)
        for letter, norm in self.layer.norms.items():
            kernels = graphs.kernels or graphs.tiled
            read[letter] = cast(Normalise, norm).on_rows(memories[letter], graphs.packing, kernels)
        return read

    def updated(
        self,
        memories: Memories,
        read: Memories,
        graphs: PackedGraphs,
        sums: bool = False,
        given: Mapping[str, Sequence[Tensor]] = NOTHING,
    ) -> Memories:
        """The new memories; `given` are rows of rules that are no steps of the layer."""
        operands: dict[int, Tensor] = {}
        for letter, selectors in self.selectors.items():
            operands |= selected(read[letter], selectors)
        new: Memories = {}
        bilinear = len(self.rules) < len(self.layer.updates)  # which reads the new matrix memory
        sums = sums and not bilinear and not graphs.packing.padded
        for letter, update in self.layer.updates.items():
            if isinstance(update, BilinearUpdate):
                new[letter] = _by_block(update, memories, read, new, graphs)
                continue
            update = cast(Update, update)
            parts = [
                rule.selected_product(read["M"], graphs)
                if rule.kind == "selected product"
                else rule.part([operands[id(select)] for select in rule.rule.selectors], graphs)
                for rule in self.rules[letter]
            ]
            parts += map(packed_mlp.Part, given.get(letter, ()))
            if update.skips:
                parts.insert(0, packed_mlp.Part(read[letter]))
            residual = memories[letter] if update.residual else None
            if letter == "M" and sums and _is_one_op(update, parts):
                values = packed_mlp.mix_sums(parts, *_maps(update, parts), graphs.packing, residual)
                new |= dict(zip(PAIR_SUMS, values, strict=True))
            else:
                new[letter] = _updated(update, parts, residual, graphs.packing)
        return new


def _joins(update: nn.Module) -> bool:
    """Whether an update is one op, which takes its parts as they are."""
    return isinstance(update, Update) and update.sort == M and len(linear_maps(update.mixer)) == 2


def _updated(
    update: Update, parts: list[packed_mlp.Part], residual: Tensor | None, packing: Packing
) -> Tensor:
    """The new memory: one op for a matrix memory's two-layer MLP, else as the layer writes it."""
    if _is_one_op(update, parts):
        return packed_mlp.mix(parts, *_maps(update, parts), packing, residual)
    values = [part_rows(part, packing) for part in parts]
    value = through(update.mixer, values[0] if len(values) == 1 else torch.cat(values, dim=-1))
    return value if residual is None else value + residual


def _is_one_op(update: Update, parts: Sequence[packed_mlp.Part]) -> bool:
    return _joins(update) and any(not part.diagonal for part in parts)


def _maps(
    update: Update, parts: Sequence[packed_mlp.Part]
) -> tuple[packed_mlp.Map, packed_mlp.Map, str]:
    """Both maps of a two-layer MLP in the dtype of its inputs, and the activation between them."""
    first, second = (in_dtype(part, parts[0].left.dtype) for part in linear_maps(update.mixer))
    return first, second, "silu" if isinstance(update.mixer[1], nn.SiLU) else "relu"


def part_rows(part: packed_mlp.Part, packing: Packing) -> Tensor:
    if part.diagonal:
        zeros = part.left.new_zeros(packing.pairs, part.left.shape[1])
        return zeros.index_copy(0, packing.diagonal, part.left)
    return part.left if part.right is None else part.left * part.right


def _by_block(
    update: BilinearUpdate, old: Memories, read: Memories, new: Memories, graphs: PackedGraphs
) -> Tensor:
    """The released code's node update."""
    packing = graphs.packing
    blocks = [
        {letter: packing.views(rows, letter) for letter, rows in memories.items()}
        for memories in (old, read, new)
    ]
    values = [
        update(*({x: view[k] for x, view in block.items()} for block in blocks), constants)
        for k, constants in enumerate(graphs.constants)
    ]
    return packing.rows(values, "V")


def selected(memory: Tensor, selectors: Sequence[Select]) -> dict[int, Tensor]:
    """The operands of a memory by selector; all linear ones are one product."""
    operands: dict[int, Tensor] = {}
    linear = [select for select in selectors if _is_linear(select)]
    if linear:
        weights = [select.scaled_weight().to(memory.dtype) for select in linear]
        joint = functional.linear(memory, weights[0] if len(weights) == 1 else torch.cat(weights))
        parts = joint.split_with_sizes([len(weight) for weight in weights], dim=-1)
        operands = {id(select): part for select, part in zip(linear, parts, strict=True)}
    for select in selectors:
        if id(select) not in operands:
            operands[id(select)] = through(select.maps, memory) * select.scale
    return operands


def _is_linear(select: Select) -> bool:
    return len(select.maps) == 1 and not select.biased
