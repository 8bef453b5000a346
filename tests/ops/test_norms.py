"""Root-mean-square normalisation of short rows against PyTorch's."""

import pytest
import torch
from torch.nn import functional

from kernel_checks import LOW, assert_twins, drawn

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.norms import triton

SMALL = 0.1


def normalised(x, gain):
    return functional.rms_norm(x, gain.shape, gain, SMALL)


def by_kernel(x, gain):
    return triton.rms_norm(x, gain, SMALL)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 9), (3, 7, 7, 16), (2, 33, 33, 5)], ids=str)
def test_kernels_give_what_pytorch_gives(shape, dtype, launches, poisoned):
    torch.manual_seed(2)
    leaves = drawn(*shape, dtype=dtype), drawn(shape[-1], dtype=dtype)
    assert_twins(by_kernel, normalised, leaves, dtype)
    assert launches == {
        "norms.forward_kernel": 1,
        "norms.backward_kernel": 1,
        "sums.column_sums_kernel": 1,
    }


def test_more_blocks_than_partial_sums(monkeypatch, poisoned):
    monkeypatch.setattr(triton, "MOST_SUMS", 2)
    torch.manual_seed(3)
    leaves = drawn(5 * triton.ROWS + 1, 6, dtype=torch.float32), drawn(6, dtype=torch.float32)
    assert_twins(by_kernel, normalised, leaves, torch.float32)


def test_rows_of_zeros_stay_zero_and_strides_do_not_matter(poisoned):
    torch.manual_seed(4)
    x = drawn(4, 6, 10, dtype=torch.float32)
    gain = drawn(5, dtype=torch.float32)

    def sliced(op):
        return lambda x, gain: op(x[..., 3:8].transpose(0, 1), gain)

    assert_twins(sliced(by_kernel), sliced(normalised), (x, gain), torch.float32)
    assert not by_kernel(torch.zeros_like(x[..., :5]), gain).any()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_qm9_sizes_on_a_gpu(dtype, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    leaves = drawn(128, 29, 29, 64, dtype=dtype), drawn(64, dtype=dtype)
    assert_twins(by_kernel, normalised, leaves, dtype, factor=3.0)
    assert sum(launches.values()) == 3
