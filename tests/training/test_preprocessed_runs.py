"""Runs with degrees as classes, joined columns and descriptors: trained, written down, predicted."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from g2n2.data.preprocessing import UNSEEN
from g2n2.data.reading import read_graphs
from g2n2.errors import DataError
from g2n2.training.config import RunConfig
from g2n2.training.run import Run
from g2n2.training.session import train
from g2n2.training.setup import prepare

QUICK: dict[str, Any] = {
    "grammar": "GNNML1",
    "width": 8,
    "layers": 1,
    "device": "cpu",
    "threads": 1,
    "pictures": False,
}


def trees(count: int = 40) -> list[nx.Graph]:
    """Random trees; y is the number of leaves."""
    graphs = [nx.random_labeled_tree(5 + seed % 5, seed=seed) for seed in range(count)]
    for graph in graphs:
        graph.graph["y"] = float(sum(degree == 1 for _, degree in graph.degree()))
    return graphs


def test_degrees_are_classes_of_the_training_graphs_and_of_new_ones(tmp_path: Path) -> None:
    run = train(trees(), out=tmp_path / "run", epochs=2, **QUICK)
    data = json.loads((tmp_path / "run" / "data.json").read_text())
    degrees = data["preprocessing"]["degrees"]
    of_training = [
        {degree for _, degree in trees()[index].degree()} for index in run.files.splits()["train"]
    ]
    assert degrees == sorted(
        {d for some in of_training for d in some if sum(d in other for other in of_training) > 1}
    )
    assert data["node_names"] == [*(f"degree {degree}" for degree in degrees), UNSEEN]
    new = [nx.path_graph(4), nx.star_graph(12)]
    values = run.predict(new).values
    again = Run(tmp_path / "run", "cpu")
    assert (again.predict(new).values == values).all()
    assert again.predict(new[::-1]).values[::-1] == pytest.approx(values, abs=1e-5)
    assert "other degree" in str(again.predict(new[1:]).rows()[0]["note"])
    edges = "graph,source,target\n" + "".join(
        f"{number},{u},{v}\n" for number, graph in enumerate(new) for u, v in graph.edges
    )
    (tmp_path / "new.csv").write_text(edges)
    run.predict_to(tmp_path / "new.csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        written = [float(row["y"]) for row in csv.DictReader(file)]
    assert written == pytest.approx(values[:, 0], abs=1e-4)


def test_switched_off_and_in_folders_without_it_nodes_keep_their_constant(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = train(trees(), out=folder, epochs=2, preprocess="none", **QUICK)
    values = run.predict(trees(4)).values
    assert run.trained_on.node_names == ("one",)
    for name, keys in (("config.json", ("preprocess",)), ("data.json", ("preprocessing",))):
        content = json.loads((folder / name).read_text())
        assert all(content.pop(key) is not None for key in keys)
        (folder / name).write_text(json.dumps(content))
    (folder / "manifest.json").unlink()  # as in a folder of an earlier version
    old = Run(folder, "cpu", graphs=run._graphs)
    assert old.config.preprocess == "none"
    assert (old.predict(trees(4)).values == values).all()
    assert len(old.evaluate("test")) == 4


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose target is the column `dose` but for the size of the molecule."""
    pytest.importorskip("rdkit", reason="molecules are read with RDKit")
    folder = tmp_path_factory.mktemp("joined")
    draw = np.random.default_rng(0)
    lines = ["smiles,dose,y"]
    for number in range(80):
        dose = draw.uniform(200, 900)
        lines.append(f"{'C' * (1 + number % 5)}O,{dose:.3f},{dose / 100 + number % 5:.4f}")
    (folder / "table.csv").write_text("\n".join(lines))
    arguments = {**QUICK, "width": 16, "epochs": 30, "rate": 1e-2}
    train(folder / "table.csv", "y", out=folder / "run", options={"join": "dose"}, **arguments)
    return folder


def test_a_joined_column_is_learned_from(joined: Path) -> None:
    run = Run(joined / "run", "cpu")
    assert run.scores["y"]["r2"] > 0.9  # without the column at most what the size explains: 0.3
    (joined / "new.csv").write_text("smiles,dose\nCCO,300\nCCO,800\nCCO,\nCCO,2000\n")
    outcome = run.predict(joined / "new.csv")
    assert outcome.values[1, 0] - outcome.values[0, 0] == pytest.approx(5.0, abs=1.0)
    made = run.predict_to(joined / "new.csv", joined / "out.csv", chunk=2)
    assert (made.rows, made.unread) == (3, 1)
    assert made.first_unread == ("2", "dose is empty, expected a finite number")
    with (joined / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    written = [float(row["y"]) for row in rows if row["y"]]
    assert np.isnan(outcome.values[:, 0]).tolist() == [False, False, True, False]
    assert written == pytest.approx(outcome.values[[0, 1, 3], 0], rel=1e-6)
    assert "column dose" in rows[3]["note"]
    assert "deviations from the mean, in training" in rows[3]["note"]


def test_without_the_column_a_run_does_not_guess(joined: Path) -> None:
    run = Run(joined / "run", "cpu")
    (joined / "bare.csv").write_text("smiles\nCCO\n")
    for attempt in (run.predict, lambda path: run.predict_to(path, joined / "none.csv")):
        with pytest.raises(DataError, match=r"bare\.csv has no column 'dose'.*to be joined"):
            attempt(joined / "bare.csv")
    with pytest.raises(DataError, match="the list lacks column dose"):
        run.predict(["CCO", "CC"])


def test_descriptors_are_computed_for_new_molecules(tmp_path: Path) -> None:
    descriptors = pytest.importorskip("rdkit.Chem.Descriptors", reason="needs RDKit")
    chem = pytest.importorskip("rdkit.Chem")
    smiles = [f"{'C' * (1 + k % 7)}{tail}" for k in range(40) for tail in ("O", "N", "Cl")]
    rows = [f"{s},{descriptors.MolWt(chem.MolFromSmiles(s))}" for s in smiles]
    (tmp_path / "table.csv").write_text("\n".join(["smiles,y", *rows]))
    options = {"descriptors": True}
    run = train(
        tmp_path / "table.csv", "y", out=tmp_path / "run", options=options, epochs=2, **QUICK
    )
    assert "descriptor MolWt" in run.trained_on.node_names
    listed = Run(tmp_path / "run", "cpu").predict(smiles[:5]).values
    (tmp_path / "new.csv").write_text("\n".join(["smiles", *smiles[:5]]))
    assert (run.predict(tmp_path / "new.csv").values == listed).all()


def test_only_training_graphs_are_looked_at() -> None:
    graphs = [nx.path_graph(4), nx.path_graph(5), nx.star_graph(9), nx.star_graph(9)]
    for graph in graphs:
        graph.graph["y"] = float(len(graph))
    columns = np.array([[1.0], [3.0], [500.0], [700.0]])
    read = replace(read_graphs(graphs), graph_features=columns, graph_names=("column a",))
    splits = {"train": np.array([0, 1]), "validation": np.array([2]), "test": np.array([3])}
    parts = prepare(RunConfig("own"), read, splits)
    assert parts.preprocessing.degrees == (1, 2)
    assert parts.graphs.node_names == ("degree 1", "degree 2", UNSEEN, "column a")
    assert parts.graphs.select([0, 1]).node_features[:, 3].tolist() == [-1.0] * 4 + [1.0] * 5
