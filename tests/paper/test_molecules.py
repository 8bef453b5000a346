"""Molecule sets: equal molecules for every contender, scores, and graphs without RDKit."""

import errno
import gzip
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from g2n2.data.batch import GraphBatch
from g2n2.data.store import GraphStore
from g2n2.errors import DataError
from g2n2.training.trained_on import checksum
from g2n2_paper import molecule_sets, molecules
from g2n2_paper.molecule_sets import SETS, load_graphs, write_graphs
from g2n2_paper.molecules import SMOKE, Problem, cells, contender_cell, fit_forests
from g2n2_paper.pyg_networks import GINE
from g2n2_paper.record import CellRecord
from g2n2_paper.report.entries import Entries
from g2n2_paper.report.facts import molecules as facts
from g2n2_paper.report.tables import Results
from g2n2_paper.runner import Job, run_cells

pytest.importorskip("rdkit")
BACE, LIPOPHILICITY, TOX21, MOLHIV = SETS
RINGS = ("c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCNC1", "c1ccsc1", "C1CC1")
TAILS = ("C", "CC", "O", "N", "Cl", "F", "CO", "CN", "N#C", "CCC")
SMILES = [tail + ring for tail in TAILS for ring in RINGS]
FAKE_CHEMPROP = """#!{python}
import csv, sys
from pathlib import Path
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
rows = list(csv.DictReader(open(given["--data-path"])))
assert given["--task-type"] == "classification"
assert {{row["split"] for row in rows}} == {{"train", "val", "test"}}
out = Path(given["--output-dir"], "model_0")
out.mkdir(parents=True)
test = [row["smiles"] + "," + row["Class"] for row in rows if row["split"] == "test"]
(out / "test_predictions.csv").write_text("\\n".join(["smiles,Class", *test[::{step}]]))
"""
"""In place of Chemprop: its predictions are the targets."""


@pytest.fixture
def data(tmp_path) -> Path:
    """Folders as of MoleculeNet: the label of a molecule is whether it has chlorine or fluorine."""
    folder = tmp_path / "data" / "moleculenet"
    folder.mkdir(parents=True)
    labels = [int("Cl" in text or "F" in text) for text in SMILES]
    rows = [f"{smiles},{label}" for smiles, label in zip(SMILES, labels, strict=True)]
    rows.insert(4, "C(C)(C)(C)(C)C,1")  # a carbon with five bonds: not read
    (folder / "bace.csv").write_text("\n".join(["smiles,Class", *rows]))
    molecule_sets._read.cache_clear()
    return folder.parent


@pytest.fixture
def job(tmp_path, data) -> Job:
    (tmp_path / "work").mkdir()
    return Job(tmp_path / "work", tmp_path / "results", "cpu", str(data))


def chemprop(monkeypatch, folder: Path, step: int = 1) -> None:
    command = folder / "chemprop"
    command.write_text(FAKE_CHEMPROP.format(python=sys.executable, step=step))
    command.chmod(0o755)
    monkeypatch.setenv(molecules.CHEMPROP_VARIABLE, str(command))


def test_contenders_have_the_same_molecules_and_other_seeds_others(monkeypatch, tmp_path, job):
    chemprop(monkeypatch, tmp_path)
    chosen = [cell for cell in cells(smoke=True) if "/random/" in cell.name]
    assert len(chosen) == len(molecules.CONTENDERS)
    outcomes = run_cells(chosen[:3], job)
    assert [o.state for o in outcomes] == ["done"] * 3, outcomes
    records = [CellRecord.read(path) for path in (job.results / "molecules").glob("*.json")]
    assert len({(r.data["BACE"], r.data["split"]) for r in records}) == 1
    assert all(r.metrics["CPU seconds"] > 0 for r in records)
    by_name = {record.cell: record.metrics["test ROC-AUC"] for record in records}
    assert by_name["BACE/random/Chemprop"] == 1.0
    other = contender_cell("forest-morgan", Problem(BACE, "random", 1, SMOKE)).run(job)
    assert other.data["split"] != records[0].data["split"]
    assert other.data["BACE"] == records[0].data["BACE"]


