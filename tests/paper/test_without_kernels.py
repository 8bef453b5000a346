"""What stands in for kernels in `benchmarks/without_kernels.py` computes what they compute."""

import importlib.util
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from g2n2.ops.packing import Packing
from g2n2.ops.rule_kernels.spec import KernelRule
from kernel_checks import DEVICE, assert_near, drawn

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.pair_mlp import mix_rows
from g2n2.ops.pooling import packed_pools
from g2n2.ops.rule_kernels.triton import apply
from g2n2.ops.selecting import select

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "without_kernels.py"
SPEC = importlib.util.spec_from_file_location("without_kernels", SCRIPT)
plain = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(plain)

KNOWN = Packing([3, 1, 5], DEVICE, padded=False)
PACKING = Packing.within(
    torch.cat([KNOWN.sizes, KNOWN.sizes.new_zeros(1)]), 5, KNOWN.nodes + 2, KNOWN.pairs + 7
)
INDEX = PACKING.index


def compared(kernel, twin, leaves):
    """Values and gradients of both, in the rows that belong to graphs."""
    torch.manual_seed(5)
    found, wanted = ([part for part in op(*leaves) if part.requires_grad] for op in (kernel, twin))
    slopes = []
    for parts in (found, wanted):
        torch.manual_seed(6)
        total = sum((part * torch.randn_like(part)).sum() for part in parts)
        slopes.append(torch.autograd.grad(total, leaves))
    for got, want in zip((*found, *slopes[0]), (*wanted, *slopes[1]), strict=True):
        assert_near("both", got, want, torch.float32, 5.0)


def rows(count, width):
    return drawn(count, width, dtype=torch.float32)


def test_rules_on_padded_copies():
    rules = [
        KernelRule("product", (0, 3), 4, 3, 1),
        KernelRule("hadamard", (6, 8), 7, 2),
        KernelRule("diagonal", (0,), 9, 2),
        KernelRule("column", (10, 2), 0, 3, 1),
    ]
    leaves = [rows(PACKING.pairs, 4), rows(PACKING.pairs, 13), rows(PACKING.nodes, 5)]
    nodes, pairs = KNOWN.nodes, KNOWN.pairs

    def run(op):
        def on(read, matrices, vectors):
            joined, column = op(read, matrices, vectors, PACKING.scale, rules, INDEX)
            return joined[:pairs], column[:nodes], joined[pairs:, 4:], column[nodes:]

        return on

    compared(run(apply), run(plain.apply_rules), leaves)


def test_norm_and_selectors():
    leaves = [rows(7, 4), rows(1, 4), rows(6, 4)]

    def run(op):
        return lambda memory, gain, weight: op(memory, gain[0], 0.1, weight)

    compared(run(select), run(plain.select), leaves)


def test_the_mlp():
    leaves = [rows(9, 4), rows(16, 4), rows(1, 16), rows(5, 16), rows(1, 5), rows(9, 5)]

    def run(op):
        def on(x, w1, b1, w2, b2, residual):
            value = op(x, (w1, b1[0]), (w2, b2[0]), torch.tensor(9, device=DEVICE), residual)
            return (value,)

        return on

    compared(run(mix_rows), run(plain.mix_rows), leaves)
    first, second = (leaves[1], leaves[2][0]), (leaves[3], leaves[4][0])
    assert not plain.mix_rows(leaves[0], first, second, torch.tensor(6))[6:].any()


def test_pools():
    leaves = [rows(PACKING.pairs, 3), rows(PACKING.nodes, 2)]
    pools = ("off-diagonal", "nodes", "diagonal")

    def run(op):
        return lambda matrix, vector: (op(matrix, vector, INDEX, pools, 3.0),)

    compared(run(packed_pools), run(plain.packed_pools), leaves)


def test_everything_it_replaces_is_there():
    every = plain.replacements(compiled=False)
    assert len(every) == 7
    for functions in every.values():
        for name, function in functions.items():
            with patch(name, function):  # AttributeError if there is nothing of that name
                pass
