"""Graphs of several sizes as tensors for a network: padded (`GraphBatch`), or as packed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..described import Described, span
from ..errors import DataError
from ..graphs import GraphLike, adjacency
from ..ops.packing import Packing
from .distances import distance_channels, squared_distances
from .graph_set import Ints
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
        for what, values in (("graphs", graphs), ("nodes", nodes), ("edges", edges)):
            if isinstance(values, str) or not (values is None or hasattr(values, "__len__")):
                name = type(values).__name__
                raise DataError(f"{what}: got {name}, expected a list with one entry per graph")
        if graphs is None or not len(graphs):
            raise DataError("the batch is empty: give at least one graph")
        kind = dtype or torch.get_default_dtype()
        matrices = [torch.tensor(adjacency(graph)) for graph in graphs]
        sizes = [len(matrix) for matrix in matrices]
        counts = torch.tensor(sizes)
        return cls.from_edges(  # of all pairs, as each may have features
            counts,
            torch.repeat_interleave(torch.arange(len(sizes)), counts.square()),
            torch.cat([torch.ones_like(matrix).nonzero().T for matrix in matrices], dim=1),
            nodes=_stacked("node", nodes, sizes, 1, kind),
            edges=_stacked("edge", edges, sizes, 2, kind),
            weights=torch.cat([matrix.flatten() for matrix in matrices]).to(kind),
        ).checked()

    @classmethod
    def from_pyg(cls, data: Any, columns_only: bool = False, squared: bool = False) -> GraphBatch:
        """A batch of a PyG `Data` or `Batch`: `edge_index`, `x`, `edge_attr`, `edge_weight`, `y`.

        Parallel edges add up, in A and in the edge features.

        Args:
            data: One graph or a batch of them; PyG itself is not imported.
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
        batch = cls.from_edges(
            sizes,
            graph_of_edge,
            edge_index - (torch.cumsum(sizes, 0) - sizes)[graph_of_edge],
            nodes=columns(data, "x", count),
            edges=columns(data, "edge_attr", edge_index.shape[1]),
            weights=edge_weights(data, edge_index.shape[1]),
            sparse=columns_only and int(sizes.max()) >= LARGE,
        )
        positions = columns(data, "pos", count) if squared else None
        if positions is not None:
            batch = batch.with_distances(positions, (), squared)
        return replace(batch, targets=getattr(data, "y", None)).checked()

    @classmethod
    def from_edges(
        cls,
        sizes: Tensor,
        graph_of_edge: Tensor,
        ends: Tensor,
        *,
        nodes: Tensor | None = None,
        edges: Tensor | None = None,
        weights: Tensor | None = None,
        directed: bool | None = None,
        widest: int | None = None,
        sparse: bool = False,
    ) -> GraphBatch:
        """A batch from flat arrays, in a few tensor operations.

        Args:
            sizes: `[B]` nodes of each graph.
            graph_of_edge: `[ΣE]` which graph an edge belongs to.
            ends: `[2, ΣE]` its ends, counted from 0 within the graph. Parallel edges add up.
            nodes: `[ΣN, F]`.
            edges: `[ΣE, E]`.
            weights: `[ΣE]` entries of A; None for 1.
            directed: Whether some A is not symmetric; None to find out.
            widest: N; None for the largest size (which waits for the device).
            sparse: Make A sparse, its entries in the order of the edges; edge features become 0.
        """
        floating = (v for v in (nodes, None if sparse else edges, weights) if v is not None)
        kinds = [values.dtype for values in floating if values.is_floating_point()]
        dtype, device = kinds[0] if kinds else torch.get_default_dtype(), sizes.device
        count, n = len(sizes), widest or int(sizes.max())
        mask = torch.arange(n, device=device) < sizes[:, None]
        width = 0 if nodes is None else nodes.shape[1]
        features = torch.zeros(*mask.shape, width, dtype=dtype, device=device)
        if nodes is not None:
            features[mask] = nodes.to(dtype)
        entries = torch.ones(ends.shape[1], device=device) if weights is None else weights
        entries, width = entries.to(dtype), 0 if edges is None else edges.shape[1]
        if sparse:
            places = torch.stack([graph_of_edge, *ends])
            shape = (count, n, n)
            matrix = torch.sparse_coo_tensor(places, entries, shape, check_invariants=False)
            if directed is None:
                one_way, back = (m.coalesce() for m in (matrix, matrix.transpose(1, 2)))
                same = torch.equal(one_way.indices(), back.indices())
                directed = not (same and torch.equal(one_way.values(), back.values()))
            pairs = features.new_zeros(()).expand(count, n, n, width)
            return cls(matrix, features, pairs, mask, directed)
        flat = (graph_of_edge * n + ends[0]) * n + ends[1]
        matrix = features.new_zeros(count * n * n).index_add_(0, flat, entries).view(count, n, n)
        pairs = features.new_zeros(count * n * n, width)
        if edges is not None:
            pairs.index_add_(0, flat, edges.to(dtype))
        if directed is None:
            directed = not bool((matrix == matrix.transpose(1, 2)).all())
        return cls(matrix, features, pairs.view(count, n, n, width), mask, directed)

    def with_distances(
        self, positions: Tensor, kinds: tuple[str, ...], squared: bool = False
    ) -> GraphBatch:
        """The batch with distance channels of positions `[ΣN, 3]`, and D as `designed`."""
        places = positions.new_zeros(*self.mask.shape, positions.shape[1])
        places[self.mask] = positions
        edges, designed = self.edges, self.designed
        if kinds:
            channels = distance_channels(places, self.mask, kinds).to(edges)
            edges = torch.cat([edges, channels], dim=-1)
        if squared:
            designed = squared_distances(places, self.mask).to(self.nodes)
        return replace(self, edges=edges, designed=designed)

    def as_pyg(self, value: Tensor, data: Any, task: str) -> Tensor:
        """Outputs for this batch of PyG data: a row per node, or per column of `edge_index`."""
        if task == "graph" or (task == "edge" and self.adjacency.is_sparse):
            return value
        if task == "node":
            return value[self.mask]
        ends = self.mask.nonzero().new_zeros(2, 0) if data.edge_index is None else data.edge_index
        owner = getattr(data, "batch", None)
        graph = torch.zeros_like(ends[0]) if owner is None else owner[ends[0]]
        start = (torch.cumsum(self.sizes, 0) - self.sizes)[graph]
        return value[graph, ends[0] - start, ends[1] - start]

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
            ("what is made of the positions", self.designed),
        ):
            if values is None or bool(values.sum().isfinite()):
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


