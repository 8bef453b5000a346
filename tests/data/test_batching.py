"""Batches: every graph once, a pure function of seed and epoch, sorted by size where asked for."""

import numpy as np
import pytest

from g2n2.data.batching import epoch_batches, ordered_batches

QM9_MEAN, QM9_DEVIATION, QM9_LEAST, QM9_MOST = 18.03, 2.94, 3, 29


def qm9_like_sizes(count):
    """Sizes with the mean, deviation and range of QM9's molecules."""
    drawn = np.random.default_rng(0).normal(QM9_MEAN, QM9_DEVIATION, count)
    return np.clip(np.round(drawn), QM9_LEAST, QM9_MOST).astype(np.int64)


def test_large_graphs_are_evaluated_in_smaller_batches():
    sizes = np.array([3, 620, 3, 10, 10, 300, 3, 3])
    found = [sizes[b].tolist() for b in ordered_batches(sizes, 3, entries=250)]
    assert found == [[3, 3, 3], [3, 10], [10], [300], [620]]
    assert [len(b) for b in ordered_batches(sizes, 3)] == [3, 3, 2]
    assert ordered_batches(np.array([], dtype=np.int64), 3, 300) == []


def batches_of(sizes, batch, seed, epoch, window=1):
    return epoch_batches(sizes, batch, seed, epoch, window)


@pytest.mark.parametrize("window", [1, 8])
@pytest.mark.parametrize(("count", "batch"), [(1, 4), (7, 4), (64, 4), (1003, 8), (5000, 16)])
def test_every_graph_once_and_at_most_one_batch_not_full(count, batch, window):
    sizes = qm9_like_sizes(count)
    batches = batches_of(sizes, batch, 3, 2, window)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    assert sum(len(b) < batch for b in batches) <= 1
    assert max(len(b) for b in batches) <= batch
    assert sorted(np.concatenate(ordered_batches(sizes, batch)).tolist()) == list(range(count))


def test_order_is_a_pure_function_of_seed_and_epoch():
    sizes = qm9_like_sizes(500)

    def order(seed, epoch):
        return [b.tolist() for b in batches_of(sizes, 16, seed, epoch)]

    first = order(1, 5)
    np.random.default_rng().random()
    np.random.seed(99)
    assert order(1, 5) == first
    assert order(1, 6) != first
    assert order(2, 5) != first


def test_graphs_meet_others_in_every_epoch():
    sizes = qm9_like_sizes(4000)
    mates = [
        {b for batch in batches_of(sizes, 16, 0, epoch) if 0 in batch for b in batch.tolist()}
        for epoch in range(2)
    ]
    assert mates[0] != mates[1]


def test_a_small_set_is_not_sorted_as_a_whole():
    """Two classes of two sizes: a batch of one class alone would be rare by chance, and is."""
    sizes = np.repeat([10, 20], 94)
    batches = [b for epoch in range(20) for b in batches_of(sizes, 32, 0, epoch)]
    pure = [len(set(sizes[b].tolist())) == 1 for b in batches if len(b) == 32]
    assert not any(pure)


def test_a_window_sorts_by_size_and_batches_are_random_without():
    sizes = qm9_like_sizes(3200)
    spread = [sizes[b].std() for b in batches_of(sizes, 32, 0, 0)]
    assert np.mean(spread) > 0.9 * sizes.std()
    spread = [sizes[b].std() for b in batches_of(sizes, 32, 0, 0, window=16)]
    assert np.mean(spread) < 0.2 * sizes.std()


def test_batches_by_chance_do_not_look_at_sizes():
    """The largest graph is in the short last batch as often as any other."""
    sizes, epochs = np.arange(1, 901), 400
    short = 0
    for epoch in range(epochs):
        batches = epoch_batches(sizes, 32, 0, epoch, 1)
        assert sorted(map(len, batches)) == [4] + [32] * 28
        assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(900))
        short += 899 in min(batches, key=len)
    assert 0 <= short <= 12, "expected 400 times 4 of 900, about 2"
