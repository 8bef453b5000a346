"""Copies between the two ways a matrix memory lies."""

import pytest
import torch

from g2n2.ops.to_channel_last import reference
from kernel_checks import DEVICE, LOW, drawn

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.to_channel_last import triton

SHAPES = [(1, 1, 1), (2, 7, 5), (1, 9, 65), (2, 33, 3), (2, 6, 16)]


def in_planes(x):
    """The same numbers, lying as `[S, B, N, N]`."""
    return x.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(("batch", "nodes", "width"), SHAPES)
def test_planes_become_rows_and_gradients_planes(batch, nodes, width, dtype, launches, poisoned):
    x = drawn(batch, nodes, nodes, width, dtype=dtype)
    lying = in_planes(x.detach()).requires_grad_()
    found = triton.to_rows(lying)
    assert torch.equal(found, reference.to_rows(x))
    assert found.is_contiguous()
    flow = torch.randn(found.shape, device=DEVICE).to(dtype)
    (slope,) = torch.autograd.grad(found, lying, flow)
    assert torch.equal(slope, flow)
    assert slope.permute(3, 0, 1, 2).is_contiguous(), "products want planes"
    assert launches == {"to_channel_last.turn_kernel": 2}


def test_strides_of_any_kind(poisoned):
    x = drawn(2, 5, 5, 9, dtype=torch.float32)
    for lying in (x, x[..., 2:7], x.transpose(1, 2), x[:, :4, :4, ::2]):
        assert torch.equal(triton.to_rows(lying), lying.contiguous())
    (slope,) = torch.autograd.grad(triton.to_rows(x).sum(), x)
    assert torch.equal(slope, torch.ones_like(x)), "a gradient without strides"


@pytest.mark.gpu
def test_a_large_graph_on_a_gpu(launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    x = in_planes(torch.randn(2, 200, 200, 70, device="cuda", dtype=torch.bfloat16))
    assert torch.equal(triton.to_rows(x), x.contiguous())
    assert launches == {"to_channel_last.turn_kernel": 1}
