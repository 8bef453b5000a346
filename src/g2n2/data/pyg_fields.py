"""The fields of a PyG `Data` or `Batch`, checked; PyG itself is not imported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..errors import DataError
from ..graphs.conversion import check_edge_index, pyg_edges

WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass(frozen=True, eq=False, repr=False)
class PyGTensors:
    """What PyG models are called with, under the names `Data` has for it."""

    x: Tensor | None  # `[nodes, F]` or `[nodes]`; None without node features
    edge_index: Tensor | None  # `[2, E]`
    edge_attr: Tensor | None = None  # `[E, D]` or `[E]`, or None
    batch: Tensor | None = None  # `[nodes]` the graph of each node, or None for one graph
    edge_weight: Tensor | None = None  # `[E]` entries of A; None for 1

    @property
    def num_nodes(self) -> int:
        per_node = self.x if self.x is not None else self.batch
        if per_node is None:
            raise DataError(
                "without x and batch nobody knows how many nodes there are; give x, "
                "torch.empty(nodes, 0) where nodes have no features"
            )
        return len(per_node)


def pyg_data(
    x: Any,
    edge_index: Tensor | None,
    edge_attr: Tensor | None,
    batch: Tensor | None,
    edge_weight: Tensor | None,
) -> Any:
    """PyG data from what a PyG-style `forward` was called with: tensors, or the data itself."""
    tensors = PyGTensors(None, edge_index, edge_attr, batch, edge_weight)
    given = {name: value for name, value in vars(tensors).items() if value is not None}
    if isinstance(x, Tensor) or (x is None and given):
        if edge_index is None:
            raise DataError(
                "x comes without edge_index; call (x, edge_index, edge_attr, batch), or with a "
                "GraphBatch or PyG data alone"
            )
        for name, value in given.items():
            _require_tensor(value, name)
        return replace(tensors, x=x)
    if not hasattr(x, "edge_index"):
        raise DataError(
            f"a network takes a GraphBatch, a PyG Data or Batch, or (x, edge_index, edge_attr, "
            f"batch), got {type(x).__name__}; GraphBatch.of([...]) makes one of graphs"
        )
    if given:
        raise DataError(f"{type(x).__name__} holds all there is; leave out {', '.join(given)}")
    return x


def _require_tensor(value: Any, name: str) -> None:
    if not (value is None or isinstance(value, Tensor)):
        raise DataError(f"{name} is a {type(value).__name__}, expected a tensor")


def pyg_shape(data: Any) -> tuple[int, int]:
    """How many graphs a PyG `Data` or `Batch` holds, and the nodes of the largest."""
    count = int(getattr(data, "num_nodes", 0) or 0)
    owner = _owner(data, count)
    if owner is None or not len(owner):
        return 1, count
    sizes = torch.bincount(owner)
    return len(sizes), int(sizes.max())


def nodes_and_edges(data: Any) -> tuple[int, Tensor]:
    """The number of nodes of PyG data, and its `edge_index` in int64."""
    count = int(getattr(data, "num_nodes", 0) or 0)
    if not count:
        raise DataError("the PyG data has no nodes; set num_nodes or x")
    for name in ("x", "edge_index", "edge_attr", "edge_weight", "batch"):
        _require_tensor(getattr(data, name, None), name)
    fields = [getattr(data, name, None) for name in ("x", "pos", "batch")]
    device = next((value.device for value in fields if isinstance(value, Tensor)), None)
    edge_index: Tensor = pyg_edges(data, torch.zeros(2, 0, dtype=torch.long, device=device))
    if device is not None and edge_index.device != device:
        raise DataError(
            f"edge_index is on {edge_index.device}, the nodes are on {device}: move one"
        )
    check_edge_index(edge_index, count, "the PyG data")
    return count, edge_index.long()


def graph_of_node(data: Any, count: int, like: Tensor) -> Tensor:
    """`[count]` which graph each node belongs to, in int64 on the device of `like`."""
    owner = _owner(data, count)
    if owner is None:
        return like.new_zeros(count)
    if bool((owner[1:] < owner[:-1]).any()):
        raise DataError(
            "the PyG batch is mixed up: nodes must stand graph by graph (`batch` sorted); sort "
            "them, or make the batch with torch_geometric.data.Batch"
        )
    return owner


def _owner(data: Any, count: int) -> Tensor | None:
    owner: Tensor | None = getattr(data, "batch", None)
    if owner is None:
        return None
    _require_tensor(owner, "batch")
    if owner.dim() != 1 or len(owner) != count:
        raise DataError(f"batch has shape {list(owner.shape)}, expected the graph of {count} nodes")
    if owner.dtype not in WHOLE:
        raise DataError(f"batch holds {owner.dtype}, expected whole numbers (torch.long)")
    low, high = map(int, owner.aminmax()) if len(owner) else (0, 0)
    if low < 0:
        raise DataError(f"batch names graph {low}; graphs are counted from 0")
    if high > len(owner):
        raise DataError(f"batch names graph {high}, and there are {len(owner)} nodes; count from 0")
    return owner.long()


def columns(data: Any, name: str, rows: int) -> Tensor | None:
    """Features as `[rows, columns]`."""
    values: Tensor | None = getattr(data, name, None)
    _require_tensor(values, name)
    if values is None:
        return None
    values = values if values.layout == torch.strided else values.to_dense()
    if values.dim() not in (1, 2) or len(values) != rows:
        what = "nodes" if name in ("x", "pos") else "columns of edge_index"
        raise DataError(
            f"{name} has shape {list(values.shape)}, expected [{rows}, features] for {rows} {what}"
        )
    if values.is_complex():
        raise DataError(f"{name} holds {values.dtype}, expected real numbers")
    return values.unsqueeze(1) if values.dim() == 1 else values


def edge_weights(data: Any, rows: int) -> Tensor | None:
    """Entries of A as `[rows]`."""
    values = columns(data, "edge_weight", rows)
    if values is not None and values.shape[1] != 1:
        raise DataError(f"edge_weight has {values.shape[1]} columns, expected one")
    return None if values is None else values[:, 0]
