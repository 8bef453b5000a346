"""Refuse a batch that cannot fit before anything is allocated."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import torch

from ..compiler.costs import NetworkCost
from ..errors import ShapeError

if TYPE_CHECKING:
    from ..data.batch import GraphBatch
    from .model import GrammarGNN

GIB = 1024**3


def refuse_over_budget(model: GrammarGNN, batch: GraphBatch) -> None:
    """Compare the plan's estimate with the memory budget.

    Raises:
        ShapeError: With the estimate, the budget and what to do.
    """
    if torch.compiler.is_compiling():
        return  # sizes are symbols there, and the batch exists already
    count, nodes = batch.mask.shape
    training = torch.is_grad_enabled() and model.training
    bytes_each = batch.adjacency.element_size()
    need = estimate(model, count, nodes, bytes_each, training)
    budget = model.memory_budget or device_memory(batch.adjacency.device)
    if need > budget:
        advice = "smaller batches" if count > 1 else "fewer channels (width) or layers"
        raise ShapeError(
            f"{count} graphs of up to {nodes} nodes need about {need / GIB:.1f} GiB, the memory "
            f"budget is {budget / GIB:.1f} GiB: use {advice}, a grammar without matrices such as "
            "GNNML1, or raise memory_budget"
        )


def estimate(
    model: GrammarGNN, count: int, nodes: int, bytes_each: int = 4, training: bool = True
) -> int:
    """Bytes of one pass: all activations in training, those of the largest layer otherwise."""
    cost = NetworkCost(model.plan, count, nodes)
    if training:
        return cost.activation_bytes(bytes_each)
    return max(part.activations for part in cost.parts.values()) * bytes_each


@cache
def device_memory(device: torch.device) -> int:
    """All the memory of a device, in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
