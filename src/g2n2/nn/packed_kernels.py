"""A network on packed rows through kernels: what a CUDA graph of a training step records.

Rows of graphs lie one after the other, in the caller's order, in tensors with room for more
(`ops.graph_index`). Kernels read where each graph lies from tensors, so one recording serves every
batch that fits.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from ..ops.graph_index import GraphIndex
from ..ops.precision import without_autocast
from ..ops.rule_kernels.spec import MOST_NODES
from .fast import embedded
from .layer import Memories
from .model import GrammarGNN

SUMS = {("nodes", "sum"), ("diagonal", "sum"), ("off-diagonal", "sum")}
"""The pooling there are kernels for."""


def covers(model: GrammarGNN, most: int) -> bool:
    """Whether the kernels compute all of a network on graphs of at most `most` nodes."""
    plan = model.plan
    return (
        most <= MOST_NODES
        and not model.by_reference
        and not plan.preset.between
        and plan.readout.task == "graph"
        and not plan.readout.steps
        and {*plan.readout.pools} <= SUMS
        and all(layer.small is not None for layer in model.fast)
    )


def outputs(model: GrammarGNN, first: Memories, index: GraphIndex) -> Tensor:
    """`[G, O]` from the input memories as rows; rows that belong to no graph change nothing."""
    assert index.totals is not None, "packed rows"
    device = index.sizes.device
    dtype = torch.get_autocast_dtype(device.type)
    half = torch.is_autocast_enabled(device.type)
    nodes, pairs = index.totals
    scale = index.scale
    if scale is None:
        scale = index.sizes.clamp(min=1).float().rsqrt()
    memories = dict(first)
    with without_autocast(device.type):
        for letter, embed in model.embeddings.items():
            part = cast(nn.Linear, embed)
            memories[letter] = embedded(memories[letter], part, dtype if half else None)
        if half:
            memories = {letter: value.to(dtype) for letter, value in memories.items()}
        for layer in model.fast:
            assert layer.small is not None, "covered"
            memories = layer.small(memories, scale, nodes, pairs, index)
        return model.readout.decide(_pooled(model, memories, index))


def _pooled(model: GrammarGNN, memories: Memories, index: GraphIndex) -> Tensor:
    from ..ops.pooling.triton import packed_pools

    readout = model.readout
    pools = [part for part, _ in readout.plan.pools]
    return packed_pools(memories.get("M"), memories.get("V"), index, pools, readout.unit)
