"""The README's example prints what the README says, and its commands exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from g2n2.cli import app

README = Path(__file__).parents[1] / "README.md"


def fenced(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_example_prints_what_the_readme_says():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(fenced("python"), "README.md", "exec"), {})
    assert printed.getvalue() == fenced("text")


COMMANDS = re.findall(r"^\| `g2n2 (.+?)` \|", README.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_table_run(command, tmp_path, monkeypatch):
    import shlex

    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    if command.startswith("check"):
        runner.invoke(app, ["derive", "L1", "--out", "proof.json"])
    result = runner.invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
    assert result.output.strip()


def test_the_table_names_every_command():
    named = {command.split()[0] for command in COMMANDS}
    known = {c.name or c.callback.__name__ for c in app.registered_commands}
    assert named == known


def test_stages_print_in_the_papers_notation_and_names_can_be_found():
    import g2n2

    derived = g2n2.derive("L1")
    assert "V_c → diag(V_c)V_c | AV_c | 1" in str(derived)
    assert "V_c → diag(V_c)V_c | AV_c | 1" in str(derived.reduction)
    assert derived._repr_html_().startswith("<pre>")
    assert {"parse", "derive", "separate", "refine", "G2N2Error"} <= set(dir(g2n2))
    assert all(hasattr(g2n2, name) for name in g2n2.__all__)
