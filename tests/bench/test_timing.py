"""Clocks and memory, on things whose time and size are known."""

import time

import numpy as np
import pytest
import torch

from g2n2.bench.precision import bandwidth, peak_tflops
from g2n2.bench.timing import Effort, PeakMemory, measure, times_slower

CPU = torch.device("cpu")


def test_a_pass_that_sleeps_takes_as_long():
    timing = measure(lambda: time.sleep(0.02), CPU, Effort(repeats=3, seconds=0.0))
    assert 0.02 <= timing.least <= timing.seconds <= timing.most
    assert timing.seconds < 0.2
    assert timing.spread == pytest.approx((timing.most - timing.least) / timing.seconds)


def test_short_passes_are_taken_many_times():
    calls = []
    timing = measure(lambda: calls.append(1), CPU, Effort(repeats=3, seconds=0.01))
    assert len(calls) > 100
    assert timing.repeats == 3


def test_a_long_measurement_ends_in_time():
    timing = measure(lambda: time.sleep(0.05), CPU, Effort(repeats=1000, seconds=0.0, most=0.2))
    assert timing.repeats < 10


def test_ratios_are_of_passes_taken_in_turns():
    """The machine becomes slower with every pass of theirs; the ratio does not change."""
    slow, calls = [1.0], []

    def sleep(seconds, name):
        calls.append(name)
        time.sleep(seconds * slow[0])
        if name == "theirs":
            slow[0] += 1.0

    ours, theirs = lambda: sleep(0.008, "ours"), lambda: sleep(0.012, "theirs")
    assert times_slower(ours, theirs, CPU, rounds=3) == pytest.approx(1.5, rel=0.2)
    assert calls[2:].count("theirs") == 3
    assert times_slower(theirs, ours, CPU, rounds=3) == pytest.approx(1 / 1.5, rel=0.3)


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
