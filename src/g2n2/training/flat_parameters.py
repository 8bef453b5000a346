"""All weights of a network, and what its optimiser keeps of each, in a few flat tensors.

The network, the optimiser and the average go on seeing their own tensors, which become parts of the
flat ones: checkpoints and steps taken without CUDA graphs stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .averaging import Average

KEPT = ("exp_avg", "exp_avg_sq")


class FlatOptimizerStep:
    """Takes steps of an Adam or AdamW whose state exists.

    Args:
        halves: Weights the network reads in half precision.
        others: Those it reads as they are.
        copies: The former in half precision; they become parts of one tensor too.
        optimiser: Of all of them; its groups differ in weight decay only.
        average: Of all weights of the network.
        clip: Largest norm of the gradient; 0 for none.
        share: Of the weights in their average, on the device.
        norm: Where the norm of the gradient is left.
    """

    def __init__(
        self,
        halves: Sequence[Tensor],
        others: Sequence[Tensor],
        copies: Sequence[Tensor],
        optimiser: torch.optim.Optimizer,
        average: Average,
        clip: float,
        share: Tensor,
        norm: Tensor,
    ) -> None:
        from ..ops.adam.triton import FlatState  # not at the top: Triton is not everywhere

        weights = [*halves, *others]
        device = weights[0].device
        self.others, self.copies, self.clip = others, copies, clip
        group = optimiser.param_groups[0]
        self.betas, self.small = group["betas"], group["eps"]
        states = [optimiser.state[weight] for weight in weights]
        decay = {id(p): g["weight_decay"] for g in optimiser.param_groups for p in g["params"]}
        shadows = {id(w): i for i, w in enumerate(average.weights)}
        places = [shadows[id(weight)] for weight in weights] if average.decay else []
        kept = [flattened([state[name] for state in states]) for name in KEPT]
        steps, parts = flattened([state["step"].to(device) for state in states])
        flat, own = flattened([weight.data for weight in weights])
        shadow, averaged = flattened([average.shadow[i] for i in places], flat)
        copy, rounded = flattened([c.data for c in copies], flat)
        for weight, view in zip(weights, own, strict=True):
            weight.data = view
        for place, view in zip(places, averaged, strict=True):
            average.shadow[place] = view
        for c, view in zip(copies, rounded, strict=True):
            c.data = view
        for number, state in enumerate(states):
            state["step"] = parts[number]
            for name, (_, views) in zip(KEPT, kept, strict=True):
                state[name] = views[number]
        rates = torch.cat([torch.full((w.numel(),), float(decay[id(w)])) for w in weights])
        self.state = FlatState(
            flat,
            kept[0][0],
            kept[1][0],
            shadow,
            copy,
            rates.to(device),
            group["lr"],
            steps,
            share,
            norm,
        )

    @torch.no_grad()
    def step(self) -> None:
        """Take a step with the gradients the weights and their copies have."""
        from ..ops.adam.triton import step

        self.state.steps.add_(1.0)
        half, _ = flattened([c.grad for c in self.copies], self.state.copy)
        full, _ = flattened([w.grad for w in self.others], self.state.weights)
        step(self.state, half, full, self.clip, self.betas, self.small)


def flattened(
    tensors: Sequence[Tensor | None], like: Tensor | None = None
) -> tuple[Tensor, list[Tensor]]:
    """Some tensors one after the other, and the part of each; of the dtype of `like` if of none."""
    given = [tensor for tensor in tensors if tensor is not None]
    assert len(given) == len(tensors), "every weight that takes part has a gradient"
    if not given:
        assert like is not None, "nothing to go by"
        return like.new_empty(0), []
    flat = torch.cat([tensor.reshape(-1) for tensor in given])
    pieces = flat.split_with_sizes([tensor.numel() for tensor in given])
    return flat, [piece.view(t.shape) for piece, t in zip(pieces, given, strict=True)]


@torch.no_grad()
def prepare(optimiser: torch.optim.Optimizer, weights: list[nn.Parameter]) -> None:
    """Make the optimiser's buffers, if they are not there, without changing a weight."""
    if optimiser.state:
        return
    kept = [weight.clone() for weight in weights]
    gradients = [weight.grad for weight in weights]
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    optimiser.step()
    for weight, value, gradient in zip(weights, kept, gradients, strict=True):
        weight.copy_(value)
        weight.grad = gradient
        for buffer in optimiser.state[weight].values():
            if isinstance(buffer, Tensor):
                buffer.zero_()
