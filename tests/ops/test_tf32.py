"""Operands of tensor cores, rounded as numpy rounds."""

import numpy as np
import pytest
import torch

from kernel_checks import DEVICE

pytest.importorskip("triton", reason="the kernels need triton")
import triton
import triton.language as tl

from g2n2.ops.tf32 import tensor_core_operand

COUNT = 64


@triton.jit
def operand_kernel(X, OUT, COUNT: tl.constexpr, PRECISION: tl.constexpr):
    place = tl.arange(0, COUNT)
    tl.store(OUT + place, tensor_core_operand(tl.load(X + place), PRECISION))


def operands(x: torch.Tensor, precision: str) -> torch.Tensor:
    out = torch.full_like(x, torch.nan)
    operand_kernel[(1,)](x, out, COUNT=len(x), PRECISION=precision)
    return out


def drawn() -> np.ndarray:
    """Numbers of both signs and many sizes."""
    draw = np.random.default_rng(0)
    return (draw.normal(size=COUNT) * 10.0 ** draw.integers(-20, 20, COUNT)).astype(np.float32)


def test_float32_in_tf32_keeps_ten_bits_of_the_nearest():
    x = drawn()
    mantissa, exponent = np.frexp(x.astype(np.float64))
    nearest = np.ldexp(np.round(np.ldexp(mantissa, 11)), exponent - 11)
    assert not (x == nearest).any(), "else nothing would be rounded"
    got = operands(torch.from_numpy(x).to(DEVICE), "tf32").double().cpu().numpy()
    assert (got == nearest).all()


@pytest.mark.parametrize("precision", ["ieee", "tf32x3"])
def test_other_precisions_take_all_bits(precision):
    x = torch.from_numpy(drawn()).to(DEVICE)
    assert torch.equal(operands(x, precision), x)


def test_bfloat16_and_zeros_stay():
    x = torch.from_numpy(drawn()).to(DEVICE, torch.bfloat16)
    assert torch.equal(operands(x, "tf32"), x)
    zeros = torch.tensor([0.0, -0.0], device=DEVICE)
    assert torch.equal(operands(zeros, "tf32"), zeros)
