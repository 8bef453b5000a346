"""The page of findings: its commands run, and print the numbers it gives."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmark_files import real_file
from g2n2.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
TEXT = " ".join(PAGE.read_text("utf-8").split())
COMMANDS = re.findall(r"`g2n2 ((?!report|experiment)[^`]+)`", TEXT)
LONG = [command for command in COMMANDS if "brec" in command]
QUICK = [command for command in COMMANDS if command not in LONG]


def run(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


@pytest.mark.parametrize("command", QUICK)
def test_quick_commands_run(command, tmp_path, monkeypatch):
    if command.startswith("check"):
        run("derive L3 --out proof.json", tmp_path, monkeypatch)
    assert run(command, tmp_path, monkeypatch).strip()


def test_there_are_commands_of_both_kinds():
    assert len(QUICK) > 5
    assert len(LONG) > 2


def test_parameters_are_those_of_the_two_grammars(tmp_path, monkeypatch):
    counts = re.search(r"the same for `r-G_L3`: ([\d,]+) and ([\d,]+)", TEXT)
    for grammar, count in zip(("G_L3", "r-G_L3"), counts.groups(), strict=True):
        printed = run(
            f"compile {grammar} --width 32 --layers 3 --preset paper", tmp_path, monkeypatch
        )
        assert f"parameters  {count}" in printed


def test_symmetry_has_a_counterexample_and_pointwise_functions_matter(tmp_path, monkeypatch):
    assert "not equal" in run('equal "(Adiag(A1))ᵀ" "Adiag(A1)"', tmp_path, monkeypatch)
    compared = run("compare PPGN r-G_L3", tmp_path, monkeypatch)
    assert "words alone: PPGN ⊊ r-G_L3" in compared
    assert "with sums and pointwise f: PPGN ≡ r-G_L3" in compared


@pytest.mark.parametrize("command", LONG)
def test_commands_on_brec_run_on_a_smaller_suite(command, tmp_path, monkeypatch):
    printed = run(command.replace("brec", "csl"), tmp_path, monkeypatch)
    separated = [int(count) for count in re.findall(r"csl +45 +(\d+)", printed)]
    # 3-WL tells all pairs of CSL apart; without a product of its own a grammar sees degrees only.
    assert separated == ([0, 0] if "∖" in command else [45] * len(separated))
    assert separated


@pytest.mark.slow
def test_pairs_of_brec_by_layers(tmp_path, monkeypatch):
    real_file("expressivity", "brec_v3_pairs.g6.gz")
    printed = run("power r-G_L3 --suite brec --readout network", tmp_path, monkeypatch)
    counts = re.search(r"tells apart ([\d, ]+) pairs of BREC with 1 to 8 layers", TEXT)[1]
    assert f"0 {counts.replace(',', '')}" in printed
