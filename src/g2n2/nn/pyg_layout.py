"""Outputs as PyG lays them out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..data.batch import GraphBatch


def as_pyg(value: Tensor, data: Any, batch: GraphBatch, task: str) -> Tensor:
    """Outputs in PyG's layout: one row per node, or per column of `edge_index`."""
    if task == "graph":
        return value
    if task == "node":
        return value[batch.mask]
    if batch.adjacency.is_sparse:
        return value
    ends = batch.mask.nonzero().new_zeros(2, 0) if data.edge_index is None else data.edge_index
    owner = getattr(data, "batch", None)
    graph = torch.zeros_like(ends[0]) if owner is None else owner[ends[0]]
    sizes = batch.sizes
    start = (torch.cumsum(sizes, 0) - sizes)[graph]
    return value[graph, ends[0] - start, ends[1] - start]
