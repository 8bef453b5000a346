"""Half-precision copies of a network's weights, and an optimiser made ready for its first step."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..nn.model import GrammarGNN

READ_IN_HALF = ("layers.", "embeddings.")


class Copies:
    """Weights in half precision, rounded once a step and not at every use.

    The optimiser keeps and steps the full-precision weights. Weights a layer stacks are parts of
    one copy, so that stacking them is no work.

    Args:
        model: The network.
        dtype: The half precision; None for no copies.
    """

    def __init__(self, model: GrammarGNN, dtype: torch.dtype | None) -> None:
        self.groups: list[dict[str, Tensor]] = []
        self.leaves: list[Tensor] = []
        if dtype is None:
            return
        left = {n: p for n, p in model.named_parameters() if n.startswith(READ_IN_HALF)}
        for names in model.stacked_weights():
            self.groups.append({name: left.pop(name) for name in names})
        self.groups += [{name: weight} for name, weight in left.items()]
        for group in self.groups:
            stacked = torch.cat([weight.detach() for weight in group.values()])
            self.leaves.append(stacked.to(dtype).requires_grad_())

    def named(self) -> dict[str, Tensor]:
        """The copies as the network calls its weights."""
        found: dict[str, Tensor] = {}
        for group, leaf in zip(self.groups, self.leaves, strict=True):
            sizes = [len(weight) for weight in group.values()]
            parts = leaf.split_with_sizes(sizes) if len(group) > 1 else (leaf,)
            found |= {f"model.{name}": part for name, part in zip(group, parts, strict=True)}
        return found

    def used(self) -> tuple[list[Tensor], list[Tensor]]:
        """Weights and copies, in the same order, where the copy has a gradient."""
        pairs = list(zip(self.groups, self.leaves, strict=True))
        weights = [w for group, leaf in pairs if leaf.grad is not None for w in group.values()]
        return weights, [leaf for leaf in self.leaves if leaf.grad is not None]

    def give_gradients(self) -> None:
        """Hand the copies' gradients to the weights they are copies of."""
        for group, leaf in zip(self.groups, self.leaves, strict=True):
            if leaf.grad is not None:
                parts = leaf.grad.split_with_sizes([len(weight) for weight in group.values()])
                for weight, part in zip(group.values(), parts, strict=True):
                    weight.grad = part.to(weight.dtype)

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over the weights after a step."""
        for group, leaf in zip(self.groups, self.leaves, strict=True):
            leaf.copy_(torch.cat(list(group.values())))


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
