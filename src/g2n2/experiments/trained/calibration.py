"""Weights to start from: every map's inputs and outputs of one size on the graphs to be told apart.

What distinguishes two graphs is, entry by entry, a small part of what a deep network computes:
with PyTorch's own weights it sinks below rounding after five or six layers, even in float64. Here
each linear map is rescaled, on a few copies of the pair and before any training, so that its inputs
and outputs have mean 0 and deviation 1 over nodes or entries, and every nonlinearity cuts through
the middle of what it sees. It is a choice of weights, and changes nothing in what the network is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ...nn.expressivity import FLOOR_ULPS


class Standardise(nn.Module):
    """Mean 0 and deviation 1 of every column, by the last batch seen in training.

    A column that varies by less than 1,024 units in its last place keeps a smaller deviation: that
    is rounding.

    The difference of two graphs may be 1e-12 of their pooled features, and the gradient of a cosine
    its square; measured by its own size it can be learned from. Hotelling's T² does not depend on
    such an affine map.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("deviation", torch.ones(width))

    def forward(self, value: Tensor) -> Tensor:
        if self.training:
            mean, deviation = value.mean(0), value.std(0, correction=0)
            info = torch.finfo(value.dtype)
            least = FLOOR_ULPS * info.eps * value.detach().abs().amax(0) + info.tiny**0.5
            deviation = torch.maximum(deviation, least)
            self.mean, self.deviation = mean.detach(), deviation.detach()
            return (value - mean) / deviation
        return (value - self.mean) / self.deviation


@torch.no_grad()
def calibrate(model: nn.Module, run: Callable[[], Any]) -> None:
    """Rescale all linear maps of a network, each as its turn comes in `run()`.

    Args:
        model: The network; `run` must call its maps as modules.
        run: Sends a few graphs, without padding, through it.
    """
    maps = [part for part in model.modules() if isinstance(part, nn.Linear)]
    hooks = [part.register_forward_pre_hook(_rescale) for part in maps]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()


def _rescale(part: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    assert isinstance(part, nn.Linear)
    rows = inputs[0].flatten(0, -2)
    part.weight.div_(_sizes(rows)[0])
    values = rows @ part.weight.T
    sizes, vary = _sizes(values)
    part.weight.div_(sizes[:, None])
    if part.bias is not None:
        # What is the same everywhere, such as 1 or I's diagonal, must not be centred away.
        part.bias.copy_(torch.where(vary, -values.mean(0) / sizes, 0.0))


def _sizes(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The deviation of every column, or its size where it does not vary; and whether it does."""
    deviation = rows.std(0, correction=0)
    size = rows.square().mean(0).sqrt()
    vary = deviation > torch.finfo(rows.dtype).eps ** 0.5 * size
    sizes = torch.where(vary, deviation, size)
    return torch.where(sizes > 0, sizes, 1.0), vary
