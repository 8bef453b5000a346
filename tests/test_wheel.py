"""The wheel, built from the sdist and installed in an environment of its own.

Dependencies are links to those of the test's environment, less the packages of extras that are not
asked for. A full installation would fetch gigabytes.
"""

import contextlib
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from g2n2 import __version__
from g2n2.cli.machine_commands import extras as declared

ROOT = Path(__file__).parents[1]


def run(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables
    return subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build", reason="needs build: pip install 'g2n2[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    made = run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT), cwd=folder
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    (found,) = folder.glob("*.whl")
    assert len(list(folder.glob("*.tar.gz"))) == 1
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder of programs."""
    folder = tmp_path_factory.mktemp("environment")
    made = run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=folder)
    assert made.returncode == 0, made.stderr
    python = folder / "bin" / "python"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-deps",
        "--no-index",
    ]
    made = run(*pip, str(wheel), cwd=folder)
    assert made.returncode == 0, made.stderr
    return folder / "bin"


def linked(extras: tuple[str, ...], folder: Path) -> Path:
    """A folder with every package of this environment but those of the other extras, and g2n2."""
    others = {
        package
        for name, packages in declared().items()
        if name not in extras
        for package in packages
    }
    wanted = {package for name in extras for package in declared()[name]}
    hidden: set[str] = set()
    for package in {"g2n2", *(others - wanted)}:
        with contextlib.suppress(metadata.PackageNotFoundError):
            files = metadata.distribution(package).files or []
            hidden |= {file.parts[0] for file in files} - {"..", "__pycache__"}
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.name not in hidden and not entry.name.startswith("_editable"):
            (folder / entry.name).symlink_to(entry)
    return folder


def commands(
    programs: Path, extras: tuple[str, ...], folder: Path, *lines: str
) -> list[tuple[int, str]]:
    """Run commands where only some extras are installed."""
    dependencies = str(linked(extras, folder / "dependencies"))
    rows = "\n".join(f"{'C' * (1 + k % 7)}O,{k % 7}" for k in range(30))
    (folder / "molecules.csv").write_text(f"smiles,y\n{rows}\n")
    edges = "\n".join(f"{k},{i},{i + 1}" for k in range(30) for i in range(1 + k % 7))
    (folder / "edges.csv").write_text(f"graph,source,target\n{edges}\n")
    targets = "\n".join(f"{k},{k % 7}" for k in range(30))
    (folder / "graphs.csv").write_text(f"graph,y\n{targets}\n")
    answers = []
    for line in lines:
        done = run(str(programs / "g2n2"), *line.split(), cwd=folder, PYTHONPATH=dependencies)
        assert "Traceback" not in done.stderr, done.stderr
        answers.append((done.returncode, done.stdout + done.stderr))
    return answers


SETTINGS = "--target y --width 4 --layers 1 --epochs 1"


@pytest.mark.slow
def test_the_wheel_holds_the_library_and_its_data_only(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name.startswith(f"g2n2-{__version__}-")
    assert {name.split("/")[0] for name in names} == {"g2n2", f"g2n2-{__version__}.dist-info"}
    package = ROOT / "src" / "g2n2"
    data = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert data <= set(names)


@pytest.mark.slow
def test_the_package_alone_proves_and_compiles_and_names_the_extras(environment, tmp_path):
    answers = commands(
        environment, (), tmp_path, "--version", "derive L1", "compile r-G_L3", "separate C6 2C3",
        f"train edges.csv {SETTINGS} --out run", f"train edges.csv {SETTINGS} --devices 2 --out two",
        f"train molecules.csv {SETTINGS}", "eval 1ᵀA1 smiles:CCO",
    )  # fmt: skip
    assert [code for code, _ in answers] == [0, 0, 0, 0, 0, 2, 2, 2], answers
    assert answers[0][1] == f"g2n2 {__version__}\n"
    assert (tmp_path / "run" / "best.safetensors").is_file()
    assert "g2n2[train]" in answers[5][1]
    assert "g2n2[chem]" in answers[7][1]


@pytest.mark.slow
def test_with_train_graphs_are_learned_and_molecules_name_their_extra(environment, tmp_path):
    answers = commands(
        environment, ("train",), tmp_path, f"train edges.csv {SETTINGS} --out run",
        "predict run edges.csv --out out.csv", f"train molecules.csv {SETTINGS}",
    )  # fmt: skip
    assert [code for code, _ in answers] == [0, 0, 2], answers
    assert "g2n2[chem]" in answers[2][1]


@pytest.mark.slow
def test_with_all_molecules_are_learned(environment, tmp_path):
    line = f"train molecules.csv {SETTINGS} --out run"
    answers = commands(environment, tuple(declared()), tmp_path, line, "doctor --json")
    assert [code for code, _ in answers] == [0, 0], answers
    assert (tmp_path / "run" / "best.safetensors").is_file()
    assert json.loads(answers[1][1])["g2n2"] == __version__


def test_the_version_is_written_once():
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text("utf-8")
