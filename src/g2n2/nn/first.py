"""What the memories hold before the first layer, from a batch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..compiler.inputs import InputPlan
from ..compiler.lowering import Constants, Lowered
from .layer import Memories


def first_memories(
    plan: InputPlan,
    words: Mapping[str, Lowered],
    nodes: Tensor,
    edges: Tensor,
    constants: Constants,
) -> Memories:
    """C⁰, H⁰ and the rest, as the input plan says."""
    features = {
        "E": lambda: edges * constants["11ᵀ"],
        "X": lambda: nodes * constants["1"],
        "diag(X)": lambda: constants["I"] * nodes.unsqueeze(2),
    }

    def value(name: str) -> Tensor:
        return features[name]() if name in features else words[name]((), constants)

    return {
        sort.letter: torch.cat([value(name) for name in names], dim=-1)
        for sort, names in plan.parts.items()
        if names
    }
