"""Which rules a layer applies, as columns of the tensors they read and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

Kind = Literal["product", "hadamard", "diagonal", "column"]
MOST_NODES = 32
"""Of a graph whose matrix is one tile of a kernel."""
KINDS: tuple[Kind, ...] = ("product", "hadamard", "diagonal", "column")


@dataclass(frozen=True)
class KernelRule:
    """One rule. Each operand's channels belong to one rule only."""

    kind: Kind  # `product` M·M, `hadamard` M⊙M, `diagonal` diag(v), `column` M·v
    # where each operand's channels begin: those of matrices among the operands of the matrix
    # memory, those of vectors among those of the column memory
    operands: tuple[int, ...]
    # where the output's channels begin, among the matrix MLP's inputs; for `column`, among the
    # outputs that are columns
    to: int
    width: int  # channels of operands and output
    power: int = 0  # the output of a `product` or `column` is multiplied by `scale` to this power


Round = dict[Kind, KernelRule]
"""Rules of different kinds and one width, which one kernel applies together."""


def rounds(rules: Sequence[KernelRule]) -> Iterator[Round]:
    """All rules in as few rounds as can be."""
    for width in dict.fromkeys(rule.width for rule in rules):
        kinds = [[r for r in rules if r.kind == kind and r.width == width] for kind in KINDS]
        for together in zip_longest(*kinds):
            yield {rule.kind: rule for rule in together if rule is not None}
