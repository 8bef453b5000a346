"""Clocks and memory: repeated passes with the median and the spread, and the peak of memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch


@dataclass(frozen=True)
class Timing:
    """Seconds of one pass.

    Attributes:
        seconds: The median of the repeats.
        least: Of the quickest repeat.
        most: Of the slowest.
        repeats: How many there were.
    """

    seconds: float
    least: float
    most: float
    repeats: int

    @property
    def spread(self) -> float:
        """From quickest to slowest, in parts of the median."""
        return (self.most - self.least) / self.seconds


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        repeats: Of which the median is taken.
        seconds: A repeat lasts at least so long: short passes are taken many times.
        most: No further repeat once a measurement has taken so long.
    """

    repeats: int = 5
    seconds: float = 0.15
    most: float = 6.0


def measure(action: Callable[[], object], device: torch.device, effort: Effort) -> Timing:
    """Time passes of an action that has run before, so that nothing is compiled now."""
    first = _seconds(action, device, 1)
    passes = max(1, round(effort.seconds / max(first, 1e-9)))
    taken = [first] if passes == 1 else []
    start = time.perf_counter()
    while len(taken) < effort.repeats and time.perf_counter() - start < effort.most:
        taken.append(_seconds(action, device, passes))
    return Timing(median(taken), min(taken), max(taken), len(taken))


def times_slower(
    ours: Callable[[], object], theirs: Callable[[], object], device: torch.device, rounds: int
) -> float:
    """How many times longer a pass of theirs takes: the median of rounds in which both take turns.

    A machine that others use is slow for seconds at a time; within a round it is so for both. Each
    has about the same time in a round.
    """
    guess = _seconds(theirs, device, 1) / _seconds(ours, device, 1)
    many, few = max(1, round(guess)), max(1, round(1 / guess))
    ratios = []
    for _ in range(rounds):
        mine = _seconds(ours, device, many)
        ratios.append(_seconds(theirs, device, few) / mine)
    return median(ratios)


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _seconds(action: Callable[[], object], device: torch.device, passes: int) -> float:
    synchronise(device)
    start = time.perf_counter()
    for _ in range(passes):
        action()
    synchronise(device)
    return (time.perf_counter() - start) / passes


class PeakMemory:
    """The most memory taken since it was made: of the GPU, or of the whole process on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
            return
        with suppress(OSError):  # then it is the peak of the process's life, which is no less
            Path("/proc/self/clear_refs").write_text("5")

    def bytes(self) -> int:
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_reserved(self.device))
        try:
            lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
        found = (line.split()[1] for line in lines if line.startswith("VmHWM"))
        whole_life = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return 1024 * int(next(found, whole_life))


def device_memory(device: torch.device) -> int:
    """Memory that is free for a case."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return 1024 * next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable"))
    except (OSError, StopIteration):
        from ..nn.memory import device_memory as whole

        return whole(device)
