"""Values that depend on no weight, computed once before training: input memories and supports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batching import ordered_batches
from ..data.capacities import Capacity
from ..data.graph_set import GraphSet, Ints, ragged_rows
from ..data.store import GraphStore
from ..nn import packed
from ..nn.input_memories import halved
from ..nn.model import GrammarGNN
from ..nn.supports import SpectralSupports
from ..ops.packing import Packing
from .processes import within_memory

if TYPE_CHECKING:
    from .cuda_graphs import Recorded

AT_ONCE = 2**20
"""Pairs computed together."""
SHARE = 0.25
"""Of the device's free memory, at most, for the inputs of all graphs."""
LARGEST = 2**31
"""Bytes supports may take, and no more than a share of a GPU's free memory; beyond, they are made
for every batch."""

BatchInputs = tuple[Any, ...]
"""What `PackedNetwork.from_inputs` takes: where graphs lie, their input memories, A and so on."""


class InputRows:
    """What a network reads of all graphs of a store, as rows; a batch is one gather for each table.

    Args:
        model: The network that reads them.
        store: The graphs.
        dtype: Half precision the network computes in, or None; memories that are embedded then come
            in two halves (`nn.input_memories.halved`).

    Attributes:
        tables: The input memories by variable, `A` where a rule names it, `designed` supports,
            `marks` (what a mark on each node counts) and `targets`, in the order of the set; the
            last row is that of no graph.
        most: Nodes of the largest graph.
    """

    def __init__(self, model: GrammarGNN, store: GraphStore, dtype: torch.dtype | None) -> None:
        self.model, self.store, self.dtype = model, store, dtype
        graphs = store.graphs
        self.most = int(graphs.sizes.max())
        offsets = {"M": store.pair_offsets, "V": store.node_offsets, "R": store.node_offsets}
        self.offsets: dict[str, Ints] = {**offsets, "S": np.arange(len(graphs) + 1)}
        self.sizes = torch.as_tensor(graphs.sizes, device=store.device)
        self.starts = {
            letter: torch.from_numpy(offset[:-1]).to(store.device)
            for letter, offset in self.offsets.items()
        }
        self.letters = {"A": "M", "designed": "M", "marks": "V"}
        self.letters["targets"] = packed.OUTPUT_ROWS[graphs.level]
        self.tables: dict[str, Tensor] = {}
        for chosen in ordered_batches(graphs.sizes, len(graphs), AT_ONCE):
            self._compute(chosen)
        self.read_targets(store)

    @torch.no_grad()
    def _compute(self, chosen: Ints) -> None:
        model = self.model
        batch = model.fitted(self.store.packed(chosen))
        graphs = model.packed.of_batch(batch)
        values = dict(graphs.first)
        if self.dtype is not None:
            values = {
                letter: halved(rows, self.dtype)
                if letter in model.embeddings
                else rows.to(self.dtype)
                for letter, rows in values.items()
            }
        if model.names_adjacency:
            values["A"] = batch.adjacency
            if batch.designed is not None:
                values["designed"] = batch.designed
        if graphs.marks is not None:
            values["marks"] = graphs.marks.unsqueeze(1)
        for name, rows in values.items():
            self._write(name, rows, batch.indices)

    def _write(self, name: str, rows: Tensor, indices: Ints) -> None:
        offset = self.offsets[self.letters.get(name, name)]
        if name not in self.tables:
            self.tables[name] = rows.new_zeros(int(offset[-1]) + 1, rows.shape[1])
        places = torch.from_numpy(ragged_rows(offset, indices)).to(rows.device)
        self.tables[name].index_copy_(0, places, rows)

    def read_targets(self, store: GraphStore) -> None:
        """Take the targets of a store with the same graphs."""
        self.store, letter, targets = store, self.letters["targets"], store.targets
        if letter == "M":
            rows = int(self.offsets["M"][-1])
            values = targets.new_full((rows, targets.shape[1]), torch.nan)
            values[store.pair_rows(np.arange(len(store)))] = targets
            targets = values
        whole = torch.cat([targets, targets.new_full((1, targets.shape[1]), torch.nan)])
        if "targets" in self.tables:
            self.tables["targets"].copy_(whole)
        else:
            self.tables["targets"] = whole

    def copies(self, training: bool) -> Ints | None:
        """`[G, k]` marked copies of each graph, of the first mark, the first two, …; else None."""
        plan, graphs = self.model.plan.marks, self.store.graphs
        if plan is None:
            return None
        if isinstance(plan.chosen, int) and training:
            return _nested(np.minimum(graphs.sizes, plan.chosen), len(plan.names))
        running = np.concatenate([[0], (self.tables["marks"][:-1, 0] != 0).cumsum(0).cpu()])
        counts: Ints = running[self.offsets["V"][1:]] - running[self.offsets["V"][:-1]]
        return _nested(counts, len(plan.names))

    @staticmethod
    def bytes_of(model: GrammarGNN, store: GraphStore) -> int:
        """Device memory all of them take."""
        sizes = store.graphs.sizes
        rows = {"M": (sizes**2).sum(), "V": sizes.sum(), "R": sizes.sum(), "S": len(sizes)}
        widths = sum(int(rows[s.letter]) * w for s, w in model.plan.inputs.widths.items())
        beside = 1 if model.names_adjacency else 0
        return 4 * (widths + beside * int(rows["M"]))

    def batch(
        self, indices: Tensor, count: Tensor, capacity: Capacity
    ) -> tuple[BatchInputs, Tensor]:
        """The first `count` graphs of an index tensor, and their targets; the others are empty."""
        if self.by_kernels:
            return self._gathered(indices, count, capacity)
        counts = torch.arange(len(indices), device=indices.device) < count
        sizes = torch.where(counts, self.sizes.index_select(0, indices), 0)
        packing = Packing.within(sizes, self.most, capacity.nodes, capacity.pairs)
        letters = {self.letters.get(name, name) for name in self.tables}
        row_sources = {letter: self._sources(letter, indices, packing) for letter in letters}
        rows = {
            name: table.index_select(0, row_sources[self.letters.get(name, name)][1])
            for name, table in self.tables.items()
            if name != "targets"
        }
        adjacency, designed, marks = (rows.pop(name, None) for name in ("A", "designed", "marks"))
        owner, source = row_sources[self.letters["targets"]]
        source = torch.where(owner < count, source, len(self.tables["targets"]) - 1)
        targets = self.tables["targets"].index_select(0, source)
        if marks is None:
            return (packing, rows, adjacency, designed), targets
        return (packing, rows, adjacency, designed, marks[:, 0], capacity.marked), targets

    @property
    def by_kernels(self) -> bool:
        """Whether kernels gather a batch: memories of pairs and nodes, and targets of graphs."""
        supported = packed.has_kernels(self.store.device, torch.float32)
        return (
            supported and {*self.tables} <= {"M", "V", "targets"} and self.letters["targets"] == "S"
        )

    def _gathered(
        self, indices: Tensor, count: Tensor, capacity: Capacity
    ) -> tuple[BatchInputs, Tensor]:
        from ..ops.gathering import PackedTable, gather

        memories = {letter: rows for letter, rows in self.tables.items() if letter != "targets"}
        table = PackedTable(self.sizes, self.starts, memories, self.tables["targets"], self.most)
        rows, targets, index = gather(table, indices, count, capacity.nodes, capacity.pairs)
        return (Packing.at(index, capacity.pairs), rows, None, None), targets

    def _sources(self, letter: str, indices: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """For each row of a batch, its graph in the batch and its row in the tables."""
        starts = self.starts[letter].index_select(0, indices)
        if letter == "S":
            return torch.arange(len(indices), device=indices.device), starts
        lengths = packing.sizes.square() if letter == "M" else packing.sizes
        ends = lengths.cumsum(0)
        rows = torch.arange(packing.pairs if letter == "M" else packing.nodes, device=ends.device)
        owner = torch.searchsorted(ends, rows, right=True)
        shift = (starts - (ends - lengths))[owner.clamp(max=len(indices) - 1)]
        beyond = int(self.offsets[letter][-1])
        return owner, torch.where(owner < len(indices), rows + shift, beyond)


def _nested(counts: Ints, marks: int) -> Ints:
    """`[G, k]`: inside a mark each copy of a graph has as many copies as the graph."""
    copies: Ints = counts[:, None] ** np.arange(1, marks + 1)
    return copies


def precompute_supports(model: nn.Module, store: GraphStore, recorded: Recorded) -> None:
    """Keep the spectral supports of a network, if it has some, with the graphs.

    `recorded` may hold those of a run before this one, and keeps these for the next.
    """
    supports = getattr(model, "supports", None)
    if type(supports) is not SpectralSupports:
        return
    budget = LARGEST
    if store.device.type == "cuda":
        budget = min(budget, int(SHARE * torch.cuda.mem_get_info(store.device)[0]))
    if int(store.pair_offsets[-1]) * supports.count * store.dtype.itemsize > budget:
        return
    key = (supports.extra_repr(), store.device, store.dtype)
    before = recorded.designed
    if before is not None and before[0] == key and same_graphs(before[1].graphs, store.graphs):
        store.designed = before[1].designed
    else:
        store.designed, _ = within_memory(store.device, lambda: _designed(supports, store))
    recorded.designed = (key, store)


def _designed(supports: SpectralSupports, store: GraphStore) -> Tensor:
    """`[ΣP, k]` of the pairs of all graphs, in the order of the set."""
    sizes, offsets = store.graphs.sizes, store.pair_offsets
    rows = torch.empty(int(offsets[-1]), supports.count, dtype=store.dtype, device=store.device)
    for chosen in ordered_batches(sizes, len(sizes), AT_ONCE):
        batch = store.packed(chosen)
        blocks = zip(batch.packing.views(batch.adjacency, "M"), batch.packing.present, strict=True)
        values = [supports.designed(block[..., 0], present) for block, present in blocks]
        places = torch.from_numpy(ragged_rows(offsets, batch.indices)).to(store.device)
        rows.index_copy_(0, places, batch.packing.rows(values, "M"))
    return rows


def same_graphs(graphs: GraphSet, others: GraphSet) -> bool:
    """Whether two sets have the same arrays, or arrays without content."""
    names = ("sizes", "edges", "node_features", "edge_features", "weights", "positions")
    for mine, theirs in ((getattr(graphs, n), getattr(others, n)) for n in names):
        if mine is not theirs and (np.size(mine) or np.size(theirs)):
            return False
    return graphs.targets.shape == others.targets.shape