@dataclass(frozen=True, eq=False)
class PackedBatch:
    """Graphs of a set as rows without padding, the smallest first; `ops.packing` says what P and Q
    count.
    """

    packing: Packing  # where each graph lies
    indices: Ints  # `[G]` which graphs of the set they are
    adjacency: Tensor  # `[P, 1]` entries of A
    nodes: Tensor  # `[Q, F]` node features
    edges: Tensor  # `[P, E]` edge features
    directed: bool  # whether some A is not symmetric
    targets: Tensor  # `[G, T]`, `[Q, T]` or `[P, T]`, NaN where there is none
    designed: Tensor | None = None  # `[P, k]` precomputed spectral supports, or D, or None

    def __len__(self) -> int:
        return self.packing.graphs


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


def _stacked(
    what: str, given: Sequence[Any] | None, sizes: list[int], axes: int, dtype: torch.dtype
) -> Tensor | None:
    """Features of the nodes (one axis) or pairs (two) of all graphs as rows."""
    if given is None:
        return None
    if len(given) != len(sizes):
        raise DataError(f"{what} features for {len(given)} graphs, but {len(sizes)} graphs")
    rows = []
    for index, (n, values) in enumerate(zip(sizes, given, strict=True)):
        try:
            block = torch.as_tensor(values, dtype=torch.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{what} features of graph {index} are no numbers: {error}") from None
        block = block.unsqueeze(-1) if block.dim() == axes else block
        if tuple(block.shape[:-1]) != (n,) * axes:
            raise DataError(
                f"features of graph {index} have shape {list(block.shape)}, expected "
                f"{[n] * axes} and channels"
            )
        rows.append(block.flatten(0, axes - 1))
    if len(widths := {block.shape[1] for block in rows}) > 1:
        raise DataError(f"the graphs have {sorted(widths)} {what} features; give all the same")
    return torch.cat(rows).to(dtype)
