"""Every operation of the language on memories, channel by channel, in plain PyTorch.

Matrices are `[B, N, N, S]`, columns and rows `[B, N, S]`, scalars `[B, S]`; one of two operands may
have a single channel. Padding is zero in every operand and stays zero in every result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from .precision import without_autocast


def matrix_matrix(x: Tensor, y: Tensor) -> Tensor:
    """`(XY)_ij = Σ_k X_ik Y_kj` for each channel."""
    if x.shape[-1] == 1 and y.shape[-1] > 1:  # one matrix for all channels: one large product
        b, n, _, s = y.shape
        return (x[..., 0] @ y.reshape(b, n, n * s)).view(b, n, n, s)
    return torch.einsum("bikc,bkjc->bijc", x, y)


def matrix_column(x: Tensor, v: Tensor) -> Tensor:
    """`(Xv)_i = Σ_k X_ik v_k` for each channel."""
    if x.shape[-1] == 1:
        return x[..., 0] @ v
    return torch.einsum("bikc,bkc->bic", x, v)


def sparse_column(x: Tensor, v: Tensor) -> Tensor:
    """`Xv` for each channel, the matrices of all graphs in one sparse `[BN, BN]`.

    Sums run in float32 at least, whatever the dtype of the column.
    """
    exact = torch.promote_types(v.dtype, torch.float32)
    with without_autocast(v.device.type):
        product: Tensor = torch.sparse.mm(x.to(exact), v.flatten(0, 1).to(exact))
    return product.view(*v.shape[:2], -1).to(v.dtype)


def row_matrix(r: Tensor, x: Tensor) -> Tensor:
    """`(rX)_j = Σ_k r_k X_kj` for each channel."""
    return torch.einsum("bkc,bkjc->bjc", r, x)


def row_column(r: Tensor, v: Tensor) -> Tensor:
    """`rv = Σ_k r_k v_k` for each channel."""
    return (r * v).sum(1)


def column_row(v: Tensor, r: Tensor) -> Tensor:
    """`(vr)_ij = v_i r_j` for each channel."""
    return v.unsqueeze(2) * r.unsqueeze(1)


def scaled_matrix(s: Tensor, x: Tensor) -> Tensor:
    """`s × X` for each channel."""
    return s[:, None, None, :] * x


def scaled_vector(s: Tensor, v: Tensor) -> Tensor:
    """`s × v` for each channel."""
    return s[:, None, :] * v


def product(x: Tensor, y: Tensor) -> Tensor:
    """The entrywise product; also the product of two scalars."""
    return x * y


def total(x: Tensor, y: Tensor) -> Tensor:
    """The entrywise sum."""
    return x + y


def transposed(x: Tensor) -> Tensor:
    """`Xᵀ` for each channel."""
    return x.transpose(1, 2)


def same(x: Tensor) -> Tensor:
    """What transposes a vector or a scalar, whose layout is the same either way."""
    return x


def diagonal_matrix(v: Tensor) -> Tensor:
    """`diag(v)` for each channel."""
    return torch.diag_embed(v.transpose(1, 2)).permute(0, 2, 3, 1)


def diagonal(x: Tensor) -> Tensor:
    """The diagonal of each channel, `[B, N, S]`."""
    return x.diagonal(dim1=1, dim2=2).transpose(1, 2)


def trace(x: Tensor) -> Tensor:
    """`Tr(X)` for each channel, `[B, S]`."""
    return diagonal(x).sum(1)


def contracted(
    operands: Sequence[Tensor],
    inputs: Sequence[str],
    steps: Sequence[tuple[tuple[int, ...], str]],
    output: str,
) -> Tensor:
    """Any multilinear operation, channel by channel: products of two operands, and sums.

    Args:
        operands: `[B, N, …, S]`, one axis of places for each letter; S may be 1.
        inputs: The letters of each operand; one that stands twice reads the diagonal.
        steps: Which values are multiplied (a single one is summed), and the letters left. Each
            result is put after the values there are; the last one has the letters of the output.
        output: The letters of the result; one that stands twice makes a diagonal.
    """
    letters = ["".join(dict.fromkeys(axes)) for axes in inputs]
    values = [
        value if held == axes else torch.einsum(f"y{axes}z->y{held}z", value)
        for value, axes, held in zip(operands, inputs, letters, strict=True)
    ]
    for used, left in steps:
        given = [values[i] for i in used]
        axes = [letters[i] for i in used]
        if set("".join(axes)) == set(left):
            first, second = (_aligned(x, held, left) for x, held in zip(given, axes, strict=True))
            values.append(first * second)
        else:
            channels = max(value.shape[-1] for value in given)
            given = [value.expand(*value.shape[:-1], channels) for value in given]
            equation = ",".join(f"y{held}z" for held in axes)
            values.append(torch.einsum(f"{equation}->y{left}z", given))
        letters.append(left)
    value, held = values[-1], letters[-1]
    for letter in dict.fromkeys(output):
        for _ in range(output.count(letter) - 1):
            place = 1 + held.index(letter)
            value = torch.diag_embed(value.movedim(place, -1)).movedim(-3, -1)
            held = held[: place - 1] + held[place:] + 2 * letter
    return value.permute(0, *_places(held, output), value.dim() - 1)


def _aligned(value: Tensor, held: str, wanted: str) -> Tensor:
    """A value along the wanted letters, of length 1 where it does not have one."""
    order = [1 + held.index(letter) for letter in wanted if letter in held]
    value = value.permute(0, *order, value.dim() - 1)
    for place, letter in enumerate(wanted):
        if letter not in held:
            value = value.unsqueeze(1 + place)
    return value


def _places(held: str, wanted: str) -> list[int]:
    """Which axis each wanted letter is on; equal letters are taken in turn."""
    free = {letter: [i + 1 for i, x in enumerate(held) if x == letter] for letter in held}
    return [free[letter].pop(0) for letter in wanted]


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "f": torch.relu,
    "relu": torch.relu,
    "exp": torch.exp,
    "log": lambda x: torch.log(torch.where(x > 0, x, torch.ones_like(x))),
    "sqrt": lambda x: torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0),
    "inv": lambda x: torch.where(x == 0, 0.0, 1.0 / torch.where(x == 0, 1.0, x)),
    "abs": torch.abs,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
"""Pointwise functions by name. The opaque f of a fragment is ReLU; the MLP gives any other."""


def select(
    memory: Tensor, gain: Tensor | None, small: float, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What the rules of a layer read of a memory `[…, S]`.

    Args:
        memory: `[…, S]`.
        gain: `[S]` of the normalisation, or None for a memory that is read as it is.
        small: ε of the normalisation.
        weight: `[K, S]` the selectors' maps, one below the other.

    Returns:
        The memory as it is read `[…, S]`, the operands side by side `[…, K]`, and the memory
        itself, for the residual.
    """
    read = memory if gain is None else functional.rms_norm(memory, memory.shape[-1:], gain, small)
    return read, functional.linear(read, weight), memory
