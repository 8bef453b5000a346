"""Channel-wise products in the memory's own layout against einsum."""

import pytest
import torch

from g2n2.ops import reference
from g2n2.ops.rule_kernels.spec import MOST_NODES
from kernel_checks import LOW, SIZES, assert_near, assert_twins, drawn, pairs_of, unequal_mask

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.products import triton


def scaled(op, scale):
    """A reference product times one number for each graph."""

    def run(x, y):
        value = op(x, y)
        return value if scale is None else value * scale.double().view(-1, *[1] * (value.dim() - 1))

    return run


def operands(nodes, width, dtype, vector=False):
    torch.manual_seed(nodes)
    mask = unequal_mask(nodes)
    x = drawn(2, nodes, nodes, width, dtype=dtype, mask=pairs_of(mask))
    if vector:
        return x, drawn(2, nodes, width, dtype=dtype, mask=mask[..., None])
    return x, drawn(2, nodes, nodes, width, dtype=dtype, mask=pairs_of(mask))


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("nodes", [*SIZES, 48])
def test_products_of_matrices(nodes, dtype, launches, poisoned):
    assert_twins(triton.matrix_matrix, reference.matrix_matrix, operands(nodes, 9, dtype), dtype)
    if nodes > MOST_NODES:
        assert launches == {"to_channel_last.turn_kernel": 2}, "library products of planes"
    else:
        names = ("product_kernel", "product_back_kernel")
        assert launches == {f"rule_kernels.{name}": 1 for name in names}


@pytest.mark.parametrize("nodes", SIZES)
def test_products_with_columns(nodes, launches, poisoned):
    leaves = operands(nodes, 5, torch.float32, vector=True)
    assert_twins(triton.matrix_column, reference.matrix_column, leaves, torch.float32)
    one = (
        {}
        if nodes > MOST_NODES
        else {"rule_kernels.entries_kernel": 1, "rule_kernels.entries_back_kernel": 1}
    )
    assert launches == one


@pytest.mark.parametrize(("nodes", "width"), [(7, 1), (5, 65), (50, 3)])
def test_any_width_and_a_scale(nodes, width, poisoned):
    x, y = operands(nodes, width, torch.float32)
    scale = torch.tensor([0.5, -3.0], device=x.device)
    assert_twins(
        lambda x, y: triton.matrix_matrix(x, y, scale),
        scaled(reference.matrix_matrix, scale),
        (x, y),
        torch.float32,
    )


@pytest.mark.parametrize("nodes", [7, 50])
def test_strides_of_any_kind(nodes, poisoned):
    x, y = operands(nodes, 12, torch.float32)

    def strided(op):
        return lambda x, y: op(x[..., 3:8].transpose(1, 2), y[..., ::2][..., :5])

    leaves = (x, y)
    assert_twins(
        strided(triton.matrix_matrix), strided(reference.matrix_matrix), leaves, torch.float32
    )


def test_a_summed_result_sends_back_a_gradient_without_strides():
    x, y = operands(7, 4, torch.float32)
    triton.matrix_matrix(x, y).sum().backward()
    found = x.grad
    x.grad = None
    reference.matrix_matrix(x, y).sum().backward()
    assert_near("gradient", found, x.grad, torch.float32)


@pytest.mark.parametrize("nodes", [7, 50])
def test_columns_with_a_scale(nodes, poisoned):
    x, v = operands(nodes, 5, torch.float32, vector=True)
    scale = torch.tensor([0.5, -3.0], device=x.device)
    assert_twins(
        lambda x, v: triton.matrix_column(x, v, scale),
        scaled(reference.matrix_column, scale),
        (x, v),
        torch.float32,
    )


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("nodes", [18, 29, 200])
def test_products_at_width_64_on_a_gpu(nodes, dtype, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    leaves = operands(nodes, 64, dtype)
    assert_twins(triton.matrix_matrix, reference.matrix_matrix, leaves, dtype, factor=3.0)
    assert sum(launches.values()) == 2
