"""The fields of a PyG `Data` or `Batch`, checked; PyG itself is not imported."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import DataError


def pyg_shape(data: Any) -> tuple[int, int]:
    """How many graphs a PyG `Data` or `Batch` holds, and the nodes of the largest."""
    owner = getattr(data, "batch", None)
    if owner is None or not len(owner):
        return 1, int(getattr(data, "num_nodes", 0) or 0)
    sizes = torch.bincount(owner)
    return len(sizes), int(sizes.max())


def nodes_and_edges(data: Any) -> tuple[int, Tensor]:
    """The number of nodes of PyG data, and its `edge_index`."""
    count = int(getattr(data, "num_nodes", 0) or 0)
    if not count:
        raise DataError("the PyG data has no nodes; set num_nodes or x")
    edge_index: Tensor | None = data.edge_index
    if edge_index is None:
        if getattr(data, "adj_t", None) is not None:
            raise DataError("the PyG data has adj_t and no edge_index; leave out ToSparseTensor")
        fields = [getattr(data, name, None) for name in ("x", "pos", "batch")]
        device = next((value.device for value in fields if value is not None), None)
        edge_index = torch.zeros(2, 0, dtype=torch.long, device=device)
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < count:
        low, high = int(edge_index.min()), int(edge_index.max())
        raise DataError(
            f"edge_index names nodes {low} to {high}, but the PyG data has {count} nodes, "
            "counted from 0; correct it or set num_nodes"
        )
    return count, edge_index


def columns(data: Any, name: str, rows: int) -> Tensor | None:
    """Features as `[rows, columns]`."""
    values: Tensor | None = getattr(data, name, None)
    if values is None:
        return None
    if len(values) != rows or values.dim() > 2:
        what = "nodes" if name == "x" else "columns of edge_index"
        raise DataError(
            f"{name} has shape {list(values.shape)}, expected [{rows}, features] for {rows} {what}"
        )
    return values.unsqueeze(1) if values.dim() == 1 else values


def edge_weights(data: Any, rows: int) -> Tensor | None:
    """Entries of A as `[rows]`."""
    values = columns(data, "edge_weight", rows)
    if values is not None and values.shape[1] != 1:
        raise DataError(f"edge_weight has {values.shape[1]} columns, expected one")
    return None if values is None else values[:, 0]
