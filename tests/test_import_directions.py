"""Imports point one way, as the map in the README says; lazy and typing imports count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import g2n2

SOURCE = Path(g2n2.__file__).parent

# Packages each package may import; small top-level modules such as errors may be imported by all.
ALLOWED: dict[str, set[str]] = {
    "graphs": set(),
    "language": {"graphs"},
    "grammars": {"language", "graphs"},
    "reduction": {"grammars", "language", "graphs"},
    "power": {"grammars", "language", "graphs"},
    "data": {"power", "graphs", "ops"},
    "ops": set(),
    "compiler": {"grammars", "language", "graphs", "ops"},
    "nn": {"compiler", "data", "grammars", "language", "graphs", "ops", "power"},
    "formulas": {"nn", "compiler", "grammars", "language"},
    "spectral": {"formulas", "nn", "compiler", "data", "grammars", "language", "graphs", "power"},
}
ABOVE = {"api", "pipeline", "verdict", "placement", "cli", "training"}
"""Modules and packages that join those above, which none of them may import."""

EXCEPTIONS = {
    # What a text stands for (a certificate, a fragment to reduce) is decided by the pipeline.
    ("grammars.coercion", "pipeline"),
    ("grammars.grammar", "pipeline"),  # Grammar.reduce, a method users expect there
    ("power", "api"),  # g2n2.power(...) is both a package and a public function
    ("nn.model", "verdict"),  # model.power()
}
CORE = ("graphs", "language", "grammars", "reduction", "power")
HEAVY = {"torch", "torch_geometric", "lightning", "pandas", "triton"}
# where rules and ops meet, and where a schedule meets a network
MAY_USE_TORCH = {"compiler.lowering", "formulas.schedule_to_weights", "formulas.writing"}


def modules(source: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def imported(module: str, path: Path) -> frozenset[str]:
    """Dotted names a module imports: `language.terms` for ours, `torch.nn` for others."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("g2n2.") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = (f"{base}.{alias.name}".removeprefix("g2n2.") for alias in node.names)
            found |= {base.removeprefix("g2n2."), *(name.lstrip(".") for name in names)}
    return frozenset(found)


def wrong_imports(source: Path) -> set[tuple[str, str]]:
    """Imports against the directions above, as (module, what it imports)."""
    ours = {name.split(".")[0] for name, _ in modules(source) if name}
    wrong = set()
    for module, path in modules(source):
        package = module.split(".")[0]
        if package not in ALLOWED:
            continue
        for target in {name.split(".")[0] for name in imported(module, path)} & ours - {package}:
            known = target in ALLOWED or target in ABOVE
            if known and target not in ALLOWED[package] and (module, target) not in EXCEPTIONS:
                wrong.add((module, target))
    return wrong


def heavy_imports(source: Path) -> set[tuple[str, str]]:
    """Imports of torch and its kin in the core, the compiler and the formulas, three aside."""
    return {
        (module, name.split(".")[0])
        for module, path in modules(source)
        if module.split(".")[0] in (*CORE, "compiler", "formulas") and module not in MAY_USE_TORCH
        for name in imported(module, path)
        if name.split(".")[0] in HEAVY
    }


def test_imports_point_one_way() -> None:
    assert wrong_imports(SOURCE) == set()


def test_every_exception_is_used() -> None:
    """An exception that nothing needs any more is taken off the list."""
    used = {
        (module, target)
        for module, path in modules(SOURCE)
        for target in {name.split(".")[0] for name in imported(module, path)}
    }
    assert used >= EXCEPTIONS


def test_the_core_needs_no_torch() -> None:
    assert heavy_imports(SOURCE) == set()


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("language/terms.py", "from ..grammars.rules import Rule"),
        ("grammars/words.py", "def f():\n    from ..reduction.reduce import reduce"),
        ("reduction/search.py", "from ..power.refinement import refine"),
        ("power/table.py", "from g2n2.data.suites import load_suite"),
        ("power/table.py", "from .. import data"),
        ("compiler/plan.py", "from ..nn.model import GrammarGNN"),
        ("nn/layer.py", "if TYPE_CHECKING:\n    from ..training.config import RunConfig"),
        ("nn/supports.py", "from ..spectral.laplacians import laplacian"),
    ],
)
def test_a_wrong_import_is_seen(tmp_path: Path, file: str, line: str) -> None:
    for folder in ALLOWED | {"training": set()}:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    assert wrong_imports(tmp_path) == set()
    (tmp_path / file).write_text(line)
    imported.cache_clear()
    assert len(wrong_imports(tmp_path)) == 1


def test_torch_in_the_core_is_seen(tmp_path: Path) -> None:
    (tmp_path / "power").mkdir()
    (tmp_path / "power" / "table.py").write_text("def f():\n    from torch import nn\n")
    assert heavy_imports(tmp_path) == {("power.table", "torch")}
