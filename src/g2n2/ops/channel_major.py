"""Channel-major matrix memories: shape `[B, N, N, S]`, stored as `[S, B, N, N]`.

A product of matrices is then one batched product of contiguous n×n blocks, and a linear map of the
channels one matrix product, with no copy on the way. A tensor that lies otherwise is copied first,
so every function takes any strides and the numbers are those of `ops.reference`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from . import reference


def planes(x: Tensor) -> Tensor:
    """`[B, N, N, S]` as `[S, BNN]`, a view where `x` lies that way."""
    return x.permute(3, 0, 1, 2).reshape(x.shape[3], -1)


def memory(x: Tensor, shape: torch.Size) -> Tensor:
    """`[S, BNN]` as `[B, N, N, S]`, a view; `shape` begins with B, N, N."""
    return x.view(len(x), *shape[:3]).permute(1, 2, 3, 0)


def linear(x: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """The channels through each of the weights `[T, S]`, as `[B, N, N, T]`: one product."""
    results = torch.cat(list(weights)) @ planes(x)
    pieces = results.split_with_sizes([len(weight) for weight in weights])
    return [memory(piece, x.shape) for piece in pieces]


def matrix_matrix(x: Tensor, y: Tensor) -> Tensor:
    """See `reference.matrix_matrix`."""
    if x.shape[3] != y.shape[3]:
        return reference.matrix_matrix(x, y)
    return memory((_blocks(x) @ _blocks(y)).view(x.shape[3], -1), x.shape)


def matrix_column(x: Tensor, v: Tensor) -> Tensor:
    """See `reference.matrix_column`."""
    if x.shape[3] != v.shape[2]:
        return reference.matrix_column(x, v)
    columns = v.permute(2, 0, 1).reshape(-1, v.shape[1], 1)
    return (_blocks(x) @ columns).view(v.shape[2], *v.shape[:2]).permute(1, 2, 0)


def _blocks(x: Tensor) -> Tensor:
    """`[SB, N, N]`."""
    return x.permute(3, 0, 1, 2).reshape(-1, *x.shape[1:3])
