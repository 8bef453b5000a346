"""Estimates of memory against what a pass really takes, and the limits they are compared with."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest
import torch

from cases import UNMARKED
from forked import in_fork
from g2n2.grammars.catalogue import find_grammar
from g2n2.nn import memory_budget
from g2n2.nn.model import GrammarGNN
from measured_pass import ratio

PRESETS = ("modern", "paper")
STEP = """
import resource
import torch
from g2n2 import GrammarGNN
n = 50_000
ring = torch.arange(n)
ends = torch.stack([torch.cat([ring, (ring + 1) % n]), torch.cat([(ring + 1) % n, ring])])
model = GrammarGNN("GNNML1", node_features=1, width=8, layers=2, task="node")
held = int(next(line for line in open("/proc/self/status") if "VmSize" in line).split()[1]) * 1024
limit = held + 4 * n**2 // 8
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
model(torch.ones(n, 1), ends).sum().backward()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_the_estimate_is_within_twice_of_what_a_pass_takes() -> None:
    assert 0.5 < in_fork(Path(), ratio, "r-G_L3", "modern", "cpu", "train", 200) < 2


def test_marks_drawn_in_training_are_those_whose_copies_count() -> None:
    one, drawn, every = (
        GrammarGNN("r-G_L3Σ", width=8, layers=1, marks=marks) for marks in (1, 4, "all")
    )
    least, some, most = (memory_budget.estimate(model, 2, 16) for model in (one, drawn, every))
    assert (some, most) == (4 * least, 16 * least)
    asleep = [memory_budget.estimate(model, 2, 16, training=False) for model in (drawn, every)]
    assert asleep[0] == asleep[1], "all are marked in predictions"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("name", "preset", "mode"),
    [
        (name, *kind)
        for name, kind in zip(
            list(UNMARKED)[::3],
            cycle([*((p, "train") for p in PRESETS), ("modern", "eval")]),
            strict=False,
        )
    ],
)
def test_the_estimate_of_other_grammars_is_within_twice(name: str, preset: str, mode: str) -> None:
    assert 0.5 < in_fork(Path(), ratio, name, preset, "cpu", mode, 200) < 2


@pytest.mark.gpu
@pytest.mark.parametrize("name", UNMARKED)
@pytest.mark.parametrize(("preset", "mode"), [*((p, "train") for p in PRESETS), ("modern", "eval")])
def test_the_estimate_is_within_twice_on_a_gpu(name: str, preset: str, mode: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU is there")
    assert 0.5 < in_fork(Path(), ratio, name, preset, "cuda", mode, 800) < 2


@pytest.mark.gpu
def test_what_others_hold_of_a_gpu_is_not_free() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU is there")
    device = torch.device("cuda", 0)
    before = memory_budget.available_memory(device)
    held = torch.empty(2**30, dtype=torch.uint8, device=device)
    assert memory_budget.available_memory(device) <= before - held.nbytes
    del held  # torch keeps it for what comes next
    assert memory_budget.available_memory(device) >= before - 2**26


def test_memory_of_a_sparse_adjacency_grows_with_the_nodes() -> None:
    network = GrammarGNN(find_grammar("GNNML1"), node_features=1, width=16, layers=2)
    small, large = (memory_budget.estimate(network, 1, n, entries=8 * n) for n in (10_000, 50_000))
    assert 4.9 < large / small < 5.1
    assert memory_budget.estimate(network, 1, 50_000) > 4 * 50_000**2


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_fifty_thousand_nodes_train_in_less_memory_than_their_dense_adjacency() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEP], capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr


def test_the_limit_of_a_control_group_counts(tmp_path: Path) -> None:
    own, root = tmp_path / "cgroup", tmp_path / "fs"
    (root / "a" / "b").mkdir(parents=True)
    own.write_text("0::/a/b\n")
    (root / "a" / "b" / "memory.max").write_text("max\n")
    (root / "a" / "memory.max").write_text("5000\n")
    (root / "a" / "memory.current").write_text("2000\n")
    assert memory_budget._within_control_groups(own, root) == 3000
    own.write_text("7:cpu,cpuacct:/x\n5:memory:/a\n")
    (root / "memory" / "a").mkdir(parents=True)
    (root / "memory" / "a" / "memory.limit_in_bytes").write_text("900\n")
    (root / "memory" / "a" / "memory.usage_in_bytes").write_text("1000\n")
    assert memory_budget._within_control_groups(own, root) == 0
    assert memory_budget._within_control_groups(tmp_path / "none", root) == sys.maxsize


def test_free_memory_is_what_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable:   42 kB\n")
    assert memory_budget._free(tmp_path / "meminfo") == 42 * 1024
    assert memory_budget._free(tmp_path / "none") == sys.maxsize
