"""Sums over nodes and pairs of packed graphs, against the plain ones."""

import pytest
import torch

from g2n2.ops import packed
from g2n2.ops.packing import Packing
from kernel_checks import DEVICE, LOW, assert_near, drawn

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops import pooling

POOLS = ("off-diagonal", "nodes", "diagonal")
UNIT = 3.0


def plain(matrix, vector, packing):
    """The same by `ops.packed` and a loop over graphs."""
    diagonal, rest = packed.pair_sums(matrix, packing)
    nodes = torch.stack([part.sum(0) for part in vector.split(packing.sizes.tolist())])
    return torch.cat([rest / UNIT**2, nodes / UNIT, diagonal / UNIT], dim=1)


def check(sizes, widths, dtype, factor=1.0):
    """Sums are float32 whatever the memory is; its gradient has its own dtype."""
    torch.manual_seed(8)
    known = Packing(sizes, DEVICE, padded=False)
    counts = torch.cat([known.sizes, known.sizes.new_zeros(1)])
    packing = Packing.within(counts, known.most, known.nodes + 5, known.pairs + 70)
    rows = [(packing.pairs, known.pairs), (packing.nodes, known.nodes)]
    leaves = [drawn(n, w, dtype=dtype) for (n, _), w in zip(rows, widths, strict=True)]
    wide = [
        x.detach()[:n].double().requires_grad_() for x, (_, n) in zip(leaves, rows, strict=True)
    ]
    found = pooling.packed_pools(*leaves, packing.index, POOLS, UNIT)
    expected = plain(*wide, known)
    assert_near("sum", found[:-1], expected, torch.float32, 5 * factor)
    assert not found[-1].any(), "an empty graph"
    weights = torch.randn(expected.shape, device=DEVICE)
    slopes = torch.autograd.grad((found[:-1] * weights).sum(), leaves)
    wanted = torch.autograd.grad((expected * weights).sum(), wide)
    for got, want in zip(slopes, wanted, strict=True):
        assert_near("gradient", got[: len(want)], want, dtype, factor)
        assert not got[len(want) :].any(), "rows of no graph"


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("widths", [(1, 16), (21, 5)])
def test_kernels_give_the_sums(widths, dtype, launches, poisoned):
    check([1, 7, 4], widths, dtype)
    assert launches == {"pooling.pool_kernel": 1, "pooling.pool_spread_kernel": 1}


def test_graphs_of_more_pairs_than_a_program_takes_at_once(poisoned):
    check([17, 29], (5, 3), torch.float32)


def test_counted_by_hand():
    """Ones on the diagonal, tens beside it."""
    packing = Packing([3, 5], DEVICE, padded=False)
    rows = torch.full((packing.pairs, 3), 10.0, device=DEVICE)
    rows[packing.diagonal] = 1.0
    for diagonal, beside in (
        packed.pair_sums(rows, packing),
        pooling.packed_sums(rows, packing.index),
    ):
        assert diagonal.tolist() == [[3.0] * 3, [5.0] * 3]
        assert beside.tolist() == [[60.0] * 3, [200.0] * 3]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_qm9_sizes_on_a_gpu(dtype, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    check(torch.randint(4, 30, (128,)).tolist(), (64, 64), dtype, factor=3.0)
