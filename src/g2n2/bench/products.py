"""The channel-wise product alone, beside cuBLAS on data that lies as cuBLAS likes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ..ops.rules.spec import MOST_NODES
from .cases import Case
from .equality import TOLERANCE, Check, error
from .precision import half
from .timing import Effort, Timing, measure

Product = Callable[[Tensor, Tensor], Tensor]


def our_product(device: torch.device) -> Product:
    """`[B, N, N, S] × [B, N, N, S]`, channel by channel, as networks compute it on a device."""
    if device.type == "cuda":
        from ..ops.products.triton import matrix_matrix

        return lambda x, y: matrix_matrix(x, y)
    from ..ops import reference

    return reference.matrix_matrix


@dataclass(frozen=True, eq=False)
class Operands:
    """Two stacks of matrices, as networks keep them and as a batched product takes them.

    Attributes:
        x: `[B, N, N, S]`, contiguous.
        y: `[B, N, N, S]`.
        left: `[B·S, N, N]`, the same numbers, contiguous.
        right: `[B·S, N, N]`.
    """

    x: Tensor
    y: Tensor
    left: Tensor
    right: Tensor

    @classmethod
    def of(cls, case: Case, device: torch.device) -> Operands:
        draw = torch.Generator(device).manual_seed(0)
        shape = (case.batch, case.nodes, case.nodes, case.width)
        dtype = half(case.precision) or torch.float32
        x, y = (torch.randn(shape, generator=draw, device=device).to(dtype) for _ in range(2))
        return cls(x, y, _permuted(x), _permuted(y))


def check_product(operands: Operands, product: Product, case: Case) -> Check:
    """Outputs and gradients of the product against the batched product in float64."""
    x, y = (value[:1].clone().requires_grad_() for value in (operands.x, operands.y))
    left, right = (_permuted(value.detach()).double().requires_grad_() for value in (x, y))
    got, truth = product(x, y), left @ right
    weight = torch.randn_like(got)
    ours = torch.autograd.grad(got, (x, y), weight)
    exact = torch.autograd.grad(truth, (left, right), _permuted(weight).double())
    errors = [error(_permuted(mine), right) for mine, right in zip(ours, exact, strict=True)]
    worst = "xy"[errors.index(max(errors))]
    least = TOLERANCE[case.precision]
    outputs = error(_permuted(got.detach()), truth.detach())
    return Check(outputs, max(errors), worst, least, least)


def time_products(
    operands: Operands, product: Product, device: torch.device, effort: Effort
) -> dict[str, Timing]:
    """The product of operands as layers select them, of contiguous ones, and cuBLAS's; forward.

    Beyond the small graphs of the kernels, layers select operands as planes.
    """
    selected = [operands.x, operands.y]
    if operands.x.shape[1] > MOST_NODES:
        planes = [value.permute(3, 0, 1, 2).contiguous() for value in selected]
        selected = [value.permute(1, 2, 3, 0) for value in planes]
    actions = {
        "ours": partial(product, *selected),
        "contiguous": partial(product, operands.x, operands.y),
        "bmm": partial(torch.bmm, operands.left, operands.right),
    }
    for warm_up in actions.values():
        warm_up()
    return {name: measure(action, device, effort) for name, action in actions.items()}


def product_flops(case: Case) -> float:
    return 2.0 * case.batch * case.width * case.nodes**3


def _permuted(value: Tensor) -> Tensor:
    """`[B, N, N, S]` as contiguous `[B·S, N, N]`."""
    return value.permute(0, 3, 1, 2).flatten(0, 1).contiguous()
