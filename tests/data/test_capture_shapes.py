"""The few shapes that serve batches drawn by chance."""

import numpy as np
import pytest

from g2n2.data.batching import epoch_batches
from g2n2.data.capture_shapes import LAUNCH, MOST, capture_shapes, cost, holds
from g2n2.data.size_buckets import SizeBucket


def skewed(count, mean=40, seed=0):
    return np.random.default_rng(seed).geometric(1 / mean, count).astype(np.int64) + 3


def batches(sizes, batch, count=300, seed=7):
    """Those of epochs, the last of each filled up with the smallest graph of the set."""
    epochs = -(-count * batch // len(sizes))
    for epoch in range(epochs):
        for chosen in epoch_batches(sizes, batch, seed, epoch, 1):
            drawn = np.sort(sizes[chosen])[::-1]
            yield np.concatenate([drawn, np.full(batch - len(drawn), sizes.min())])


@pytest.mark.parametrize("batch", [1, 2, 7, 32, 128])
@pytest.mark.parametrize("count", [5, 40, 1000])
def test_every_batch_fits_one_of_few(batch, count):
    sizes = skewed(count)
    shapes = capture_shapes(sizes, batch)
    assert 1 <= len(shapes) <= MOST
    assert [cost(s) for s in shapes] == sorted(cost(s) for s in shapes)
    for shape in shapes:
        assert [shape[0].start, *(p.end for p in shape)] == [*(p.start for p in shape), batch]
        assert all(p.end > p.start and p.width <= sizes.max() for p in shape)
    for drawn in batches(sizes, batch):
        assert any(holds(shape, drawn) for shape in shapes)
    ranked = np.sort(sizes)[::-1][:batch]
    worst = np.concatenate([ranked, np.full(batch - len(ranked), sizes.min())])
    assert holds(shapes[-1], worst), "no batch of the set is larger than its largest graphs"


def test_a_shape_holds_what_is_no_larger_anywhere():
    shape = (SizeBucket(0, 1, 50), SizeBucket(1, 4, 20))
    assert holds(shape, np.array([50, 20, 20, 3]))
    assert not holds(shape, np.array([51, 20, 20, 3]))
    assert not holds(shape, np.array([50, 21, 20, 3]))


def test_shapes_save_most_of_the_padding():
    """Against one shape for all, which is the whole batch as wide as the largest graph."""
    sizes, batch = skewed(1000), 32
    shapes = capture_shapes(sizes, batch)
    paid = [next(cost(s) for s in shapes if holds(s, b)) for b in batches(sizes, batch)]
    whole = [LAUNCH + batch * int(b[0]) ** 2 for b in batches(sizes, batch)]
    assert np.mean(paid) < 0.5 * np.mean(whole)


def test_graphs_of_one_size_have_one_shape():
    assert capture_shapes(np.full(100, 9), 32) == ((SizeBucket(0, 32, 9),),)
