"""What a network reads of a batch: the constants that rules name, and the first memories."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor

from ..compiler.inputs import InputPlan
from ..compiler.lowering import Constants, Lowered
from ..data.batch import block_diagonal
from .layer import Memories


class LazyConstants(Mapping[str, Tensor]):
    """Named tensors, each computed when it is first asked for.

    Args:
        makers: How each is made, given the others.
    """

    def __init__(self, makers: Mapping[str, Callable[[LazyConstants], Tensor]]) -> None:
        self.makers = makers
        self.made: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.made:
            self.made[name] = self.makers[name](self)
        return self.made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.makers

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)

    def beside(self, values: Mapping[str, Tensor]) -> LazyConstants:
        """The same with other names beside them."""
        both = ChainMap(dict(values), self)  # type: ignore[arg-type]
        return LazyConstants({name: lambda _, n=name: both[n] for name in both})  # type: ignore[misc]

    def to(self, dtype: torch.dtype) -> LazyConstants:
        """The same in another dtype."""
        return LazyConstants(
            {name: lambda _, n=name: self[n].to(dtype) for name in self.makers}  # type: ignore[misc]
        )


def graph_constants(
    adjacency: Tensor, mask: Tensor
) -> dict[str, Callable[[LazyConstants], Tensor]]:
    """How the constants of every grammar are made; see `GrammarGNN.constants`."""
    makers: dict[str, Callable[[LazyConstants], Tensor]] = {
        "1": lambda c: mask.to(adjacency.dtype).unsqueeze(-1),
        "11ᵀ": lambda c: c["1"].unsqueeze(2) * c["1"].unsqueeze(1),
        "I": lambda c: torch.diag_embed(c["1"][..., 0]).unsqueeze(-1),
        "J": lambda c: c["11ᵀ"] - c["I"],
        "A": lambda c: adjacency.unsqueeze(-1) * c["11ᵀ"],
        "1/√n": lambda c: c["1"].sum((1, 2)).clamp(min=1).rsqrt(),
    }
    if adjacency.is_sparse:
        makers["A"] = lambda c: block_diagonal(adjacency)
        makers["ends"] = lambda c: c["A"]._indices()
    return makers


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


def part_of(memories: Memories, whole: InputPlan, part: InputPlan) -> Memories:
    """The channels of input memories that are those of a part of their plan.

    Where memories come in two halves (`halved`), so do those of the part.
    """
    chosen: Memories = {}
    for sort, places in whole.places(part).items():
        memory, width = memories[sort.letter], whole.widths[sort]
        if len(places) < width:
            halves = range(0, memory.shape[-1], width)
            memory = memory[..., [start + place for start in halves for place in places]]
        chosen[sort.letter] = memory
    return chosen


def _side_by_side(parts: Sequence[Sequence[Tensor]]) -> Tensor:
    """Products of tensors, their channels one after the other."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or len(parts) == 1:
        return torch.cat([reduce(torch.mul, part) for part in parts], dim=-1)
    # With nobody to ask for gradients, each product is written where it belongs.
    shapes = [
        torch.broadcast_shapes(*(factor.shape for factor in part))  # type: ignore[no-untyped-call]
        for part in parts
    ]
    dtype = reduce(torch.promote_types, (factor.dtype for part in parts for factor in part))
    size = (*shapes[0][:-1], sum(shape[-1] for shape in shapes))
    whole = parts[0][0].new_empty(size, dtype=dtype)
    columns = whole.split_with_sizes([shape[-1] for shape in shapes], dim=-1)
    for out, part in zip(columns, parts, strict=True):
        if len(part) == 1:
            out.copy_(part[0])
        else:
            torch.mul(*part, out=out)
    return whole


def halved(values: Tensor, dtype: torch.dtype) -> Tensor:
    """`[…, S]` in full precision as `[…, 2S]` in half, whose two parts add up to it."""
    high = values.to(dtype)
    return torch.cat([high, (values - high).to(dtype)], dim=-1)
