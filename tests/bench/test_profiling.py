"""Which part of a step a kernel belongs to."""

import pytest

from g2n2.bench.profiling import REST, part_of, shares


@pytest.mark.parametrize(
    ("kernel", "part"),
    [
        ("nvjet_sm90_tst_160x128_64x5_1x2_h_bz_TNN", "library products"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int>", "library products"),
        ("entries_back_kernel", "rules: products and entries"),
        ("back_kernel", "edges of the MLP"),
        ("backward_kernel", "norms and pooling"),
        ("step_kernel", "optimiser, clipping, average"),
        ("void at::native::_scatter_gather_elementwise_kernel<128>", "gathering the batch"),
        ("void at::native::vectorized_elementwise_kernel<4>", REST),
    ],
)
def test_kernels_belong_to_parts(kernel, part):
    assert part_of(kernel) == part


def test_shares_are_of_all_kernel_time():
    found = shares([("nvjet_a", 30.0), ("nvjet_b", 20.0), ("product_kernel", 40.0), ("x", 10.0)])
    assert found["library products"] == pytest.approx(0.5)
    assert found["rules: products and entries"] == pytest.approx(0.4)
    assert found[REST] == pytest.approx(0.1)
    assert sum(found.values()) == pytest.approx(1.0)
