"""`g2n2 explain`: a drawing of molecules, a table of any graphs, a check, and errors."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pytest
from typer.testing import CliRunner

from g2n2.cli import app
from g2n2.data.readers.molecules import molecule_of
from g2n2.errors import G2N2Error
from g2n2.training.explain_run import Explainer, held_out
from g2n2.training.run import Run
from g2n2.training.session import train, train_config
from small_runs import no_pictures, small_config

pytest.importorskip("rdkit", reason="molecules are read with RDKit")

ENDS = ("O", "N", "C", "F", "(=O)O", "[O-].[Na+]")
MOLECULES = [f"{'C' * n}{end}" for n in range(1, 8) for end in ENDS]


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
    assert "2 molecules in" in shown
    assert "hydrogens count" not in shown, "they are no nodes here"
    assert re.search(r"rank correlation of 0\.[5-9]|rank correlation of 1", shown), shown
    assert "words oxygens follows" in shown
    drawing = out.read_text()
    assert drawing.lstrip().startswith("<?xml")
    root = ElementTree.fromstring(out.read_bytes())  # by the encoding it declares
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "CCCO"
    assert texts[1].startswith("oxygens ")
    assert texts[2] == "OCC"
    assert texts[4].startswith("Red raises the prediction, blue lowers it")


def test_what_is_unlike_the_training_molecules_is_said(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.svg"
    words = ("--out", str(out), "--check", "0", "--words", "0")
    shown = explain(trained, "--smiles", "C#CO", "--smiles", "CCS", "--smiles", "CCO", *words)
    assert "note: sp 1 of an atom, in training always 0" in shown
    assert "CCS: not explained, as it is not predicted: S was never seen in training" in shown
    assert "2 molecules in" in shown
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", out.read_text())
    assert "CCS" not in texts
    assert texts.count("(see its note)") == 1
    assert "no graph to explain" in explain(trained, "--smiles", "CCS", *words)
    unseen = explain(trained, "--smiles", f"{30 * 'O'}S", "--smiles", "CCO", *words)
    assert "S was never seen" in unseen
    assert "predicted, in training" not in unseen, "nothing is predicted"
    large = explain(trained, "--smiles", 30 * "O", *words)
    assert "predicted, in training" in large


def test_an_element_without_a_feature_keeps_its_symbol(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.csv"
    explain(trained, "--smiles", "[Na+].CC[O-]", "--out", str(out), "--check", "0", "--words", "0")
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["element"] for row in rows if row["node"]] == ["Na", "C", "C", "O"]
    drawn = explain(trained, "--smiles", "[Na+].CC[O-]", "--out", str(tmp_path / "why.svg"))
    assert "X0" not in drawn
    (graphs,) = (Run(trained / "run", "cpu").read(["CC", "[Na+].CC[O-]"]).select([1]),)
    atoms = [atom.GetSymbol() for atom in molecule_of(graphs, 0).GetAtoms()]
    assert atoms == ["Na", "C", "C", "O"]


def test_repeated_ids_are_those_of_predictions(trained: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "why.csv"
    source.write_text("id,smiles\nx,CCO\ny,CCC\nx,CO\n")
    explain(trained, str(source), "--out", str(out), "--check", "0", "--words", "0")
    with out.open(newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file) if row["node"]]
    assert ids == ["x"] * 3 + ["y"] * 3 + ["x"] * 2


def test_hydrogens_count_with_their_atom_and_it_is_said(tmp_path: Path) -> None:
    words = [
        "explain",
        "qm9",
        "--target",
        "alpha",
        "--smiles",
        "CO",
        "--check",
        "0",
        "--words",
        "0",
    ]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "why.csv")])
    assert "hydrogens count with the atom they are on" in done.output
    with (tmp_path / "why.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    atoms = [float(row["contribution"]) for row in rows if row["node"]]
    bonds = {
        (int(row["source"]), int(row["target"])): float(row["contribution"])
        for row in rows
        if row["source"]
    }
    oxygen = atoms[1] + atoms[5] + bonds[1, 5]  # C O and then H of C, H of O
    shown = re.search(r"(\S+)  atom O1", done.output)
    assert shown is not None, done.output
    assert float(shown[1].replace("−", "-")) == pytest.approx(oxygen, rel=0.01)
    assert "atom H" not in done.output
    out = ["--out", str(tmp_path / "few.csv")]
    few = CliRunner().invoke(app, [w.replace("CO", "C") for w in words] + out)
    assert "atom C0" in few.output
    assert "atom H" not in few.output
    CliRunner().invoke(app, [*words, "--out", str(tmp_path / "why.svg")])
    root = ElementTree.fromstring((tmp_path / "why.svg").read_bytes())
    text = " ".join(element.text or "" for element in root.iter())
    assert re.search(r"alpha \d+\.\d+ a₀³", text), text
    assert "Hydrogens count with the atom they are on." in text


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"baseline": "GIN"}, "no words are named: the baseline GIN has no grammar"),
        ({"grammar": "r-G_L3Σ", "marks": "heavy"}, "no words are named: words with marks are"),
        ({"grammar": "GNNML1"}, "words the logit of p(acid=yes) follows"),
    ],
)
def test_classes_are_named_and_so_is_what_has_no_words(
    settings: dict[str, str], reason: str, tmp_path: Path
) -> None:
    rows = [f"{text},{'yes' if '=O' in text else 'no'}" for text in MOLECULES]
    (tmp_path / "mine.csv").write_text("\n".join(["smiles,acid", *rows]) + "\n")
    config = small_config(
        dataset=str(tmp_path / "mine.csv"),
        options={}, target=("acid",), split="random", batch=16, epochs=1, **settings,
    )  # fmt: skip
    with no_pictures():
        train_config(config, tmp_path / "run")
    shown = explain(tmp_path, "--smiles", "CCO", "--out", str(tmp_path / "why.svg"), "--check", "2")
    assert shown.startswith("CCO: p(acid=yes) 0.")
    assert reason in shown
    assert "in logits, compared with" in (tmp_path / "why.svg").read_text()


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
        (("--smiles", "C(C"), "RDKit cannot parse it"),
        (("--smiles", "CCO", "--target", "y"), "no target 'y'; it has: oxygens"),
        (("--smiles", "CCO", "--out", "why.pdf"), "end the name in .svg (a drawing) or .csv"),
    ],
)
def test_what_cannot_be_explained(trained: Path, words: tuple[str, ...], part: str) -> None:
    assert part in explain(trained, *words)


def test_what_is_read_is_not_overwritten(trained: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("smiles\nCCO\n")
    for out in (new, trained / "mine.csv"):
        before = out.read_bytes()
        assert "would overwrite" in explain(trained, str(new), "--out", str(out))
        assert out.read_bytes() == before


def test_a_network_of_several_targets_asks_which() -> None:
    done = CliRunner().invoke(app, ["explain", "qm9", "--smiles", "CCO"])
    assert "choose what to explain with --target: mu, alpha" in str(done.exception)
