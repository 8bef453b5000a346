"""Edge channels made of positions: the distance matrix and functions of it."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from ..errors import DataError

RBF_REACH = 12.0
"""Å; centres of the radial basis lie evenly between 0 and here."""


def distance_width(kind: str) -> int:
    """Channels one kind of distance makes."""
    if kind in ("raw", "square", "inverse"):
        return 1
    if (m := re.fullmatch(r"rbf(\d{1,3})", kind)) and (count := int(m[1])) >= 2:
        return count
    raise DataError(
        f"no distance channel is called {kind!r}; known: raw, square, inverse, rbf16 "
        "(a radial basis of 16, or any number from 2)"
    )


def distance_channels(positions: Tensor, mask: Tensor, kinds: tuple[str, ...]) -> Tensor:
    """`[B, N, 3]` positions to `[B, N, N, D]`, zero on the diagonal and at the padding.

    Args:
        positions: In Å.
        mask: `[B, N]`.
        kinds: `raw` d, `square` d²/10, `inverse` 1/d, `rbfK` K Gaussian bumps of d.
    """
    n = mask.shape[1]
    others = ~torch.eye(n, dtype=torch.bool, device=mask.device)
    present = mask[:, :, None] & mask[:, None] & others
    return _channels(positions[:, :, None] - positions[:, None], present, kinds)


def distance_rows(positions: Tensor, start: Tensor, end: Tensor, kinds: tuple[str, ...]) -> Tensor:
    """`[Q, 3]` positions to `[P, D]` for the pairs of these nodes, zero where they are the same."""
    steps = positions.index_select(0, start) - positions.index_select(0, end)
    return _channels(steps, start != end, kinds)


def _channels(steps: Tensor, present: Tensor, kinds: tuple[str, ...]) -> Tensor:
    squared = steps.square().sum(-1, keepdim=True)
    distance = squared.clamp(min=1e-12).sqrt()
    channels = [_channel(kind, distance, squared) for kind in kinds]
    return torch.cat(channels, dim=-1) * present.unsqueeze(-1)


def _channel(kind: str, distance: Tensor, squared: Tensor) -> Tensor:
    width = distance_width(kind)
    if kind == "raw":
        return distance
    if kind == "square":
        return squared / 10.0
    if kind == "inverse":
        return 1.0 / distance.clamp(min=0.1)
    centres = torch.linspace(0.0, RBF_REACH, width, device=distance.device, dtype=distance.dtype)
    return torch.exp(-(((distance - centres) * (width - 1) / RBF_REACH) ** 2))
