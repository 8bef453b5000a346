"""How products of float32 are taken, and that it is put back."""

import pytest
import torch

from g2n2.ops.precision import batched_precision, dot_precision, float32_products


def test_the_precision_of_products_is_put_back():
    before = torch.get_float32_matmul_precision()
    with float32_products(tf32=True):
        assert (dot_precision(), batched_precision()) == ("tf32", "tf32")
        with float32_products(tf32=False):
            assert (dot_precision(), batched_precision()) == ("ieee", "tf32x3")
        assert torch.get_float32_matmul_precision() == "high"
    with pytest.raises(RuntimeError), float32_products(tf32=True):
        raise RuntimeError
    assert torch.get_float32_matmul_precision() == before
