"""What an installation promises: a light core, a pinned torch, a quick command line."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "torch_geometric", "lightning", "rdkit", "triton", "nicegui")

# The command line as a user starts it, in one process with the report that follows.
DERIVE_L3 = """
sys.argv = ["g2n2", "derive", "L3"]
from g2n2.cli import main
try:
    code = main()
except SystemExit as leaving:
    code = leaving.code
assert not code, f"g2n2 derive L3 ended with {code}"
"""


def run_watched(code: str, folder: Path) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """Runs `code` in a fresh interpreter; also returns the heavy packages it loaded.

    Empty packages with the heavy names stand first on the path, so that an import counts whether
    or not the real package is installed, and even where the code catches `ImportError`.
    """
    for name in HEAVY:
        (folder / "planted" / name).mkdir(parents=True)
        (folder / "planted" / name / "__init__.py").touch()
    report = folder / "loaded.json"
    indented = code.strip().replace("\n", "\n    ")
    program = f"""
import json, pathlib, sys
try:
    {indented}
finally:
    loaded = sorted(set({HEAVY!r}) & set(sys.modules))
    pathlib.Path({str(report)!r}).write_text(json.dumps(loaded))
"""
    paths = [str(folder / "planted"), os.environ.get("PYTHONPATH", "")]
    process = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return json.loads(report.read_text()), process


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(DERIVE_L3, id="g2n2 derive L3"),
    ],
)
def test_core_loads_nothing_heavy(code: str, tmp_path: Path) -> None:
    loaded, process = run_watched(code, tmp_path)
    assert loaded == []
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import lightning\nfrom torch import nn", ["lightning", "torch"]),
        ("try:\n    import rdkit.Chem\nexcept ImportError:\n    pass", ["rdkit"]),
        ("import json", []),
    ],
)
def test_heavy_imports_are_seen(code: str, expected: list[str], tmp_path: Path) -> None:
    loaded, _ = run_watched(code, tmp_path)
    assert loaded == expected


def cuda_distributions(names: Iterable[str]) -> list[str]:
    """The distributions among `names` that only a CUDA build of torch brings."""
    normalized = (re.sub(r"[-_.]+", "-", name).lower() for name in names)
    return sorted({name for name in normalized if name.startswith("nvidia-")})


def test_cpu_torch_brings_no_cuda() -> None:
    version = metadata.version("torch")
    if "+cpu" not in version:
        pytest.skip(f"torch {version} is not a CPU build, so CUDA packages may be there")
    installed = [distribution.name for distribution in metadata.distributions()]
    assert cuda_distributions(installed) == []


def test_cuda_distributions_are_seen() -> None:
    assert cuda_distributions(["torch", "nvidia_cublas", "NVIDIA-nccl-cu13", "numpy"]) == [
        "nvidia-cublas",
        "nvidia-nccl-cu13",
    ]


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
