"""An exponential moving average of the weights, which is what is evaluated and kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """The averaged weights of a model; with decay 0 they are the weights themselves.

    The running statistics of batch norms belong to the weights they were taken with, so they are
    averaged too.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights: list[Tensor] = [*model.parameters(), *_running(model)]
        self.shadow = [p.detach().clone() for p in self.weights] if decay else []

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step; early steps count more, so that the start fades."""
        if self.decay:
            torch._foreach_lerp_(self.shadow, self.weights, 1.0 - self.keep(step))

    def keep(self, step: int) -> float:
        """How much of the average stays after the run's step number `step`."""
        return min(self.decay, (1.0 + step) / (10.0 + step))

    @torch.no_grad()
    def blend(self, share: Tensor) -> None:
        """`update` with the share of the new weights on the device, where a CUDA graph reads it."""
        if self.decay:
            apart = torch._foreach_sub(self.weights, self.shadow)
            torch._foreach_mul_(apart, share)
            torch._foreach_add_(self.shadow, apart)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with the averaged weights in it."""
        if not self.decay:
            yield
            return
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for weight, shadow in zip(self.weights, self.shadow, strict=True):
            kept = weight.detach().clone()
            weight.copy_(shadow)
            shadow.copy_(kept)

    def state(self) -> list[Tensor]:
        return self.shadow

    @torch.no_grad()
    def restore(self, state: list[Tensor]) -> None:
        for shadow, saved in zip(self.shadow, state, strict=True):
            shadow.copy_(saved)


def _running(model: nn.Module) -> list[Tensor]:
    norms = (part for part in model.modules() if isinstance(part, nn.BatchNorm1d))
    both = ((norm.running_mean, norm.running_var) for norm in norms)
    return [values for pair in both for values in pair if values is not None]
