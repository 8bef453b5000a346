"""Help pages: complete, grouped, with examples that run; doctor; the version; a closed pipe."""

import inspect
import json
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from importlib import metadata

import pytest
import typer
from test_commands import run
from typer.testing import CliRunner

from g2n2 import __version__, cli
from g2n2.cli import GROUPS, machine_commands
from g2n2.cli.compile_commands import compile_

GROUP = typer.main.get_command(cli.app)
COMMANDS = {name: GROUP.get_command(None, name).callback for name in GROUP.list_commands(None)}
EXAMPLES = {name: lines for group in GROUPS.values() for name, (_, *lines) in group.items()}
TRAINING = ("train", "predict", "evaluate", "explain", "sweep", "demo", "bench", "derive", "check")
SMILES = ["C" * k + end for k in range(1, 9) for end in ("", "O", "N", "C(=O)O")]
SWEEP = 'dataset = "molecules.csv"\ntarget = ["logp"]\nepochs = 1\n[sweep]\nwidth = [4, 8]\n'


def test_the_first_page_names_every_command_and_cuts_nothing():
    printed = CliRunner().invoke(cli.app, ["--help"], env={"COLUMNS": "80"}).output
    assert max(map(len, printed.splitlines())) <= 80
    assert "..." not in printed.replace("[ARGS]...", "")
    joined = " ".join(printed.split())
    assert " From a set of matrix operations to a graph neural network of known power. " in joined
    for name, callback in COMMANDS.items():
        summary = inspect.getdoc(callback).partition("\n\n")[0]
        assert f" {name} {' '.join(summary.split())}" in joined
    places = [printed.index(f"\n{heading}:\n") for heading in GROUPS]
    assert places == sorted(places)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_page_has_two_examples(name):
    printed = CliRunner().invoke(cli.app, [name, "--help"], env={"COLUMNS": "80"}).output
    assert len(EXAMPLES[name]) >= 2
    for line in EXAMPLES[name]:
        assert line.startswith(f"g2n2 {name}")
        assert f"\n    {line}\n" in printed


QUICK = [
    line for name in COMMANDS if name not in (*TRAINING, "workbench") for line in EXAMPLES[name]
]


@pytest.mark.parametrize("line", QUICK)
def test_an_example_runs(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _run(line)


def _run(line: str) -> None:
    result = CliRunner().invoke(cli.app, shlex.split(line)[1:])
    assert result.exit_code == 0, f"{line}\n{result.output}"
    assert result.output.strip()


@pytest.mark.slow
def test_the_examples_that_prove_and_train_run_in_their_order(tmp_path, monkeypatch):
    rows = [f"m{k},{smiles},{len(smiles) / 3}" for k, smiles in enumerate(SMILES)]
    (tmp_path / "molecules.csv").write_text("\n".join(["id,smiles,logp", *rows]))
    (tmp_path / "new.csv").write_text("id,smiles\na,CCO\nb,CCCN\n")
    (tmp_path / "sweep.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    for name in (
        "derive",
        "check",
        "train",
        "predict",
        "evaluate",
        "explain",
        "sweep",
        "demo",
        "bench",
    ):
        for line in EXAMPLES[name]:
            _run(line)
    assert (tmp_path / "predictions.csv").is_file()


def test_the_version_is_that_of_the_package():
    assert run("--version") == (0, f"g2n2 {__version__}\n")


def test_doctor_says_what_is_there_and_how_to_get_the_rest(monkeypatch):
    declared = {
        line.partition(">")[0].partition(";")[0].partition("[")[0].strip()
        for line in metadata.requires("g2n2")
        if "extra == 'chem'" in line.replace('"', "'")
    }
    found = json.loads(run("doctor", "--json")[1])
    assert found["torch"] == metadata.version("torch")
    here = found["extras"]["chem"]
    assert {text.split()[0] for text in here["installed"]} | set(here["missing"]) == declared
    version = machine_commands._version
    monkeypatch.setattr(machine_commands, "_version", lambda p: "" if p == "rdkit" else version(p))
    last = run("doctor")[1].splitlines()[-1]
    assert re.search(r'pip install "g2n2\[.*\bchem\b.*\]"', last)


def test_every_extra_of_the_package_has_a_purpose():
    extras = set(metadata.metadata("g2n2").get_all("Provides-Extra"))
    assert extras - set(machine_commands.PURPOSES) <= {"dev", "docs", "all"}


def test_compile_and_train_have_the_same_defaults():
    from g2n2.training.config import RECIPES, RunConfig

    trained = {field.name: field.default for field in fields(RunConfig)}
    recipe = RECIPES[trained["recipe"]]
    trained |= {"preset": recipe.preset, "width": recipe.width}
    compiled = inspect.signature(compile_).parameters
    for name in ("preset", "width", "layers", "readout", "pooling", "pair_bias", "context"):
        assert compiled[name].default == trained[name], name


@pytest.mark.parametrize("line", ["grammars", "power r-G_L1 --suite csl"])
def test_a_closed_pipe_ends_quietly(line):
    process = subprocess.Popen(
        [sys.executable, "-m", "g2n2", *line.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()  # before anything is written
    assert process.stderr.read() == b""
    process.wait()
