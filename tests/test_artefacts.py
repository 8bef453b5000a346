"""What versions 0.1.0 and 0.2.0 wrote (run folders, models, certificates) is read by this one."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import networkx as nx
import pytest
import torch
from typer.testing import CliRunner

from g2n2 import GraphBatch, check, load
from g2n2.cli import app

WRITTEN = Path(__file__).parent / "artefacts"
OUTPUTS = json.loads((WRITTEN / "model-outputs.json").read_text())


def run_command(*words: object) -> None:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output


def column(path: Path, name: str) -> list[str]:
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("run", "graphs", "exact", "close"),
    [
        ("regression", "molecules.csv", (), ("logp",)),
        ("gin", "molecules.csv", (), ("logp",)),
        ("classification", "molecules.csv", ("kind",), ("p(acid)", "p(alcohol)", "p(ring)")),
        ("distances", "shapes.sdf", (), ("logp",)),
    ],
)
def test_a_run_folder_predicts_what_it_did(run, graphs, exact, close, tmp_path):
    pytest.importorskip("rdkit", reason="the runs were trained on molecules")
    folder = shutil.copytree(WRITTEN / run, tmp_path / run)
    out = tmp_path / "predictions.csv"
    run_command("predict", folder, WRITTEN / graphs, "--out", out)
    before = WRITTEN / f"{run}.csv"
    for name in ("id", *exact):
        assert column(out, name) == column(before, name)
    for name in close:
        old, new = ([float(cell) for cell in column(path, name)] for path in (before, out))
        assert new == pytest.approx(old, abs=1e-5)


@pytest.mark.parametrize(("run", "last"), [("stopped", 60), ("stopped-pairs", 150)])
def test_a_stopped_run_goes_on_to_its_end(run, last, tmp_path):
    folder = shutil.copytree(WRITTEN / run, tmp_path / run)
    run_command("train", "--resume", folder, "--minutes", 600)
    with (folder / "metrics.csv").open(newline="") as file:
        epochs = [int(row["epoch"]) for row in csv.DictReader(file)]
    assert epochs == list(range(1, last + 1))


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_model_computes_what_it_did(name):
    model = load(WRITTEN / f"model-{name}.safetensors").double()
    graphs = [
        nx.cycle_graph(6),
        nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)),
        nx.petersen_graph(),
        nx.path_graph(1),
    ]
    with torch.no_grad():
        outputs = model(GraphBatch.of(graphs).to(torch.float64)).squeeze(-1)
    assert outputs.tolist() == pytest.approx(OUTPUTS[name], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["L1", "L3"])
def test_a_certificate_is_accepted(name):
    assert check(WRITTEN / f"{name}.certificate.json").valid
