"""Assertions for networks and tensor operations, for this package's tests and for yours.

Outputs may not depend on the order of the nodes, on the padding, or on the other graphs of a batch.
`registered` is a context in which operations are known that are forgotten afterwards.
Every comparison runs in float64 and allows `TOLERANCE` times the largest output, at least one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .grammars.registry import registered as registered

if TYPE_CHECKING:
    from torch import Tensor

    from .data.batch import GraphBatch

Model = Callable[["GraphBatch"], "Tensor"]
"""GraphBatch -> `[B, out]` for graphs, `[B, N, out]` for nodes, `[B, N, N, out]` for pairs."""

TOLERANCE = 1e-10


def assert_permutation_equivariant(model: Model, batch: GraphBatch, trials: int = 2) -> None:
    """Outputs follow the nodes when these are renumbered within their graphs.

    Args:
        model: A network, in the mode it is to be checked in, or any function of a batch.
        batch: Graphs of several sizes, some with at least three nodes.
        trials: How many random renumberings.

    Raises:
        AssertionError: With the largest difference and the graph it is in.
    """
    import torch

    model, batch = _in_float64(model, batch)
    expected = _output(model, batch)
    for trial in range(trials):
        draw = torch.Generator().manual_seed(trial)
        order = torch.stack([_renumbering(present, draw) for present in batch.mask.cpu()])
        order = order.to(batch.mask.device)
        got = _output(model, _renumbered(batch, order))
        _compare(got, _reordered(expected, order), "when the nodes are renumbered")


def assert_padding_invariant(model: Model, batch: GraphBatch, extra: int = 3) -> None:
    """Outputs stay the same with `extra` more places of padding, and are zero there.

    Raises:
        AssertionError: With the largest difference and the graph it is in.
    """
    from torch.nn.functional import pad

    model, batch = _in_float64(model, batch)
    expected = _output(model, batch)
    wider = replace(
        batch,
        adjacency=pad(batch.adjacency, (0, extra, 0, extra)),
        nodes=pad(batch.nodes, (0, 0, 0, extra)),
        edges=pad(batch.edges, (0, 0, 0, extra, 0, extra)),
        mask=pad(batch.mask, (0, extra)),
    )
    got = _output(model, wider)
    axes = expected.dim() - 2
    padded = pad(expected, (0, 0, *(0, extra) * axes))
    _compare(got, padded, f"with {extra} more places of padding")
    if axes:
        _compare(got * _absent(wider, axes), got * 0.0, "from zero at the padding")


def assert_batch_independent(model: Model, batch: GraphBatch) -> None:
    """Each graph of a batch has the outputs it has alone.

    Raises:
        AssertionError: With the largest difference and the graph it is in.
    """
    model, batch = _in_float64(model, batch)
    together = _output(model, batch)
    for index, present in enumerate(batch.mask):
        places = present.nonzero().T
        alone = _output(model, _renumbered(_graph(batch, index), places))
        expected = _reordered(together[index : index + 1], places)
        _compare(alone, expected, "without its batch mates", first=index)


def assert_matches_reference(
    function: Callable[..., Tensor],
    reference: Callable[..., Tensor],
    *inputs: Any,
    tolerance: float = TOLERANCE,
    gradients: bool = True,
) -> None:
    """Two functions give the same values, and the same gradients of every floating input.

    Args:
        function: The one to check.
        reference: The one that is right.
        inputs: What both are called with; tensors are not changed.
        tolerance: What is allowed, times the largest reference value or gradient, at least one.
        gradients: Whether gradients are compared too.

    Raises:
        AssertionError: With the largest difference.
    """
    import torch

    ours, theirs = _leaves(inputs, gradients), _leaves(inputs, gradients)
    got, expected = function(*ours), reference(*theirs)
    _compare(got.detach(), expected.detach(), "from the reference", tolerance=tolerance)
    if not gradients:
        return
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(expected.shape, generator=draw, dtype=torch.float64)
    weight = weight.to(expected.device, expected.dtype)
    for index, (mine, right) in enumerate(zip(ours, theirs, strict=True)):
        if getattr(right, "requires_grad", False):
            where = f"from the reference in the gradient of input {index}"
            _compare(
                _gradient(got, mine, weight),
                _gradient(expected, right, weight),
                where,
                0,
                tolerance,
            )


def _in_float64(model: Model, batch: GraphBatch) -> tuple[Model, GraphBatch]:
    """Both in float64; a network of another dtype is copied, never changed."""
    import torch

    if isinstance(model, torch.nn.Module):
        model = copy.deepcopy(model).double()
    return model, batch.to(torch.float64)


def _output(model: Model, batch: GraphBatch) -> Tensor:
    import torch

    with torch.no_grad():
        return model(batch)


def _renumbering(present: Tensor, draw: Any) -> Tensor:
    """`[N]` a random order of the nodes of one graph; the padding stays where it is."""
    import torch

    places = present.nonzero()[:, 0]
    order = torch.arange(len(present))
    order[places] = places[torch.randperm(len(places), generator=draw)]
    return order


def _renumbered(batch: GraphBatch, order: Tensor) -> GraphBatch:
    """The batch whose node i is node `order[b, i]` of graph b."""
    rows, columns = order[:, :, None], order[:, None]
    graph = _counting(order)
    return replace(
        batch,
        adjacency=batch.adjacency[graph[:, :, None], rows, columns],
        nodes=batch.nodes[graph, order],
        edges=batch.edges[graph[:, :, None], rows, columns],
        mask=batch.mask[graph, order],
    )


def _reordered(output: Tensor, order: Tensor) -> Tensor:
    """The outputs of the renumbered batch, from those of the batch itself."""
    graph = _counting(order)
    if output.dim() == 2:
        return output
    if output.dim() == 3:
        return output[graph, order]
    return output[graph[:, :, None], order[:, :, None], order[:, None]]


def _counting(order: Tensor) -> Tensor:
    """`[B, 1]` the number of each graph."""
    import torch

    return torch.arange(len(order), device=order.device)[:, None]


def _graph(batch: GraphBatch, index: int) -> GraphBatch:
    """The batch of one graph, its padding kept."""
    one = slice(index, index + 1)
    return replace(
        batch,
        adjacency=batch.adjacency[one],
        nodes=batch.nodes[one],
        edges=batch.edges[one],
        mask=batch.mask[one],
        targets=None,
    )


def _absent(batch: GraphBatch, axes: int) -> Tensor:
    """True where an output belongs to no node or to no pair."""
    mask = batch.mask
    present = mask if axes == 1 else mask[:, :, None] & mask[:, None]
    return ~present.unsqueeze(-1)


def _leaves(inputs: tuple[Any, ...], gradients: bool) -> list[Any]:
    """Copies of the inputs, the floating tensors ready to collect a gradient."""
    import torch

    return [
        value.detach().clone().requires_grad_(gradients and value.is_floating_point())
        if isinstance(value, torch.Tensor)
        else value
        for value in inputs
    ]


def _gradient(output: Tensor, leaf: Tensor, weight: Tensor) -> Tensor:
    """The gradient of one input, zero where the output does not depend on it."""
    import torch

    if not output.requires_grad:
        return torch.zeros_like(leaf)
    gradient = torch.autograd.grad(output, leaf, weight, retain_graph=True, allow_unused=True)[0]
    return torch.zeros_like(leaf) if gradient is None else gradient


def _compare(
    got: Tensor, expected: Tensor, when: str, first: int = 0, tolerance: float = TOLERANCE
) -> None:
    """Raise where outputs differ; `first` is the number of the first graph compared."""
    if got.shape != expected.shape:
        raise AssertionError(
            f"outputs differ {when}: shape {list(got.shape)}, expected {list(expected.shape)}"
        )
    if not got.numel():
        return
    allowed = tolerance * max(1.0, float(expected.abs().max()))
    differences = (got - expected).abs().reshape(len(got) if got.dim() else 1, -1)
    worst = float(differences.max())
    if not worst <= allowed:  # so that NaN fails
        graph = first + int(differences.amax(1).nan_to_num(nan=float("inf")).argmax())
        raise AssertionError(
            f"outputs differ {when}: by {worst:.3g} in graph {graph}, allowed {allowed:.3g}"
        )
