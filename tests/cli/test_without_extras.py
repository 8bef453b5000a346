"""The main commands where one of the packages they may use is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from small_runs import SMALL

pytest.importorskip("lightning.fabric", reason="training needs lightning")

SCRIPT = """
import json, sys
sys.modules[sys.argv[1]] = None  # as if it were not installed
from g2n2.cli import main
ended = []
for words in json.loads(sys.argv[2]):
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
COMMANDS = [
    ["derive", "L1"],
    ["compile", "GNNML1", "--width", "4", "--layers", "1"],
    ["separate", "A_", "A?"],
    ["datasets"],
    ["train", "--config", "settings.json", "--out", "run"],
    ["train", "--resume", "run"],
    ["evaluate", "run"],
    ["predict", "run", "few.g6", "--out", "few.csv"],
]
MOLECULES = ["train", "molecules.csv", "--target", "y", "--out", "other", "--epochs", "1"]


def without(package: str, commands: list[list[str]], folder: Path) -> tuple[list[int], str]:
    (folder / "settings.json").write_text(json.dumps({**SMALL, "epochs": 1, "grammar": "GNNML1"}))
    (folder / "few.g6").write_text("Bw\nC~\n")
    rows = [f"{'C' * (1 + i % 7)}O,{i % 7}" for i in range(20)]
    (folder / "molecules.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, package, json.dumps(commands)],
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


@pytest.mark.parametrize("package", ["triton", "torch_geometric", "pandas"])
def test_every_command_runs_without(package: str, tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit")
    codes, said = without(package, [*COMMANDS, MOLECULES], tmp_path)
    assert codes == [0] * len(codes), said


def test_only_molecules_need_rdkit(tmp_path: Path) -> None:
    codes, said = without("rdkit", [*COMMANDS, MOLECULES], tmp_path)
    assert codes == [*[0] * len(COMMANDS), 2], said
    assert 'pip install "g2n2[chem]"' in said or "pip install 'g2n2[chem]'" in said
    assert not (tmp_path / "other").exists()


def test_only_training_needs_lightning(tmp_path: Path) -> None:
    codes, said = without("lightning", COMMANDS[:5], tmp_path)
    assert codes == [0, 0, 0, 0, 2], said
    assert 'training needs lightning: pip install "g2n2[train]"' in said
    assert not (tmp_path / "run").exists()
    codes, said = without("nothing", COMMANDS[4:5], tmp_path)
    assert codes == [0], said
    codes, said = without("lightning", COMMANDS[6:], tmp_path)
    assert codes == [0, 0], said
