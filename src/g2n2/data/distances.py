"""Edge channels made of positions: the distance matrix and functions of it."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from ..errors import DataError

RBF_REACH = 12.0
"""Å; where a radial basis does not say how far it goes."""
_RBF = re.compile(r"rbf(\d{1,3})(?::(\d{1,3}(?:\.\d{1,3})?))?")


def distance_width(kind: str) -> int:
    """Channels one kind of distance makes."""
    if kind in ("raw", "square", "inverse"):
        return 1
    return _radial_basis(kind)[0]


def _radial_basis(kind: str) -> tuple[int, float]:
    """How many bumps `rbfK:R` has, and how far they go, in Å."""
    if m := _RBF.fullmatch(kind):
        count, reach = int(m[1]), float(m[2] or RBF_REACH)
        if count >= 2 and reach > 0:
            return count, reach
    raise DataError(
        f"no distance channel is called {kind!r}; known: raw, square, inverse, rbf16 "
        f"(a radial basis of 16 up to {RBF_REACH:g} Å, or any number from 2), rbf32:6 (of 32 up to "
        "6 Å)"
    )


def distance_channels(positions: Tensor, mask: Tensor, kinds: tuple[str, ...]) -> Tensor:
    """`[B, N, 3]` positions in Å to `[B, N, N, D]`, zero on the diagonal and at the padding.

    Kinds: `raw` d, `square` d²/10, `inverse` 1/d, `rbfK:R` K Gaussian bumps of d whose centres lie
    evenly between 0 and R Å; `rbfK` goes up to 12 Å.
    """
    n = mask.shape[1]
    others = ~torch.eye(n, dtype=torch.bool, device=mask.device)
    present = mask[:, :, None] & mask[:, None] & others
    return channels_of_steps(positions[:, :, None] - positions[:, None], present, kinds)


def squared_distances(positions: Tensor, mask: Tensor) -> Tensor:
    """`[B, N, 3]` positions to `[B, N, N, 1]`, D of the language: d² in Å², zero at the padding."""
    present = mask[:, :, None] & mask[:, None]
    steps = positions[:, :, None] - positions[:, None]
    return steps.square().sum(-1, keepdim=True) * present.unsqueeze(-1)


def channels_of_steps(steps: Tensor, present: Tensor, kinds: tuple[str, ...]) -> Tensor:
    """`[…, 3]` from one node to another, in Å, to `[…, D]`, zero where none is `present`."""
    squared = steps.square().sum(-1, keepdim=True)
    distance = squared.clamp(min=1e-12).sqrt()
    channels = [_channel(kind, distance, squared) for kind in kinds]
    return torch.cat(channels, dim=-1) * present.unsqueeze(-1)


def _channel(kind: str, distance: Tensor, squared: Tensor) -> Tensor:
    if kind == "raw":
        return distance
    if kind == "square":
        return squared / 10.0
    if kind == "inverse":
        return 1.0 / distance.clamp(min=0.1)
    count, reach = _radial_basis(kind)
    centres = torch.linspace(0.0, reach, count, device=distance.device, dtype=distance.dtype)
    return torch.exp(-(((distance - centres) * (count - 1) / reach) ** 2))
