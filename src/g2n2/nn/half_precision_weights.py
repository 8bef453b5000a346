"""Half-precision copies of a network's weights."""

from __future__ import annotations

import torch
from torch import Tensor

from .model import GrammarGNN

READ_IN_HALF = ("layers.", "embeddings.", "trunk.", "trunk_embeddings.")


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
            own = [names[id(weight)] for weight in weights]
            self.groups.append({name: left.pop(name) for name in own})
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
        """Take over the weights."""
        if not self.leaves:
            return
        torch._foreach_copy_(self._parts(), [w for group in self.groups for w in group.values()])

    def _parts(self) -> list[Tensor]:
        """The copy of each weight, in the order of the groups."""
        return [
            part
            for group, leaf in zip(self.groups, self.leaves, strict=True)
            for part in leaf.split_with_sizes([len(weight) for weight in group.values()])
        ]
