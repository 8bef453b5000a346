"""Size buckets."""

import numpy as np
import pytest

from g2n2.data.size_buckets import (
    LEAST_ENTRIES,
    MOST_WORK,
    largest_first,
    padded_width,
    size_buckets,
)


@pytest.mark.parametrize(
    ("nodes", "width"), [(1, 1), (29, 29), (32, 32), (33, 36), (64, 64), (65, 72), (620, 640)]
)
def test_widths_are_exact_while_small_and_few_beyond(nodes, width):
    assert padded_width(nodes, 1000) == width
    assert padded_width(nodes, nodes) == nodes, "never wider than the largest graph"


def test_one_large_graph_does_not_pad_all_others():
    sizes = np.array([620] + [40] * 31)
    found = size_buckets(sizes, 620)
    assert [(p.start, p.end, p.width) for p in found] == [(0, 1, 620), (1, 32, 64)]


@pytest.mark.parametrize(
    "sizes",
    [
        [300] * 32,  # nothing to save
        [64] + [8] * 31,  # light: bound by launching kernels
        [620],
    ],
)
def test_a_batch_stays_whole_where_pieces_save_little(sizes):
    (found,) = size_buckets(np.array(sizes), max(sizes))
    assert (found.start, found.end) == (0, len(sizes))


def test_pieces_hold_every_graph_once_and_are_wide_enough():
    random = np.random.default_rng(0)
    shapes = set()
    for _ in range(300):
        count = int(random.integers(1, 200))
        sizes = np.sort(random.geometric(1 / 60, count) + 3)[::-1]
        most = int(sizes[0]) + int(random.integers(0, 50))
        found = size_buckets(sizes, most)
        assert [found[0].start, *(p.end for p in found)] == [*(p.start for p in found), count]
        assert all(p.end > p.start for p in found)
        assert all(sizes[p.start] <= p.width <= most for p in found)
        if len(found) > 1:
            whole = count * padded_width(int(sizes[0]), most) ** 2
            assert whole >= LEAST_ENTRIES
            assert sum(p.entries for p in found) <= MOST_WORK * whole
        shapes.add(len(found))
    assert shapes >= {1, 3, 4}


def test_falling_puts_the_largest_first_and_keeps_the_order_of_equals():
    sizes = np.array([5, 9, 5, 7, 9])
    assert largest_first(np.array([0, 1, 2, 4]), sizes).tolist() == [1, 4, 0, 2]
