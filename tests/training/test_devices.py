"""What the errors of devices mean."""

from __future__ import annotations

import pytest
import torch

from g2n2.errors import DataError, MemoryBudgetError
from g2n2.training.devices import make_fabric, out_of_memory
from small_runs import small_config


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (MemoryError(), True),
        (MemoryBudgetError("8 graphs need about 3 GiB"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_out_of_memory_is_told_from_other_errors(error: Exception, expected: bool) -> None:
    assert out_of_memory(error) is expected


def test_a_cpu_says_it_in_words() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert out_of_memory(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(DataError, match="device cuda was asked for"):
        make_fabric(small_config(device="cuda"))


def test_threads_are_those_asked_for() -> None:
    before = torch.get_num_threads()
    make_fabric(small_config(threads=2))
    try:
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
