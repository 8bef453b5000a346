"""`g2n2 predict RUN --smiles CCO`: one molecule, as in a file; and where --out may point."""

from __future__ import annotations

import csv
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from g2n2.cli import app
from g2n2.errors import G2N2Error
from g2n2.training.session import train_config
from small_runs import no_pictures, small_config

pytest.importorskip("rdkit", reason="molecules are read with RDKit")

MOLECULES = ("CCCl", "CCO", "CCOCl", "CCCCOCl", "CCOCCl", "CCOCl")
"""Each element is in several, so that training sees all of them."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("molecules")
    table = folder / "mine.csv"
    rows = [f"{text},{number}.5" for number, text in enumerate(MOLECULES)]
    table.write_text("\n".join(["smiles,y", *rows]) + "\n")
    config = small_config(dataset=str(table), options={}, split="random", batch=2, epochs=1)
    with no_pictures():
        train_config(config, folder / "run")
    return folder


def predict(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["predict", str(folder / "run"), *words, "--device", "cpu"])
    if isinstance(done.exception, G2N2Error):
        return f"error: {done.exception}"
    assert done.exception is None, done.exception
    return done.stdout


def test_one_molecule_is_predicted_as_in_a_file(trained: Path) -> None:
    predict(trained, str(trained / "mine.csv"), "--out", str(trained / "p.csv"))
    with open(trained / "p.csv", newline="") as file:
        in_file = [float(row["y"]) for row in csv.DictReader(file)]
    for text, value in zip(MOLECULES, in_file, strict=True):
        shown = predict(trained, "--smiles", text, "--interval", "0").splitlines()
        assert shown[0].split()[0] == "y"
        assert float(shown[0].split()[1]) == pytest.approx(value, rel=1e-4)
        assert not any(line.startswith("y ") for line in shown[1:]), "no interval was asked for"


def test_numbers_far_from_zero_or_one_keep_their_digits(tmp_path: Path) -> None:
    table = tmp_path / "far.csv"
    rows = [f"{text},{1e9 + number / 4},{number}e-30" for number, text in enumerate(MOLECULES)]
    table.write_text("\n".join(["smiles,far,small", *rows]) + "\n")
    config = small_config(dataset=str(table), options={}, split="random", batch=2, epochs=1)
    with no_pictures():
        train_config(config, tmp_path / "run")
    predict(tmp_path, str(table), "--out", str(tmp_path / "p.csv"))
    with open(tmp_path / "p.csv", newline="") as file:
        values = [float(row["far"]) for row in csv.DictReader(file)]
    assert len(set(values)) > 2, "in nine digits all of them are 1e9"
    assert all(abs(value - 1e9) < 10 for value in values)
    shown = predict(tmp_path, "--smiles", "CCOCl", "--interval", "0.4").split()
    far, small = shown[shown.index("far") + 1], shown[shown.index("small") + 1]
    assert float(far) == pytest.approx(values[2], abs=0.01)
    assert "e" in small
    assert len(small) < 12


def test_a_molecule_unlike_those_of_training_is_said_beside_its_number(trained: Path) -> None:
    shown = predict(trained, "--smiles", "[U]")
    assert shown.startswith("note: not predicted: U was never seen in training; 1 atom, fewer")
    assert len(shown.splitlines()) == 1


def test_several_molecules_one_after_the_other(trained: Path) -> None:
    shown = predict(trained, "--smiles", "CCO", "--smiles", "C(C", "--smiles", "CC").splitlines()
    assert [line for line in shown if line in ("CCO", "C(C", "CC")] == ["CCO", "C(C", "CC"]
    assert shown[shown.index("C(C") + 1].startswith("note: not predicted: ")
    alone = predict(trained, "--smiles", "CC").splitlines()
    assert shown[shown.index("CC") + 1 :] == alone
    two = ("--smiles", "a", "--smiles", "b")
    assert "give one name" in predict(trained, str(trained / "mine.csv"), *two)


def test_a_file_ends_with_what_to_look_at(trained: Path) -> None:
    (trained / "new.csv").write_text("smiles\nCCOCl\n[U]\nCCO.CC\n")
    words = ["predict", str(trained / "run"), str(trained / "new.csv"), "--device", "cpu"]
    done = CliRunner().invoke(app, [*words, "--out", str(trained / "new-out.csv")])
    with open(trained / "new-out.csv", newline="") as file:
        usual, uranium, pieces = csv.DictReader(file)
    assert usual["note"] == ""
    assert uranium["y"] == uranium["y high"] == ""
    assert uranium["note"].startswith("not predicted: U was never seen in training")
    assert pieces["y"]
    assert pieces["note"].startswith("2 fragments, in training always 1")
    assert "2 predictions written" in done.output
    assert "1 record has no prediction: 1, U was never seen in training" in done.output
    assert "1 prediction has a note" in done.output
    assert "1 molecule has several fragments, as salts do" in done.output
    alone = CliRunner().invoke(app, [*words[:2], "--smiles", "CCO.CC", "--device", "cpu"])
    assert "1 molecule has several fragments, as salts do" in alone.output


def test_a_salt_and_a_file_of_its_own(trained: Path) -> None:
    salt = predict(trained, "--smiles", "CCO.Cl")
    words = ("--smiles", "CCO.Cl", "--option", "largest=true", "--out", str(trained / "one.csv"))
    largest = predict(trained, *words)
    assert largest != salt
    assert largest == predict(trained, "--smiles", "CCO")
    assert (trained / "one.csv").read_text().startswith("id,y,y low,y high,note\nCCO.Cl,")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "g2n2 predict RUN FILE, or for one molecule --smiles CCO"),
        (
            ("--smiles", "C(C"),
            "the molecule cannot be read: molecule 0: 'C(C': RDKit cannot parse it",
        ),
        (("--smiles", "CCO", "--id", "name"), "--id names a column of FILE"),
        (("--smiles", "CCO", "--option", "directed=true"), "says nothing about a list of SMILES"),
    ],
)
def test_what_cannot_be_predicted(trained: Path, words: tuple[str, ...], part: str) -> None:
    assert part in predict(trained, *words)


def test_where_predictions_may_go(trained: Path, tmp_path: Path) -> None:
    source = str(trained / "mine.csv")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "target.csv")
    assert "it is a folder" in predict(trained, source, "--out", str(tmp_path))
    assert "nobody reads it" in predict(trained, source, "--out", str(tmp_path / "fifo"))
    assert "make it first" in predict(trained, source, "--out", str(tmp_path / "no" / "p.csv"))
    assert "6 predictions" in predict(trained, source, "--out", str(tmp_path / "link"))
    said = predict(trained, source, "--out", "/dev/null")
    assert said == "", "what is said would stand among the rows of /dev/stdout"
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target.csv").read_text().startswith("id,y,")
    assert sorted(os.listdir(tmp_path)) == ["fifo", "link", "target.csv"]
