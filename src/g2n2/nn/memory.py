"""Refuse a batch that cannot fit before anything is allocated."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import torch

from ..compiler.costs import NetworkCost
from ..errors import MemoryBudgetError

if TYPE_CHECKING:
    from .model import GrammarGNN

GIB = 1024**3


def refuse_over_budget(model: GrammarGNN, count: int, nodes: int) -> None:
    """Compare what `count` graphs of up to `nodes` nodes need with the memory budget.

    Raises:
        MemoryBudgetError: With the estimate, the budget and what to do.
    """
    if torch.compiler.is_compiling():
        return  # sizes are symbols there, and the batch exists already
    weight = next(model.parameters())
    training = torch.is_grad_enabled() and model.training
    need = estimate(model, count, nodes, weight.element_size(), training)
    budget = device_memory(weight.device) if model.memory_budget is None else model.memory_budget
    if need > budget:
        advice = "smaller batches" if count > 1 else "fewer channels (width) or layers"
        raise MemoryBudgetError(
            f"{count} graphs of up to {nodes} nodes need about {_size(need)}, the memory "
            f"budget is {_size(budget)}: use {advice}, a grammar without matrices such as "
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


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB / 10 else f"{count / GIB * 1024:.3g} MiB"
