"""Capacities of packed batches: they hold what they say, and leave little room unused."""

import numpy as np
import pytest

from g2n2.bench import qm9_sizes
from g2n2.data.batching import row_batches
from g2n2.data.capacities import MOST, Capacity, Room, capacities, capacity_of


@pytest.mark.parametrize("batch", [32, 128])
def test_few_capacities_waste_few_rows(batch):
    sizes = qm9_sizes(5000)
    rooms = capacities(sizes, batch)
    assert 1 <= len(rooms) <= MOST
    assert list(rooms) == sorted(rooms)
    draw = np.random.default_rng(7)
    needed = held = missed = 0
    for _ in range(400):
        chosen = draw.choice(sizes, batch, replace=False)
        room = next((room for room in rooms if room.holds(chosen)), None)
        if room is None:
            missed += 1
            continue
        needed += int((chosen**2).sum())
        held += room.pairs
    assert missed <= 4
    assert held / needed - 1 < 0.05


def test_a_capacity_keeps_a_row_that_belongs_to_no_graph():
    sizes = np.array([8, 8])
    assert not Capacity(128, 16).holds(sizes)
    assert Capacity(129, 16).holds(sizes)
    assert not Capacity(500, 15).holds(sizes)
    assert capacity_of(sizes).holds(sizes)


def test_two_marks_need_rows_for_the_copies_of_the_copies():
    sizes, copies = np.array([8, 8]), np.array([[8, 64], [8, 64]])
    inner = Room(128, 1024, 8193)
    marked = Capacity(129, 16, Room(16, 128, 1025, inner))
    assert marked.holds(sizes, copies)
    for less in (Room(127, 1024, 8193), Room(128, 1023, 8193), Room(128, 1024, 8192)):
        assert not Capacity(129, 16, Room(16, 128, 1025, less)).holds(sizes, copies)
    assert capacity_of(sizes, copies) == Capacity(
        192, 64, Room(64, 128, 1088, Room(128, 1024, 8256))
    )
    rooms = capacities(np.arange(3, 20), 4, copies=np.arange(3, 20)[:, None] ** np.array([1, 2]))
    assert all(room.marked is not None and room.marked.inner is not None for room in rooms)


def test_batches_of_rows_are_cut_by_graphs_and_by_pairs():
    sizes = np.array([3, 3, 3, 10, 2, 2])
    assert [part.tolist() for part in row_batches(sizes, 2, 1000)] == [[0, 1], [2, 3], [4, 5]]
    assert [part.tolist() for part in row_batches(sizes, 9, 18)] == [[0, 1], [2], [3], [4, 5]]
    assert row_batches(sizes[:0], 2, 10) == []
