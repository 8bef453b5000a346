"""Column sums against those of float64."""

import pytest
import torch

from kernel_checks import DEVICE, LOW, assert_near

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.sums.triton import COLUMNS, ROWS, column_sums


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(
    ("rows", "width"),
    [(1, 1), (7, 29), (ROWS, COLUMNS), (ROWS + 1, COLUMNS + 1), (3 * ROWS - 1, 2 * COLUMNS - 1)],
)
def test_sums(rows, width, dtype, launches, poisoned):
    torch.manual_seed(rows)
    given = torch.randn(rows, width, device=DEVICE)
    found = column_sums(given, dtype)
    assert_near("sums", found, given.double().sum(0), dtype)
    assert launches == {"sums.column_sums_kernel": 1}


def test_sums_run_in_float32():
    """In bfloat16 a sum of ones would stop at 256."""
    found = column_sums(torch.ones(1024, 3, device=DEVICE), torch.bfloat16)
    assert found.tolist() == [1024.0] * 3


@pytest.mark.gpu
def test_the_same_numbers_every_time_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    given = torch.randn(512, 300, device="cuda")
    first = column_sums(given, torch.float32)
    assert_near("sums", first, given.double().sum(0), torch.float32, factor=3.0)
    assert all(torch.equal(first, column_sums(given, torch.float32)) for _ in range(10))
