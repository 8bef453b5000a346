"""The README's example prints what the README says, and its commands exist."""

import re
import shlex
import shutil
import subprocess
import sys
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
    ids=("words", "network", "layer", "operation"),
)
def test_examples_print_what_the_readme_says(program, output):
    """In processes of their own: an operation that is registered stays."""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == output


def shown_commands() -> list[tuple[str, str]]:
    """The commands of the first screen and what stands below each."""
    (screen,) = fenced("console")
    return [(part.split("\n")[0], part.partition("\n")[2]) for part in screen.split("$ g2n2 ")[1:]]


def assert_shows(printed: str, excerpt: str) -> None:
    """Every line of an excerpt, in order; lines between two `…` stand together."""
    rest = "\n" + printed
    for run in re.split(r"^…\n", excerpt, flags=re.MULTILINE):
        if run:
            _, found, rest = rest.partition("\n" + run.rstrip("\n") + "\n")
            assert found, f"{run!r} is not printed"
            rest = "\n" + rest


def test_the_five_commands_of_the_first_screen(folder, tmp_path, monkeypatch):
    for name in ("molecules.csv", "new.csv"):
        shutil.copy(folder / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    commands = shown_commands()
    assert len(commands) == 5
    for command, excerpt in commands:
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, result.output
        assert_shows(result.output, excerpt)
    assert (tmp_path / "predictions.csv").is_file()


def test_an_excerpt_that_is_not_printed_is_found_out():
    assert_shows("a\nb\nc\n", "…\nb\n…\n")
    for wrong in ("c\n…\na\n", "a\nc\n", "…\nd\n"):
        with pytest.raises(AssertionError, match="is not printed"):
            assert_shows("a\nb\nc\n", wrong)


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
    assert named == known - {"workbench"}, "the workbench runs until it is stopped"


def test_stages_print_in_the_papers_notation_and_names_can_be_found():
    import g2n2

    derived = g2n2.derive("L1")
    assert "V_c → diag(V_c)V_c | AV_c | 1" in str(derived)
    assert "V_c → diag(V_c)V_c | AV_c | 1" in str(derived.reduction)
    assert derived._repr_html_().startswith("<pre>")
    assert {"parse", "derive", "separate", "refine", "G2N2Error"} <= set(dir(g2n2))
    assert all(hasattr(g2n2, name) for name in g2n2.__all__)
