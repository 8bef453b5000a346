"""Backward passes that cannot be differentiated again."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from ..errors import LoweringError


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass that refuses to be recorded: it has no derivative of its own."""

    @wraps(backward)
    def refusing(ctx: Any, *grads: Any) -> Any:
        if torch.is_grad_enabled():
            raise LoweringError(
                "the backend packed has first derivatives only, and create_graph=True asks for "
                'more: make the network with backend="reference"'
            )
        return backward(ctx, *grads)

    return refusing
