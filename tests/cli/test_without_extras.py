"""The main commands where packages they may use are not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from g2n2.training.session import train_config
from small_runs import SMALL, small_config

SCRIPT = """
import json, sys
from g2n2.cli import main
ended = []
for hidden, words in json.loads(sys.argv[1]):
    for package in [name for name, module in sys.modules.items() if module is None]:
        del sys.modules[package]
    sys.modules.update(dict.fromkeys(hidden))  # as if they were not installed
    sys.argv = ["g2n2", *words]
    print("$", *words, flush=True)
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush()
    ended.append(code)
print("ended:", json.dumps(ended))
"""
SYMBOLIC = [
    ["derive", "L1"],
    ["compile", "GNNML1", "--width", "4", "--layers", "1"],
    ["separate", "A_", "A?"],
    ["datasets"],
]
TRAIN = ["train", "--config", "settings.json", "--out", "run"]
USE = [["evaluate", "run"], ["predict", "run", "few.g6", "--out", "few.csv"]]
MOLECULES = ["train", "molecules.csv", "--target", "y", "--out", "other", "--epochs", "1"]


def run(steps: list[tuple[list[str], list[str]]], folder: Path) -> tuple[list[int], str]:
    """Exit codes and output of commands in one process, each with some packages hidden."""
    settings = {**SMALL, "epochs": 1, "grammar": "GNNML1"}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "few.g6").write_text("Bw\nC~\n")
    rows = [f"{'C' * (1 + i % 7)}O,{i % 7}" for i in range(20)]
    (folder / "molecules.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(steps)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    said = process.stdout + process.stderr
    assert process.returncode == 0, said
    assert "Traceback" not in said
    codes: list[int] = json.loads(process.stdout.rpartition("ended: ")[2])
    return codes, said


@pytest.mark.slow
def test_nothing_needs_triton_pyg_or_pandas_and_only_molecules_need_rdkit(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit")
    three = ["triton", "torch_geometric", "pandas"]
    commands = [*SYMBOLIC, TRAIN, ["train", "--resume", "run"], *USE, MOLECULES]
    codes, said = run([*(([*three, "rdkit"], c) for c in commands), (three, MOLECULES)], tmp_path)
    assert codes == [*[0] * (len(commands) - 1), 2, 0], said
    assert 'pip install "g2n2[chem]"' in said or "pip install 'g2n2[chem]'" in said


def test_only_several_processes_need_lightning(tmp_path: Path) -> None:
    train_config(small_config(epochs=1, grammar="GNNML1"), tmp_path / "run")
    train = ["train", "--config", "settings.json", "--out"]
    commands = [*SYMBOLIC, [*train, "one"], [*train, "two", "--devices", "2"], *USE]
    codes, said = run([(["lightning"], command) for command in commands], tmp_path)
    assert codes == [0, 0, 0, 0, 0, 2, 0, 0], said
    assert 'several processes need lightning: pip install "g2n2[train]"' in said
    assert (tmp_path / "one" / "result.json").exists()
    assert not (tmp_path / "two").exists()
