"""Contributions: those of an additive function exactly, a sum that is complete, and the check."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from g2n2 import GrammarGNN, GraphBatch
from g2n2.nn.contributions import (
    AverageInput,
    hiding_effects,
    integrated_gradients,
    rank_correlation,
)

torch.manual_seed(0)
BATCH = GraphBatch.of(
    ["D~{", "C^", "Bw"],
    nodes=[torch.randn(n, 3) for n in (5, 4, 3)],
    edges=[torch.randn(n, n, 2) for n in (5, 4, 3)],
    dtype=torch.float64,
)
FIRST = torch.zeros(3, dtype=torch.long)


class Additive(nn.Module):
    """The sum of w·x over nodes and of u·e over bonded pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = torch.tensor([1.0, -2.0, 0.5]).double(), torch.tensor([3.0, 1.0]).double()

    def forward(self, batch: GraphBatch) -> Tensor:
        pairs = (batch.edges @ self.u) * (batch.adjacency != 0)
        return (batch.nodes @ self.w).sum(1, keepdim=True) + pairs.sum((1, 2))[:, None]


def test_an_additive_function_is_taken_apart_exactly() -> None:
    average, model = AverageInput.of([BATCH]), Additive()
    found = integrated_gradients(model, BATCH, FIRST, average)
    mean = BATCH.nodes[BATCH.mask].mean(0)
    expected = ((BATCH.nodes - mean) @ model.w) * BATCH.mask
    torch.testing.assert_close(found.nodes, expected)
    bonded = BATCH.adjacency != 0
    change = (BATCH.edges - BATCH.edges[bonded].mean(0)) @ model.u
    torch.testing.assert_close(found.pairs, change * bonded)
    effects = hiding_effects(model, BATCH, FIRST, average)
    torch.testing.assert_close(found.of_hiding, effects)


class Squares(nn.Module):
    def forward(self, batch: GraphBatch) -> Tensor:
        return batch.nodes.square().sum((1, 2))[:, None]


def test_the_integral_is_exact_where_slopes_are_linear() -> None:
    """From m to x, x² adds x² − m²: midpoints give that however few they are."""
    average = AverageInput.of([BATCH])
    found = integrated_gradients(Squares(), BATCH, FIRST, average, steps=2)
    mean = BATCH.nodes[BATCH.mask].mean(0)
    expected = (BATCH.nodes.square() - mean.square()).sum(-1) * BATCH.mask
    torch.testing.assert_close(found.nodes, expected)


@pytest.mark.parametrize("features", [True, False])
def test_contributions_add_up_to_the_change_of_the_output(features: bool) -> None:
    options = {"node_features": 3, "edge_features": 2} if features else {}
    batch = BATCH if features else GraphBatch.of(["D~{", "C^", "Bw"], dtype=torch.float64)
    torch.manual_seed(0)
    model = GrammarGNN("r-G_L3", width=6, layers=2, out=2, **options).double().eval()
    average = AverageInput.of([batch])
    second = torch.ones(3, dtype=torch.long)
    found = integrated_gradients(model, batch, second, average, steps=50)
    with torch.no_grad():
        start = model(replace(batch, **average.like(batch)))
        change = (model(batch) - start)[:, 1]
    total = found.nodes.sum(1) + found.pairs.sum((1, 2))
    torch.testing.assert_close(total, change, rtol=0.02, atol=0.02)
    assert change.abs().max() > 0.05


def test_nodes_that_are_alike_add_alike_and_order_does_not_matter() -> None:
    model = GrammarGNN("r-G_L3", width=6, layers=2).double().eval()
    star = GraphBatch.of(["Bg", "Bw"], dtype=torch.float64)  # a path of 3 and a triangle
    found = integrated_gradients(model, star, FIRST[:2], AverageInput.of([star]))
    sums = found.of_hiding
    ends = [i for i in range(3) if star.adjacency[0, i].sum() == 1]
    torch.testing.assert_close(sums[0, ends[0]], sums[0, ends[1]])
    torch.testing.assert_close(sums[1], sums[1, :1].expand(3))


def test_rank_correlation_is_spearmans() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(0)
    for _ in range(5):
        one, other = random.integers(0, 6, 20).astype(float), random.normal(size=20)
        expected = stats.spearmanr(one, other).statistic
        assert rank_correlation(one, other) == pytest.approx(expected)
    assert np.isnan(rank_correlation(np.ones(4), np.arange(4.0)))