def test_a_digest_sees_one_molecule_in_another_part(data):
    graphs = BACE.read(str(data))
    parts = dict(graphs.splits)
    moved = {**parts, "validation": parts["test"], "test": parts["validation"]}
    before, after = (
        molecule_sets.digests(BACE, replace(graphs, splits=p))["split"] for p in (parts, moved)
    )
    assert before != after


@pytest.mark.slow
def test_networks_are_trained_by_the_recipe_without_rdkit(monkeypatch, tmp_path, data, job):
    write_graphs(BACE, tmp_path / "prepared", str(data))
    monkeypatch.setattr(molecule_sets, "find_spec", lambda name: None)
    molecule_sets._read.cache_clear()
    job = replace(job, data=str(tmp_path / "prepared"))
    outcomes = run_cells([c for c in cells(smoke=True) if "/random/" in c.name][3:], job)
    assert [o.state for o in outcomes] == ["done"] * 2, outcomes
    gine, ours = (
        CellRecord.read(job.results / "molecules" / f"BACE-random-{name}.s0.json")
        for name in ("GINE", "G2N2")
    )
    assert gine.data == ours.data
    theirs, defaults = (dict(record.config["recipe settings"]) for record in (gine, ours))
    for name in ("width", "rate"):  # those of the default network depend on the device
        del theirs[name], defaults[name]
    assert theirs == defaults
    assert (gine.config["baseline"], ours.config["baseline"]) == ("GINE", None)


def test_time_of_attempts_that_were_stopped_counts(monkeypatch, job):
    clock = iter([10.0, 17.0])
    monkeypatch.setattr(molecules, "cpu_seconds", lambda: next(clock))

    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        molecules.timed(job, molecules.CPU, stopped)
    clock = iter([100.0, 102.0, 102.0])
    assert molecules.timed(job, molecules.CPU, lambda: "done") == ("done", 7.0 + 2.0)


def test_chemprop_must_predict_the_test_molecules(monkeypatch, tmp_path, job):
    chemprop(monkeypatch, tmp_path, step=-1)
    problem = Problem(BACE, "random", 0, SMOKE)
    with pytest.raises(DataError, match="other molecules than the test part"):
        contender_cell("Chemprop", problem).run(job)
    monkeypatch.setenv(molecules.CHEMPROP_VARIABLE, "/bin/false")
    with pytest.raises(DataError, match="/bin/false failed"):
        contender_cell("Chemprop", problem).run(job)


def test_the_defaults_are_those_of_g2n2_train():
    config = contender_cell("G2N2", Problem(LIPOPHILICITY, "scaffold", 2)).settings
    default = vars(molecules.RunConfig("Lipophilicity", split="stored", seed=2))
    assert {name: default[name] for name in config if name != "limit"} == {
        name: value for name, value in config.items() if name != "limit"
    }


