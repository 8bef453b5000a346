"""Counts of work, as literal numbers and against torch's own counter."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from g2n2.bench import work
from g2n2.bench.cases import Case
from g2n2.bench.molecules import sparse
from g2n2.data.store import GraphStore
from g2n2.nn import GrammarGNN


def test_a_molecule_of_18_atoms_is_the_literal_number():
    # 324 pairs × 2(5·64² + 3·64·512 + 512·64 + 18·64)
    assert work.useful_flops(np.array([18]), 64, 1, training=False) == 98_952_192
    assert work.useful_flops(np.array([18, 18]), 64, 3, training=True) == 2 * 9 * 98_952_192


def test_padding_does_not_count():
    small, large = np.array([5]), np.array([20])
    both = work.useful_flops(np.array([5, 20]), 64, 3, training=True)
    assert both == sum(work.useful_flops(s, 64, 3, training=True) for s in (small, large))


def test_torch_counts_the_same_work_in_the_reference():
    """torch also counts the vector updates, the read-out and S more inputs for diag."""
    width, nodes = 32, 24
    batch = GraphStore(sparse(1, nodes)).batch(np.array([0]))
    model = GrammarGNN("r-G_L3", width=width, layers=2, preset="paper", backend="reference")
    deep = GrammarGNN("r-G_L3", width=width, layers=4, preset="paper", backend="reference")
    counts = []
    for network in (model, deep):  # the difference leaves out the first layer and the read-out
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            network(batch)
        counts.append(counter.get_total_flops())
    counted = counts[1] - counts[0]
    ours = work.useful_flops(np.array([nodes]), width, 2, training=False)
    diag = 2 * 2 * nodes**2 * width * 8 * width
    assert ours + diag == pytest.approx(counted, rel=0.05)


def test_a_fused_layer_of_width_64_is_bound_by_arithmetic_on_a_modern_card():
    assert work.intensity(64, 18, "bf16") == pytest.approx(298.25)
    assert work.intensity(64, 18, "bf16") > 790e12 / 4.3e12


def test_a_hidden_layer_is_that_of_the_network():
    # 2 graphs padded to 5 nodes; the mixers of r-G_L3 are twice as wide as their 4S inputs
    case = Case("x", "y", width=8, precision="32")
    units = GrammarGNN("r-G_L3", width=8, layers=2, preset="paper").layers[1].updates["M"].mixer[0]
    assert work.hidden_bytes(case, np.array([3, 5])) == 2 * 25 * units.out_features * 4 == 12_800


def test_the_baseline_grows_with_the_square_of_the_batch():
    sizes = np.full(64, 18)
    small, large = (Case("x", "y", batch=batch) for batch in (32, 64))
    assert work.block_diagonal_bytes(large, sizes) == 4 * work.block_diagonal_bytes(small, sizes)
    # 12 matrices of 64 channels for 576 nodes, two bytes each
    assert work.block_diagonal_bytes(small, sizes) == 12 * 64 * 576**2 * 2
