"""Dependencies declared are used, and those used are declared, by the right extra."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IMPORTED_AS = {"scikit-learn": "sklearn", "pillow": "PIL", "mkdocs-material": "mkdocs"}
"""Distributions whose packages have other names; `-` is `_` in all others."""
TOOLS = {"pytest-xdist", "ruff", "mypy", "mkdocs-material", "mkdocstrings", "hatchling"}
"""What is run, or loaded by another package: no code of ours imports it."""


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a block, nested ones included; expressions are not looked into."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, field, []))


def names_in(source: str) -> tuple[set[str], set[str]]:
    """Top-level packages a module imports by absolute name, and all its words.

    `find_spec("rdkit")`, `torch.utils.tensorboard` and `postgresql+psycopg` use a package too.
    """
    imports: set[str] = set()
    for node in statements(ast.parse(source).body):
        if isinstance(node, ast.Import):
            imports |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imports.add(str(node.module).partition(".")[0])
    return imports, set(re.findall(r"[^\W\d]\w*", source))


def used_in(*folders: str) -> tuple[set[str], set[str]]:
    imports: set[str] = set()
    texts: set[str] = set()
    for path in (p for folder in folders for p in (ROOT / folder).rglob("*.py")):
        if path.name != Path(__file__).name:
            found = names_in(path.read_text("utf-8"))
            imports, texts = imports | found[0], texts | found[1]
    ours = {
        path.stem for folder in ("src", "tests", "tests/cli") for path in (ROOT / folder).iterdir()
    }
    return imports - ours - set(sys.stdlib_module_names), texts


def declared(project: dict) -> tuple[set[str], set[str]]:
    """Distributions a user can install with the library, and those of its development."""
    extras = dict(project["optional-dependencies"])
    development = extras.pop("dev")
    library = [*project["dependencies"], *(name for extra in extras.values() for name in extra)]
    names = [
        {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
        for requirements in (library, development)
    ]
    return names[0], names[1] - {"g2n2"}


def problems(project: dict, library: tuple[set, set], rest: tuple[set, set]) -> list[str]:
    """What is used and not declared, or declared and not used.

    Args:
        project: The table `project` of pyproject.toml.
        library: What `used_in` says of the library.
        rest: And of the paper's package, tests and benchmarks.
    """
    installed, development = declared(project)
    packages = {
        name: IMPORTED_AS.get(name, name.replace("-", "_")) for name in installed | development
    }
    for_users = {packages[name] for name in installed}
    undeclared = library[0] - for_users
    undeclared_rest = rest[0] - set(packages.values())
    unused = {name for name in installed if packages[name] not in library[1]}
    unused |= {name for name in development if packages[name] not in library[1] | rest[1]}
    return [
        *(
            f"{name} is imported by the library and declared in no user's extra"
            for name in undeclared
        ),
        *(f"{name} is imported by tests or the paper and not declared" for name in undeclared_rest),
        *(f"{name} is declared and not used" for name in unused - TOOLS),
    ]


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def used() -> tuple:
    return used_in("src/g2n2"), used_in("src/g2n2_paper", "tests", "benchmarks")


def test_dependencies_declared_are_used_and_those_used_are_declared(project, used):
    assert problems(project, *used) == []
