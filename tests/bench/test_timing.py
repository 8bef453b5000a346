"""Clocks and memory, on things whose time and size are known."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from g2n2.bench import timing
from g2n2.bench.precision import bandwidth, peak_tflops
from g2n2.bench.timing import Effort, PeakMemory, measure, times_slower

CPU = torch.device("cpu")


class Clock:
    """A clock that only its own sleeping moves: what a machine does beside it changes nothing."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    return clock


def test_a_pass_that_sleeps_takes_at_least_as_long():
    """By the machine's own clock, which may be late but never early."""
    assert measure(lambda: time.sleep(0.02), CPU, Effort(repeats=3, seconds=0.0)).least >= 0.02


def test_the_median_and_the_spread_are_of_the_repeats(clock):
    lasting = iter([0.01, 0.02, 0.02, 0.05, 0.03])
    taken = measure(lambda: clock.sleep(next(lasting)), CPU, Effort(repeats=5, seconds=0.0))
    assert (taken.least, taken.seconds, taken.most) == pytest.approx((0.01, 0.02, 0.05))
    assert taken.spread == pytest.approx(2.0)


def test_short_passes_are_taken_many_times(clock):
    calls = []

    def action():
        calls.append(1)
        clock.sleep(0.001)

    taken = measure(action, CPU, Effort(repeats=3, seconds=0.01))
    assert len(calls) == 1 + 3 * 10
    assert taken.repeats == 3
    assert taken.seconds == pytest.approx(0.001)


def test_a_long_measurement_ends_in_time(clock):
    effort = Effort(repeats=1000, seconds=0.0, most=0.2)
    assert measure(lambda: clock.sleep(0.06), CPU, effort).repeats == 1 + 4


def test_ratios_are_of_passes_taken_in_turns(clock):
    """The machine becomes slower with every round; the ratio does not change."""
    slow, calls = [1.0], []

    def sleep(seconds, name):
        calls.append(name)
        clock.sleep(seconds * slow[0])
        if calls.count("ours") == calls.count("theirs"):
            slow[0] += 1.0

    ours, theirs = lambda: sleep(0.008, "ours"), lambda: sleep(0.011, "theirs")
    assert times_slower(ours, theirs, CPU, rounds=3) == pytest.approx(11 / 8)
    assert calls == ["theirs", "ours", *["ours", "theirs"] * 3]
    assert times_slower(theirs, ours, CPU, rounds=3) == pytest.approx(8 / 11)


def test_the_quicker_one_is_taken_more_often_in_a_round(clock):
    calls = []

    def sleep(seconds, name):
        calls.append(name)
        clock.sleep(seconds)

    ours, theirs = lambda: sleep(0.01, "ours"), lambda: sleep(0.03, "theirs")
    assert times_slower(ours, theirs, CPU, rounds=2) == pytest.approx(3.0)
    assert calls[2:] == ["ours", "ours", "ours", "theirs"] * 2


def test_the_peak_of_memory_sees_what_was_freed_again():
    memory = PeakMemory(CPU)
    before = memory.bytes()
    np.ones(64 * 2**20 // 8)
    large = np.ones(256 * 2**20 // 8)
    del large
    assert memory.bytes() - before > 200 * 2**20


def test_peaks_are_those_of_a_product_and_a_copy():
    brief = Effort(repeats=2, seconds=0.0)
    assert 0 < peak_tflops("32", CPU, 128, brief) < 100
    assert 1e8 < bandwidth(CPU, 8, brief) < 1e13
