"""Batches of unequal graphs, computed in groups of nearly equal ones: little work on padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

FILLED = 0.8
"""Share of a group's n² pairs that a graph has to fill to join it."""
SMALL = 2000
"""Pairs up to which a group takes any graph: its products are too small to be split."""
LIGHT = 30_000
"""The same for networks that keep no matrices: a pair is but a number in a product with H."""

Network = Callable[..., Tensor]
"""Adjacency, nodes, edges, mask, supports -> outputs `[B, O]`, `[B, N, O]` or `[B, N, N, O]`."""


def size_groups(sizes: Sequence[int], small: int) -> list[list[int]]:
    """Indices of the sizes, largest first, in groups of nearly the same or of `small` pairs."""
    groups: list[list[int]] = []
    for graph in sorted(range(len(sizes)), key=lambda graph: -sizes[graph]):
        if groups:
            room = sizes[groups[-1][0]] ** 2
            if sizes[graph] ** 2 >= FILLED * room or len(groups[-1]) * room < small:
                groups[-1].append(graph)
                continue
        groups.append([graph])
    return groups


def by_size(
    network: Network,
    adjacency: Tensor,
    nodes: Tensor,
    edges: Tensor,
    mask: Tensor,
    designed: Tensor | None = None,
    *,
    small: int,
) -> Tensor:
    """What the network gives for the whole batch, zero at the padding."""
    sizes = mask.sum(1).tolist()
    groups = size_groups(sizes, small)
    if len(groups) < 2:
        return network(adjacency, nodes, edges, mask, designed)
    outputs = []
    for group in groups:
        n, own = sizes[group[0]], torch.tensor(group)
        value = network(
            adjacency[own, :n, :n],
            nodes[own, :n],
            edges[own, :n, :n],
            mask[own, :n],
            None if designed is None else designed[own, :n, :n],
        )
        padding = [0, 0] + [0, mask.shape[1] - n] * (value.dim() - 2)
        outputs.append(functional.pad(value, padding))
    order = torch.tensor([graph for group in groups for graph in group])
    return torch.cat(outputs)[order.argsort()]
