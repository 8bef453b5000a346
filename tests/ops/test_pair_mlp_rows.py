"""The two-layer MLP on rows that lie side by side already."""

import math

import pytest
import torch
from torch.nn import functional

from g2n2.ops.precision import float32_products
from kernel_checks import DEVICE, LOW, assert_twins, drawn

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.pair_mlp import rows


def on_rows(mix, flags):
    def run(x, w1, b1, w2, b2, residual):
        return mix(x, (w1, b1), (w2, b2), flags, residual)

    return run


def mixed_plainly(x, first, second, flags, residual):
    hidden = functional.relu(functional.linear(x, *first))
    value = functional.linear(hidden, *second)
    return (value if residual is None else value + residual) * flags.unsqueeze(-1)


def row_leaves(count, width, hidden, out, dtype, bias=True, residual=True):
    torch.manual_seed(9)
    return [
        drawn(*count, width, dtype=dtype),
        drawn(hidden, width, dtype=dtype),
        drawn(hidden, dtype=dtype) if bias else None,
        drawn(out, hidden, dtype=dtype),
        drawn(out, dtype=dtype) if bias else None,
        drawn(*count, out, dtype=dtype) if residual else None,
    ]


def flags_of(count):
    return (torch.arange(math.prod(count), device=DEVICE) % 3 > 0).to(torch.int8).view(count)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(
    ("count", "width", "hidden", "out", "bias", "residual"),
    [
        ((1,), 1, 16, 1, True, True),
        ((2, 7, 7), 9, 48, 5, True, True),
        ((3, 7), 16, 64, 16, False, True),
        ((2, 7), 5, 32, 17, True, False),
    ],
)
def test_rows(count, width, hidden, out, bias, residual, dtype, launches, poisoned):
    flags = flags_of(count)
    given = row_leaves(count, width, hidden, out, dtype, bias, residual)
    ops = on_rows(rows.mix_rows, flags), on_rows(mixed_plainly, flags)
    value = assert_twins(*ops, given, dtype)
    assert not value[flags == 0].any(), "rows that are not there are zero"
    ends = "pair_mlp.finish_kernel" if dtype == torch.float32 else "pair_mlp.out_kernel"
    assert {ends, "pair_mlp.back_kernel"} <= set(launches)
    assert launches["sums.column_sums_kernel"] == 1 + bias


def test_tensor_cores_take_float32_in_tf32(launches, poisoned):
    """Which the interpreter computes in full."""
    flags, given = flags_of((2, 7)), row_leaves((2, 7), 5, 80, 17, torch.float32)
    ops = on_rows(rows.mix_rows, flags), on_rows(mixed_plainly, flags)
    with float32_products(tf32=True):
        assert_twins(*ops, given, torch.float32, 1e3 if DEVICE.type == "cuda" else 1.0)
    assert "pair_mlp.out_kernel" in launches


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("number", [0, 70, 131])
def test_rows_that_are_counted(number, dtype, poisoned):
    """The first ones are there; what the others hold counts for nothing, if it is a number."""
    count, total = 131, torch.tensor(number, device=DEVICE)
    flags = (torch.arange(count, device=DEVICE) < number).to(torch.int8)
    given = row_leaves((count,), 5, 80, 17, dtype)

    def counted(mix, flags):
        run = on_rows(mix, flags)
        return lambda *given: run(*given)[:number]

    assert_twins(counted(rows.mix_rows, total), counted(mixed_plainly, flags), given, dtype)
    assert not rows.mix_rows(given[0], *(given[1:3], given[3:5]), total, given[5])[number:].any()


@pytest.mark.parametrize("hidden", [64, 192])
def test_more_blocks_of_rows_than_programs(hidden, monkeypatch, poisoned):
    """Programs walk over several blocks, more or fewer than those that take turns at them."""
    monkeypatch.setattr(rows, "PROGRAMS", 1)
    monkeypatch.setattr(rows, "processors", lambda device: 2)
    count = (9 * 64 + 5,)
    flags = flags_of(count)
    ops = on_rows(rows.mix_rows, flags), on_rows(mixed_plainly, flags)
    assert_twins(*ops, row_leaves(count, 3, hidden, 4, torch.float32), torch.float32)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("width", [64, 256])
def test_qm9_sizes_on_a_gpu(width, dtype, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    # So few rows that no ReLU is so near to zero that float32 and float64 disagree about it.
    count = (2048 // width, 29, 29) if dtype != torch.float32 else (256 // width, 29, 29)
    flags = flags_of(count)
    given = row_leaves(count, 4 * width, 8 * width, width, dtype)
    with torch.no_grad():
        given = [given[0], *(x / len(x) ** 0.5 for x in given[1:5]), given[5]]
    ops = on_rows(rows.mix_rows, flags), on_rows(mixed_plainly, flags)
    assert_twins(*ops, [x.requires_grad_() for x in given], dtype, factor=3.0)
    assert "pair_mlp.back_kernel" in launches