def test_graphs_without_rdkit_are_the_same(monkeypatch, tmp_path, data):
    graphs = BACE.read(str(data))
    assert (len(graphs), graphs.source["rows"][3:5]) == (60, (3, 5))
    path = write_graphs(BACE, tmp_path / "prepared" / "moleculenet", str(data))
    monkeypatch.setattr(molecule_sets, "find_spec", lambda name: None)
    molecule_sets._read.cache_clear()
    with pytest.raises(DataError, match="g2n2-paper molecule-graphs"):
        BACE.read(str(data))
    prepared = BACE.read(str(tmp_path / "prepared"))
    assert checksum(prepared) == checksum(graphs)
    assert (prepared.columns, prepared.node_names) == (graphs.columns, graphs.node_names)
    assert molecule_sets.digests(BACE, prepared) == molecule_sets.digests(BACE, graphs)
    content, altered = path.read_bytes(), BytesIO()
    with np.load(path) as file:
        np.savez(altered, **{**file, "targets": 1 - file["targets"]})
    for damaged in (content[: len(content) // 2], b"", b"no archive", altered.getvalue()):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="truncated or altered"):
            load_graphs(path)


def test_the_official_split_goes_by_rows_of_the_file(data):
    folder = data / "moleculenet"
    lines = ["smiles,activity,HIV_active", "CCO,CI,0", "CXC,CI,0", "c1ccccc1,CA,1", "CCN,CI,0"]
    with gzip.open(folder / "HIV.csv.gz", "wt", newline="\r\n") as file:
        file.write("\n".join(lines) + "\n")
    with gzip.open(folder / "molhiv_split.csv.gz", "wt") as file:
        file.write("row,part\n0,test\n1,train\n2,val\n3,train\n")
    splits = MOLHIV.read(str(data)).splits
    assert {part: rows.tolist() for part, rows in splits.items()} == {
        "train": [2], "validation": [1], "test": [0],
    }  # fmt: skip
    molecule_sets._read.cache_clear()
    with gzip.open(folder / "molhiv_split.csv.gz", "wt") as file:
        file.write("row,part\n0,test\n1,val\n2,train\n3,train\n")
    with pytest.raises(DataError, match="'validation' of the split holds no graph"):
        MOLHIV.read(str(data))


def test_missing_labels_take_no_part(data):
    graphs = BACE.read(str(data))
    rng = np.random.default_rng(0)
    targets = np.repeat(graphs.targets, 2, axis=1)
    targets[rng.random(60) < 0.4, 1] = np.nan
    columns = (graphs.columns[0], replace(graphs.columns[0], name="second"))
    both = replace(graphs, targets=targets, columns=columns)
    both = replace(both, splits={"train": np.arange(60), "test": np.arange(60)})
    predicted = rng.random((60, 2))
    known = np.isfinite(targets[:, 1])
    expected = np.mean(
        [
            roc_auc_score(targets[:, 0], predicted[:, 0]),
            roc_auc_score(targets[known, 1], predicted[known, 1]),
        ]
    )
    found = Problem(TOX21, "random", 0).score(both, predicted)["test ROC-AUC"]
    assert found == pytest.approx(expected, abs=1e-12)
    halogen = targets[:, :1].astype(np.float32)
    assert (fit_forests(both, halogen, 5, 0).round() == halogen).all()


@pytest.mark.parametrize("lacking", ["data", "chemprop", "rdkit"])
def test_what_is_lacking_is_told(monkeypatch, tmp_path, job, lacking):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(molecules.CHEMPROP_VARIABLE, raising=False)
    monkeypatch.delenv("G2N2_DATA", raising=False)
    problem, expected = Problem(BACE, "random", 0, SMOKE), "no command chemprop"
    cell = contender_cell("Chemprop", problem)
    if lacking == "data":
        job, expected = replace(job, data=str(tmp_path)), "BACE needs the file bace.csv"
        cell = contender_cell("forest-morgan", problem)
    elif lacking == "rdkit":
        monkeypatch.setattr(molecules, "find_spec", lambda name: name != "rdkit" or None)
        cell, expected = contender_cell("forest-morgan", problem), "forest-morgan needs rdkit"
    (outcome,) = run_cells([cell], job)
    assert (outcome.state, expected in outcome.reason) == ("failed", True), outcome


def test_gine_reads_bonds_and_no_padding(data):
    graphs = BACE.read(str(data))
    torch.manual_seed(0)
    model = GINE(graphs.node_features.shape[1], graphs.edge_features.shape[1], 8, 2).eval()
    store = GraphStore(graphs)

    def outputs(batch: GraphBatch):
        return model(batch).detach()

    whole = outputs(store.batch(np.arange(60)))
    alone = torch.cat([outputs(store.batch(np.array([index]))) for index in range(60)])
    assert torch.allclose(whole, alone, atol=1e-5)
    batch = store.batch(np.arange(60))
    bonds = replace(batch, edges=batch.edges.roll(1, dims=-1))
    assert (outputs(bonds) - whole).abs().min() > 1e-4


def record(cell: str, seed: int, value: float, split: str = "s") -> CellRecord:
    name = cell.partition("/")[0]
    metric = "test RMSE" if name == "Lipophilicity" else "test ROC-AUC"
    values = {metric: value, "CPU seconds": 30.0}
    return CellRecord(
        "molecules", cell, seed, 1, "trees", values, {}, {name: "f", "split": split}, {}, 1.0
    )


def test_ctrl_c_on_a_full_disk_still_stops_what_is_timed(tmp_path, monkeypatch):
    def no_space(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(molecules, "replace_file", no_space)
    with pytest.raises(KeyboardInterrupt):
        molecules.timed(Job(tmp_path), molecules.CPU, stopped)
    assert molecules.timed(Job(tmp_path), molecules.CPU, lambda: 7)[0] == 7


def test_the_page_says_who_wins(tmp_path):
    for seed in range(3):
        record("Lipophilicity/random/GINE", seed, 0.6 + seed / 10).write(tmp_path)
        record("Lipophilicity/random/G2N2", seed, 0.8).write(tmp_path)
        record("BACE/random/GINE", seed, 0.9001).write(tmp_path)
        record("BACE/random/G2N2", seed, 0.8999).write(tmp_path)
    record("BACE/random/Chemprop", 0, 0.7).write(tmp_path)
    results = Results(tmp_path)
    summary = facts(results)
    assert (summary["reached"], summary["behind"]) == (
        ["BACE (random)"],
        ["Lipophilicity (random)"],
    )
    assert summary["sets"] == [], "the scaffold split of BACE was not run"
    cited = {"molhiv (official)": "random forest, Morgan fingerprints (cited)"}
    assert summary["best"] == {"BACE (random)": "GINE"} | cited, "the best of one says nothing"
    assert "BACE (scaffold)" in summary["absent"]["Chemprop"]
    assert "Lipophilicity (random)" in summary["absent"]["Chemprop"]
    assert "BACE (random)" not in summary["absent"]["Chemprop"]
    assert "Tox21 (random)" in summary["absent"]["g2n2 defaults"]
    lines = [line.strip("|").split("|") for line in Entries(results).molecules_table().splitlines()]
    head, _, *rows = [[cell.strip() for cell in line] for line in lines]
    scores = {label: dict(zip(head[1:], row, strict=True)) for label, *row in rows}
    errors = scores["Lipophilicity, random (RMSE)"]
    assert errors["GINE"] == "**0.700 ± 0.100 (30 s)**"
    assert errors["g2n2 defaults"] == "0.800 ± 0.000 (30 s)"
    areas = scores["BACE, random (ROC-AUC)"]
    assert areas["g2n2 defaults"].startswith("**0.900")
    assert areas["GINE"].startswith("**0.900")
    assert areas["Chemprop"] == "0.700 (30 s, 1 seed)"
    assert scores["molhiv, official (ROC-AUC)"]["Chemprop"] == "0.79 (cited)"
    assert scores["molhiv, official (ROC-AUC)"]["GINE"] == "–"
    assert not any("molhiv" in split for split in summary["absent"]["Chemprop"])
    assert "molhiv (official)" in summary["absent"]["GINE"]


def test_what_is_cited_is_not_run():
    names = {cell.name for cell in cells()}
    assert "molhiv/official/Chemprop" not in names
    assert {"molhiv/official/GINE", "Tox21/random/Chemprop"} <= names


@pytest.mark.parametrize(("area", "where"), [(0.805, "behind"), (0.806, "reached")])
def test_molhiv_is_compared_with_what_is_published(area, where, tmp_path):
    record("molhiv/official/GINE", 0, 0.7).write(tmp_path)
    record("molhiv/official/G2N2", 0, area).write(tmp_path)
    assert facts(Results(tmp_path))[where] == ["molhiv (official, one seed)"]


def test_contenders_on_other_molecules_are_not_put_side_by_side(tmp_path):
    record("BACE/random/GINE", 0, 0.9).write(tmp_path)
    record("BACE/random/Chemprop", 0, 0.8, split="another").write(tmp_path)
    with pytest.raises(DataError, match="not that of the other contenders"):
        Entries(Results(tmp_path)).molecules_table()
