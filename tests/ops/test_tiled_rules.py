"""Products on graphs of several tiles, against the plain ones run by run."""

import pytest
import torch

from g2n2.ops import packed
from g2n2.ops.packing import Packing
from kernel_checks import DEVICE, assert_near, drawn

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops import tiled_rules as tiled

SIZES = [1, 3, 34]


def packings(has_tail):
    known = Packing(SIZES, DEVICE, padded=False)
    if not has_tail:
        return known, known
    sizes = torch.cat([known.sizes, known.sizes.new_zeros(1)])
    return known, Packing.within(sizes, 40, known.nodes + 5, known.pairs + 70)


def outcome(op, leaves, packing, rows):
    value = op(*leaves, packing, 1)
    torch.manual_seed(3)
    weight = torch.randn(rows, value.shape[1], dtype=torch.float64, device=value.device)
    return value, torch.autograd.grad((value[:rows].double() * weight).sum(), leaves)


KINDS = ("matrix_matrix", "matrix_column", "adjacency")
OTHERS = [(False, torch.float32), (True, torch.bfloat16), (False, torch.float16)]


@pytest.mark.parametrize(
    ("has_tail", "dtype"),
    [(True, torch.float32), *(pytest.param(*other, marks=pytest.mark.slow) for other in OTHERS)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_several_tiles(kind, has_tail, dtype, launches, poisoned, monkeypatch):
    monkeypatch.setattr(tiled, "INTERPRETED_TILE", 32)
    torch.manual_seed(0)
    known, packing = packings(has_tail)
    width = 5
    matrices = {"matrix_matrix": 2 * width, "matrix_column": width, "adjacency": 1}[kind]
    leaves = [drawn(packing.pairs, matrices, dtype=dtype)]
    if kind != "matrix_matrix":
        leaves.append(drawn(packing.nodes, width, dtype=dtype))
    name = "matrix_matrix" if kind == "matrix_matrix" else "matrix_column"
    rows = known.pairs if kind == "matrix_matrix" else known.nodes
    value, slopes = outcome(getattr(tiled, name), leaves, packing, rows)
    counts = [known.pairs, known.nodes]
    wide = [
        x.detach()[:count].double().requires_grad_()
        for x, count in zip(leaves, counts, strict=False)
    ]

    def plain(matrix, *rest):
        if kind == "adjacency":  # the same matrix for every channel
            matrix = matrix.expand(-1, width).contiguous()
        return getattr(packed, name)(matrix, *rest)

    expected, wanted = outcome(plain, wide, known, rows)
    assert_near("value", value[:rows], expected, dtype)
    assert not value[rows:].any(), "rows of no graph"
    for leaf, got, want in zip(leaves, slopes, wanted, strict=True):
        assert_near("gradient", got[: len(want)], want, dtype)
        assert not got[len(want) :].any(), leaf.shape
    assert f"tiled_rules.{name}_kernel" in launches
