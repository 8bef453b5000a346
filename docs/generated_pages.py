"""Reference pages that mkdocs makes from the code: settings of a run, and the command line."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

from mkdocs.structure.files import File, Files
from typer.testing import CliRunner

from g2n2.cli import app
from g2n2.cli.help import GROUPS
from g2n2.training.config import BELOW, CHOICES, RANGES, RECIPES, RunConfig

NAMES = {"recipe": tuple(RECIPES), "preset": ("modern", "paper", "official", "ppgn"), **CHOICES}
"""Of settings whose values are names."""


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to those of the folder."""
    for name, make in (("settings", settings_page), ("command-line", command_page)):
        files.append(File.generated(config, f"reference/{name}.md", content=make()))
    return files


def settings_page() -> str:
    """Every setting of a run with its type, default, range and meaning."""
    meanings = _attributes(RunConfig.__doc__ or "")
    lines = [
        "# Settings of a run",
        "",
        "Parameters of `g2n2.train`, options of `g2n2 train` (those named there), and entries of a",
        "settings file (`--config`). What is said on the command line wins over the file, and the",
        "file over the defaults.",
        "",
        "| setting | type | default | range | what it does |",
        "|---|---|---|---|---|",
    ]
    for field in fields(RunConfig):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        kind = str(field.type).replace("Mapping[str, Any]", "table").replace("tuple[", "list[")
        kind = kind.replace(", ...]", "]").replace(" | None", "")
        cells = [f"`{field.name}`", kind, _default(field.name, default), _range(field.name)]
        lines.append(f"| {' | '.join(cells)} | {meanings[field.name]} |")
    lines += ["", "## Recipes", "", f"| setting | {' | '.join(RECIPES)} |", "|---|---|---|"]
    for field in fields(RECIPES["modern"]):
        if field.name != "name":
            values = (getattr(recipe, field.name) for recipe in RECIPES.values())
            lines.append(f"| `{field.name}` | {' | '.join(_plain(value) for value in values)} |")
    return "\n".join(lines) + "\n"


def _attributes(docstring: str) -> dict[str, str]:
    """The `Attributes` of a Google docstring."""
    section = docstring.partition("Attributes:\n")[2]
    entries = re.findall(r"^ {8}(\w+): (.*?)(?=^ {8}\w+: |\Z)", section, re.DOTALL | re.MULTILINE)
    return {name: " ".join(text.split()).replace("|", "\\|") for name, text in entries}


def _default(name: str, default: Any) -> str:
    if default is MISSING:
        return "required"
    if default is None and hasattr(RECIPES["modern"], name):
        return f"the recipe's ({_plain(getattr(RECIPES['modern'], name))})"
    return _plain(default)


def _plain(value: Any) -> str:
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _range(name: str) -> str:
    if name in NAMES:
        return ", ".join(f"`{choice}`" for choice in NAMES[name])
    if name in BELOW:
        return f"{'above' if name == 'rate' else 'from'} 0 to below {BELOW[name]:g}"
    if name in RANGES:
        least, most = RANGES[name]
        return f"{least:,} to {most:,}" if most < 10**9 else f"{least:,} to {most:.0e}"
    kinds = {field.name: str(field.type) for field in fields(RunConfig)}
    return "`true`, `false`" if kinds[name].startswith("bool") else "see right"


def command_page() -> str:
    """The help of every command, group by group."""
    lines = [
        "# Command line",
        "",
        "`g2n2 COMMAND --help` prints what stands here; the examples are run by the tests. Exit",
        "code 2 always means bad input, with a message that says what to write instead. `--json`",
        "prints results as data.",
        "`g2n2 --install-completion` teaches your shell the commands and options.",
    ]
    for heading, names in GROUPS.items():
        lines += ["", f"## {heading}"]
        for name in names:
            shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "100"}).output
            page = shown.replace("Usage: root", "g2n2").rstrip()
            lines += ["", f"### {name}", "", "```text", page, "```"]
    return "\n".join(lines) + "\n"
