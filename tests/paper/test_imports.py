"""The two packages: g2n2_paper imports g2n2, never the reverse, and is not in the wheel."""

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imported(source: str) -> set[str]:
    """Top-level packages that a module imports by absolute name, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {node.value} if node.value.startswith("g2n2_paper.") else set()
    return {name.partition(".")[0] for name in names}


def test_the_library_never_imports_the_paper():
    modules = list((ROOT / "src" / "g2n2").rglob("*.py"))
    assert len(modules) > 200
    mentions = [path for path in modules if "g2n2_paper" in path.read_text("utf-8")]
    assert [path for path in mentions if "g2n2_paper" in imported(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "source",
    [
        "import g2n2_paper",
        "import g2n2_paper.runner as runner",
        "def late():\n    from g2n2_paper.record import CellRecord",
        "from importlib import import_module\nimport_module('g2n2_paper.q1')",
    ],
)
def test_an_import_of_the_paper_is_seen(source):
    assert "g2n2_paper" in imported(source)
    assert "g2n2_paper" not in imported(source.replace("g2n2_paper", "g2n2"))


def packages_of(source: str) -> set[str]:
    """The folders of g2n2_paper that a module of one of them imports: `..report.frame`."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = [node.module or alias.name for node in nodes if node.level == 2 for alias in node.names]
    return {name.partition(".")[0] for name in names}


def test_reports_import_benchmarks_and_never_the_reverse():
    assert "bench" in packages_of("from ..bench.run import Row\nfrom . import facts")
    assert "report" in packages_of("def late():\n    from .. import report")
    modules = (ROOT / "src" / "g2n2_paper" / "bench").glob("*.py")
    assert not any("report" in packages_of(path.read_text("utf-8")) for path in modules)


def test_the_wheel_holds_the_library_alone():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/g2n2"]
    assert list(project["project"]["scripts"]) == ["g2n2"], "a script without its package is broken"


def test_the_command_answers_in_a_clone():
    done = subprocess.run(
        [sys.executable, "-m", "g2n2_paper", "--help"], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    for command in ("q1", "q2", "q3", "q4", "power", "report", "bench"):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize("script", ["against_before", "coverage", "speedrun", "without_kernels"])
def test_what_a_script_imports_from_the_library_is_there(script):
    source = (ROOT / "benchmarks" / f"{script}.py").read_text("utf-8")
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    own = [node for node in nodes if (node.module or "").startswith("g2n2.")]
    assert own
    for node in own:
        module = import_module(node.module)
        assert [name.name for name in node.names if not hasattr(module, name.name)] == []
