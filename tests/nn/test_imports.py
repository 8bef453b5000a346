"""What importing and using `g2n2.nn` costs, and what it must not bring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOT_WANTED = (
    "torch_geometric", "torch_scatter", "torch_sparse", "lightning", "pandas", "rdkit", "sklearn",
)  # fmt: skip
SECONDS = 4.0
NETWORKS = """
import time
import g2n2.nn
print(time.process_time())  # a busy machine does not stretch it
import g2n2.testing, torch
from g2n2 import GrammarLayer
from g2n2.nn import G2N2
from g2n2.nn.baselines import baseline
G2N2(3, 2, width=4, layers=1)
baseline("GNNML1")
layer = GrammarLayer("r-G_L3", 2, 4)
assert layer(torch.zeros(3, 2), torch.tensor([[0, 1], [1, 0]]))[0].shape == (3, 4)
"""


def in_fresh_process(code: str) -> list[str]:
    """What code prints in an interpreter of its own, and then the unwanted packages there are."""
    show = "import sys; print(*[name for name in sys.argv[1:] if name in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}", *NOT_WANTED],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.split()


def test_networks_and_layers_import_quickly_and_need_no_other_package() -> None:
    seconds, *packages = in_fresh_process(NETWORKS)
    assert packages == []
    assert float(seconds) < SECONDS


def test_the_check_of_packages_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch_geometric.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert in_fresh_process("import torch_geometric") == ["torch_geometric"]


def test_testing_alone_brings_no_torch() -> None:
    in_fresh_process("import sys, g2n2.testing; assert 'torch' not in sys.modules")
