"""The packed executor: a network computed on rows without padding.

Graphs are sorted by size (`ops.packing`). Norms, selectors, entrywise rules and MLPs work on all
rows at once; products and sums loop over runs of graphs of equal size. A rule without an op of its
own is computed run by run as the layer writes it, so every grammar is covered. Nothing is padded,
so nothing is masked. The executor reads the modules of a network and owns no parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..compiler.lowering import Lowered, lower
from ..language.sorts import M, V
from ..language.terms import A, Apply, Hole
from ..ops import packed, packed_mlp
from ..ops.packing import Packing
from ..ops.precision import without_autocast
from .input_memories import input_memories
from .layer import (
    ApplyRule,
    BilinearUpdate,
    Memories,
    PlannedLayer,
    Select,
    Update,
    in_dtype,
    linear_maps,
    through,
)
from .lazy_constants import LazyConstants

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


@dataclass(frozen=True, eq=False)
class PackedGraphs:
    """A batch as rows.

    Attributes:
        packing: Where its graphs lie.
        adjacency: A of each run, `[g, n, n]`, dense or sparse.
        nodes: `[Q, F]`.
        edges: `[P, E]`; None where A is sparse.
        constants: What rules may name, run by run.
        entries: For a sparse A, where its entries are once they are sorted by run.
    """

    packing: Packing
    adjacency: list[Tensor]
    nodes: Tensor
    edges: Tensor | None
    constants: list[LazyConstants]
    entries: Tensor | None = None

    @cached_property
    def masks(self) -> list[Tensor]:
        """All nodes of each run are there."""
        device = self.nodes.device
        shapes = [run.shape("V") for run in self.packing.runs]
        return [torch.ones(shape, dtype=torch.bool, device=device) for shape in shapes]

    @cached_property
    def sparse(self) -> Tensor | None:
        """A of all graphs as one sparse `[Q, Q]`, where it is dense and most entries are 0."""
        if any(part.is_sparse for part in self.adjacency):
            return None
        entries = self.packing.rows([part.unsqueeze(-1) for part in self.adjacency], "M")[:, 0]
        places = entries.nonzero()[:, 0]
        if len(places) > SPARSE * len(entries):
            return None
        starts = self.packing.row_starts
        start = torch.searchsorted(starts, places, right=True) - 1
        end = places - starts[start] + start - self.packing.place[start]
        return torch.sparse_coo_tensor(
            torch.stack([start, end]),
            entries[places],
            2 * (self.packing.nodes,),
            is_coalesced=True,
            check_invariants=False,
        )

    def to(self, dtype: torch.dtype) -> PackedGraphs:
        """The same with constants of another dtype."""
        constants = [constants.to(dtype) for constants in self.constants]
        return PackedGraphs(
            self.packing, self.adjacency, self.nodes, self.edges, constants, self.entries
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
            case "product":
                value = packed.matrix_matrix(operands[0], operands[1], packing, rule.power)
            case "column":
                value = packed.matrix_column(operands[0], operands[1], packing, rule.power)
            case "entrywise":
                value = rule.compute(operands, {})
            case "adjacency" if graphs.sparse is not None:
                value = packed.sparse_column(graphs.sparse, operands[0], packing, rule.power)
            case _:
                value = self._by_run(rule.compute, operands, graphs, rule.rule.head.letter)
        return packed_mlp.Part(value)

    def _inner(self, operands: Sequence[Tensor], graphs: PackedGraphs) -> Tensor:
        if self.inner is None:
            return operands[0]
        return self._by_run(self.inner, operands, graphs, "V")

    def _by_run(
        self, compute: Lowered, operands: Sequence[Tensor], graphs: PackedGraphs, letter: str
    ) -> Tensor:
        rule, packing = self.rule, graphs.packing
        sources = zip(operands, rule.sources, strict=True)
        views = [packing.views(operand, source) for operand, source in sources]
        values = []
        for number, (run, constants) in enumerate(zip(packing.runs, graphs.constants, strict=True)):
            value = compute([view[number] for view in views], constants)
            values.append(value * run.size ** (-rule.power / 2) if rule.power else value)
        return packing.rows(values, letter)


class PackedLayer:
    """Computes a PlannedLayer."""

    def __init__(self, layer: PlannedLayer) -> None:
        self.layer = layer
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
        read = dict(memories)
        for letter, norm in self.layer.norms.items():
            value, norm = memories[letter], cast(nn.RMSNorm, norm)
            gain = norm.weight.to(value.dtype)
            read[letter] = packed.rms_norm(value, gain, norm.eps or 0.0)
        operands: dict[int, Tensor] = {}
        for letter, selectors in self.selectors.items():
            operands |= _selected(read[letter], selectors)
        new: Memories = {}
        for letter, update in self.layer.updates.items():
            if isinstance(update, BilinearUpdate):
                new[letter] = _by_run(update, memories, read, new, graphs)
                continue
            update = cast(Update, update)
            parts = []
            for rule in self.rules[letter]:
                selectors = cast(list[Select], list(rule.rule.selectors))
                if rule.kind == "selected product":
                    memory = read["M"]
                    weight = torch.cat(
                        [select.scaled_weight().to(memory.dtype) for select in selectors]
                    )
                    value = packed.selected_product(memory, weight, graphs.packing, rule.rule.power)
                    parts.append(packed_mlp.Part(value))
                else:
                    parts.append(rule.part([operands[id(s)] for s in selectors], graphs))
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
        self.layers = [PackedLayer(cast(PlannedLayer, layer)) for layer in model.layers]

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
        memories = self.run(graphs)
        return self._unpacked_output(self.outputs(memories, graphs), graphs, mask)

    def pack(
        self,
        adjacency: Tensor,
        nodes: Tensor,
        edges: Tensor,
        mask: Tensor,
        designed: Tensor | None = None,
    ) -> PackedGraphs:
        """The rows of a padded batch."""
        packing = Packing(mask.sum(1).tolist(), mask.device)
        width = mask.shape[1]
        node_rows = nodes.flatten(0, 1).index_select(0, packing.padded_nodes(width))
        pair_rows: Tensor | None = None
        supports: list[Tensor] | list[None] = [None] * len(packing.runs)
        entries = None
        if adjacency.is_sparse:
            matrices, entries = _sparse_runs(adjacency, packing)
        else:
            pairs = packing.padded_pairs(width)
            flat = adjacency.reshape(-1, 1).index_select(0, pairs)
            matrices = [part[..., 0] for part in packing.views(flat, "M")]
            pair_rows = edges.flatten(0, 2).index_select(0, pairs)
            if designed is not None:
                rows = designed.flatten(0, 2).index_select(0, pairs)
                supports = packing.views(rows, "M")
        graphs = PackedGraphs(packing, matrices, node_rows, pair_rows, [], entries)
        for matrix, mask_of_run, support in zip(matrices, graphs.masks, supports, strict=True):
            graphs.constants.append(self.model.constants(matrix, mask_of_run, support))
        return graphs

    def first(self, graphs: PackedGraphs) -> Memories:
        """The input memories as rows."""
        model, packing = self.model, graphs.packing
        nodes = packing.views(graphs.nodes, "V")
        if graphs.edges is None:
            none = graphs.nodes.new_zeros(())
            edges = [none.expand(*run.shape("M"), 0) for run in packing.runs]
        else:
            edges = packing.views(graphs.edges, "M")
        parts = [
            input_memories(model.plan.inputs, model.words, *given)
            for given in zip(nodes, edges, graphs.constants, strict=True)
        ]
        return {
            letter: packing.rows([part[letter] for part in parts], letter) for letter in parts[0]
        }

    def run(self, graphs: PackedGraphs, depth: int | None = None) -> Memories:
        """The memories after `depth` layers, all where None.

        Under autocast the layers run in its dtype. The embedding does not: distances need more
        digits than a half-precision input has.
        """
        model, device = self.model, graphs.nodes.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        memories = self.first(graphs)
        with without_autocast(device):
            for letter, embed in model.embeddings.items():
                values, part = memories[letter], cast(nn.Linear, embed)
                weight, bias = in_dtype(part, dtype or values.dtype)
                bias = None if bias is None else bias.to(values.dtype)
                memories[letter] = functional.linear(values, weight.to(values.dtype), bias)
            if dtype is not None:
                memories = {letter: value.to(dtype) for letter, value in memories.items()}
                graphs = graphs.to(dtype)
            for number, layer in enumerate(self.layers[:depth]):
                if number and model.plan.preset.between:
                    memories = {letter: value.relu() for letter, value in memories.items()}
                memories = layer(memories, graphs)
        return memories

    def outputs(self, memories: Memories, graphs: PackedGraphs) -> Tensor:
        """`[G, O]`, `[Q, O]`, `[P, O]` or `[E, O]`: the read-out, in the dtype of the weights."""
        features = self.features(memories, graphs)
        with without_autocast(graphs.nodes.device.type):
            return self.model.readout.decide(features)

    def features(self, memories: Memories, graphs: PackedGraphs) -> Tensor:
        """What the decision layers read."""
        readout, packing = self.model.readout, graphs.packing
        views = {letter: packing.views(rows, letter) for letter, rows in memories.items()}
        sums: dict[str, Tensor] = {}
        if readout.sums_pairs:
            sums["diagonal"], sums["off-diagonal"] = packed.pair_sums(memories["M"], packing)
        with without_autocast(graphs.nodes.device.type):
            parts = [
                readout.features(
                    {letter: view[number] for letter, view in views.items()},
                    graphs.masks[number],
                    graphs.constants[number],
                    {part: value[run.graphs] for part, value in sums.items()},
                )
                for number, run in enumerate(packing.runs)
            ]
            letter = {"graph": "S", "node": "V", "edge": "M"}[readout.plan.task]
            listed = graphs.entries is not None and letter == "M"  # one row for each entry of A
            return torch.cat(parts) if listed else packing.rows(parts, letter)

    def unpacked(self, memories: Memories, graphs: PackedGraphs, mask: Tensor) -> Memories:
        """Memories as the padded batch has them, zero at the padding."""
        return {
            letter: _unpacked(rows, letter, graphs.packing, mask)
            for letter, rows in memories.items()
        }

    def _unpacked_output(self, value: Tensor, graphs: PackedGraphs, mask: Tensor) -> Tensor:
        letter = {"graph": "S", "node": "V", "edge": "M"}[self.model.plan.readout.task]
        if graphs.entries is not None and letter == "M":
            return value.index_select(0, graphs.entries.argsort())
        return _unpacked(value, letter, graphs.packing, mask)


def _unpacked(rows: Tensor, letter: str, packing: Packing, mask: Tensor) -> Tensor:
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
        return packed_mlp.mix(parts, first, second, activation, packing.diagonal, residual)
    values = [_rows(part, packing) for part in parts]
    value = through(update.mixer, values[0] if len(values) == 1 else torch.cat(values, dim=-1))
    return value if residual is None else value + residual


def _rows(part: packed_mlp.Part, packing: Packing) -> Tensor:
    if part.diagonal:
        zeros = part.left.new_zeros(packing.pairs, part.left.shape[1])
        return zeros.index_copy(0, packing.diagonal, part.left)
    return part.left if part.right is None else part.left * part.right


def _by_run(
    update: BilinearUpdate, old: Memories, read: Memories, new: Memories, graphs: PackedGraphs
) -> Tensor:
    """The released code's node update."""
    packing = graphs.packing
    runs = [
        {letter: packing.views(rows, letter) for letter, rows in memories.items()}
        for memories in (old, read, new)
    ]
    values = [
        update(*({x: view[k] for x, view in run.items()} for run in runs), constants)
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
