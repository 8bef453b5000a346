"""The two-layer MLP on rows that lie side by side already."""

import pytest
import torch
from torch.nn import functional

from g2n2.ops.precision import float32_products
from kernel_checks import DEVICE, LOW, assert_twins, drawn

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops import pair_mlp


def mixed_plainly(x, first, second, total, residual):
    hidden = functional.relu(functional.linear(x, *first))
    value = functional.linear(hidden, *second)
    value = value if residual is None else value + residual
    return value * (torch.arange(len(x), device=x.device) < total).unsqueeze(-1)


def on_rows(mix, total):
    """Only of the rows that are there, whose gradients alone are not zero."""

    def run(x, w1, b1, w2, b2, residual):
        return mix(x, (w1, b1), (w2, b2), torch.tensor(total, device=DEVICE), residual)[:total]

    return run


def row_leaves(count, width, hidden, out, dtype, bias=True, residual=True):
    torch.manual_seed(9)
    return [
        drawn(count, width, dtype=dtype),
        drawn(hidden, width, dtype=dtype),
        drawn(hidden, dtype=dtype) if bias else None,
        drawn(out, hidden, dtype=dtype),
        drawn(out, dtype=dtype) if bias else None,
        drawn(count, out, dtype=dtype) if residual else None,
    ]


def both(total):
    return on_rows(pair_mlp.mix_rows, total), on_rows(mixed_plainly, total)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(
    ("count", "width", "hidden", "out", "bias", "residual"),
    [
        (1, 1, 16, 1, True, True),
        (98, 9, 48, 5, True, True),
        (21, 16, 64, 16, False, True),
        (14, 5, 32, 17, True, False),
    ],
)
def test_rows(count, width, hidden, out, bias, residual, dtype, launches, poisoned):
    assert_twins(*both(count), row_leaves(count, width, hidden, out, dtype, bias, residual), dtype)
    ends = "pair_mlp.finish_kernel" if dtype == torch.float32 else "pair_mlp.out_kernel"
    assert {ends, "pair_mlp.back_kernel"} <= set(launches)
    assert launches["sums.column_sums_kernel"] == 1 + bias


def test_tensor_cores_take_float32_in_tf32(launches, poisoned):
    """Which the interpreter computes in full."""
    given = row_leaves(14, 5, 80, 17, torch.float32)
    with float32_products(tf32=True):
        assert_twins(*both(9), given, torch.float32, 1e3 if DEVICE.type == "cuda" else 1.0)
    assert "pair_mlp.out_kernel" in launches


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("number", [0, 70, 131])
def test_rows_that_are_not_there(number, dtype, poisoned):
    """What they hold counts for nothing, if it is a number."""
    given = row_leaves(131, 5, 80, 17, dtype)
    assert_twins(*both(number), given, dtype)
    total = torch.tensor(number, device=DEVICE)
    found = pair_mlp.mix_rows(given[0], *(given[1:3], given[3:5]), total, given[5])
    assert not found[number:].any()


@pytest.mark.parametrize("hidden", [64, 192])
def test_more_blocks_of_rows_than_programs(hidden, monkeypatch, poisoned):
    """Programs walk over several blocks, more or fewer than those that take turns at them."""
    monkeypatch.setattr(pair_mlp, "PROGRAMS", 1)
    monkeypatch.setattr(pair_mlp, "processors", lambda device: 2)
    given = row_leaves(9 * 64 + 5, 3, hidden, 4, torch.float32)
    assert_twins(*both(9 * 64), given, torch.float32)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("width", [64, 256])
def test_qm9_sizes_on_a_gpu(width, dtype, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    # So few rows that no ReLU is so near to zero that float32 and float64 disagree about it.
    count = (2048 if dtype != torch.float32 else 256) // width * 29 * 29
    given = row_leaves(count, 4 * width, 8 * width, width, dtype)
    with torch.no_grad():
        given = [given[0], *(x / len(x) ** 0.5 for x in given[1:5]), given[5]]
    given = [x.requires_grad_() for x in given]
    assert_twins(*both(count - 3), given, dtype, factor=3.0)
    assert "pair_mlp.back_kernel" in launches
