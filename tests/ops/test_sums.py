"""Sums and means by kernels against those of PyTorch."""

import pytest
import torch

from g2n2.ops.packing import Packing
from kernel_checks import DEVICE, LOW, assert_near

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.sums import COLUMNS, ROWS, column_sums, graph_means


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


@pytest.mark.parametrize("tail", [0, 600])
def test_means_over_the_pairs_of_graphs(tail, launches, poisoned):
    """With one of more pairs than are summed at a time, and one of none."""
    sizes = torch.tensor([3, 1, 0, 25], device=DEVICE)
    pairs = int(sizes.square().sum()) + tail
    packing = Packing.within(sizes, 25, 29 + tail, pairs)
    packing.has_tail = tail > 0
    values = torch.randn(pairs, 1, device=DEVICE)
    values[pairs - tail :] = torch.nan
    found = graph_means(values, packing.index, 7.0)
    assert launches == {"sums.graph_means_kernel": 1}
    parts = values[: pairs - tail].split([9, 1, 0, 625])
    expected = torch.cat(
        [part.mean(0, keepdim=True).expand_as(part) for part in parts if len(part)]
    )
    torch.testing.assert_close(found[: pairs - tail], expected, rtol=1e-5, atol=1e-6)
    assert (found[pairs - tail :] == 7.0).all()
    torch.testing.assert_close(packing.means(values, 7.0), found, rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
def test_the_same_numbers_every_time_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    given = torch.randn(512, 300, device="cuda")
    first = column_sums(given, torch.float32)
    assert_near("sums", first, given.double().sum(0), torch.float32, factor=3.0)
    assert all(torch.equal(first, column_sums(given, torch.float32)) for _ in range(10))
