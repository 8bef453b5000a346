"""What a network is fed and what it gives back: relabelled graphs in, rows of numbers out.

torch is imported inside functions, so that this module loads without it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...graphs import Adjacency

if TYPE_CHECKING:
    import torch

Style = Literal["dense", "batch", "pyg"]
"""What the network takes: one `[n, n]`, a stack `[B, n, n]`, or PyG data with a batch vector."""

Precision = Literal["float32", "float64"]
Network: TypeAlias = Callable[[Any], Any]
MakeModel: TypeAlias = Callable[[int], Network]
Embeddings: TypeAlias = NDArray[np.floating[Any]]

GRAPHS_PER_CALL = 16  # BREC's batch; 16 PPGN channels on 198 nodes then stay below 100 MB


@dataclass(eq=False)
class GraphBatch:
    """Stand-in for `torch_geometric.data.Batch` where PyG is not installed.

    It is not frozen, because PyG networks often assign `data.x` on their way.

    Attributes:
        x: Node features `[N, 1]`, all one, as in BREC.
        edge_index: Both directions of every edge `[2, E]`.
        edge_weight: `[E]`.
        batch: The graph each node belongs to `[N]`.
        ptr: Where each graph begins `[num_graphs + 1]`.
        num_graphs: Graphs in the batch.
        edge_attr: None, as for PyG data without edge features.
    """

    x: "torch.Tensor"
    edge_index: "torch.Tensor"
    edge_weight: "torch.Tensor"
    batch: "torch.Tensor"
    ptr: "torch.Tensor"
    num_graphs: int
    edge_attr: None = None

    @property
    def num_nodes(self) -> int:
        """Nodes of all graphs together."""
        return len(self.batch)


def relabelled(matrix: Adjacency, count: int, seed: Sequence[int]) -> list[Adjacency]:
    """Return the graph and `count - 1` random relabelings of it, the same for the same seed."""
    rng = np.random.default_rng(seed)
    orders = (rng.permutation(len(matrix)) for _ in range(count - 1))
    return [matrix, *(matrix[np.ix_(order, order)] for order in orders)]


def build(make_model: MakeModel, seed: int, precision: Precision) -> Network:
    """Make the network of a seed, in that precision and in evaluation mode.

    The random state of torch is seeded for the call and put back after it, so a `make_model` that
    ignores its argument still gives other weights for another seed.

    Raises:
        DataError: If there is no such precision, or what comes back cannot be called.
    """
    import torch

    if precision not in get_args(Precision):
        raise DataError(f"no precision {precision!r}: expected {' or '.join(get_args(Precision))}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make_model(seed)
    if not callable(model):
        raise DataError(
            f"make_model({seed}) returned {type(model).__name__}, expected a torch module or "
            "another callable: return the network itself"
        )
    if isinstance(model, torch.nn.Module):
        model = model.to(getattr(torch, precision)).eval()
    return model


def embed(
    model: Network, graphs: Sequence[Adjacency], style: Style, precision: Precision
) -> Embeddings:
    """Return one row of numbers per graph `[len(graphs), d]`, without gradients."""
    import torch

    with torch.no_grad():
        chunks = [graphs[i : i + GRAPHS_PER_CALL] for i in range(0, len(graphs), GRAPHS_PER_CALL)]
        rows = [forward(model, chunk, style, precision) for chunk in chunks]
        try:
            values: Embeddings = torch.cat(rows).cpu().numpy()
        except RuntimeError as error:
            raise _no_fixed_length([list(row.shape) for row in rows]) from error
    return values


def forward(
    model: Network, graphs: Sequence[Adjacency], style: Style, precision: Precision
) -> "torch.Tensor":
    """Run the network on a few graphs, with gradients if they are on: `[len(graphs), d]`.

    Raises:
        DataError: If the style is unknown, or the output is not one vector per graph.
    """
    import torch

    like = torch.empty(0, dtype=getattr(torch, precision), device=_device(model))
    if style == "pyg":
        return _rows(model(_pyg_batch(graphs, like)), len(graphs))
    if style == "batch":
        if len({len(matrix) for matrix in graphs}) == 1:
            return _rows(model(like.new_tensor(np.stack(graphs))), len(graphs))
        rows = [_rows(model(like.new_tensor(matrix[None])), 1) for matrix in graphs]
    elif style == "dense":
        rows = [_rows(model(like.new_tensor(matrix)), None) for matrix in graphs]
    else:
        raise DataError(f"no style {style!r}: expected one of {', '.join(get_args(Style))}")
    if len({row.shape for row in rows}) > 1:
        raise _no_fixed_length([list(row.shape) for row in rows])
    return torch.cat(rows)


def _rows(output: Any, graphs: int | None) -> "torch.Tensor":
    """Flatten what a network returned to one row per graph; None means one graph, no batch axis."""
    import torch

    if not isinstance(output, torch.Tensor | np.ndarray | float | int):
        raise DataError(
            f"the network returned {type(output).__name__}, expected a tensor: "
            "wrap it in a function that picks the graph embedding"
        )
    values = torch.as_tensor(output)
    if values.is_complex():
        raise DataError("the network returned complex numbers: return torch.view_as_real of them")
    if not values.is_floating_point():
        values = values.double()
    if graphs is None:
        return values.reshape(1, -1)
    if values.dim() == 0 or len(values) != graphs:
        raise DataError(
            f"the network returned shape {list(values.shape)} for {graphs} graphs, expected "
            f"[{graphs}, d]: read out each graph by itself (PyG style: pool with data.batch)"
        )
    return values.reshape(graphs, -1)


def _pyg_batch(graphs: Sequence[Adjacency], like: "torch.Tensor") -> Any:
    """Turn graphs into one PyG `Batch`, or into its stand-in."""
    import torch

    parts = [(np.argwhere(matrix), len(matrix)) for matrix in graphs]
    weights = [matrix[tuple(edges.T)] for matrix, (edges, _) in zip(graphs, parts, strict=True)]
    if find_spec("torch_geometric") is not None:
        from torch_geometric.data import Batch, Data

        data = [
            Data(
                x=like.new_ones(order, 1),
                edge_index=torch.as_tensor(edges.T.copy(), device=like.device),
                edge_weight=like.new_tensor(weight),
                num_nodes=order,
            )
            for (edges, order), weight in zip(parts, weights, strict=True)
        ]
        return Batch.from_data_list(data)
    starts = np.cumsum([0, *(order for _, order in parts)])
    shifted = [edges + start for (edges, _), start in zip(parts, starts[:-1], strict=True)]
    members = np.repeat(np.arange(len(parts)), [order for _, order in parts])
    return GraphBatch(
        x=like.new_ones(int(starts[-1]), 1),
        edge_index=torch.as_tensor(np.concatenate(shifted).T.copy(), device=like.device),
        edge_weight=like.new_tensor(np.concatenate(weights)),
        batch=torch.as_tensor(members, device=like.device),
        ptr=torch.as_tensor(starts, device=like.device),
        num_graphs=len(parts),
    )


def _device(model: Network) -> "torch.device":
    """Return where the weights of the network lie."""
    import torch

    tensors: Iterator[torch.Tensor] = (
        chain(model.parameters(), model.buffers())
        if isinstance(model, torch.nn.Module)
        else iter(())
    )
    return next((tensor.device for tensor in tensors), torch.device("cpu"))


def _no_fixed_length(shapes: Sequence[Sequence[int]]) -> DataError:
    return DataError(
        f"the network gives embeddings of different lengths ({shapes[0]} and others), expected one "
        "length for all graphs: read out the graph, not its nodes"
    )
