"""Reference pages written from the code: settings of a run, and the command line.

`python docs/generated_pages.py` writes them (so does `make docs`), and a test says when they are
not current.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typer.models import OptionInfo, ParameterInfo

from g2n2.cli import GROUPS, MODULES, function_of
from g2n2.training.config import BELOW, CHOICES, RANGES, RECIPES, RunConfig

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generated_pages.py from the code: change it there. -->\n\n"

_SETTINGS = {field.name for field in fields(RunConfig)}
NAMES = {"recipe": tuple(RECIPES), "preset": ("modern", "paper", "official", "ppgn"), **CHOICES}
"""Of settings whose values are names."""


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
    lines += ["", "## Recipes", ""]
    lines += [f"| setting | {' | '.join(RECIPES)} | what it does |", "|---|---|---|---|"]
    meanings |= _attributes(RECIPES["modern"].__doc__ or "")
    for field in fields(RECIPES["modern"]):
        if field.name != "name":
            values = [_plain(getattr(recipe, field.name)) for recipe in RECIPES.values()]
            meaning = "see above" if field.name in _SETTINGS else meanings[field.name]
            lines.append(f"| `{field.name}` | {' | '.join(values)} | {meaning} |")
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
    return "`true`, `false`" if kinds[name].startswith("bool") else "–"


def command_page() -> str:
    """Every command with its arguments, options and examples, group by group."""
    commands = _commands()
    lines = [
        "# Command line",
        "",
        "`g2n2 COMMAND --help` prints what stands here; the examples are run by the tests. Exit",
        "code 2 always means bad input, with a message that says what to write instead. `--json`",
        "prints results as data. `g2n2 --install-completion` teaches your shell the commands and",
        "options. `g2n2 --plugin FILE COMMAND` loads [operations of your own]"
        "(../how-to/own-operation.md)",
        "first.",
    ]
    for heading, names in GROUPS.items():
        lines += ["", f"## {heading}"]
        for name, (_, *examples) in names.items():
            lines += ["", f"### {name}", "", inspect.getdoc(commands[name]) or ""]
            rows = [_parameter(*entry) for entry in _parameters(commands[name])]
            if rows:
                lines += [
                    "",
                    "| argument or option | value | default | meaning |",
                    "|---|---|---|---|",
                    *rows,
                ]
            lines += ["", "```sh", *examples, "```"]
    return "\n".join(lines) + "\n"


def _commands() -> dict[str, Callable[..., Any]]:
    """The function of each command."""
    return {name: function_of(name) for name in MODULES}


def _parameters(command: Callable[..., Any]) -> Iterator[tuple[str, Any, Any, ParameterInfo]]:
    """Name, type, default and typer's description of each parameter of a command."""
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        kind, info = get_args(hints[name])[:2]
        yield name, kind, parameter.default, info


def _parameter(name: str, kind: Any, default: Any, info: ParameterInfo) -> str:
    option = isinstance(info, OptionInfo)
    spelled = "--" + name.replace("_", "-")
    declared = [str(d) for d in (info.default, *(info.param_decls or ())) if str(d)[:1] == "-"]
    if declared:
        spelled = " / ".join(declared).replace("/--", " / --")
    elif kind in (bool, bool | None) and default is not False:
        spelled += f" / --no-{name.replace('_', '-')}"
    members = [part for part in get_args(kind) if part is not type(None)]
    kind = members[0] if type(None) in get_args(kind) else kind
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if info.metavar:
        value = info.metavar.strip("[]").replace("|", ", ")
    elif choices:
        value = ", ".join(choices)
    elif kind is bool:
        value = ""
    elif get_origin(kind) is list:
        value = "text, repeated"
    else:
        value = {int: "integer", float: "number", str: "text", Path: "path"}[kind]
    if isinstance(info.show_default, str):
        shown = info.show_default
    elif default is inspect.Parameter.empty:
        shown = "required"
    else:
        missing = default is None or default is False or default == ""
        shown = "" if missing else _plain(default)
    meaning, said = info.help or "", ""
    if meaning.endswith("]"):
        meaning, _, said = meaning[:-1].rpartition(" [")
    what = f"`{spelled}`" if option else f"`{name}`"
    cells = [what, value, shown or said, meaning]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


PAGES = {"settings": settings_page, "command-line": command_page}


def main() -> None:
    """Write the pages."""
    for name, make in PAGES.items():
        (FOLDER / f"{name}.md").write_text(NOTE + make(), encoding="utf-8")


if __name__ == "__main__":
    main()
