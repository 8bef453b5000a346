"""`g2n2 explain`: a drawing of molecules, a table of any graphs, a check, and errors."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

from g2n2.cli import app
from g2n2.errors import G2N2Error
from g2n2.training.explain_run import Explainer, held_out
from g2n2.training.run import Run
from g2n2.training.session import train, train_config
from small_runs import no_pictures, small_config

pytest.importorskip("rdkit", reason="molecules are read with RDKit")

MOLECULES = [f"{'C' * n}{end}" for n in range(1, 8) for end in ("O", "N", "C", "F", "(=O)O")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the number of oxygens, which its contributions should find."""
    folder = tmp_path_factory.mktemp("explained")
    rows = [f"{text},{text.count('O')}" for text in MOLECULES]
    (folder / "mine.csv").write_text("\n".join(["smiles,oxygens", *rows]) + "\n")
    config = small_config(
        dataset=str(folder / "mine.csv"), options={}, split="random", batch=4, epochs=25, rate=5e-3
    )
    with no_pictures():
        train_config(config, folder / "run")
    return folder


def explain(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["explain", str(folder / "run"), *words, "--device", "cpu"])
    if isinstance(done.exception, G2N2Error):
        return f"error: {done.exception}"
    assert done.exception is None, done.exception
    return done.output


def test_oxygens_explain_their_number(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.svg"
    shown = explain(trained, "--smiles", "CCCO", "--smiles", "OCC", "--out", str(out))
    first = {}
    for block in re.split(r"\n(?=\w\S*: )", shown)[:2]:
        head, best, *_ = block.splitlines()
        first[head.split(":")[0]] = best.split(maxsplit=1)[1].strip()
    assert "O3" in first["CCCO"]
    assert "O0" in first["OCC"]
    assert "2 graphs in" in shown
    assert re.search(r"rank correlation of 0\.[5-9]|rank correlation of 1", shown), shown
    assert "words oxygens follows" in shown
    drawing = out.read_text()
    assert drawing.lstrip().startswith("<?xml")
    assert "oxygens" in drawing or "legend" in drawing


def test_a_table_of_atoms_and_bonds_adds_up(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.csv"
    explain(trained, "--smiles", "CCO", "--out", str(out), "--check", "0", "--words", "0")
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["element"] for row in rows if row["node"]] == ["C", "C", "O"]
    assert sorted((row["source"], row["target"]) for row in rows if row["source"]) == [
        ("0", "1"),
        ("1", "2"),
    ]
    run = Run(trained / "run")
    explainer = Explainer(run, None, held_out(run, 100))
    (found,) = explainer.graphs(run.read(["CCO"]))
    total = sum(float(row["contribution"]) for row in rows)
    assert total == pytest.approx(found.nodes.sum() + found.edges.sum(), rel=1e-4)


def test_graphs_that_are_no_molecules_get_a_table(tmp_path: Path) -> None:
    graphs = [nx.gnm_random_graph(6, m, seed=m) for m in range(4, 13)] * 3
    for number, graph in enumerate(graphs):
        graph.graph["y"] = float(number)
    with no_pictures():
        train(graphs, target="y", width=4, layers=1, epochs=2, out=tmp_path / "run")
    done = CliRunner().invoke(
        app, ["explain", str(tmp_path / "run"), "--smiles", "CCO", "--device", "cpu"]
    )
    assert isinstance(done.exception, G2N2Error)
    (tmp_path / "new.g6").write_text("C~\nBw\n")
    words = ["explain", str(tmp_path / "run"), str(tmp_path / "new.g6"), "--device", "cpu"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "why.csv")])
    assert done.exception is None, done.exception
    assert "note: no check on held-out graphs" in done.output, "they were in memory"
    with (tmp_path / "why.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    edges = [float(row["contribution"]) for row in rows if row["source"] and row["id"] == "0"]
    assert len(edges) == 6
    assert edges == pytest.approx([edges[0]] * 6, rel=1e-3), "the edges of K4 are alike"
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "why.svg")])
    assert "only molecules are drawn" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "say what to explain: g2n2 explain RUN FILE, or --smiles CCO"),
        (("--smiles", "C(C"), "not SMILES"),
        (("--smiles", "CCO", "--target", "y"), "no target 'y'; it has: oxygens"),
        (("--smiles", "CCO", "--out", "why.pdf"), "end the name in .svg (a drawing) or .csv"),
    ],
)
def test_what_cannot_be_explained(trained: Path, words: tuple[str, ...], part: str) -> None:
    assert part in explain(trained, *words)


def test_a_network_of_several_targets_asks_which() -> None:
    done = CliRunner().invoke(app, ["explain", "qm9", "--smiles", "CCO"])
    assert "choose what to explain with --target: mu, alpha" in str(done.exception)
