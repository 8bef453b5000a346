"""GraphBatch: graphs of several sizes as dense, masked tensors, ready for a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..described import Described, span
from ..errors import DataError
from ..graphs import GraphLike, adjacency
from .distances import distance_channels, squared_distances
from .pyg_fields import columns, edge_weights, graph_of_node, nodes_and_edges

LARGE = 1024
"""Nodes of the smallest graph whose A is sparse, for networks that accept a sparse A."""


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch(Described):
    """Graphs of several sizes, padded with zeros to the largest.

    >>> from g2n2 import GraphBatch
    >>> batch = GraphBatch.of(["C~", "Bw"])  # K4 and K3
    >>> len(batch), batch.sizes.tolist(), tuple(batch.adjacency.shape)
    (2, [4, 3], (2, 4, 4))

    Attributes:
        adjacency: `[B, N, N]`, `A[b, i, j]` the edge from `i` to `j` with its weight; a sparse COO
            tensor for networks that are `columns_only`.
        nodes: `[B, N, F]` node features, F may be 0.
        edges: `[B, N, N, E]` edge features, E may be 0.
        mask: `[B, N]`, true where a node is.
        directed: Whether some A is not symmetric.
        targets: Whatever a loss compares with, or None.
        designed: `[B, N, N, k]` precomputed spectral supports, or D (k = 1), or None.
    """

    adjacency: Tensor
    nodes: Tensor
    edges: Tensor
    mask: Tensor
    directed: bool = False
    targets: Tensor | None = None
    designed: Tensor | None = None

    def __len__(self) -> int:
        return self.mask.shape[0]

    def facts(self) -> dict[str, str]:
        """The batch in a few words, for `repr` and notebooks."""
        sizes = self.sizes
        least, most = (int(sizes.min()), int(sizes.max())) if len(self) else (0, 0)
        return {
            "graphs": f"{len(self):,}",
            "nodes": span(least, most),
            "node_features": str(self.nodes.shape[-1]),
            "edge_features": str(self.edges.shape[-1]),
            "targets": "none" if self.targets is None else str(list(self.targets.shape)),
            "directed": "yes" if self.directed else "no",
            "dtype": str(self.adjacency.dtype).removeprefix("torch."),
            "device": str(self.adjacency.device),
        }

    @property
    def sizes(self) -> Tensor:
        """`[B]` nodes of each graph."""
        return self.mask.sum(1)

    def to(
        self,
        device: torch.device | str | torch.dtype | None = None,
        dtype: torch.dtype | None = None,
    ) -> GraphBatch:
        """The batch on another device or in another dtype; mask and class numbers keep theirs.

        Args:
            device: The device, or a dtype alone; None for the one it is on.
            dtype: The dtype; None for the one it has.
        """
        if isinstance(device, torch.dtype):
            device, dtype = None, device
        moved = {
            name: getattr(self, name).to(device=device, dtype=dtype)
            for name in ("adjacency", "nodes", "edges")
        }
        like = moved["adjacency"]
        targets = self.targets
        if targets is not None:
            targets = targets.to(like if targets.is_floating_point() else like.device)
        designed = None if self.designed is None else self.designed.to(like)
        mask = self.mask.to(like.device)
        return replace(self, **moved, targets=targets, mask=mask, designed=designed)

    @classmethod
    def of(
        cls,
        graphs: Sequence[GraphLike],
        nodes: Sequence[Any] | None = None,
        edges: Sequence[Any] | None = None,
        dtype: torch.dtype | None = None,
    ) -> GraphBatch:
        """A batch of graphs, each as `g2n2.graphs.adjacency` takes it.

        Args:
            graphs: At least one graph.
            nodes: `[n, F]` features of each graph's nodes.
            edges: `[n, n, E]` features of each graph's pairs.
            dtype: None for PyTorch's default.
        """
        if not len(graphs):
            raise DataError("the batch is empty: give at least one graph")
        kind = dtype or torch.get_default_dtype()
        matrices = [torch.tensor(adjacency(graph)) for graph in graphs]
        count, widest = len(matrices), max(len(m) for m in matrices)
        for what, given in (("node", nodes), ("edge", edges)):
            if given is not None and len(given) != count:
                raise DataError(f"{what} features for {len(given)} graphs, but {count} graphs")
        node_rows = [_rows(nodes, i, (len(m),)) for i, m in enumerate(matrices)]
        pair_rows = [_rows(edges, i, (len(m), len(m))) for i, m in enumerate(matrices)]
        batch = cls(
            torch.zeros(count, widest, widest, dtype=kind),
            torch.zeros(count, widest, _width(node_rows, "node"), dtype=kind),
            torch.zeros(count, widest, widest, _width(pair_rows, "edge"), dtype=kind),
            torch.zeros(count, widest, dtype=torch.bool),
            any(not torch.equal(m, m.T) for m in matrices),
        )
        for i, (matrix, x, e) in enumerate(zip(matrices, node_rows, pair_rows, strict=True)):
            n = len(matrix)
            batch.adjacency[i, :n, :n] = matrix
            batch.nodes[i, :n] = x
            batch.edges[i, :n, :n] = e
            batch.mask[i, :n] = True
        return batch.checked()

    @classmethod
    def from_pyg(
        cls, data: Any, distance: bool = False, columns_only: bool = False, squared: bool = False
    ) -> GraphBatch:
        """A batch of a PyG `Data` or `Batch`: `edge_index`, `x`, `edge_attr`, `edge_weight`, `y`.

        Parallel edges add up, in A and in the edge features.

        Args:
            data: One graph or a batch of them; PyG itself is not imported.
            distance: Append the distances between `pos` as one more edge channel, for all pairs.
            columns_only: For a network that is: A is sparse where a graph is large.
            squared: Have the squared distances D between `pos` as `designed`, if there is a `pos`.
        """
        count, edge_index = nodes_and_edges(data)
        owner = graph_of_node(data, count, edge_index)
        sizes = torch.bincount(owner, minlength=int(getattr(data, "num_graphs", 1) or 1))
        graph_of_edge = owner[edge_index[0]]
        if bool((graph_of_edge != owner[edge_index[1]]).any()):
            raise DataError(
                "the PyG batch is mixed up: an edge joins two graphs; make it with "
                "torch_geometric.data.Batch"
            )
        if distance and getattr(data, "pos", None) is None:
            raise DataError("distances were asked for, but the PyG data has no pos")
        large = columns_only and not distance and int(sizes.max()) >= LARGE
        build = sparse if large else partial(dense, positions=data.pos if distance else None)
        batch = build(
            sizes,
            graph_of_edge,
            edge_index - (torch.cumsum(sizes, 0) - sizes)[graph_of_edge],
            nodes=columns(data, "x", count),
            edges=columns(data, "edge_attr", edge_index.shape[1]),
            weights=edge_weights(data, edge_index.shape[1]),
        )
        designed = None
        if squared and getattr(data, "pos", None) is not None:
            positions = batch.adjacency.new_zeros(*batch.mask.shape, 3)
            positions[batch.mask] = data.pos.to(positions)
            designed = squared_distances(positions, batch.mask)
        return replace(batch, targets=getattr(data, "y", None), designed=designed).checked()

    def checked(self) -> GraphBatch:
        """Refuse what no network can use.

        Raises:
            DataError: A graph without nodes, or a number that is NaN or infinite.
        """
        if not len(self):
            raise DataError("the batch is empty: give at least one graph")
        if not bool(self.mask.any(1).all()):
            empty = int((~self.mask.any(1)).nonzero()[0])
            raise DataError(f"graph {empty} of the batch has no nodes; drop it")
        for what, values in (
            ("the adjacency matrix", self.adjacency),
            ("the node features", self.nodes),
            ("the edge features", self.edges),
        ):
            if bool(values.sum().isfinite()):
                continue  # a finite sum has finite terms
            if values.is_sparse:
                places = values._indices().T[~torch.isfinite(values._values())]
            else:
                places = (~torch.isfinite(values)).nonzero()
            for place in places.tolist():
                raise DataError(
                    f"{what} of graph {place[0]} hold NaN or infinity at {place[1:]}; "
                    "fill them in or drop the graph"
                )
        return self


def dense(
    sizes: Tensor,
    graph_of_edge: Tensor,
    ends: Tensor,
    *,
    nodes: Tensor | None = None,
    edges: Tensor | None = None,
    weights: Tensor | None = None,
    positions: Tensor | None = None,
    directed: bool | None = None,
    widest: int | None = None,
) -> GraphBatch:
    """A dense batch from flat arrays, in a few tensor operations.

    Args:
        sizes: `[B]` nodes of each graph.
        graph_of_edge: `[ΣE]` which graph an edge belongs to.
        ends: `[2, ΣE]` its ends, counted from 0 within the graph. Parallel edges add up.
        nodes: `[ΣN, F]`.
        edges: `[ΣE, E]`.
        weights: `[ΣE]` entries of A; None for 1.
        positions: `[ΣN, 3]`; gives one more edge channel, the distance of every pair.
        directed: Whether some A is not symmetric; None to find out.
        widest: N; None for the largest size (which waits for the device).
    """
    device = sizes.device
    dtype = _dtype(nodes, edges, weights)
    count, n = len(sizes), widest or int(sizes.max())
    mask, features = _padded(nodes, sizes, n, dtype)
    flat = (graph_of_edge * n + ends[0]) * n + ends[1]
    entries = torch.ones(flat.shape, dtype=dtype, device=device) if weights is None else weights
    matrix = torch.zeros(count * n * n, dtype=dtype, device=device)
    matrix.index_add_(0, flat, entries.to(dtype))
    pairs = torch.zeros(
        count * n * n, 0 if edges is None else edges.shape[1], dtype=dtype, device=device
    )
    if edges is not None:
        pairs.index_add_(0, flat, edges.to(dtype))
    matrix = matrix.view(count, n, n)
    pairs = pairs.view(count, n, n, pairs.shape[1])
    if positions is not None:
        padded = positions.new_zeros(*mask.shape, positions.shape[1])
        padded[mask] = positions
        pairs = torch.cat([pairs, distance_channels(padded, mask, ("raw",)).to(dtype)], dim=-1)
    if directed is None:
        directed = not bool((matrix == matrix.transpose(1, 2)).all())
    return GraphBatch(matrix, features, pairs, mask, directed)


def sparse(
    sizes: Tensor,
    graph_of_edge: Tensor,
    ends: Tensor,
    *,
    nodes: Tensor | None = None,
    edges: Tensor | None = None,
    weights: Tensor | None = None,
    directed: bool | None = None,
    widest: int | None = None,
) -> GraphBatch:
    """The same with a sparse A, its entries in the order of the edges; edge features become 0."""
    dtype = _dtype(nodes, weights)
    count, n = len(sizes), widest or int(sizes.max())
    mask, features = _padded(nodes, sizes, n, dtype)
    entries = torch.ones(ends.shape[1], device=sizes.device) if weights is None else weights
    matrix = torch.sparse_coo_tensor(
        torch.stack([graph_of_edge, *ends]),
        entries.to(dtype),
        (count, n, n),
        check_invariants=False,
    )
    if directed is None:
        one_way, back = (m.coalesce() for m in (matrix, matrix.transpose(1, 2)))
        same = torch.equal(one_way.indices(), back.indices())
        directed = not (same and torch.equal(one_way.values(), back.values()))
    width = 0 if edges is None else edges.shape[1]
    pairs = features.new_zeros(()).expand(count, n, n, width)
    return GraphBatch(matrix, features, pairs, mask, directed)


def block_diagonal(adjacency: Tensor) -> Tensor:
    """A sparse `[B, N, N]` as one `[BN, BN]`, its entries in the same order."""
    count, n, _ = adjacency.shape
    graph, start, end = adjacency._indices()
    return torch.sparse_coo_tensor(
        torch.stack([graph * n + start, graph * n + end]),
        adjacency._values(),
        (count * n, count * n),
        is_coalesced=adjacency.is_coalesced(),
        check_invariants=False,
    )


def _padded(
    nodes: Tensor | None, sizes: Tensor, n: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The mask `[B, n]` and the node features `[B, n, F]`."""
    mask = torch.arange(n, device=sizes.device) < sizes[:, None]
    width = 0 if nodes is None else nodes.shape[1]
    features = torch.zeros(*mask.shape, width, dtype=dtype, device=sizes.device)
    if nodes is not None:
        features[mask] = nodes.to(dtype)
    return mask, features


def _dtype(*values: Tensor | None) -> torch.dtype:
    kinds = [v.dtype for v in values if v is not None and v.is_floating_point()]
    return kinds[0] if kinds else torch.get_default_dtype()


def _rows(values: Sequence[Any] | None, index: int, shape: tuple[int, ...]) -> Tensor:
    """Features of one graph, checked against its size; no columns without features."""
    if values is None:
        return torch.zeros(*shape, 0)
    rows = torch.as_tensor(values[index], dtype=torch.float64)
    rows = rows.unsqueeze(-1) if rows.dim() == len(shape) else rows
    if tuple(rows.shape[:-1]) != shape:
        raise DataError(
            f"features of graph {index} have shape {list(rows.shape)}, expected "
            f"{list(shape)} and channels"
        )
    return rows


def _width(rows: list[Tensor], what: str) -> int:
    widths = {row.shape[-1] for row in rows}
    if len(widths) > 1:
        raise DataError(
            f"graphs of one batch have {sorted(widths)} {what} features; give all the same"
        )
    return widths.pop()
