"""The rules of a layer in plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .. import reference as ops
from .spec import KernelRule


def apply(
    read: Tensor | None,
    matrices: Tensor,
    vectors: Tensor | None,
    scale: Tensor,
    rules: Sequence[KernelRule],
) -> tuple[Tensor, Tensor]:
    """The inputs of a matrix memory's MLP, and the rules' outputs that are columns.

    Args:
        read: `[B, N, N, S]` the memory itself, the first of those inputs, if it is one.
        matrices: `[B, N, N, K]` the operands that are matrices.
        vectors: `[B, N, L]` those that are columns, if there are any.
        scale: `[B]` what a sum over nodes is multiplied by.
        rules: What to compute; their outputs lie side by side, in any order, after `read`.

    Returns:
        `[B, N, N, J]` and `[B, N, C]`.
    """
    pairs: dict[int, Tensor] = {} if read is None else {0: read}
    columns: dict[int, Tensor] = {}
    for rule in rules:
        sources = [vectors if vector else matrices for vector in VECTORS[rule.kind]]
        operands = [
            source[..., start : start + rule.width]  # type: ignore[index]
            for source, start in zip(sources, rule.operands, strict=True)
        ]
        value = APPLY[rule.kind](*operands)
        value = value * (scale**rule.power).view(-1, *[1] * (value.dim() - 1))
        (columns if rule.kind == "column" else pairs)[rule.to] = value
    none = matrices[..., :0]
    joined = torch.cat([none, *(pairs[start] for start in sorted(pairs))], dim=-1)
    column = torch.cat([none[:, 0], *(columns[start] for start in sorted(columns))], dim=-1)
    return joined, column


VECTORS = {
    "product": (False, False),
    "hadamard": (False, False),
    "diagonal": (True,),
    "column": (False, True),
}
APPLY: dict[str, Callable[..., Tensor]] = {
    "product": ops.matrix_matrix,
    "hadamard": torch.mul,
    "diagonal": ops.diagonal_matrix,
    "column": ops.matrix_column,
}
