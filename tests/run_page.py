"""Run the code of a page of documentation, block by block, and compare what it prints.

`python`           is run in one namespace for the page; a `text` block right after it is its output.
`console`          `$ g2n2 …` lines are run; below each stands its output, `…` for lines left out.
`… title="NAME"`   is written to that file.
`sh`               needs hours, a network or several machines: its g2n2 commands are parsed only.
Other blocks are not code.
"""

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.testing import CliRunner

from g2n2.cli import app
from g2n2.errors import G2N2Error


class Block(NamedTuple):
    language: str
    title: str
    content: str


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, those inside admonitions and lists too."""
    fenced = r"^( *)```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^\1```$"
    for indent, language, title, content in re.findall(fenced, text, re.DOTALL | re.MULTILINE):
        yield Block(language, title, re.sub(f"^{indent}", "", content, flags=re.MULTILINE))


def run_page(text: str) -> int:
    """Run a page in the current folder; gives the number of blocks that were run.

    Raises:
        AssertionError: Something is printed that the page does not say.
    """
    namespace: dict[str, Any] = {"__name__": "page"}
    ran, printed = 0, None
    for block in blocks(text):
        if block.title:
            Path(block.title).write_text(block.content, encoding="utf-8")
        elif block.language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block.content, "page", "exec"), namespace)
            ran, printed = ran + 1, output.getvalue()
            continue
        elif block.language == "text" and printed is not None:
            assert printed == block.content, f"printed:\n{printed}\nthe page says:\n{block.content}"
        elif block.language == "console":
            ran += run_console(block.content)
        elif block.language == "sh":
            ran += parse_shell(block.content)
        printed = None
    return ran


def run_console(content: str) -> int:
    """Commands of a session, each compared with the excerpt below it."""
    commands = content.split("$ g2n2 ")
    assert not commands[0].strip(), f"no command before {commands[0]!r}"
    for part in commands[1:]:
        command, _, excerpt = part.partition("\n")
        result = CliRunner().invoke(app, shlex.split(command))
        code = 2 if isinstance(result.exception, G2N2Error) else result.exit_code
        shown = f"error: {result.exception}\n" if code == 2 else result.output
        assert code == 0 or excerpt.startswith("error"), f"{command}\n{shown}\n{result.exception!r}"
        assert_shows(shown, excerpt)
    return len(commands) - 1


def assert_shows(printed: str, excerpt: str) -> None:
    """Every line of an excerpt, in order; lines between two `…` stand together."""
    rest = "\n" + printed
    for run in re.split(r"^…\n", excerpt.rstrip("\n") + "\n", flags=re.MULTILINE):
        if run.strip():
            _, found, rest = rest.partition("\n" + run.rstrip("\n") + "\n")
            assert found, f"{run!r} is not printed, but:\n{printed}"
            rest = "\n" + rest


def parse_shell(content: str) -> int:
    """That the g2n2 commands of a script have these arguments and options, and make these targets."""
    lines = content.replace("\\\n", " ").splitlines()
    makefile = (Path(__file__).parents[1] / "Makefile").read_text("utf-8")
    group = typer.main.get_command(app)
    for line in lines:
        words = shlex.split(line, comments=True)
        if "g2n2" in words and words[0] not in ("git", "pip"):
            name, *rest = words[words.index("g2n2") + 1 :]
            context = group.make_context("g2n2", [name, *rest])
            group.get_command(context, name).make_context(name, rest, parent=context)
        elif words[:1] == ["make"]:
            targets = [word for word in words[1:] if "=" not in word]
            assert all(f"\n{target}:" in makefile for target in targets), line
        elif words:
            assert words[0] in ("pip", "git", "export", "python", "cd"), f"what does {line!r} do?"
    return len(lines)


if __name__ == "__main__":
    assert run_page(Path(sys.argv[1]).read_text("utf-8"))
