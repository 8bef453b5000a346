"""Clocks and memory, on things whose time and size are known."""

import time

import numpy as np
import pytest
import torch

from g2n2.bench.precision import bandwidth, peak_tflops
from g2n2.bench.timing import Effort, PeakMemory, measure

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
