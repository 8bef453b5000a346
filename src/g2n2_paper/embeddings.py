"""Networks as BREC's protocol wants them: stacks `[B, n, n]` in, 16 numbers per graph out.

What distinguishes two graphs is, entry by entry, a small part of what a deep network computes: with
PyTorch's default weights it falls below rounding after five or six layers, even in float64. So each
linear map is rescaled, on a few copies of the pair and before any training, so that its inputs and
outputs have mean 0 and deviation 1 over nodes or entries: a choice of initial weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from g2n2.graphs import Adjacency
from g2n2.nn.baselines import BASELINES, baseline
from g2n2.nn.expressivity import FLOOR_ULPS
from g2n2.nn.model import GrammarGNN

from .contenders import Contender

DIMENSIONS = 16
"""Numbers per graph, as in BREC: half of its 32 relabelings."""
DECISION = (64,)


class Embedding(nn.Module):
    """A network without node or edge features, on stacks of graphs of one size."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, adjacency: Tensor) -> Tensor:
        """`[B, n, n]` to `[B, 16]`."""
        count, nodes, _ = adjacency.shape
        mask = torch.ones(count, nodes, dtype=torch.bool, device=adjacency.device)
        features = adjacency.new_zeros(count, nodes, 0)
        edges = adjacency.new_zeros(count, nodes, nodes, 0)
        output: Tensor = cast(Any, self.network).network(adjacency, features, edges, mask)
        return output


def plain_embedding(contender: Contender) -> Embedding:
    """The network as it comes, with random weights."""
    preset: dict[str, Any] = {"preset": contender.preset} if contender.preset else {}
    make = baseline if contender.network in BASELINES else GrammarGNN
    return Embedding(
        make(
            contender.network,
            width=contender.width,
            layers=contender.layers,
            out=DIMENSIONS,
            decision=DECISION,
            **{**preset, **contender.options},
        )
    )


def calibrated_embedding(
    contender: Contender, graphs: Sequence[Adjacency], device: torch.device
) -> Embedding:
    """The network in float64, pooled features standardised, calibrated on some graphs."""
    model = plain_embedding(contender)
    network = cast(Any, model.network)
    readout = network.readout
    width = readout.decision[0].in_features
    readout.decision = nn.Sequential(Standardise(width), *readout.decision)
    if readout.straight is not None:
        readout.straight = nn.Sequential(Standardise(width), readout.straight)
    model = model.to(device, torch.float64).train()
    stack = torch.tensor(np.stack(graphs), dtype=torch.float64, device=device)
    backend = getattr(network, "backend", None)
    if backend is not None:
        network.backend = "reference"  # other backends do not call every map
    calibrate(model, lambda: model(stack))
    if backend is not None:
        network.backend = backend
    return model


class Standardise(nn.Module):
    """Scale every column to mean 0 and deviation 1, by the last batch seen in training.

    The difference of two graphs may be 1e-12 of their pooled features, and the gradient of a cosine
    its square; scaled to its own size it can be learned. Hotelling's T² does not depend on such an
    affine map. A variation below 1,024 units in the last place is rounding and is not amplified.
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
    """Rescale all linear maps of a network, in the order in which `run()` calls them."""
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
        # a constant, such as 1 or the diagonal of I, must not be centred away.
        part.bias.copy_(torch.where(vary, -values.mean(0) / sizes, 0.0))


def _sizes(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Deviation of every column, or its size if it is constant; and whether it varies."""
    deviation = rows.std(0, correction=0)
    size = rows.square().mean(0).sqrt()
    vary = deviation > torch.finfo(rows.dtype).eps ** 0.5 * size
    sizes = torch.where(vary, deviation, size)
    return torch.where(sizes > 0, sizes, 1.0), vary
