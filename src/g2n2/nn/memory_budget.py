"""Refuse a batch that does not fit a network, or memory, before anything is allocated."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from ..compiler.costs import NetworkCost
from ..data.batch import GraphBatch
from ..data.packed_batch import PackedBatch
from ..errors import DataError, MemoryBudgetError, ShapeError
from ..language.sorts import M
from ..language.terms import Apply, subterms
from ..ops.packed import KEPT_BYTES

if TYPE_CHECKING:
    from .model import GrammarGNN

GIB = 1024**3
_SPARSE_ENTRY = 150
"""Bytes of an entry of a sparse A: its places as listed, in `[B, N, N]`, in one matrix, turned."""
COPIES_BYTES = 2**30
"""What the marked copies that are computed together may take; on a GPU an eighth of its memory."""
_HARMLESS = 2**26  # bytes that are not worth asking the system for


def validate_batch(
    model: nn.Module, batch: GraphBatch | PackedBatch, node_features: int, edge_features: int
) -> None:
    """Compare a batch with what a network was made for.

    Raises:
        ShapeError: Another number of features.
        DataError: Numbers of another dtype or on another device.
    """
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


def refuse_over_budget(
    model: GrammarGNN, count: int, nodes: int, entries: int | None = None
) -> None:
    """Compare what `count` graphs of up to `nodes` nodes need with the memory budget.

    Args:
        model: The network.
        count: Graphs.
        nodes: Of the largest.
        entries: Of a sparse A; None where it is dense.

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
    if plan.marks:  # copies are computed some at a time
        copies = count * nodes ** len(plan.marks.names)
        before = NetworkCost(plan, count, nodes).trunk
        trunk = before.activation_bytes(bytes_each) if before is not None else 0
        plan, count = replace(plan, marks=None), min(copies, copies_at_once(model, nodes))
    cost = NetworkCost(plan, count, nodes)
    if entries is None:
        batch = count * nodes**2 * _dense_matrices(model, training) * bytes_each
    else:
        batch = entries * _SPARSE_ENTRY
    hidden = [count * nodes**2 * width * bytes_each for width in _hidden_widths(model)]
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


def _hidden_widths(model: GrammarGNN) -> list[int]:
    """How many units the hidden layers of each layer's pair MLP have."""
    updates = [update for layer in model.plan.layers for update in layer.updates]
    return [
        sum(linear.width_out for linear in update.mixer[:-1])
        for update in updates
        if update.sort == M
    ]


def _dense_matrices(model: GrammarGNN, training: bool) -> int:
    """Matrices `[B, N, N]` beside the activations: A with two copies of it, E, and the supports."""
    parts = {
        part
        for _, definition in model.plan.grammar.supports
        for part in subterms(definition)
        if isinstance(part, Apply) and part.sort == M
    }
    return 3 + model.plan.inputs.edge_features + len(parts) + _given_matrices(model, training)


def _given_matrices(model: GrammarGNN, training: bool) -> int:
    """Matrices that a module which gives supports makes on its way; as measured."""
    if model.supports is None:
        return 0
    learned = any(True for _ in model.supports.parameters())
    each = (16 if training else 9) if learned else 3
    return 8 + each * len(model.undefined)


def available_memory(device: torch.device) -> int:
    """Bytes a batch may take: what is free, within the limits of the control groups on a CPU."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + held
    return min(device_memory(device), _free(), _within_control_groups())


def _free(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Memory that can be had without swapping; all there could be where the system does not say."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        return (
            next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024
        )
    except (OSError, ValueError, StopIteration):
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
        limit, usage = names if entry[1] else ("memory.max", "memory.current")
        group = base / entry[2].lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(base):
                room = min(room, _left(folder / limit, folder / usage))
    return room


def _left(limit: Path, usage: Path) -> int:
    try:  # `max` is no number and no limit
        return max(0, int(limit.read_text(encoding="ascii")) - int(usage.read_text("ascii")))
    except (OSError, ValueError):
        return sys.maxsize


@cache
def device_memory(device: torch.device) -> int:
    """All the memory of a device, in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB / 10 else f"{count / GIB * 1024:.3g} MiB"
