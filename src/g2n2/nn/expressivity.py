"""Which pairs of graphs a network tells apart, by a criterion that rounding survives.

A network computes with floats, so even a graph and its relabelled copy get different numbers. Two
graphs are told apart only where the gap between their embeddings exceeds ten times that noise.
"merged" says only that these weights showed no difference: narrow or saturating networks lose what
their architecture could express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import chain
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import DataError
from ..graphs import Adjacency, GraphLike, adjacency

Style = Literal["dense", "batch", "pyg"]
"""What the network takes: one `[n, n]`, a stack `[B, n, n]`, or PyG data with a batch vector."""

Precision = Literal["float32", "float64"]
Network: TypeAlias = Callable[[Any], Any]
MakeModel: TypeAlias = Callable[[int], Network]
Embeddings: TypeAlias = NDArray[np.floating[Any]]

GRAPHS_PER_CALL = 16  # BREC's batch; 16 PPGN channels on 198 nodes then stay below 100 MB


def relabelled(matrix: Adjacency, count: int, seed: Sequence[int]) -> list[Adjacency]:
    """Return the graph and `count - 1` random relabelings of it, the same for the same seed."""
    _, *orders = relabelings(len(matrix), count, seed)
    return [matrix, *(matrix[np.ix_(order, order)] for order in orders)]


def relabelings(nodes: int, count: int, seed: Sequence[int]) -> list[NDArray[np.int64]]:
    """The orders of the nodes in the copies of `relabelled`, the first as they are."""
    rng = np.random.default_rng(seed)
    return [np.arange(nodes), *(rng.permutation(nodes) for _ in range(count - 1))]


def build(make_model: MakeModel, seed: int, precision: Precision) -> Network:
    """Make the network of a seed, in that precision and in evaluation mode.

    The random state of torch is seeded for the call and put back after it, so a `make_model` that
    ignores its argument still gives other weights for another seed.

    Raises:
        DataError: If there is no such precision, or what comes back cannot be called.
    """
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
) -> torch.Tensor:
    """Run the network on a few graphs, with gradients if they are on: `[len(graphs), d]`.

    Raises:
        DataError: If the style is unknown, or the output is not one vector per graph.
    """
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


def _rows(output: Any, graphs: int | None) -> torch.Tensor:
    """Flatten what a network returned to one row per graph; None means one graph, no batch axis."""
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


def _pyg_batch(graphs: Sequence[Adjacency], like: torch.Tensor) -> Any:
    """Turn graphs into one PyG `Batch`, or what has its fields where PyG is not installed.

    Nodes have the feature 1, as in BREC.
    """
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
    return SimpleNamespace(  # not frozen: PyG networks often assign `data.x` on their way
        x=like.new_ones(int(starts[-1]), 1),
        edge_index=torch.as_tensor(np.concatenate(shifted).T.copy(), device=like.device),
        edge_weight=like.new_tensor(np.concatenate(weights)),
        batch=torch.as_tensor(members, device=like.device),
        ptr=torch.as_tensor(starts, device=like.device),
        num_graphs=len(parts),
        num_nodes=len(members),
        edge_attr=None,
    )


def _device(model: Network) -> torch.device:
    """Return where the weights of the network lie."""
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


MARGIN = 10.0
# In 7-layer PPGNs, pairs of BREC that 2-FWL merges stay below 0.3 of what these two ask for, and
# the 270 others reach 90 times as much or more.
FLOOR_ULPS = 1024
# To what power of machine epsilon (1e-4 in float64) a relabelling may change the output: an
# 8-layer network with large weights amplifies rounding to 1e-6, a bug is seen at 1e-2 and above.
INVARIANCE_POWER = 0.25

Outcome = Literal["separated", "merged", "not invariant", "not finite"]


@dataclass(frozen=True)
class NetworkVerdict:
    """Whether networks of one architecture tell two graphs apart.

    Attributes:
        outcome: "not invariant" if for any seed a relabelling changes the embedding visibly, by a
            mistake or because the network amplifies rounding that far; else "separated" if any seed
            tells the graphs apart; else "not finite" if any seed gave NaN or infinity; else
            "merged".
        separating_seeds: The seeds that tell them apart.
        seeds: All seeds tried.
        gap: Difference of the two mean embeddings in the coordinate where it is clearest, for the
            seed where it is clearest.
        noise: Largest spread of that coordinate over relabelings of either graph.
        needed: What the gap had to exceed: margin times noise plus a floor.
    """

    outcome: Outcome
    separating_seeds: tuple[int, ...]
    seeds: tuple[int, ...]
    gap: float
    noise: float
    needed: float

    @property
    def separated(self) -> bool:
        """Whether the outcome is "separated"."""
        return self.outcome == "separated"

    def to_json(self) -> dict[str, Any]:
        """Return plain content for a JSON file; a number that does not exist is None."""
        return {
            key: None if isinstance(value, float) and not np.isfinite(value) else value
            for key, value in asdict(self).items()
        }


@dataclass(frozen=True)
class EmbeddingComparison:
    """One network on one pair: the outcome and the numbers of the clearest coordinate."""

    outcome: Outcome
    gap: float
    noise: float
    needed: float


def network_separates(
    make_model: MakeModel,
    pairs: Iterable[tuple[GraphLike, GraphLike]],
    seeds: Sequence[int] = (0, 1, 2),
    relabelings: int = 8,
    *,
    style: Style = "dense",
    margin: float = MARGIN,
) -> list[NetworkVerdict]:
    """Say which pairs networks with random weights tell apart, in float64.

    >>> from g2n2 import network_separates
    >>> def degrees(seed):
    ...     return lambda A: A.sum(dim=1).sort().values
    >>> [v.outcome for v in network_separates(degrees, [("C6", "2C3"), ("P4", "K1,3")])]
    ['merged', 'separated']

    Args:
        make_model: Takes a seed, returns a network. A torch module is turned to float64 and
            evaluation mode; torch is seeded around the call.
        pairs: The pairs of graphs.
        seeds: One network each; a pair counts as separated if one of them separates it.
        relabelings: Copies of each graph, itself included, from which the noise is measured.
        style: What the network takes: `dense` one `[n, n]` tensor, `batch` a stack `[B, n, n]`,
            `pyg` PyG data or its stand-in, with `x`, `edge_index` and `batch`. It returns one
            vector, or one per graph `[B, d]`.
        margin: How many times the noise the gap must be.

    Returns:
        One verdict per pair, in order.

    Raises:
        DataError: If there is no seed, fewer than two relabelings, a margin below 1, or the network
            does not return one vector of fixed length per graph.
    """
    if not seeds or relabelings < 2 or not margin >= 1:
        raise DataError(
            f"got {len(seeds)} seeds, {relabelings} relabelings and margin {margin}; expected at "
            "least one seed, two relabelings (one gives no noise to compare with) and margin 1"
        )
    models = [build(make_model, seed, "float64") for seed in seeds]
    verdicts = []
    for number, graphs in enumerate(pairs):
        copies = [
            relabelled(adjacency(graph), relabelings, (number, side))
            for side, graph in enumerate(graphs)
        ]
        comparisons = []
        for model in models:
            first, second = (embed(model, graph, style, "float64") for graph in copies)
            comparisons.append(compare_embeddings(first, second, margin))
        verdicts.append(_verdict(comparisons, tuple(seeds)))
    return verdicts


def compare_embeddings(first: Embeddings, second: Embeddings, margin: float) -> EmbeddingComparison:
    """Compare the embeddings `[relabelings, d]` of two graphs, coordinate by coordinate.

    A coordinate tells the graphs apart if its two means differ by more than `margin` times its
    spread over relabelings of either graph, plus `FLOOR_ULPS` units in the last place of its size:
    the spread of a few copies may happen to be zero.
    """
    if first.shape[1] != second.shape[1] or not first.shape[1]:
        raise DataError(
            f"the network gives {first.shape[1]} numbers for one graph and {second.shape[1]} for "
            "the other, expected the same positive count: read out the graph, not its nodes"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return EmbeddingComparison("not finite", np.nan, np.nan, np.nan)
    eps = float(np.finfo(first.dtype).eps)
    with np.errstate(over="ignore"):
        gap = np.abs(first.mean(axis=0) - second.mean(axis=0))
        noise = np.maximum(np.ptp(first, axis=0), np.ptp(second, axis=0))
    size = np.maximum(np.abs(first).max(axis=0), np.abs(second).max(axis=0))
    # The smallest normal number keeps an all-zero coordinate at 0 > 0 + tiny, which is false.
    needed = margin * noise + FLOOR_ULPS * eps * size + np.finfo(first.dtype).tiny
    clearest = int(np.argmax(gap / needed))
    outcome: Outcome = "separated" if gap[clearest] > needed[clearest] else "merged"
    # Against the largest coordinate, as one that cancels to zero is all noise; and against 1e-4,
    # as the whole output may be a cancelled zero.
    if noise.max() > eps**INVARIANCE_POWER * max(size.max(), 1e-4):
        outcome, clearest = "not invariant", int(np.argmax(noise))
    return EmbeddingComparison(
        outcome, float(gap[clearest]), float(noise[clearest]), float(needed[clearest])
    )


def _verdict(comparisons: Sequence[EmbeddingComparison], seeds: tuple[int, ...]) -> NetworkVerdict:
    """Join what the seeds say; the order of the outcomes below is their precedence."""
    by_outcome: dict[Outcome, list[EmbeddingComparison]] = {}
    for comparison in comparisons:
        by_outcome.setdefault(comparison.outcome, []).append(comparison)
    precedence: tuple[Outcome, ...] = ("not invariant", "separated", "not finite", "merged")
    outcome = next(name for name in precedence if name in by_outcome)
    shown = max(by_outcome[outcome], key=lambda one: one.gap / one.needed)
    separating = tuple(
        seed
        for seed, comparison in zip(seeds, comparisons, strict=True)
        if comparison.outcome == "separated"
    )
    return NetworkVerdict(outcome, separating, seeds, shown.gap, shown.noise, shown.needed)
