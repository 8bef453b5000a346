"""Refuse a batch that does not fit a network, or memory, before anything is allocated."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from ..compiler.costs import COPIES_BYTES, NetworkCost
from ..data.batch import GraphBatch, PackedBatch
from ..errors import DataError, MemoryBudgetError, ShapeError
from ..language.sorts import M
from ..language.terms import Apply, subterms
from ..ops.packed import KEPT_BYTES

if TYPE_CHECKING:
    from .model import GrammarGNN

GIB = 1024**3
_SPARSE_ENTRY = 150
"""Bytes of an entry of a sparse A: its places as listed, in `[B, N, N]`, in one matrix, turned."""
_HARMLESS = 2**26  # bytes that are not worth asking the system for


def give_back_freed_memory(device: torch.device) -> None:
    """Have the C library give back what tensors of a CPU held; glibc keeps some MB in pieces that
    later ones do not fit. Does nothing where the library has no such function."""
    if device.type == "cpu" and (trim := _malloc_trim()):
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim


def validate_batch(
    model: nn.Module, batch: GraphBatch | PackedBatch, node_features: int, edge_features: int
) -> None:
    """Compare a batch with what a network was made for.

    Raises:
        ShapeError: Tensors that do not belong together, or another number of features.
        DataError: No graph, or numbers of another dtype or on another device.
    """
    if isinstance(batch, GraphBatch):
        _refuse_mixed_shapes(batch)
    for what, got, expected in (
        ("node", batch.nodes.shape[-1], node_features),
        ("edge", batch.edges.shape[-1], edge_features),
    ):
        if got != expected:
            raise ShapeError(
                f"the batch has {got} {what} features, the network was made for {expected}: "
                f"give {what}_features={got} when making it, or other data"
            )
    weight = next(model.parameters())
    if (batch.adjacency.dtype, batch.adjacency.device) != (weight.dtype, weight.device):
        raise DataError(
            f"the batch holds {batch.adjacency.dtype} on {batch.adjacency.device}, the network "
            f"{weight.dtype} on {weight.device}: use batch.to({weight.device.type!r}, "
            f"{weight.dtype}), or move the network"
        )


def _refuse_mixed_shapes(batch: GraphBatch) -> None:
    """Compare the shapes of a batch, which may have been made by hand."""
    if batch.mask.dtype != torch.bool or batch.mask.dim() != 2:
        raise DataError(
            f"the mask of the batch has shape {list(batch.mask.shape)} and dtype "
            f"{batch.mask.dtype}: expected [graphs, nodes] and torch.bool, true where a node is"
        )
    count, nodes = batch.mask.shape
    if not count:
        raise DataError("the batch is empty: give at least one graph")
    for what, tensor, expected in (
        ("adjacency", batch.adjacency, (count, nodes, nodes)),
        ("nodes", batch.nodes, (count, nodes, batch.nodes.shape[-1])),
        ("edges", batch.edges, (count, nodes, nodes, batch.edges.shape[-1])),
    ):
        if tensor.shape != expected:
            raise ShapeError(
                f"{what} of the batch has shape {list(tensor.shape)}, expected {list(expected)} "
                f"for a mask of {count} graphs with up to {nodes} nodes; GraphBatch.of makes a "
                "batch of graphs"
            )


def refuse_over_budget(
    model: GrammarGNN, count: int, nodes: int, entries: int | None = None
) -> None:
    """Compare what `count` graphs of up to `nodes` nodes need with the memory budget.

    `entries` are those of a sparse A.

    Raises:
        MemoryBudgetError: With the estimate, the budget and what to do.
    """
    if torch.compiler.is_compiling():
        return  # sizes are symbols there, and the batch exists already
    weight = next(model.parameters())
    training = torch.is_grad_enabled() and model.training
    asked = count, nodes, weight.element_size(), training, entries
    if asked not in model.estimates:
        model.estimates[asked] = estimate(model, *asked)
    need = model.estimates[asked]
    budget = model.memory_budget
    if budget is None:
        limit = device_memory if need <= _HARMLESS else available_memory
        budget = limit(weight.device)
    if need > budget:
        advice = "smaller batches" if count > 1 else "fewer channels (width) or layers"
        if model.plan.scoped:
            advice += ", a grammar whose marks are summed over at the end, such as r-G_L3Σ"
        if not model.columns_only:
            advice += ", a grammar without matrices such as GNNML1"
        raise MemoryBudgetError(
            f"{count} graphs of up to {nodes} nodes need about {_size(need)}, the memory "
            f"budget is {_size(budget)}: use {advice}, or raise memory_budget"
        )


def estimate(
    model: GrammarGNN,
    count: int,
    nodes: int,
    bytes_each: int = 4,
    training: bool = True,
    entries: int | None = None,
) -> int:
    """Bytes of one pass: the batch, the activations of all layers, the gradients of one.

    Without gradients, the activations of the largest part count. On packed rows the hidden layers
    of pairs are made in chunks, and kept for the backward pass only while they are small. A sparse
    A takes memory for its `entries`; where it is dense (None) it is `[B, N, N]`, as the edge
    features are.
    """
    plan, trunk = model.plan, 0
    if plan.marks and plan.scoped:  # copies that meet are there at once
        if not training:  # where every vertex is marked
            plan = replace(plan, marks=replace(plan.marks, chosen="all"))
    elif plan.marks:  # copies are computed some at a time
        of_graphs = NetworkCost(plan, count, nodes)
        copies = of_graphs.graphs if training else count * nodes ** len(plan.marks.names)
        before = of_graphs.trunk
        trunk = before.activation_bytes(bytes_each) if before is not None else 0
        plan, count = replace(plan, marks=None), min(copies, copies_at_once(model, nodes))
    cost = NetworkCost(plan, count, nodes)
    if entries is None:
        batch = count * nodes**2 * _dense_matrices(model, training) * bytes_each
    else:
        batch = entries * _SPARSE_ENTRY
    updates = [update for layer in plan.layers for update in layer.updates]
    hidden = [
        sum(linear.width_out for linear in update.mixer[:-1])
        * (cost.graphs * cost.copies**update.sort.scope * nodes**2 * bytes_each)
        for update in updates
        if update.sort.plain == M
    ]
    kept = KEPT_BYTES[next(model.parameters()).device.type] if training else 0
    in_chunks = [size for size in hidden if model.packs and size > kept]
    largest = max(part.activations for part in cost.parts.values()) * bytes_each
    largest -= max(in_chunks, default=0)
    kept_bytes = cost.activation_bytes(bytes_each) - sum(in_chunks) if training else 0
    return batch + largest + kept_bytes + trunk


def copies_at_once(model: GrammarGNN, nodes: int) -> int:
    """How many marked copies of graphs with so many nodes are computed together."""
    cost = NetworkCost(replace(model.plan, marks=None), 1, max(1, nodes))
    device, most = next(model.parameters()).device, COPIES_BYTES
    if device.type == "cuda":
        most = max(most, device_memory(device) // 8)
    return max(1, most // (cost.activation_bytes() + 1))


def _dense_matrices(model: GrammarGNN, training: bool) -> int:
    """Matrices `[B, N, N]` beside the activations: A with two copies of it, E, and the supports.

    Those that a module which gives supports makes on its way are as measured.
    """
    defined = {
        part
        for _, definition in model.plan.grammar.supports
        for part in subterms(definition)
        if isinstance(part, Apply) and part.sort == M
    }
    given = 0
    if model.supports is not None:
        learned = any(True for _ in model.supports.parameters())
        given = 8 + ((16 if training else 9) if learned else 3) * len(model.undefined)
    return 3 + model.plan.inputs.edge_features + len(defined) + given


def available_memory(device: torch.device) -> int:
    """Bytes a batch may take: what is free, within the limits of the control groups on a CPU."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + held
    return min(device_memory(device), _free(), _within_control_groups())


def _free(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Memory that can be had without swapping; all there could be where the system does not say."""
    try:
        lines = dict(line.split(":") for line in meminfo.read_text("ascii").splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return sys.maxsize


def _within_control_groups(
    own: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> int:
    """What the control groups of this process leave it; no bound where there are none."""
    room = sys.maxsize
    try:
        entries = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return room
    for entry in entries:
        if len(entry) != 3 or entry[1] not in ("", "memory"):
            continue
        base = root / "memory" if entry[1] else root
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        files = names if entry[1] else ("memory.max", "memory.current")
        group = base / entry[2].lstrip("/")
        for folder in (group, *group.parents):
            try:  # `max` is no number and no limit
                limit, usage = (int((folder / name).read_text("ascii")) for name in files)
            except (OSError, ValueError):
                continue
            if folder.is_relative_to(base):
                room = min(room, max(0, limit - usage))
    return room


@cache
def device_memory(device: torch.device) -> int:
    """All the memory of a device, in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB / 10 else f"{count / GIB * 1024:.3g} MiB"
