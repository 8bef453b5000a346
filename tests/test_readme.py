"""The README's example prints what the README says, and its commands exist."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from g2n2.cli import app

README = Path(__file__).parents[1] / "README.md"


def fenced(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("program", "output"),
    list(zip(fenced("python"), fenced("text"), strict=True)),
    ids=("words", "network"),
)
def test_examples_print_what_the_readme_says(program, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {})
    assert printed.getvalue() == output


COMMANDS = re.findall(r"^\| `g2n2 (.+?)` \|", README.read_text("utf-8"), re.MULTILINE)


SMILES = ["C" * k + end for k in range(1, 9) for end in ("", "O", "N", "C(=O)O")]
SWEEP = """
dataset = "molecules.csv"
target = ["logp"]
epochs = 1
[sweep]
width = [4, 8]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands of the table find where they are typed, in the order of the table."""
    path = tmp_path_factory.mktemp("readme")
    rows = [f"m{k},{smiles},{len(smiles) / 3}" for k, smiles in enumerate(SMILES)]
    (path / "molecules.csv").write_text("\n".join(["id,smiles,logp", *rows]))
    (path / "new.csv").write_text("id,smiles\na,CCO\nb,CCCN\n")
    (path / "sweep.toml").write_text(SWEEP)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_table_run(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, shlex.split(command))
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
