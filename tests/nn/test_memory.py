"""Estimates of memory against what a pass really takes, and the limits they are compared with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from g2n2.grammars.catalogue import find_grammar
from g2n2.nn import memory
from g2n2.nn.model import GrammarGNN

MEASURE = """
import sys
import torch
from g2n2.data.batch import dense
from g2n2.grammars.catalogue import find_grammar
from g2n2.nn.memory import estimate
from g2n2.nn.model import GrammarGNN

name, nodes = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
network = GrammarGNN(find_grammar(name), node_features=1, width=16, layers=2, preset="modern")

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024

def run(n):
    ends = torch.randint(0, n, (2, 4 * n))
    ends = torch.cat([ends, ends.flip(0)], 1)
    owner = torch.zeros(ends.shape[1], dtype=torch.long)
    batch = dense(torch.tensor([n]), owner, ends, nodes=torch.ones(n, 1), directed=False)
    network(batch).sum().backward()

run(8)
before = peak()
run(nodes)
print((peak() - before) / estimate(network, 1, nodes))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("name", "nodes"), [("GNNML1", 4000), ("GCN", 4000), ("r-G_L1", 4000), ("r-G_L3", 400)]
)
def test_the_estimate_is_within_twice_of_what_a_pass_takes(name: str, nodes: int) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURE, name, str(nodes)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 0.5 < float(done.stdout) < 2


def test_a_columns_only_grammar_counts_the_dense_matrix() -> None:
    network = GrammarGNN(find_grammar("GNNML1"), node_features=1, width=16, layers=2)
    assert memory.estimate(network, 1, 50_000) > 4 * 50_000**2


def test_the_limit_of_a_control_group_counts(tmp_path: Path) -> None:
    own, root = tmp_path / "cgroup", tmp_path / "fs"
    (root / "a" / "b").mkdir(parents=True)
    own.write_text("0::/a/b\n")
    (root / "a" / "b" / "memory.max").write_text("max\n")
    (root / "a" / "memory.max").write_text("5000\n")
    (root / "a" / "memory.current").write_text("2000\n")
    assert memory._within_control_groups(own, root) == 3000
    own.write_text("7:cpu,cpuacct:/x\n5:memory:/a\n")
    (root / "memory" / "a").mkdir(parents=True)
    (root / "memory" / "a" / "memory.limit_in_bytes").write_text("900\n")
    (root / "memory" / "a" / "memory.usage_in_bytes").write_text("1000\n")
    assert memory._within_control_groups(own, root) == 0
    assert memory._within_control_groups(tmp_path / "none", root) == sys.maxsize


def test_free_memory_is_what_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable:   42 kB\n")
    assert memory._free(tmp_path / "meminfo") == 42 * 1024
    assert memory._free(tmp_path / "none") == sys.maxsize
