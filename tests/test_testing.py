"""The assertions given to users: they pass on sound networks and fail on broken ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN
from g2n2.testing import (
    assert_batch_independent,
    assert_matches_reference,
    assert_padding_invariant,
    assert_permutation_equivariant,
)
from sample_batches import weighted_batch

ASSERTIONS = (assert_permutation_equivariant, assert_padding_invariant, assert_batch_independent)
FEATURES = 3


class Layer(nn.Module):
    """`[B, N, 4]` a graph convolution with a bias, masked."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(FEATURES, 4)

    def forward(self, batch: GraphBatch) -> Tensor:
        value: Tensor = self.linear(batch.nodes + batch.adjacency @ batch.nodes)
        return value * batch.mask.unsqueeze(-1)


class Pooled(Layer):
    """`[B, 4]` its sum over nodes."""

    def forward(self, batch: GraphBatch) -> Tensor:
        return super().forward(batch).sum(1)


class Pairs(Layer):
    """`[B, N, N, 4]` differences, not symmetric."""

    def forward(self, batch: GraphBatch) -> Tensor:
        value = super().forward(batch)
        pairs = batch.mask[:, :, None] & batch.mask[:, None]
        return (value.unsqueeze(2) - 2 * value.unsqueeze(1)) * pairs.unsqueeze(-1)


class PositionalWeights(Layer):
    def forward(self, batch: GraphBatch) -> Tensor:
        place = torch.arange(batch.mask.shape[1], dtype=batch.nodes.dtype)
        return super().forward(batch) * (1 + place[:, None])


class FirstNodeOnly(Layer):
    def forward(self, batch: GraphBatch) -> Tensor:
        return super().forward(batch)[:, 0]


class Transposed(Pairs):
    """Rows and columns mixed up in the upper triangle only."""

    def forward(self, batch: GraphBatch) -> Tensor:
        value = super().forward(batch)
        return value * torch.ones(value.shape[1:3], dtype=value.dtype).triu().unsqueeze(-1)


class MaskDropped(Pooled):
    def forward(self, batch: GraphBatch) -> Tensor:
        value: Tensor = self.linear(batch.nodes)
        return value.sum(1)


class BiasAtPadding(Layer):
    def forward(self, batch: GraphBatch) -> Tensor:
        value: Tensor = self.linear(batch.nodes)
        return value


class MaxOverPadding(Layer):
    """Padding is zero, so the largest of negative values is wrong."""

    def forward(self, batch: GraphBatch) -> Tensor:
        return (-super().forward(batch).abs()).amax(1)


class MeanOverPlaces(Layer):
    def forward(self, batch: GraphBatch) -> Tensor:
        return super().forward(batch).mean(1)


class BatchNorm(Pooled):
    """Mean and variance over the batch, as in training."""

    def forward(self, batch: GraphBatch) -> Tensor:
        value = super().forward(batch)
        return (value - value.mean(0)) / (value.var(0, correction=0) + 1e-5).sqrt()


class LargestOfBatch(Pooled):
    def forward(self, batch: GraphBatch) -> Tensor:
        value = super().forward(batch)
        return value / value.abs().amax()


class NotANumber(Pooled):
    """NaN for one node order only."""

    def forward(self, batch: GraphBatch) -> Tensor:
        value = super().forward(batch)
        return torch.where(batch.nodes[:, :1, 0] > 0, value, torch.nan)


@pytest.mark.parametrize("model", [Layer, Pooled, Pairs])
@pytest.mark.parametrize("check", ASSERTIONS)
def test_sound_layers_pass(
    check: Callable[[nn.Module, GraphBatch], None], model: type[nn.Module]
) -> None:
    check(model(), weighted_batch(FEATURES))


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (assert_permutation_equivariant, PositionalWeights),
        (assert_permutation_equivariant, FirstNodeOnly),
        (assert_permutation_equivariant, Transposed),
        (assert_permutation_equivariant, NotANumber),
        (assert_padding_invariant, MaskDropped),
        (assert_padding_invariant, BiasAtPadding),
        (assert_padding_invariant, MeanOverPlaces),
        (assert_batch_independent, MaskDropped),
        (assert_batch_independent, MaxOverPadding),
        (assert_batch_independent, MeanOverPlaces),
        (assert_batch_independent, BatchNorm),
        (assert_batch_independent, LargestOfBatch),
    ],
)
def test_broken_layers_fail(
    check: Callable[[nn.Module, GraphBatch], None], broken: type[nn.Module]
) -> None:
    with pytest.raises(AssertionError, match=r"outputs differ .* in graph \d"):
        check(broken().train(), weighted_batch(FEATURES))


def test_max_over_padding_needs_padding_to_show() -> None:
    """One graph without padding hides it; one place more does not."""
    one = GraphBatch.of([[[0, 1], [1, 0]]], [torch.rand(2, FEATURES)])
    assert_batch_independent(MaxOverPadding(), one)
    with pytest.raises(AssertionError, match="with 1 more places of padding"):
        assert_padding_invariant(MaxOverPadding(), one, extra=1)


def test_the_message_names_the_graph() -> None:
    """Only the graph of seven nodes is wrong."""

    def spoilt(batch: GraphBatch) -> Tensor:
        value = batch.nodes.sum(1)
        alone = len(batch) == 1
        return value + (batch.sizes == 7).unsqueeze(-1) * (1e-3 if alone else 0.0)

    with pytest.raises(AssertionError, match=r"by 0\.001 in graph 2, allowed"):
        assert_batch_independent(spoilt, weighted_batch(FEATURES))


def test_the_tolerance_is_tight() -> None:
    """A relative error of 1e-9 is too much, one of 1e-11 is not."""
    batch = weighted_batch(FEATURES)

    def off_by(error: float) -> Callable[[GraphBatch], Tensor]:
        return lambda b: b.nodes.sum(1) * (1 + error * (b.mask.shape[1] > batch.mask.shape[1]))

    assert_padding_invariant(off_by(1e-11), batch)
    with pytest.raises(AssertionError):
        assert_padding_invariant(off_by(1e-9), batch)


def test_float32_networks_are_checked_in_float64() -> None:
    model = GrammarGNN(node_features=FEATURES, width=4, layers=2)
    batch = weighted_batch(FEATURES).to(torch.float32)
    for check in ASSERTIONS:
        check(model, batch)
    assert next(model.parameters()).dtype == torch.float32


def test_matches_reference() -> None:
    x, y = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    assert_matches_reference(lambda a, b: a * b, lambda a, b: b * a, x, y)
    with pytest.raises(AssertionError, match="from the reference"):
        assert_matches_reference(lambda a, b: a * b, lambda a, b: a + b, x, y)
    with pytest.raises(AssertionError, match="gradient of input 1"):
        assert_matches_reference(lambda a, b: a * b.detach(), lambda a, b: a * b, x, y)
    assert_matches_reference(lambda a, b: a * b.detach(), lambda a, b: a * b, x, y, gradients=False)
    with pytest.raises(AssertionError, match="shape"):
        assert_matches_reference(lambda a: a[:1], lambda a: a, x)
    assert x.grad is None
    with pytest.raises(AssertionError, match="from the reference"):
        assert_matches_reference(lambda a: a * torch.nan, lambda a: a, x)
