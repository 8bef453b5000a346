"""`LazyConstants`: named tensors that are computed on first access."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor


class LazyConstants(Mapping[str, Tensor]):
    """What rules may name: a layer that names two of ten constants costs two.

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

    def to(self, dtype: torch.dtype) -> LazyConstants:
        """The same in another dtype."""

        def cast(name: str) -> Callable[[LazyConstants], Tensor]:
            return lambda _: self[name].to(dtype)

        return LazyConstants({name: cast(name) for name in self.makers})
