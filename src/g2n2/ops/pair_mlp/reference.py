"""The two-layer MLP of an update in plain PyTorch."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

Map = tuple[Tensor, Tensor | None]
"""Weight `[out, in]` and bias `[out]` of a linear map."""


def mix_rows(joined: Tensor, first: Map, second: Map, residual: Tensor | None = None) -> Tensor:
    """`second(relu(first(joined)))`, plus the residual."""
    value = functional.linear(functional.relu(functional.linear(joined, *first)), *second)
    return value if residual is None else value + residual
