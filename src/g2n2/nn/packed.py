"""The packed executor: a network computed on rows without padding, on a CPU and on a GPU.

Norms, selectors, entrywise rules and MLPs work on all rows at once. Rules that know graphs have ops
of their own (`ops.packed`), or kernels for small graphs on a GPU (`ops.rule_kernels`). Any other
rule is computed block by block as the layer writes it (`ops.packing`), so every grammar is covered.
The executor reads the modules of a network and owns no parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..compiler.lowering import Lowered, lower
from ..data.capacities import Room
from ..data.packed_batch import PackedBatch
from ..language.sorts import M, V
from ..language.terms import A, Apply, Hole
from ..ops import packed, packed_mlp
from ..ops.packing import Packing
from ..ops.precision import without_autocast
from ..ops.rule_kernels.spec import MOST_NODES, KernelRule
from ..ops.tiled_rules import TILED_NODES
from .input_memories import input_memories
from .kernel_layer import KernelLayer
from .layer import (
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
from .lazy_constants import LazyConstants
from .marked_rows import RowGraphs, weights_of
from .memory_budget import copies_at_once
from .supports import GIVEN_WITH_BATCHES

if TYPE_CHECKING:
    from .model import GrammarGNN

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

SPARSE = 0.25
"""Share of entries of A that are not 0, below which products with A skip the zeros."""
FEW_RUNS = 2
"""Runs of equal size whose products are left to the library."""
ROW_KINDS = {"selected product", "product", "column", "adjacency", "hadamard", "entrywise"}
"""Rules that need no blocks where there are kernels for all sizes."""
KERNEL_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
OUTPUT_ROWS = {"graph": "S", "node": "V", "edge": "M"}
"""The variable whose memory has a row for each output, by task."""


def has_kernels(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether there are kernels for memories of this dtype on a device."""
    return device.type == "cuda" and dtype in KERNEL_DTYPES and find_spec("triton") is not None


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
        """A of all graphs as one sparse `[Q, Q]`, where it is dense and most entries are 0."""
        if self.adjacency is None or self.packing.padded:
            return None
        entries = self.adjacency[:, 0]
        places = entries.nonzero()[:, 0]
        if len(places) > SPARSE * len(entries):
            return None
        start, end = (ends[places] for ends in self.packing.ends)
        return torch.sparse_coo_tensor(
            torch.stack([start, end + start - self.packing.place[start]]),
            entries[places],
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
                return packed_mlp.Part(self._inner(operands, graphs), diagonal=True)
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
        from ..ops.tiled_rules.triton import matrix_column, matrix_matrix

        packing, power = graphs.packing, self.rule.power
        if self.kind == "column":
            return matrix_column(operands[0], operands[1], packing, power)
        if self.kind == "adjacency":
            assert graphs.adjacency is not None, "a rule names it"
            matrix = graphs.adjacency.to(operands[0].dtype)
            return matrix_column(matrix, operands[0], packing, power)
        return matrix_matrix(torch.cat(list(operands), dim=1), packing, power)

    def _inner(self, operands: Sequence[Tensor], graphs: PackedGraphs) -> Tensor:
        if self.inner is None:
            return operands[0]
        return self._by_block(self.inner, operands, graphs, "V")

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

    def __call__(self, memories: Memories, graphs: PackedGraphs) -> Memories:
        """The memories after the layer."""
        if graphs.kernels and self.by_kernels is not None:
            return self.by_kernels(memories, graphs.packing)
        read = dict(memories)
        for letter, norm in self.layer.norms.items():
            kernels = graphs.kernels or graphs.tiled
            read[letter] = cast(Normalise, norm).on_rows(memories[letter], graphs.packing, kernels)
        operands: dict[int, Tensor] = {}
        for letter, selectors in self.selectors.items():
            operands |= _selected(read[letter], selectors)
        new: Memories = {}
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
            if update.skips:
                parts.insert(0, packed_mlp.Part(read[letter]))
            residual = memories[letter] if update.residual else None
            new[letter] = _updated(update, parts, residual, graphs.packing)
        return new


class PackedNetwork:
    """Computes a GrammarGNN on packed rows.

    Args:
        model: The network; read at every call, so that its weights may change.
    """

    def __init__(self, model: GrammarGNN) -> None:
        self.model = model
        self.layers, self.trunk_layers = (
            [PackedLayer(cast(PlannedLayer, layer)) for layer in layers]
            for layers in (model.layers, model.trunk)
        )

    def __call__(
        self,
        adjacency: Tensor,
        nodes: Tensor,
        edges: Tensor,
        mask: Tensor,
        designed: Tensor | None = None,
    ) -> Tensor:
        """Outputs for a padded batch, zero at the padding."""
        graphs = self.pack(adjacency, nodes, edges, mask, designed)
        value = self.on_graphs(graphs)
        letter = OUTPUT_ROWS[self.model.plan.readout.task]
        if graphs.entries is not None and letter == "M":
            return value.index_select(0, graphs.entries.argsort())
        return unpacked(value, letter, graphs.packing, mask)

    def on_batch(self, batch: PackedBatch) -> Tensor:
        """Outputs for a batch of rows, one row for each graph, node or pair."""
        return self.on_graphs(self.of_batch(batch))

    def on_graphs(self, graphs: PackedGraphs) -> Tensor:
        """Outputs for a batch."""
        marks = self.model.marks
        if marks is None:
            return self.outputs(self.run(graphs), graphs)
        at_once = None if graphs.room else copies_at_once(self.model, graphs.packing.most)
        features = marks(RowGraphs.of(self, graphs), at_once)
        with without_autocast(graphs.packing.device.type):
            return self.model.readout.decide(features)

    def of_batch(self, batch: PackedBatch) -> PackedGraphs:
        """What layers read of a batch of rows."""
        known = isinstance(self.model.supports, GIVEN_WITH_BATCHES)
        designed = batch.designed if known else None
        return self.from_rows(batch.packing, batch.nodes, batch.adjacency, batch.edges, designed)

    def pack(
        self,
        adjacency: Tensor,
        nodes: Tensor,
        edges: Tensor,
        mask: Tensor,
        designed: Tensor | None = None,
    ) -> PackedGraphs:
        """The rows of a padded batch."""
        packing, width = Packing(mask.sum(1).tolist(), mask.device), mask.shape[1]
        node_rows = nodes.flatten(0, 1).index_select(0, packing.padded_nodes(width))
        if adjacency.is_sparse:
            return self.from_sparse(adjacency, node_rows, packing)
        pairs = packing.padded_pairs(width)
        given = [adjacency.unsqueeze(-1), edges, *([] if designed is None else [designed])]
        rows = [values.flatten(0, 2).index_select(0, pairs) for values in given]
        return self.from_rows(packing, node_rows, *rows)

    def from_rows(
        self,
        packing: Packing,
        nodes: Tensor,
        adjacency: Tensor,
        edges: Tensor,
        designed: Tensor | None = None,
    ) -> PackedGraphs:
        """The batch of `[Q, F]` node features, `[P, 1]` entries of A and `[P, E]` edge features."""
        constants = self.constants(packing, adjacency, designed)
        inputs = zip(packing.views(nodes, "V"), packing.views(edges, "M"), constants, strict=True)
        graphs = PackedGraphs(packing, self._first(inputs, packing), constants, adjacency)
        plan = self.model.plan.marks
        if plan is None:
            return graphs
        marks = weights_of(plan.chosen, packing, adjacency, nodes, edges)
        nested = plan.chosen == "orbits" and len(plan.names) > 1
        return replace(graphs, marks=marks, features=(nodes, edges) if nested else None)

    def from_sparse(self, adjacency: Tensor, nodes: Tensor, packing: Packing) -> PackedGraphs:
        """The batch of a sparse `[B, N, N]`; blocks are runs, and no pair has a row."""
        packing.padded = False
        matrices, entries = _sparse_runs(adjacency, packing)
        constants = [
            self.model.constants(matrix, present)
            for matrix, present in zip(matrices, packing.present, strict=True)
        ]
        none = nodes.new_zeros(())
        edges = [none.expand(*run.shape("M"), 0) for run in packing.runs]
        inputs = zip(packing.views(nodes, "V"), edges, constants, strict=True)
        return PackedGraphs(packing, self._first(inputs, packing), constants, entries=entries)

    def from_inputs(
        self,
        packing: Packing,
        first: Memories,
        adjacency: Tensor | None,
        designed: Tensor | None,
        marks: Tensor | None = None,
        room: Room | None = None,
    ) -> PackedGraphs:
        """The batch of input memories; `adjacency` `[P, 1]` where a rule or a mark names it."""
        constants = self.constants(packing, adjacency, designed)
        return PackedGraphs(packing, first, constants, adjacency, marks=marks, room=room)

    def constants(
        self, packing: Packing, adjacency: Tensor | None, designed: Tensor | None = None
    ) -> list[LazyConstants]:
        """What rules may name, block by block."""
        dtype = self.model.readout.dtype if adjacency is None else adjacency.dtype
        unnamed = torch.zeros((), dtype=dtype, device=packing.device)
        nothing = [None] * len(packing.spans)
        supports = nothing if designed is None else packing.views(designed, "M")
        blocks: list[Tensor] = []

        def block(number: int) -> Tensor:
            if not blocks:
                assert adjacency is not None, "a rule names it"
                blocks.extend(packing.views(adjacency, "M"))
            return blocks[number]

        constants = []
        for number, (present, support) in enumerate(zip(packing.present, supports, strict=True)):
            named = self.model.constants(unnamed, present, support)
            matrix = {"A": lambda _, number=number: block(number)}
            constants.append(LazyConstants({**named.makers, **matrix}))
        return constants

    def _first(
        self, inputs: zip[tuple[Tensor, Tensor, LazyConstants]], packing: Packing
    ) -> Memories:
        plan, words = self.model.plan.inputs.unmarked, self.model.words
        parts = [input_memories(plan, words, *given) for given in inputs]
        return {
            letter: packing.rows([part[letter] for part in parts], letter) for letter in parts[0]
        }

    def run(self, graphs: PackedGraphs, depth: int | None = None) -> Memories:
        """The memories after `depth` layers, all where None.

        Under autocast the layers run in its dtype. The embedding does not: distances need more
        digits than a half-precision input has.
        """
        return self._through(self.model.embeddings, self.layers[:depth], graphs)

    def trunk(self, graphs: PackedGraphs) -> Memories:
        """What the marked copies of a graph share: the inputs, or what layers make of them."""
        if not self.trunk_layers:
            return graphs.first
        return self._through(self.model.trunk_embeddings, self.trunk_layers, graphs)

    def _through(
        self, embeddings: nn.ModuleDict, layers: Sequence[PackedLayer], graphs: PackedGraphs
    ) -> Memories:
        """The memories after their embeddings and some layers."""
        model, device = self.model, graphs.packing.device
        dtype = torch.get_autocast_dtype(device.type)
        half = dtype if torch.is_autocast_enabled(device.type) else None
        memories = dict(graphs.first)
        with without_autocast(device.type):
            for letter, embed in embeddings.items():
                memories[letter] = embedded(memories[letter], cast(nn.Linear, embed), half)
            if half is not None:
                memories = {letter: value.to(half) for letter, value in memories.items()}
                constants = [constants.to(half) for constants in graphs.constants]
                graphs = replace(graphs, constants=constants)
            kernels, tiled = self._by_kernels(memories, graphs), self._by_tiles(memories, graphs)
            graphs = replace(graphs, kernels=kernels, tiled=tiled)
            for number, layer in enumerate(layers):
                if number and model.plan.preset.between:
                    memories = {letter: value.relu() for letter, value in memories.items()}
                memories = layer(memories, graphs)
        return memories

    def outputs(self, memories: Memories, graphs: PackedGraphs) -> Tensor:
        """`[G, O]`, `[Q, O]`, `[P, O]` or `[E, O]`: the read-out, in the dtype of the weights."""
        features = self.features(memories, graphs)
        with without_autocast(graphs.packing.device.type):
            return self.model.readout.decide(features)

    def features(self, memories: Memories, graphs: PackedGraphs) -> Tensor:
        """What the decision layers read."""
        readout, packing = self.model.readout, graphs.packing
        kernels = self._by_kernels(memories, graphs) or self._by_tiles(memories, graphs)
        with without_autocast(packing.device.type):
            if kernels and readout.sums_only:
                return self._pooled(memories, packing)
            sums = self._pair_sums(memories, packing, kernels) if readout.sums_pairs else {}
            pairs = readout.reads_pairs or not sums
            read = [letter for letter in memories if letter != "M" or pairs]
            views = {letter: packing.views(memories[letter], letter) for letter in read}
            parts = [
                readout.features(
                    {letter: view[number] for letter, view in views.items()},
                    packing.present[number],
                    graphs.constants[number],
                    {part: value[span] for part, value in sums.items()},
                )
                for number, span in enumerate(packing.spans)
            ]
            letter = OUTPUT_ROWS[readout.plan.task]
            listed = graphs.entries is not None and letter == "M"  # one row for each entry of A
            return torch.cat(parts) if listed else packing.rows(parts, letter)

    def _by_kernels(self, memories: Memories, graphs: PackedGraphs) -> bool:
        packing = graphs.packing
        small = packing.most <= MOST_NODES and graphs.entries is None
        return small and all(has_kernels(packing.device, x.dtype) for x in memories.values())

    def _by_tiles(self, memories: Memories, graphs: PackedGraphs) -> bool:
        """Whether graphs are larger than that, and of sizes that differ or are not known here."""
        packing = graphs.packing
        larger = MOST_NODES < packing.most <= TILED_NODES and graphs.entries is None
        many = packing.has_tail or len(packing.runs) > FEW_RUNS
        dtypes = [value.dtype for value in memories.values()]
        return larger and many and all(has_kernels(packing.device, dtype) for dtype in dtypes)

    def _pooled(self, memories: Memories, packing: Packing) -> Tensor:
        """What the decision layers read where that is sums of nodes and pairs."""
        from ..ops.pooling.triton import packed_pools

        readout = self.model.readout
        pools = [part for part, _ in readout.plan.pools]
        return packed_pools(
            memories.get("M"), memories.get("V"), packing.index, pools, readout.unit
        )

    def _pair_sums(self, memories: Memories, packing: Packing, kernels: bool) -> dict[str, Tensor]:
        """The sums of the matrix memory, without a copy of it."""
        if kernels:
            from ..ops.pooling.triton import packed_sums

            values = packed_sums(memories["M"], packing.index)
        elif packing.padded:
            return {}
        else:
            values = packed.pair_sums(memories["M"], packing)
        return dict(zip(("diagonal", "off-diagonal"), values, strict=True))

    def unpacked_memories(self, memories: Memories, graphs: PackedGraphs, mask: Tensor) -> Memories:
        """Memories as the padded batch has them, zero at the padding."""
        return {
            letter: unpacked(rows, letter, graphs.packing, mask)
            for letter, rows in memories.items()
        }

    @property
    def takes_blocks(self) -> bool:
        """Whether it computes with pairs other than by rows, on graphs of any size."""
        readout, plan = self.model.readout, self.model.plan
        for layer in (*self.trunk_layers, *self.layers):
            rules = [rule for own in layer.rules.values() for rule in own]
            plain = [
                rule.kind in ROW_KINDS or (rule.kind == "diagonal" and rule.inner is None)
                for rule in rules
            ]
            if len(layer.rules) < len(layer.layer.updates) or not all(plain):
                return True
        pairs = any("M" in layer.layer.updates for layer in self.layers)
        return bool(readout.rules) or (
            pairs and (plan.readout.task != "graph" or not readout.sums_pairs)
        )

    def stacked_weights(self) -> list[list[Tensor]]:
        """The weights that layers stack into one, in that order."""
        every = (*self.trunk_layers, *self.layers)
        layers = [layer.by_kernels for layer in every if layer.by_kernels is not None]
        return [weights for layer in layers for weights in layer.weights().values()]


def embedded(values: Tensor, embed: nn.Linear, dtype: torch.dtype | None) -> Tensor:
    """A memory before the first layer, embedded.

    Values may come in two halves (`halved`), twice as many as the map takes. Under autocast weights
    are rounded to its dtype as all others are.
    """
    weight, bias = in_dtype(embed, dtype or values.dtype)
    if values.shape[-1] == 2 * embed.in_features:
        return functional.linear(values, torch.cat([weight, weight], dim=1), bias)
    wide = None if bias is None else bias.to(values.dtype)
    return functional.linear(values, weight.to(values.dtype), wide)


def halved(values: Tensor, dtype: torch.dtype) -> Tensor:
    """`[…, S]` in full precision as `[…, 2S]` in half, whose two parts add up to it."""
    high = values.to(dtype)
    return torch.cat([high, (values - high).to(dtype)], dim=-1)


def unpacked(rows: Tensor, letter: str, packing: Packing, mask: Tensor) -> Tensor:
    """The rows of a memory or of outputs as the caller's padded batch has them."""
    count, width = mask.shape
    if letter == "S":
        return rows.index_select(0, packing.caller.argsort())
    shape = (count, width, width) if letter == "M" else (count, width)
    places = packing.padded_pairs(width) if letter == "M" else packing.padded_nodes(width)
    padded = rows.new_zeros(count * width ** (len(shape) - 1), rows.shape[1])
    return padded.index_copy(0, places, rows).view(*shape, -1)


def _sparse_runs(adjacency: Tensor, packing: Packing) -> tuple[list[Tensor], Tensor]:
    """A sparse `[B, N, N]` run by run, and the order of its entries."""
    graph, start, end = adjacency._indices()
    place = torch.empty_like(packing.caller)
    place[packing.caller] = torch.arange(packing.graphs, device=packing.device)
    place = place[graph]
    matrices, order = [], []
    for run in packing.runs:
        inside = (place >= run.graphs.start) & (place < run.graphs.stop)
        own = slice(None) if len(packing.runs) == 1 else inside.nonzero()[:, 0]
        matrices.append(
            torch.sparse_coo_tensor(
                torch.stack([place[own] - run.graphs.start, start[own], end[own]]),
                adjacency._values()[own],
                run.shape("M"),
                check_invariants=False,
            )
        )
        order.append(torch.arange(len(graph), device=graph.device)[own])
    return matrices, torch.cat(order)


def _joins(update: nn.Module) -> bool:
    """Whether an update is one op, which takes its parts as they are."""
    return isinstance(update, Update) and update.sort == M and len(linear_maps(update.mixer)) == 2


def _updated(
    update: Update, parts: list[packed_mlp.Part], residual: Tensor | None, packing: Packing
) -> Tensor:
    """The new memory: one op for a matrix memory's two-layer MLP, else as the layer writes it."""
    dtype = parts[0].left.dtype
    if _joins(update) and any(not part.diagonal for part in parts):
        first, second = (in_dtype(m, dtype) for m in linear_maps(update.mixer))
        activation = "silu" if isinstance(update.mixer[1], nn.SiLU) else "relu"
        return packed_mlp.mix(parts, first, second, activation, packing, residual)
    values = [_rows(part, packing) for part in parts]
    value = through(update.mixer, values[0] if len(values) == 1 else torch.cat(values, dim=-1))
    return value if residual is None else value + residual


def _rows(part: packed_mlp.Part, packing: Packing) -> Tensor:
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


def _selected(memory: Tensor, selectors: Sequence[Select]) -> dict[int, Tensor]:
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
