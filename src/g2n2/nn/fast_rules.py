"""A rule inside a fast layer: how it is computed, and in which form an update takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from ..compiler.lowering import Constants, Lowered, lower
from ..language.sorts import M, V
from ..language.terms import Apply, Hole
from ..ops.pair_mlp.parts import Diagonal, Hadamard, Pairs, Part
from ..ops.reference import scaled_by_graph
from .layer import ApplyRule

Shape = Literal["product", "column", "hadamard", "diagonal", "other"]


@dataclass(frozen=True, eq=False)
class FastRule:
    """A rule and the shape that decides how it is computed.

    Attributes:
        rule: The rule's module.
        shape: Two operands multiplied, one of `Hadamard` and `Diagonal`, or any other body.
        vector: For `diagonal`, the body under the diag.
    """

    rule: ApplyRule
    shape: Shape
    vector: Lowered | None = None

    @classmethod
    def of(cls, rule: ApplyRule, joins: bool) -> FastRule:
        """`joins` says whether the update takes Hadamard factors and diagonals apart."""
        body = rule.rule.body
        if not isinstance(body, Apply):
            return cls(rule, "other")
        holes = all(isinstance(argument, Hole) for argument in body.args)
        sorts = tuple(argument.sort for argument in body.args)
        if joins and body.op == "diag" and sorts == (V,):
            return cls(rule, "diagonal", lower(body.args[0]))
        if joins and holes and body.op == "hadamard" and sorts == (M, M):
            return cls(rule, "hadamard")
        if holes and body.op == "matmul" and sorts in ((M, M), (M, V)):
            return cls(rule, "product" if sorts == (M, M) else "column")
        return cls(rule, "other")

    def part(self, operands: Sequence[Tensor], constants: Constants) -> Part:
        """The rule's output, or what an update can make it of."""
        rule = self.rule
        scale = constants["1/√n"] ** rule.power if rule.power else None
        if self.vector is not None:
            return Diagonal(scaled_by_graph(self.vector(operands, constants), scale))
        if self.shape == "hadamard":
            return Hadamard(operands[0], operands[1])
        if self.shape in ("product", "column"):
            from ..ops.products import triton

            multiply = triton.matrix_matrix if self.shape == "product" else triton.matrix_column
            return Pairs(multiply(operands[0], operands[1], scale))
        return Pairs(scaled_by_graph(rule.compute(operands, constants), scale))
