"""GrammarLayer: one layer of a grammar inside a PyG model.

It takes and returns plain tensors; PyG itself is not imported.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..compiler.presets import Preset
from ..data.batch import GraphBatch
from ..data.pyg_fields import PyGTensors, nodes_and_edges, pyg_data
from ..described import shape
from ..errors import DataError, LoweringError, ShapeError
from ..grammars.coercion import GrammarLike, as_network_grammar
from ..language.sorts import S
from .model import GrammarGNN


class PairFeatures(NamedTuple):
    """Features of all pairs of nodes of one graph, for every graph of a batch.

    Dense, as the products of a grammar need them; the methods give them in PyG's layouts. Nodes are
    counted as in `x`: through the whole batch, graph by graph.

    Attributes:
        values: `[B, N, N, C]`, `values[b, i, j]` of the pair of the i-th and the j-th node of graph
            b; zero at the padding.
        mask: `[B, N]`, true where a node is.
    """

    values: Tensor
    mask: Tensor

    def __repr__(self) -> str:
        return f"PairFeatures(values={shape(self.values)}, mask={shape(self.mask)})"

    @property
    def channels(self) -> int:
        return self.values.shape[-1]

    def at(self, edge_index: Tensor) -> Tensor:
        """`[E, C]` the features of some pairs, one row for each column of an edge_index.

        Raises:
            DataError: A pair names no node, or nodes of two graphs.
        """
        graph, place = self.mask.nonzero(as_tuple=True)
        _, (start, end) = nodes_and_edges(PyGTensors(place, edge_index))
        if bool((graph[start] != graph[end]).any()):
            raise DataError(
                "edge_index pairs nodes of two graphs, and pair features are within a graph; "
                "give the edge_index and batch the layer was called with"
            )
        return self.values[graph[start], place[start], place[end]]

    def pair_index(self) -> Tensor:
        """`[2, P]` all pairs of nodes of one graph, a node with itself too, in the order of `rows`.

        With `rows` as `edge_attr` this is the complete graph with loops, which any PyG layer reads.
        """
        graph, first, second = self._pairs().nonzero(as_tuple=True)
        sizes = self.mask.sum(1)
        start = (torch.cumsum(sizes, 0) - sizes)[graph]
        return torch.stack([start + first, start + second])

    def rows(self) -> Tensor:
        """`[P, C]` one row for each pair of `pair_index`."""
        return self.values[self._pairs()]

    def pair_batch(self) -> Tensor:
        """`[P]` the graph of each row, for instance for `global_add_pool(rows, pair_batch)`."""
        return self._pairs().nonzero()[:, 0]

    def diagonal(self) -> Tensor:
        """`[nodes, C]` the features of each node paired with itself."""
        return self.values.diagonal(dim1=1, dim2=2).transpose(1, 2)[self.mask]

    def _pairs(self) -> Tensor:
        """`[B, N, N]` where a pair is."""
        return self.mask[:, :, None] & self.mask[:, None]


class GrammarLayer(nn.Module):
    """A layer of a grammar for models made with PyG: tensors in, node and pair features out.

    It is the layer `GrammarGNN` compiles of the grammar, or `layers` of them. Words of matrices go
    from layer to layer in the pair features: without `pairs` the next layer starts from A again.

    >>> import torch
    >>> from g2n2 import GrammarLayer
    >>> layer = GrammarLayer("r-G_L3", 5, 16, edge_dim=3)
    >>> x, edge_index = torch.randn(4, 5), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> nodes, pairs = layer(x, edge_index, torch.randn(4, 3))
    >>> nodes.shape, pairs.values.shape, pairs.at(edge_index).shape
    (torch.Size([4, 16]), torch.Size([1, 4, 4, 16]), torch.Size([4, 16]))
    >>> second = GrammarLayer("r-G_L3", 16, 16, pair_channels=16)
    >>> nodes, pairs = second(nodes, edge_index, pairs=pairs)

    Args:
        grammar: A grammar, what `derive` gives, or text as for `GrammarGNN`.
        in_channels: Columns of the node features; 0 for none.
        out_channels: Channels of the node and of the pair features that come out.
        edge_dim: Channels of `edge_attr`; None for none.
        pair_channels: Channels of the pair features given with `pairs`; 0 for none.
        layers: How many of the grammar's layers this one is.

    The options from `preset` on are those of `GrammarGNN`.

    Raises:
        GrammarError: There is no such grammar.
        LoweringError: The grammar cannot be compiled as asked, for instance one without matrices
            with an `edge_dim`.
    """

    def __init__(
        self,
        grammar: GrammarLike,
        in_channels: int,
        out_channels: int,
        edge_dim: int | None = None,
        *,
        pair_channels: int = 0,
        layers: int = 1,
        preset: str | Preset = "modern",
        functions: str = "mlp",
        pair_bias: bool | None = None,
        pair_norm: str | None = None,
        directed: bool = False,
        supports: nn.Module | None = None,
        memory_budget: int | None = None,
        backend: str = "auto",
    ) -> None:
        same = ("layers", "preset", "functions", "pair_bias", "pair_norm", "directed", "supports")
        given = dict(locals())
        options = {name: given[name] for name in (*same, "memory_budget", "backend")}
        super().__init__()
        chosen = as_network_grammar(grammar)
        for name, value in (("pair_channels", pair_channels), ("edge_dim", edge_dim or 0)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise LoweringError(f"{name} must be a whole number, at least 0, got {value!r}")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.edge_dim, self.pair_channels = edge_dim or 0, pair_channels
        self.network = GrammarGNN(
            chosen,
            node_features=in_channels,
            edge_features=self.edge_dim + pair_channels,
            width=out_channels,
            out=out_channels,
            task="node",
            decision=(),
            # Scalars reach nodes through the pooled vector only.
            context=any(rule.head == S for rule in chosen.rules),
            **options,
        )

    def forward(
        self,
        x: Tensor | None,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        pairs: PairFeatures | None = None,
        *,
        edge_weight: Tensor | None = None,
    ) -> tuple[Tensor, PairFeatures | None]:
        """Node features and pair features of the graphs.

        Args:
            x: `[nodes, in_channels]`; None, with a `batch`, or `torch.empty(nodes, 0)` for none.
            edge_index: `[2, E]`; an undirected edge stands there both ways, parallel ones add up.
            edge_attr: `[E, edge_dim]`, or `[E]` for one channel.
            batch: `[nodes]` the graph of each node, sorted; None for one graph.
            pairs: Pair features of another layer on the same graphs.
            edge_weight: `[E]` entries of A, 1 where None.

        Returns:
            `[nodes, out_channels]`, read from the column vectors and the row sums of the matrices;
            and the matrices themselves, None where the grammar has none.

        Raises:
            ShapeError: Another number of features than the layer was made for.
            DataError: Tensors that are no graphs, directed graphs a layer without `directed` cannot
                read, or numbers of another dtype or device than the weights.
        """
        data = pyg_data(x, edge_index, edge_attr, batch, edge_weight)
        graphs = self.network.batch_of(data)
        self._check_channels(graphs, pairs)
        if pairs is not None:
            graphs = replace(graphs, edges=torch.cat([graphs.edges, pairs.values], dim=-1))
        return self.on_batch(graphs)

    def on_batch(self, graphs: GraphBatch) -> tuple[Tensor, PairFeatures | None]:
        """The same for a GraphBatch, whose edge features end in the pair features, if any."""
        adjacency, nodes, edges, mask, *designed = self.network.checked(graphs)
        memories, constants = self.network.final(adjacency, nodes, edges, mask, *designed)
        values = self.network.read_out(memories, constants, mask)[mask]
        if "M" not in memories:
            return values, None
        return values, PairFeatures(memories["M"].to(values.dtype), mask)

    def _check_channels(self, graphs: GraphBatch, pairs: PairFeatures | None) -> None:
        given = 0 if pairs is None else pairs.channels
        for what, got, expected, option in (
            ("x", graphs.nodes.shape[-1], self.in_channels, "in_channels"),
            ("edge_attr", graphs.edges.shape[-1], self.edge_dim, "edge_dim"),
            ("pairs", given, self.pair_channels, "pair_channels"),
        ):
            if got != expected:
                raise ShapeError(
                    f"{what} has {got} channels, the layer was made for {expected}: give "
                    f"{option}={got} when making it, or other data"
                )
        if pairs is not None and not torch.equal(pairs.mask, graphs.mask):
            raise ShapeError(
                f"pairs are of graphs with {pairs.mask.sum(1).tolist()[:8]} nodes, this batch has "
                f"{graphs.sizes.tolist()[:8]}: give those of a layer called on the same batch"
            )

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, edge_dim={self.edge_dim or None}"
