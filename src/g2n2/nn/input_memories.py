"""What the memories hold before the first layer, from a batch."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor

from ..compiler.inputs import InputPlan
from ..compiler.lowering import Constants, Lowered
from .layer import Memories


def input_memories(
    plan: InputPlan,
    words: Mapping[str, Lowered],
    nodes: Tensor,
    edges: Tensor,
    constants: Constants,
) -> Memories:
    """C⁰, H⁰ and the rest, as the input plan says; marks follow the features of the nodes."""
    if plan.marks:
        given = torch.split(nodes[..., plan.node_features :], 1, dim=-1)
        constants = ChainMap(dict(zip(plan.marks, given, strict=True)), constants)  # type: ignore[arg-type]
        nodes = nodes[..., : plan.node_features]
    features: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {
        "E": lambda: (edges, constants["11ᵀ"]),
        "X": lambda: (nodes, constants["1"]),
        "diag(X)": lambda: (constants["I"], nodes.unsqueeze(2)),
    }

    def factors(name: str) -> Sequence[Tensor]:
        """Whose product a part is."""
        return features[name]() if name in features else (words[name]((), constants),)

    return {
        sort.letter: _side_by_side([factors(name) for name in names])
        for sort, names in plan.parts.items()
        if names
    }


def _side_by_side(parts: Sequence[Sequence[Tensor]]) -> Tensor:
    """Products of tensors, their channels one after the other."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or len(parts) == 1:
        return torch.cat([_product(part) for part in parts], dim=-1)
    # With nobody to ask for gradients, each product is written where it belongs.
    shapes = [
        torch.broadcast_shapes(*(factor.shape for factor in part))  # type: ignore[no-untyped-call]
        for part in parts
    ]
    dtype = reduce(torch.promote_types, (factor.dtype for part in parts for factor in part))
    size = (*shapes[0][:-1], sum(shape[-1] for shape in shapes))
    whole = parts[0][0].new_empty(size, dtype=dtype)
    places = whole.split_with_sizes([shape[-1] for shape in shapes], dim=-1)
    for place, part in zip(places, parts, strict=True):
        if len(part) == 1:
            place.copy_(part[0])
        else:
            torch.mul(*part, out=place)
    return whole


def _product(part: Sequence[Tensor]) -> Tensor:
    return part[0] if len(part) == 1 else part[0] * part[1]
