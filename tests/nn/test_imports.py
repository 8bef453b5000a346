"""What importing `g2n2.nn` costs, and what it must not bring."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

NOT_WANTED = ("torch_geometric", "lightning", "pandas", "rdkit", "sklearn")
SECONDS = 4.0


def imported(code: str) -> set[str]:
    """Which of the unwanted packages are there after running code in a fresh interpreter."""
    show = "import sys; print(*[name for name in sys.argv[1:] if name in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}", *NOT_WANTED],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(process.stdout.split())


def cpu_seconds(code: str) -> float:
    """CPU time of a fresh interpreter, which a busy machine does not stretch."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_networks_need_neither_pyg_nor_lightning() -> None:
    code = "from g2n2.nn import G2N2; import g2n2.testing; G2N2(3, 2, width=4, layers=1)"
    assert imported(code) == set()


def test_the_check_of_packages_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch_geometric.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert imported("import torch_geometric") == {"torch_geometric"}


def test_import_is_quick() -> None:
    seconds = cpu_seconds("import g2n2.nn")
    print(f"import g2n2.nn: {seconds:.2f} s of CPU")
    assert seconds < SECONDS


def test_the_check_of_time_can_fail() -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    assert cpu_seconds(busy) >= 0.5
    assert cpu_seconds("pass") < 0.5


def test_testing_alone_brings_no_torch() -> None:
    code = "import sys, g2n2.testing; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
