"""The packed executor: a network computed on rows without padding, on a CPU and on a GPU.

It packs a batch, runs the layers (`packed_layer`) and reads out. It reads the modules of a network
and owns no parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..data.batch import PackedBatch
from ..data.capacities import Room
from ..errors import DataError
from ..ops import packed
from ..ops.packing import Packing
from ..ops.precision import without_autocast
from ..ops.rule_kernels.spec import MOST_NODES
from ..ops.tiling import TILED_NODES
from .input_memories import LazyConstants, input_memories, part_of
from .layer import Memories, PlannedLayer, in_dtype
from .marked_rows import RowGraphs, weights_of
from .memory_budget import copies_at_once
from .packed_layer import PAIR_SUMS, PackedGraphs, PackedLayer
from .packed_scopes import PackedCrossing, PackedScopedLayer, RowCopies
from .scopes import SUMS, Scoped, ScopedLayer, SentenceSum
from .supports import GIVEN_WITH_BATCHES

if TYPE_CHECKING:
    from .model import GrammarGNN

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


class PackedNetwork:
    """Computes a GrammarGNN on packed rows.

    Args:
        model: The network; read at every call, so that its weights may change.
    """

    def __init__(self, model: GrammarGNN) -> None:
        self.model = model
        self.layers, self.trunk_layers, self.scoped_layers = (
            [PackedLayer(layer) for layer in model.layers if isinstance(layer, PlannedLayer)],
            [PackedLayer(cast(PlannedLayer, layer)) for layer in model.trunk],
            [PackedScopedLayer(layer) for layer in model.layers if isinstance(layer, ScopedLayer)],
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

    def on_graphs(self, graphs: PackedGraphs) -> Tensor:
        """`[G, O]`, `[Q, O]`, `[P, O]` or `[E, O]`: outputs, in the dtype of the weights."""
        marks = self.model.marks
        if marks is None:
            features = self.features(graphs)
        else:
            at_once = None if graphs.room else copies_at_once(self.model, graphs.packing.most)
            features = marks(RowGraphs.of(self, graphs), at_once)
        with without_autocast(graphs.packing.device.type):
            return self.model.readout.decide(features)

    def of_batch(self, batch: PackedBatch) -> PackedGraphs:
        """What layers read of a batch of rows."""
        reads_supports = isinstance(self.model.supports, GIVEN_WITH_BATCHES)
        designed = batch.designed if reads_supports else None
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
        width = mask.shape[1]
        places = torch.arange(1, width + 1, device=mask.device)
        sizes, ends = torch.stack([mask.sum(1), (mask * places).amax(1)]).tolist()
        if 0 in sizes:
            raise DataError(f"graph {sizes.index(0)} of the batch has no nodes; drop it")
        if sizes != ends:
            raise DataError("the mask is not true first and false after: put padding last")
        packing = Packing(sizes, mask.device)
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

        @cache
        def matrices() -> list[Tensor]:
            assert adjacency is not None, "a rule names it"
            return packing.views(adjacency, "M")

        constants = []
        for number, (present, support) in enumerate(zip(packing.present, supports, strict=True)):
            named = self.model.constants(unnamed, present, support).makers
            matrix = {"A": lambda _, k=number: matrices()[k]}
            constants.append(LazyConstants({**named, **matrix}))
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
        if self.scoped_layers:
            return self._last(graphs) if depth is None else self._meeting(graphs, depth)[0][0]
        return self._through(self.model.embeddings, self.layers[:depth], graphs)

    def _meeting(self, graphs: PackedGraphs, depth: int | None = None) -> tuple[Scoped, RowCopies]:
        """The memories of graphs and of their copies after some layers, where copies meet."""
        plan, scoped = self.model.plan, self.model.plan.scoped
        assert plan.marks is not None, "asked where copies meet"
        assert scoped is not None, "asked where copies meet"
        outside, inside = (
            replace(graphs, first=part_of(graphs.first, plan.inputs.unmarked, part))
            for part in (scoped.outside, scoped.inside)
        )
        marked = RowGraphs.of(self, inside)
        marked = marked.copies(marked.choose(plan.marks.chosen, self.model.training))
        assert marked.lifting is not None, "they are copies"
        copies = RowCopies((outside, marked.inputs()), marked.lifting)
        (outer, of_graphs), (inner, of_copies) = (
            self._started(self.model.embeddings_of(scope), each)
            for scope, each in enumerate(copies.graphs)
        )
        kernels, tiled = self._kernels(inner, of_copies)
        of_graphs = replace(of_graphs, kernels=kernels, tiled=tiled)
        of_copies = replace(of_copies, kernels=kernels, tiled=tiled)
        computed = replace(copies, graphs=(of_graphs, of_copies))
        memories = outer, inner
        with without_autocast(graphs.packing.device.type):
            for layer in self.scoped_layers[:depth]:
                memories = layer(memories, computed)
        return memories, copies

    def _last(self, graphs: PackedGraphs, only_sums: bool = False) -> Memories:
        """The memories that are read out; see `PackedLayer` for `only_sums`."""
        if not self.scoped_layers:
            return self._through(self.model.embeddings, self.layers, graphs, only_sums)
        readout = self.model.readout
        memories, copies = self._meeting(graphs)
        if not readout.sums:
            return memories[0]
        with without_autocast(graphs.packing.device.type):
            outer, inner = (
                {x: rows.to(readout.dtype) for x, rows in held.items()} for held in memories
            )
            sums = [
                PackedCrossing(each)((outer, inner), copies) / each.size
                for each in cast(Sequence[SentenceSum], readout.sums)
            ]
        return memories[0] | {SUMS: torch.cat(sums, dim=1)}

    def trunk(self, graphs: PackedGraphs) -> Memories:
        """What the marked copies of a graph share: the inputs, or what layers make of them."""
        if not self.trunk_layers:
            return graphs.first
        return self._through(self.model.trunk_embeddings, self.trunk_layers, graphs)

    def _through(
        self,
        embeddings: nn.ModuleDict,
        layers: Sequence[PackedLayer],
        graphs: PackedGraphs,
        sums: bool = False,
    ) -> Memories:
        """The memories after their embeddings and some layers; see `PackedLayer` for `sums`."""
        memories, graphs = self._started(embeddings, graphs)
        kernels, tiled = self._kernels(memories, graphs)
        graphs = replace(graphs, kernels=kernels, tiled=tiled)
        with without_autocast(graphs.packing.device.type):
            for number, layer in enumerate(layers):
                if number and self.model.plan.preset.between:
                    memories = {letter: value.relu() for letter, value in memories.items()}
                memories = layer(memories, graphs, sums and layer is layers[-1])
        return memories

    def _started(
        self, embeddings: nn.ModuleDict | Mapping[str, nn.Module], graphs: PackedGraphs
    ) -> tuple[Memories, PackedGraphs]:
        """The memories the first layer reads, and the graphs in the dtype layers run in."""
        device = graphs.packing.device
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
        return memories, graphs

    def features(self, graphs: PackedGraphs) -> Tensor:
        """What the decision layers read."""
        readout, packing = self.model.readout, graphs.packing
        only_sums = readout.sums_pairs and not readout.reads_pairs
        memories = self._last(graphs, only_sums)
        kernels = any(self._kernels(memories, graphs))
        with without_autocast(packing.device.type):
            sums = {part: memories.pop(part) for part in PAIR_SUMS if part in memories}
            if kernels and readout.sums_only and not sums:
                return self._pooled(memories, packing)
            if readout.sums_pairs and not sums:
                sums = self._pair_sums(memories, packing, kernels)
            pairs = readout.reads_pairs or not sums
            read = [letter for letter in memories if letter != "M" or pairs]
            letters = {letter: "S" if letter == SUMS else letter for letter in read}
            views = {x: packing.views(memories[x], letter) for x, letter in letters.items()}
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

    @staticmethod
    def _kernels(memories: Memories, graphs: PackedGraphs) -> tuple[bool, bool]:
        """Whether there are kernels for small graphs, and for those of several tiles.

        The latter are for sizes that differ or are not known here.
        """
        packing = graphs.packing
        dtypes = [value.dtype for value in memories.values()]
        if graphs.entries is not None or not all(has_kernels(packing.device, x) for x in dtypes):
            return False, False
        larger = MOST_NODES < packing.most <= TILED_NODES
        many = packing.has_tail or len(packing.runs) > FEW_RUNS
        return packing.most <= MOST_NODES, larger and many

    def _pooled(self, memories: Memories, packing: Packing) -> Tensor:
        """What the decision layers read where that is sums of nodes and pairs."""
        from ..ops.pooling import packed_pools

        readout = self.model.readout
        pools = [part for part, _ in readout.plan.pools]
        return packed_pools(
            memories.get("M"), memories.get("V"), packing.index, pools, readout.unit
        )

    def _pair_sums(self, memories: Memories, packing: Packing, kernels: bool) -> dict[str, Tensor]:
        """The sums of the matrix memory, without a copy of it."""
        if kernels:
            from ..ops.pooling import packed_sums

            values = packed_sums(memories["M"], packing.index)
        elif packing.padded:
            return {}
        else:
            values = packed.pair_sums(memories["M"], packing)
        return dict(zip(PAIR_SUMS, values, strict=True))

    @property
    def takes_blocks(self) -> bool:
        """Whether it computes with pairs other than by rows, on graphs of any size."""
        readout, plan = self.model.readout, self.model.plan
        for layer in (*self.trunk_layers, *self.layers):
            plain = [
                rule.kind in ROW_KINDS or (rule.kind == "diagonal" and rule.inner is None)
                for rules in layer.rules.values()
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
    number = packing.caller.argsort()[graph]  # of the packed graph each entry belongs to
    matrices, order = [], []
    for run in packing.runs:
        inside = (number >= run.graphs.start) & (number < run.graphs.stop)
        chosen = inside.nonzero()[:, 0]
        matrices.append(
            torch.sparse_coo_tensor(
                torch.stack([number[chosen] - run.graphs.start, start[chosen], end[chosen]]),
                adjacency._values()[chosen],
                run.shape("M"),
                check_invariants=False,
            )
        )
        order.append(chosen)
    return matrices, torch.cat(order)
