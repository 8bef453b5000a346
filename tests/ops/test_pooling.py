"""Sums of a matrix memory over its diagonal, beside it and over rows."""

import pytest
import torch

from g2n2.ops.pooling import reference
from kernel_checks import DEVICE, LOW, assert_near, drawn, unequal_mask

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.pooling import triton

SIZES = [1, 7, 16, 17, 29, 32]


def check(mask, width, dtype, factor=1.0):
    """Sums are float32 whatever the memory is; its gradient has its own dtype."""
    torch.manual_seed(8)
    batch, nodes = mask.shape
    memory = drawn(batch, nodes, nodes, width, dtype=dtype)  # padding is not zero
    wide = memory.detach().double().requires_grad_()
    found, expected = triton.sums(memory, mask), reference.sums(wide, mask)
    for got, want in zip(found, expected, strict=True):
        assert_near("sum", got, want, torch.float32, 5 * factor)
    weights = [torch.randn(batch, width, device=mask.device) for _ in found]
    slopes = [
        torch.autograd.grad(sum((w * s).sum() for w, s in zip(weights, sums, strict=True)), leaf)
        for sums, leaf in ((found, memory), (expected, wide))
    ]
    assert_near("gradient", slopes[0][0], slopes[1][0], dtype, factor)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("width", [1, 16, 21])
def test_kernels_give_what_the_reference_gives(width, dtype, launches, poisoned):
    check(unequal_mask(7), width, dtype)
    assert launches == {"pooling.forward_kernel": 1, "pooling.backward_kernel": 1}


@pytest.mark.parametrize("nodes", SIZES)
def test_odd_sizes(nodes, poisoned):
    check(unequal_mask(nodes), 5, torch.float32)


def test_counted_by_hand():
    """Ones on the diagonal, tens beside it, thousands at the padding."""
    mask = unequal_mask(5)
    memory = torch.full((2, 5, 5, 3), 1000.0, device=DEVICE)
    for graph, nodes in enumerate((5, 3)):
        memory[graph, :nodes, :nodes] = 10.0
        for i in range(nodes):
            memory[graph, i, i] = 1.0
    for sums in (reference.sums, triton.sums):
        diagonal, beside = sums(memory, mask)
        assert diagonal.tolist() == [[5.0] * 3, [3.0] * 3]
        assert beside.tolist() == [[200.0] * 3, [60.0] * 3]


def test_one_sum_alone_has_its_gradient(poisoned):
    mask = unequal_mask(4)
    memory = drawn(2, 4, 4, 3, dtype=torch.float32)
    diagonal, _ = triton.sums(memory, mask)
    diagonal.sum().backward()
    ones = torch.eye(4, device=DEVICE) * mask[:, None]
    assert torch.equal(memory.grad, ones.unsqueeze(-1).expand_as(memory))


def test_strides_of_any_kind(poisoned):
    mask = unequal_mask(6)
    memory = drawn(2, 6, 6, 9, dtype=torch.float32)
    sliced = memory[..., 2:7].transpose(1, 2)
    for got, want in zip(
        triton.sums(sliced, mask), reference.sums(sliced.double(), mask), strict=True
    ):
        assert_near("sum", got, want, torch.float32, 5.0)


def check_rows(mask, width, dtype, factor=1.0):
    torch.manual_seed(8)
    batch, nodes = mask.shape
    memory = drawn(batch, nodes, nodes, width, dtype=dtype)  # padding is not zero
    wide = memory.detach().double().requires_grad_()
    found, expected = triton.row_sums(memory, mask), reference.row_sums(wide, mask)
    assert_near("sum", found, expected, torch.float32, 5 * factor)
    weights = torch.randn(batch, nodes, width, device=mask.device)
    slopes = [
        torch.autograd.grad((weights * sums).sum(), leaf)[0]
        for sums, leaf in ((found, memory), (expected, wide))
    ]
    assert_near("gradient", *slopes, dtype, factor)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(("nodes", "width"), [(1, 1), (7, 21), (32, 16), (33, 5)])
def test_row_sums(nodes, width, dtype, launches, poisoned):
    check_rows(unequal_mask(nodes), width, dtype)
    assert launches == {"pooling.row_kernel": 1, "pooling.row_spread_kernel": 1}


def test_rows_counted_by_hand():
    mask = unequal_mask(3)
    memory = torch.full((2, 3, 3, 2), 1000.0, device=DEVICE)
    memory[0], memory[1, :2, :2] = 1.0, 10.0
    for row_sums in (reference.row_sums, triton.row_sums):
        assert row_sums(memory, mask)[..., 0].tolist() == [[3.0] * 3, [20.0, 20.0, 0.0]]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_qm9_sizes_on_a_gpu(dtype, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    sizes = torch.randint(4, 30, (128,), device="cuda")
    check(torch.arange(29, device="cuda") < sizes[:, None], 64, dtype, factor=3.0)
    assert sum(launches.values()) == 2


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_row_sums_of_a_grid_on_a_gpu(dtype, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    check_rows(torch.ones(1, 900, dtype=torch.bool, device="cuda"), 32, dtype, factor=3.0)
    assert sum(launches.values()) == 2
