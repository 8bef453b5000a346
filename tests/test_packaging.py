"""What an installation promises: a light core, a pinned torch, a quick command line."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


HEAVY = ("torch", "torch_geometric", "lightning", "rdkit", "triton", "nicegui")
BESIDE_TORCH = ("torch_geometric", "lightning", "pandas", "rdkit", "sklearn")

# The command line as a user starts it.
DERIVE_L3 = """
import sys
sys.argv = ["g2n2", "derive", "L3"]
from g2n2.cli import main
try:
    code = main()
except SystemExit as leaving:
    code = leaving.code
assert not code, f"g2n2 derive L3 ended with {code}"
"""
PYTHON = """
import g2n2, g2n2.testing
from g2n2 import derive, check, compare, power, separate, compile, load, export, predict
from g2n2 import equal, evaluate, refine, trace, requirements, adjacency, read_graphs
check(derive("L1", witnesses=False)); separate("r-G_L1", "Bw", "Bg"); power("r-G_L1")
"""
NETWORKS = """
import time
import g2n2.nn
assert time.process_time() < 4  # a busy machine does not stretch it
import torch
from g2n2 import GrammarLayer
from g2n2.nn import G2N2
from g2n2.nn.baselines import baseline
G2N2(3, 2, width=4, layers=1)
baseline("GNNML1")
layer = GrammarLayer("r-G_L3", 2, 4)
assert layer(torch.zeros(3, 2), torch.tensor([[0, 1], [1, 0]]))[0].shape == (3, 4)
"""
REPORT = """
import sys
print(*sorted({unwanted} & set(sys.modules)), file=open("loaded", "w"))
"""


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [(DERIVE_L3, HEAVY), (PYTHON, HEAVY), (NETWORKS, BESIDE_TORCH)],
    ids=["command line", "Python", "networks"],
)
def test_nothing_heavy_is_loaded(code: str, unwanted: tuple[str, ...], tmp_path: Path) -> None:
    """Empty packages of those names stand first on the path, so that each import is seen."""
    for name in unwanted:
        (tmp_path / "planted" / name).mkdir(parents=True)
        (tmp_path / "planted" / name / "__init__.py").touch()
    paths = [str(tmp_path / "planted"), os.environ.get("PYTHONPATH", "")]
    process = subprocess.run(
        [sys.executable, "-c", code + REPORT.format(unwanted=set(unwanted))],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert (tmp_path / "loaded").read_text().split() == []


@pytest.fixture
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_extras_are_installable(pyproject: dict[str, Any]) -> None:
    extras = set(pyproject["project"]["optional-dependencies"])
    installed = metadata.metadata("g2n2").get_all("Provides-Extra", [])
    assert extras == set(installed), "the installation is older than pyproject.toml"


def test_install_commands_name_real_extras(pyproject: dict[str, Any]) -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "README.md")]
    groups = re.findall(r"[\s\"'](?:\.|g2n2)\[([\w\s,-]+)\]", "\n".join(texts))
    named = {extra.strip() for group in groups for extra in group.split(",")}
    assert "dev" in named
    assert named <= set(pyproject["project"]["optional-dependencies"])


def test_building_needs_no_torch(pyproject: dict[str, Any]) -> None:
    required = [re.match(r"[\w.-]+", line) for line in pyproject["build-system"]["requires"]]
    assert "torch" not in [name.group().lower() for name in required if name]


def processor_seconds() -> float:
    """Of all processes begun here that have ended."""
    used = os.times()
    return used.children_user + used.children_system


def test_help_answers_at_once() -> None:
    """By the processor's clock: a machine that does other things beside it is no slower by that."""
    seconds = []
    for _ in range(3):
        start = processor_seconds()
        process = subprocess.run(
            [sys.executable, "-m", "g2n2", "--help"],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        seconds.append(processor_seconds() - start)
        assert process.returncode == 0, process.stderr
        assert "derive" in process.stdout
    assert min(seconds) < 0.5
