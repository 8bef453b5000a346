"""Half-precision copies of a network's weights, and the module they are called with."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .model import GrammarGNN

READ_IN_HALF = ("layers.", "embeddings.", "trunk.", "trunk_embeddings.")


class OnInputs(nn.Module):
    """A network as a function of packed input memories (`PackedNetwork.from_inputs`)."""

    def __init__(self, model: GrammarGNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> Tensor:
        packed = self.model.packed
        return packed.on_graphs(packed.from_inputs(*inputs))


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
        names = {id(weight): name for name, weight in left.items()}
        for weights in model.packed.stacked_weights():
            self.groups.append({n: left.pop(n) for n in [names[id(weight)] for weight in weights]})
        self.groups += [{name: weight} for name, weight in left.items()]
        for group in self.groups:
            stacked = torch.cat([weight.detach() for weight in group.values()])
            self.leaves.append(stacked.to(dtype).requires_grad_())

    def named(self) -> dict[str, Tensor]:
        """The copies as `OnInputs` calls the weights of its network."""
        copies: dict[str, Tensor] = {}
        for group, leaf in zip(self.groups, self.leaves, strict=True):
            sizes = [len(weight) for weight in group.values()]
            parts = leaf.split_with_sizes(sizes) if len(group) > 1 else (leaf,)
            copies |= {f"model.{name}": part for name, part in zip(group, parts, strict=True)}
        return copies

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
        """Take over the weights."""
        if not self.leaves:
            return
        parts = [
            part
            for group, leaf in zip(self.groups, self.leaves, strict=True)
            for part in leaf.split_with_sizes([len(weight) for weight in group.values()])
        ]
        torch._foreach_copy_(parts, [w for group in self.groups for w in group.values()])
